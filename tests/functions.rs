//! What bodies and conditions can do beside gdb's commands: functions on memory, rates, delays, functions that
//! are skipped.

mod support;

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use support::app::number;
use support::{App, Missing, Tracer, json_lines, test, testapp, text};

/// Runs `returns` with arguments under `trapline trace --json`: the lines, and what stderr said.
fn traced(options: &[&str], arguments: &[&str]) -> Result<(Vec<Value>, String), Missing> {
    let program = testapp("returns")?;
    let output = support::tracer::trapline()
        .args(["trace", "--json"])
        .args(options)
        .arg("--")
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("trapline runs");
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    Ok((json_lines(text(&output.stdout).lines()), stderr))
}

fn hits(lines: &[Value], probe: u64) -> Vec<&Value> {
    let hits = lines.iter().filter(|line| line["type"] == "hit");
    hits.filter(|line| line["probe"] == probe).collect()
}

/// A condition on each function, true or not; those that the front must match too.
#[test]
fn conditions_on_text() {
    test(|| {
        let word = "((char**)$rsi)[1]";
        let digits = "((char**)$rsi)[2]";
        let conditions = [
            (format!("$_streq({word}, \"alpha\")"), true),
            (format!("$_streq({word}, \"alph\")"), false),
            (format!("$_streq(\"alphabet\", {word})"), false),
            (format!("$_memeq({word}, \"alphabet\", 5)"), true),
            (format!("$_memeq({word}, \"alphabet\", 6)"), false),
            (format!("$_strlen({word}) == 5"), true),
            (format!("$_atoi({digits}) == 1234"), true),
            (format!("$_atoi({digits}, 2) == 12"), true),
            (format!("$_atoi({word}) == 0"), true),
            (format!("$_regex({word}, \"a.*a\")"), true),
            (format!("$_regex({word}, \"l\")"), false),
            ("$_streq($_comm, \"returns\")".into(), true),
            (
                "$_streq($_func, \"main\") && $_streq($_probe, \"*main\")".into(),
                true,
            ),
            ("$_random(1000) < 1000 && $_random() >= 0".into(), true),
            // No string is there.
            ("$_streq(8, \"x\")".into(), false),
        ];
        let probes: Vec<String> = conditions
            .iter()
            .map(|(condition, _)| format!("*main if {condition}"))
            .collect();
        let options: Vec<&str> = probes.iter().flat_map(|p| ["-e", p.as_str()]).collect();
        let (lines, stderr) = traced(&options, &["alpha", "1234"])?;
        for (probe, (condition, holds)) in (1..).zip(&conditions) {
            let count = hits(&lines, probe).len();
            assert_eq!(count, usize::from(*holds), "{condition}: {stderr}");
        }
        let faults: Vec<&Value> = lines.iter().filter(|l| l["type"] == "fault").collect();
        assert_eq!(faults.len(), 1, "{lines:?}");
        assert_eq!(faults[0]["message"], "Cannot access memory at address 0x8");
        Ok(())
    });
}

/// The front shows the same values from the record, a random number too.
#[test]
fn bodies_with_text() {
    test(|| {
        let body = "*main { printf \"%d %d %ld %s %s\\n\", $_streq(((char**)$rsi)[1], \"alpha\"), \
            $_strlen(((char**)$rsi)[2]), $_atoi(((char**)$rsi)[2]), $_comm, $_func; \
            set $r = $_random(1000000); printf \"%ld\\n\", $r; print $r }";
        let (lines, _) = traced(&["-e", body], &["alpha", "1234"])?;
        let out = &hits(&lines, 1)[0]["out"];
        assert_eq!(out[0], "1 4 1234 returns main");
        let drawn = out[1].as_str().expect("a number");
        assert_eq!(out[2], format!("$1 = {drawn}"));
        Ok(())
    });
}

