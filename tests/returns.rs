//! `LOCATION%return`: every way out of a function once, with the values of the entry of that very call.

mod support;

use std::collections::BTreeMap;
use std::process::Stdio;

use serde_json::Value;
use support::app::number;
use support::{App, Missing, Tracer, json_lines, test, testapp, text};

/// What `returns` does, with and without optimization.
const BUILDS: [&str; 2] = ["returns", "returns-O2"];

/// A run under `trapline trace --json`.
struct Run {
    hits: Vec<Value>,
    /// By probe number.
    probes: BTreeMap<u64, Value>,
    /// What the program said of each function: calls and returns.
    expected: BTreeMap<String, (u64, u64)>,
    stderr: String,
}

fn run(build: &str, probes: &[String]) -> Result<Run, Missing> {
    let program = testapp(build)?;
    let mut command = support::tracer::trapline();
    command.args(["trace", "--json"]);
    for probe in probes {
        command.args(["-e", probe]);
    }
    let output = command
        .arg("--")
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .expect("trapline runs");
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let mut run = Run {
        hits: Vec::new(),
        probes: BTreeMap::new(),
        expected: BTreeMap::new(),
        stderr,
    };
    for value in json_lines(text(&output.stdout).lines()) {
        match value["type"].as_str() {
            Some("hit") => run.hits.push(value),
            Some("summary") => {
                for probe in value["probes"].as_array().expect("probes") {
                    let number = probe["probe"].as_u64().expect("a number");
                    run.probes.insert(number, probe.clone());
                }
            }
            _ => panic!("{value}"),
        }
    }
    for line in run.stderr.lines().filter(|line| line.contains(" calls=")) {
        let name = line.split(' ').next().unwrap_or_default().to_owned();
        let counts = (number(line, "calls"), number(line, "returns"));
        run.expected.insert(name, counts);
    }
    assert_eq!(run.expected.len(), 10, "{}", run.stderr);
    Ok(run)
}

fn count(probe: &Value, what: &str) -> u64 {
    let value = &probe["calls"][what];
    let value = value.as_str().or(probe[what].as_str());
    value
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("no {what} in {probe}"))
}

impl Run {
    fn of(&self, probe: u64) -> impl Iterator<Item = &Value> {
        self.hits.iter().filter(move |hit| hit["probe"] == probe)
    }
}

const FUNCTIONS: [&str; 10] = [
    "factorial",
    "choose",
    "tail",
    "target",
    "through",
    "throwing",
    "catching",
    "jumping",
    "landing",
    "yielding",
];

/// Entries are returns and those that were left otherwise, to the last one: under recursion, on threads and
/// on coroutines that change threads, with exceptions and longjmp.
#[test]
fn every_call_is_accounted_for() {
    test(|| {
        for build in BUILDS {
            let probes: Vec<String> = FUNCTIONS
                .iter()
                .map(|name| format!("{name}%return if $_entry($rsp) == $rsp"))
                .collect();
            let run = run(build, &probes)?;
            for (probe, name) in (1..).zip(FUNCTIONS) {
                let (calls, returns) = run.expected[name];
                let counted = &run.probes[&probe];
                let context = format!("{build} {counted}\n{}", run.stderr);
                assert_eq!(count(counted, "entries"), calls, "{context}");
                assert_eq!(count(counted, "returns"), returns, "{context}");
                assert_eq!(count(counted, "dropped"), calls - returns, "{context}");
                for none in ["evicted", "open", "unknown", "faults", "drops"] {
                    assert_eq!(count(counted, none), 0, "{none}: {context}");
                }
                assert_eq!(count(counted, "hits"), returns, "{context}");
                assert_eq!(run.of(probe).count() as u64, returns, "{context}");
            }
        }
        Ok(())
    });
}

/// A return value, or that there is none yet.
#[test]
fn what_is_returned() {
    test(|| {
        for build in BUILDS {
            let jumps = build == "returns-O2";
            let run = run(
                build,
                &[
                    r#"factorial%return { printf "%ld! = %ld", $_entry($rdi), $_retval }"#.into(),
                    "tail%return".into(),
                    "tail%return if $_retval == 7".into(),
                    r#"throwing%return { printf "%ld %ld %ld", $_entry($arg1), $_entry($arg2), $retval }"#
                        .into(),
                    r#"yielding%return { printf "%ld %ld", $_entry($rsi), $_retval }"#.into(),
                ],
            )?;
            let factorials = [1, 1, 2, 6, 24, 120, 720];
            for hit in run.of(1) {
                let text = hit["out"][0].as_str().expect("a line");
                let (n, result) = text.split_once("! = ").expect("two numbers");
                let n: usize = n.parse().expect("a number");
                assert_eq!(result, factorials[n].to_string());
                assert_eq!(hit["retval"], format!("{:#x}", factorials[n]));
                assert_eq!(hit["func"], "factorial");
            }
            // The jump to another function has no value; its condition is not true, and counted.
            let values = |probe| {
                let of = run.of(probe);
                of.map(|hit| hit["retval"].as_str()).collect::<Vec<_>>()
            };
            let (all, sevens) = (values(2), values(3));
            let without = all.iter().filter(|value| value.is_none()).count();
            assert_eq!(all.len(), 100);
            assert_eq!(without, if jumps { 92 } else { 0 }, "{build}");
            assert_eq!(sevens, vec![Some("0x7"); 8]);
            let undecided = run.probes[&3]["undecided"].as_str();
            assert_eq!(undecided, jumps.then_some("92"));
            for hit in run.of(4).chain(run.of(5)) {
                let text = hit["out"][0].as_str().expect("a line");
                let numbers: Vec<i64> = text.split(' ').map(|n| n.parse().expect("n")).collect();
                match numbers[..] {
                    [n, depth, result] => assert_eq!(result, n + depth),
                    [n, result] => assert_eq!(result, n * 10),
                    _ => panic!("{text}"),
                }
            }
        }
        Ok(())
    });
}