/// At the prompt they give what gdb's give.
#[test]
fn functions_are_gdbs() {
    test(|| {
        let program = testapp("returns")?.display().to_string();
        let words = "((char**)$rsi)";
        let prints = [
            format!("print $_streq({words}[1], \"alpha\")"),
            format!("print $_streq({words}[1], \"alphabet\")"),
            format!("print $_streq({words}[1], {words}[1]) + 1"),
            format!("print !$_streq({words}[1], {words}[2])"),
            format!("print $_strlen({words}[2])"),
            format!("print $_regex({words}[1], \"a.*a\")"),
            format!("print $_regex({words}[1], \"lph\")"),
            "whatis $_streq(\"a\", \"b\")".into(),
        ];
        let mut arguments = vec!["-ex", "break *main", "-ex", "run"];
        arguments.extend(prints.iter().flat_map(|print| ["-ex", print.as_str()]));
        arguments.extend(["-ex", "kill", "--args", &program, "alpha", "1234"]);
        let values = |tracer: Tracer| -> Result<Vec<String>, Missing> {
            let (_, text) = tracer.batch(&arguments)?.finish();
            let values = text
                .lines()
                .filter(|l| l.starts_with('$') || l.starts_with("type"));
            Ok(values.map(String::from).collect())
        };
        let gdbs = values(Tracer::Gdb)?;
        assert!(gdbs.len() >= 7, "{gdbs:?}");
        assert_eq!(values(Tracer::Trapline)?[..7], gdbs[..7]);
        Ok(())
    });
}

/// All hits are counted, the rate of them shown.
#[test]
fn a_rate_of_the_hits() {
    test(|| {
        let (lines, stderr) = traced(
            &[
                "-e",
                "*factorial sample 10%",
                "-e",
                "*factorial if $rdi == 3 sample 1/4 { print $rdi }",
                "-e",
                "*factorial sample 1/100 { while 0; end; print 1 }",
                "-e",
                "*tail if $_regex($_func, \"tai\") sample 1/20",
            ],
            &[],
        )?;
        let calls = stderr.lines().find(|l| l.starts_with("factorial calls="));
        let calls = number(calls.expect("a line"), "calls");
        let summary = lines.last().expect("a summary");
        for (probe, rate) in [(0, 10), (2, 100)] {
            let of = &summary["probes"][probe];
            assert_eq!(of["hits"], calls.to_string());
            let shown = calls.div_ceil(rate);
            assert_eq!(of["records"], shown.to_string(), "{of}");
            assert_eq!(of["skipped"], (calls - shown).to_string());
            assert_eq!(hits(&lines, probe as u64 + 1).len() as u64, shown);
        }
        // The front decides about this condition, and then about the rate.
        let asked = &summary["probes"][3];
        assert_eq!(
            (&asked["hits"], &asked["records"]),
            (&"100".into(), &"5".into())
        );
        assert_eq!(hits(&lines, 4).len(), 5);
        let threes = hits(&lines, 2);
        assert!(threes.len() >= 25, "{}", threes.len());
        assert!(
            threes
                .iter()
                .all(|hit| hit["out"][0].as_str().is_some_and(|o| o.ends_with("= 3")))
        );
        Ok(())
    });
}

/// A thread is held for its time, and the others go on meanwhile.
#[test]
fn a_delay_holds_one_thread() {
    test(|| {
        let (lines, _) = traced(
            &[
                "-e",
                "*landing",
                "-e",
                "*landing if $rdi == 5 { delay 300ms }",
            ],
            &[],
        )?;
        let time = |hit: &Value| -> u64 {
            let time = hit["mono_ns"].as_str().expect("a time");
            time.parse().expect("a number")
        };
        let mut begins: BTreeMap<u64, u64> = BTreeMap::new();
        for hit in hits(&lines, 2) {
            begins.insert(hit["tid"].as_u64().expect("a thread"), time(hit));
        }
        assert_eq!(begins.len(), 4);
        for (tid, begin) in &begins {
            let all = hits(&lines, 1);
            let mut later = all
                .iter()
                .filter(|hit| hit["tid"] == *tid && time(hit) > *begin);
            let next = time(later.next().expect("a later hit"));
            assert!(next - begin >= 300_000_000, "{tid}: {}", next - begin);
        }
        // Four one after the other would take four times as long.
        let (first, last) = (begins.values().min(), begins.values().max());
        let apart = last.expect("four") - first.expect("four");
        assert!(apart < 600_000_000, "{apart}");
        Ok(())
    });
}

/// The end of the front ends a delay too, whether it leaves or is killed.
#[test]
fn a_delay_ends_with_the_front() {
    test(|| {
        let program = testapp("returns")?.display().to_string();
        let probe = "*landing if $rdi == 5 { delay 1h }";
        let started = Instant::now();
        let output = support::tracer::trapline()
            .args(["trace", "-e", probe, "--duration", "500ms", "--", &program])
            .stdin(Stdio::null())
            .output()
            .expect("trapline runs");
        // The program runs on to its end, and its output with it.
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("landing calls=100 returns=100"), "{text}");
        let mut command = support::tracer::trapline();
        command.args([
            "trace",
            "-e",
            probe,
            "-e",
            "*landing if $rdi == 4",
            "--",
            &program,
        ]);
        let mut app = App::spawn(command);
        for _ in 0..4 {
            app.line("a hit", |line| line.contains(": landing: "));
        }
        app.signal(Signal::SIGKILL);
        app.expect("landing calls=100 returns=100");
        assert!(started.elapsed() < Duration::from_secs(50));
        Ok(())
    });
}

/// A function is skipped, with a value.
#[test]
fn a_function_is_skipped() {
    test(|| {
        let (lines, stderr) = traced(
            &[
                "-e",
                "*target { return 7 }",
                "-e",
                "tail%return if $_retval == 7",
                "-e",
                "target%return",
            ],
            &[],
        )?;
        let calls = stderr.lines().find(|l| l.starts_with("target calls="));
        let calls = number(calls.expect("a line"), "calls");
        assert_eq!(hits(&lines, 1).len() as u64, calls);
        assert_eq!(hits(&lines, 2).len(), 100);
        assert_eq!(hits(&lines, 3).len(), 0);
        let mut command = support::tracer::trapline();
        let program = testapp("returns")?;
        command
            .args(["trace", "--read-only", "-e", "*target { return 7 }", "--"])
            .arg(program);
        let (status, text) = App::spawn(command).finish();
        assert!(!status.success() && text.contains("read-only"), "{text}");
        Ok(())
    });
}

/// `return` at the prompt, where it is certain, as gdb does it.
#[test]
fn return_at_the_prompt() {
    test(|| {
        let program = testapp("returns")?.display().to_string();
        for place in ["*target", "target"] {
            let answers = |tracer: Tracer| -> Result<Vec<String>, Missing> {
                let place = format!("break {place}");
                let mut app = tracer.start(&[
                    "-ex",
                    "set disable-randomization on",
                    "-ex",
                    &place,
                    "-ex",
                    "run",
                    "-ex",
                    "return (int)5",
                    "-ex",
                    "print $rax",
                    "-ex",
                    "info registers rip",
                    "-ex",
                    "kill",
                    "-ex",
                    "quit",
                    &program,
                ])?;
                let (_, text) = app.finish();
                let from = text.lines().skip_while(|line| !line.starts_with("Make"));
                Ok(from.take(4).map(String::from).collect())
            };
            let ours = answers(Tracer::Trapline)?;
            assert_eq!(ours, answers(Tracer::Gdb)?);
            assert_eq!(ours.len(), 4, "{ours:?}");
        }
        let mut app = Tracer::Trapline.batch(&[
            "-ex",
            "return",
            "-ex",
            "break *(target+2)",
            "-ex",
            "run",
            "-ex",
            "return",
            &program,
        ])?;
        let (_, text) = app.finish();
        assert!(text.contains("The program is not being run."), "{text}");
        Ok(())
    });
}