/// A function with a table says what is left out; the parts that were moved away are in it.
#[test]
fn tables_and_parts_moved_away() {
    test(|| {
        let run = run(
            "returns-O2",
            &["choose%return".into(), "throwing%return".into()],
        )?;
        let remark = "choose: 1 jump through a table stays inside and is left out";
        assert!(run.stderr.contains(remark), "{}", run.stderr);
        // `choose` ends in its own returns and in a jump to `factorial`.
        let unknown = run.of(1).filter(|hit| hit["retval"].is_null()).count();
        assert!(unknown > 0 && unknown < run.of(1).count(), "{unknown}");
        assert_eq!(run.of(1).count() as u64, run.expected["choose"].1);
        assert_eq!(run.of(2).count() as u64, run.expected["throwing"].1);
        Ok(())
    });
}

/// What is set at the return is what the caller gets.
#[test]
fn a_return_value_is_changed() {
    test(|| {
        for set in ["set $_retval = 41", "set var $rax = 41"] {
            let program = testapp("returns")?.display().to_string();
            let mut app = Tracer::Trapline.batch(&[
                "-ex",
                "break target%return if $_entry($rdi) == 3",
                "-ex",
                "run",
                "-ex",
                "print $_retval",
                "-ex",
                "print $_entry($rdi) + 1",
                "-ex",
                "print $_entry($rsi)",
                "-ex",
                set,
                "-ex",
                "print $_retval",
                "-ex",
                "info breakpoints",
                "-ex",
                "delete",
                "-ex",
                "continue",
                &program,
            ])?;
            let (status, text) = app.finish();
            assert!(status.success(), "{text}");
            for line in ["$1 = 1003", "$2 = 4", "$3 = 41"] {
                assert!(text.lines().any(|l| l == line), "{line} in {text}");
            }
            assert!(
                text.contains("no condition or body named this expression"),
                "{text}"
            );
            assert!(text.contains("exited with code 01"), "{text}");
        }
        Ok(())
    });
}

/// A call that began before anybody looked returns without a known entry: counted, and said.
#[test]
fn a_call_that_began_before() {
    test(|| {
        let mut app = App::start(&testapp("fibon")?, &["--wait", "--calls", "1"]);
        app.expect("ready");
        let mut command = support::tracer::trapline();
        let pid = app.pid().to_string();
        command.args(["trace", "--json", "-p", &pid]);
        command.args(["-e", "main%return if $_entry($rdi) > 0"]);
        command.args(["-e", "main%return { print 1; print $_entry($rdi) }"]);
        let mut tracer = App::spawn(command);
        tracer.expect("trapline: tracing process");
        app.send("");
        app.succeed();
        let text = tracer.succeed();
        let message = "$_entry is not available: the call began before it was looked at.";
        assert!(text.contains(message), "{text}");
        let summary = text.lines().find(|line| line.contains("\"summary\""));
        let summary: Value = serde_json::from_str(summary.expect("a summary")).expect("JSON");
        let counted = |probe: usize| {
            let of = &summary["probes"][probe];
            ["hits", "unknown", "entries", "faults"].map(|what| count(of, what))
        };
        assert_eq!(counted(0), [0, 1, 0, 0], "{summary}");
        assert_eq!(counted(1), [1, 1, 0, 1], "{summary}");
        assert_eq!(count(&summary["probes"][0], "undecided"), 1);
        Ok(())
    });
}

/// A default line, at a return and at a jump.
#[test]
fn the_default_line() {
    test(|| {
        let program = testapp("returns-O2")?;
        let output = support::tracer::trapline()
            .args(["trace", "-e", "tail%return", "--"])
            .arg(program)
            .stdin(Stdio::null())
            .output()
            .expect("trapline runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let line = regex::Regex::new(
            r"(?m)^returns-O2-\d+ \[[-\d]+\] \d+\.\d{9}: tail%return: \(0x[0-9a-f]+\) retval=(0x7|<not available>)$",
        )
        .expect("a pattern");
        assert_eq!(line.find_iter(&text).count(), 100, "{text}");
        Ok(())
    });
}

/// What cannot be looked at is refused with the reason.
#[test]
fn what_is_refused() {
    test(|| {
        let program = testapp("returns")?.display().to_string();
        for (place, why) in [
            ("nosuch%return", "Function \"nosuch\" not defined."),
            ("_exit%return", "it has none"),
        ] {
            let mut app = Tracer::Trapline.batch(&[
                "-ex",
                "start",
                "-ex",
                &format!("break {place}"),
                &program,
            ])?;
            let (_, text) = app.finish();
            assert!(text.contains(why), "{place}: {text}");
        }
        Ok(())
    });
}
