//! Where the hits of `trapline trace` go: files, formats, times, limits, and the exit status.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Output, Stdio};

use serde_json::Value;
use support::terminal::Terminal;
use support::tracer::trace;
use support::{App, Missing, TempFile, Tracer, json_lines, process, test, testapp, text, unique};

/// Launches `program` under `trace`.
fn launched(arguments: &[&str], program: &[&str]) -> Result<Output, Missing> {
    let path = testapp(program[0])?;
    let mut command = trace(arguments);
    command.arg("--").arg(path).args(&program[1..]);
    Ok(command
        .stdin(Stdio::null())
        .output()
        .expect("trapline runs"))
}

/// A file that `trace` makes.
struct Made(TempFile);

impl Made {
    fn new(ending: &str) -> Made {
        let name = format!("{}{ending}", unique("trapline-out"));
        Made(TempFile::at(std::env::temp_dir().join(name)))
    }

    fn name(&self) -> &str {
        self.0.as_ref().to_str().expect("UTF-8")
    }

    fn read(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_else(|error| panic!("{}: {error}", self.name()))
    }
}

/// The records of that type.
fn records(lines: &str, kind: &str) -> Vec<Value> {
    let mut records = json_lines(lines.lines());
    records.retain(|record| record["type"] == kind);
    records
}

fn hits(text: &str) -> usize {
    text.lines().filter(|line| line.contains(": (0x")).count()
}

#[test]
fn every_output_gets_every_hit() {
    test(|| {
        let (lines, json) = (Made::new(".txt"), Made::new(".records"));
        std::fs::write(&lines.0, "what was there\n".repeat(10_000)).expect("a file");
        let named = format!("jsonl:{}", json.name());
        let output = launched(
            &["-o", lines.name(), "-o", &named, "-o", "-", "-e", "*Fibon"],
            &["fibon", "--calls", "300"],
        )?;
        assert!(output.status.success());
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(out, lines.read());
        assert_eq!((hits(&out), out.lines().count()), (300, 300));
        assert_eq!(records(&json.read(), "hit").len(), 300);
        assert_eq!(records(&json.read(), "summary")[0]["records"], "300");
        // What the program prints is not among the records.
        assert!(errors.contains("\ncalls=300 "), "{errors}");
        let said = "The program's standard output goes to standard error.\n";
        assert_eq!(errors.matches(said).count(), 1, "{errors}");
        Ok(())
    });
}

#[test]
fn files_alone_leave_standard_output_to_the_program() {
    test(|| {
        let lines = Made::new(".txt");
        let program = ["fibon", "--calls", "20"];
        let output = launched(&["-o", lines.name(), "-e", "*Fibon"], &program)?;
        assert!(output.status.success());
        let out = text(&output.stdout);
        assert!(
            out.contains("\ncalls=20 ") && out.lines().count() == 2,
            "{out}"
        );
        assert_eq!(hits(&lines.read()), 20);
        Ok(())
    });
}

/// Nothing is made, overwritten or traced by a command line that is wrong.
#[test]
fn wrong_usage_touches_nothing() {
    test(|| {
        let kept = TempFile::new("kept");
        let kept_name = format!("text:{}", kept.path());
        let target = App::start(&testapp("fibon")?, &["--wait"]);
        let pid = target.pid().to_string();
        for (wrong, said) in [
            (&["-o", "a.pcapng"][..], "the ending .pcapng is not known"),
            (&["-o", "a"], "a file without an ending"),
            (&["-o", "html:a"], "`html:' is no format"),
            (&["--json", "-o", "text:-"], "one format only"),
            (&["-o", "-", "-o", "jsonl:-"], "one format only"),
            (&["--duration", "10"], "a unit is missing"),
            (&["--time", "local"], "mono, wall, delta"),
            (&["--count", "0"], "0"),
        ] {
            let mut arguments = vec!["-p", &pid, "-e", "*Fibon", "-o", &kept_name];
            arguments.extend(wrong);
            let output = trace(&arguments).output().expect("trapline runs");
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{wrong:?}: {errors}");
            assert!(errors.contains(said), "{wrong:?}: {errors}");
            if wrong[0] == "-o" && wrong[1].len() < 9 && wrong[1] != "-" {
                let known = "use FILE.jsonl or jsonl:FILE, FILE.txt or text:FILE, and - for";
                assert!(errors.contains(known), "{errors}");
            }
        }
        assert_eq!(std::fs::read_to_string(kept.path()).expect("kept"), "kept");
        process::wait_untraced(target.pid());
        Ok(())
    });
}

#[test]
fn a_full_disk_leaves_the_other_outputs() {
    test(|| {
        let json = Made::new(".jsonl");
        let program = ["fibon", "--calls", "20000"];
        let output = launched(
            &["-o", "text:/dev/full", "-o", json.name(), "-e", "*Fibon"],
            &program,
        )?;
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        let said = "warning: /dev/full: No space left on device: no more records are written";
        assert_eq!(errors.matches(said).count(), 1, "{errors}");
        let summary = records(&json.read(), "summary");
        let written = records(&json.read(), "hit").len();
        assert_eq!(summary[0]["records"], written.to_string(), "{}", summary[0]);
        let counted = format!("/dev/full: {written} records were not written");
        assert!(errors.contains(&counted), "{errors}");
        assert!(text(&output.stdout).contains("calls=20000 "));
        Ok(())
    });
}

/// The program goes on when there is nothing left to write to.
#[test]
fn a_full_disk_alone_ends_the_trace() {
    test(|| {
        let mut target = App::start(&testapp("fibon")?, &["--wait", "--forever"]);
        target.expect("ready");
        let pid = target.pid().to_string();
        let mut tracer = App::spawn(trace(&["-p", &pid, "-o", "text:/dev/full", "-e", "*Fibon"]));
        tracer.expect("  probe 1: ");
        target.send("go");
        let (status, said) = tracer.finish();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("records were not written"), "{said}");
        target.send("stop");
        target.succeed();
        Ok(())
    });
}

/// `| head -1`: with hits that go on, and without another hit.
#[test]
fn a_closed_pipe_ends_with_success() {
    for calls in [&["--forever"][..], &["--sample", "--linger"]] {
        test(|| {
            let arguments = [&["--wait", "--calls", "2"], calls].concat();
            let mut target = App::start(&testapp("fibon")?, &arguments);
            target.expect("ready");
            let mut tracer = trace(&["-p", &target.pid().to_string(), "-e", "*Fibon"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("trapline runs");
            let mut out = BufReader::new(tracer.stdout.take().expect("a pipe"));
            let mut errors = BufReader::new(tracer.stderr.take().expect("a pipe"));
            let mut banner = String::new();
            while !banner.contains("  probe 1: ") {
                assert!(
                    errors.read_line(&mut banner).expect("stderr") > 0,
                    "{banner}"
                );
            }
            target.send("go");
            let mut first = String::new();
            out.read_line(&mut first).expect("stdout");
            assert_eq!(hits(&first), 1, "{first}");
            drop(out);
            let mut rest = String::new();
            errors.read_to_string(&mut rest).expect("stderr");
            let status = tracer.wait().expect("our child");
            assert!(status.success(), "{rest}");
            assert!(
                rest.contains("trapline: ") && rest.contains(" hits"),
                "{rest}"
            );
            target.send("stop");
            target.succeed();
            Ok(())
        });
    }
}

/// The shown times are those of the JSON fields.
#[test]
fn each_clock() {
    test(|| {
        for clock in ["mono", "wall", "delta"] {
            let json = Made::new(".jsonl");
            let output = launched(
                &[
                    "--time",
                    clock,
                    "-o",
                    "-",
                    "-o",
                    json.name(),
                    "-e",
                    "*Fibon",
                ],
                &["fibon", "--calls", "50"],
            )?;
            let out = text(&output.stdout);
            let shown: Vec<&str> = out
                .lines()
                .filter_map(|line| line.split_once("] ")?.1.split_once(": "))
                .map(|(time, _)| time)
                .collect();
            let hits = records(&json.read(), "hit");
            let field = |hit: &Value, name: &str| -> i128 {
                let text = hit[name].as_str().expect("a string");
                text.parse().expect("a number")
            };
            let seconds = |ns: i128| {
                let sign = if ns < 0 { "-" } else { "" };
                let ns = ns.abs();
                format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
            };
            let mut before = field(&hits[0], "mono_ns");
            let expected: Vec<String> = hits
                .iter()
                .map(|hit| match clock {
                    "mono" => seconds(field(hit, "mono_ns")),
                    "wall" => seconds(field(hit, "wall")),
                    _ => {
                        let now = field(hit, "mono_ns");
                        seconds(now - std::mem::replace(&mut before, now))
                    }
                })
                .collect();
            assert_eq!(shown, expected, "{clock}");
            assert_eq!(shown.len(), 50);
            if clock == "wall" {
                let now = std::time::SystemTime::now();
                let now = now.duration_since(std::time::UNIX_EPOCH).expect("a time");
                let last = field(&hits[49], "wall") / 1_000_000_000;
                assert!(now.as_secs() as i128 - last < 60, "{last}");
            }
        }
        Ok(())
    });
}

#[test]
fn the_count_is_exact_with_many_threads() {
    test(|| {
        let json = Made::new(".jsonl");
        let output = launched(
            &[
                "--count",
                "137",
                "-o",
                "-",
                "-o",
                json.name(),
                "-e",
                "*site",
            ],
            &["threads", "--threads", "20", "--rounds", "50"],
        )?;
        assert!(output.status.success());
        let out = text(&output.stdout);
        assert_eq!((hits(&out), out.lines().count()), (137, 137));
        assert_eq!(records(&json.read(), "hit").len(), 137);
        assert_eq!(records(&json.read(), "summary")[0]["records"], "137");
        Ok(())
    });
}

#[test]
fn the_count_is_that_of_all_targets() {
    test(|| {
        let start = || -> Result<App, Missing> {
            let mut target = App::start(&testapp("fibon")?, &["--wait", "--forever"]);
            target.expect("ready");
            Ok(target)
        };
        let (mut one, mut two) = (start()?, start()?);
        let pids = [one.pid().to_string(), two.pid().to_string()];
        let asked = "*Fibon { while 0; end; print 1 }";
        for probe in ["*Fibon", asked] {
            let json = Made::new(".jsonl");
            let mut tracer = App::spawn(trace(&[
                "-p",
                &pids[0],
                "-p",
                &pids[1],
                "--count",
                "301",
                "-o",
                json.name(),
                "-e",
                probe,
            ]));
            tracer.expect("  probe 1: ");
            if probe != asked {
                one.send("go");
                two.send("go");
            }
            tracer.succeed();
            assert_eq!(records(&json.read(), "hit").len(), 301, "{probe}");
        }
        one.send("stop");
        two.send("stop");
        one.succeed();
        two.succeed();
        Ok(())
    });
}

#[test]
fn a_duration_ends_the_trace_and_not_the_program() {
    test(|| {
        let mut target = App::start(&testapp("fibon")?, &["--wait"]);
        target.expect("ready");
        let pid = target.pid().to_string();
        let output = trace(&["-p", &pid, "--duration", "0.3s", "--json", "-e", "*Fibon"])
            .output()
            .expect("trapline runs");
        assert!(output.status.success());
        let summary = records(&text(&output.stdout), "summary");
        let ns: u64 = summary[0]["duration_ns"]
            .as_str()
            .and_then(|ns| ns.parse().ok())
            .expect("ns");
        assert!((300_000_000..20_000_000_000).contains(&ns), "{ns}");
        process::wait_untraced(target.pid());
        target.send("go");
        target.succeed();
        Ok(())
    });
}

#[test]
fn read_only_refuses_by_name_before_anything_is_touched() {
    test(|| {
        let script = TempFile::new("break *Fibon\ncommands\nset {char}($rsp) = 'a'\nend\n");
        let program = ["fibon", "--calls", "10"];
        for (arguments, named) in [
            (
                ["-e", "*Fibon { x/s $rsi; set $rdi = 1 }"],
                "`set $rdi = 1'",
            ),
            (["-e", "*Fibon if $rdi++ == 3"], "`$rdi++ == 3'"),
            (
                ["-e", "*Fibon { if 1 { print leaves = 3 } }"],
                "`print leaves = 3'",
            ),
            (["-x", &script.path()], "`set {char}($rsp) = 'a''"),
        ] {
            let mut arguments = arguments.to_vec();
            arguments.push("--read-only");
            let output = launched(&arguments, &program)?;
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{errors}");
            let said = format!("{named} would change the program, which --read-only forbids.");
            assert!(errors.contains(&said), "{errors}");
            assert!(output.stdout.is_empty() && !errors.contains("tracing process"));
        }
        let looks = "*Fibon { set $n = $n + 1; print $n; x/2xb $rsp }";
        let output = launched(&["--read-only", "-e", looks], &program)?;
        assert!(output.status.success());
        assert_eq!(hits(&text(&output.stdout)), 10);
        Ok(())
    });
}

#[test]
fn read_only_at_the_prompt() {
    test(|| {
        let mut target = App::start(&testapp("fibon")?, &["--wait", "--calls", "10"]);
        target.expect("ready");
        let pid = target.pid().to_string();
        let mut commands = vec!["--read-only", "-p", &pid];
        for command in [
            "set $n = 3",
            "print $n",
            "set var *(long*)&leaves = 7",
            "print *(long*)&leaves = 7",
            "set $rdi = 7",
            "break *Fibon if $rax = 3",
            "kill",
        ] {
            commands.extend(["-ex", command]);
        }
        let (status, said) = Tracer::Trapline.batch(&commands)?.finish();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("$1 = 3"), "{said}");
        let refused = "The program is not changed: --read-only was given.";
        assert_eq!(said.matches(refused).count(), 3, "{said}");
        assert!(
            said.contains("`$rax = 3' would change the program"),
            "{said}"
        );
        assert!(
            said.contains(&format!("Process {pid} is not ended")),
            "{said}"
        );
        target.send("go");
        // Had a write gone through, the count would be another one.
        let line = target.expect("calls=");
        assert!(
            line.contains("leaves=7") == line.contains("inner=3"),
            "{line}"
        );
        target.succeed();
        Ok(())
    });
}

#[test]
fn colors_are_for_terminals() {
    test(|| {
        let program = ["fibon", "--calls", "3"];
        let colored = "\u{1b}[1mFibon\u{1b}[0m: \u{1b}[2m(0x";
        let of = |arguments: &[&str]| -> Result<String, Missing> {
            Ok(text(&launched(arguments, &program)?.stdout))
        };
        assert!(!of(&["-e", "*Fibon"])?.contains('\u{1b}'));
        assert!(of(&["--color", "always", "-e", "*Fibon"])?.contains(colored));
        assert!(!of(&["--color", "always", "--json", "-e", "*Fibon"])?.contains('\u{1b}'));

        let path = testapp("fibon")?.display().to_string();
        for (variable, arguments, wanted) in [
            ("", &[][..], true),
            ("1", &[], false),
            ("1", &["--color=always"], true),
            ("", &["--color=never"], false),
        ] {
            let mut command = trace(arguments);
            command.args(["-e", "*Fibon", "--", &path, "--calls", "3"]);
            command.env("NO_COLOR", variable);
            let (status, shown) = Terminal::start(&command, "xterm").end_raw();
            assert!(status.success(), "{shown}");
            assert_eq!(shown.contains(colored), wanted, "{arguments:?}: {shown}");
        }
        Ok(())
    });
}

#[test]
fn strict_tells_faults_by_the_status() {
    test(|| {
        let program = ["fibon", "--calls", "10"];
        let faulty = ["-e", "*Fibon { x/xb 0 }"];
        assert_eq!(launched(&faulty, &program)?.status.code(), Some(0));
        let strict = [&faulty[..], &["--strict"]].concat();
        assert_eq!(launched(&strict, &program)?.status.code(), Some(1));
        let fine = ["--strict", "-e", "*Fibon"];
        assert_eq!(launched(&fine, &program)?.status.code(), Some(0));
        let missing = ["-e", "nosuchfunction"];
        assert_eq!(launched(&missing, &program)?.status.code(), Some(1));
        Ok(())
    });
}

/// What a script prints beside its hits does not get among the JSON.
#[test]
fn a_script_s_own_text_is_no_record() {
    test(|| {
        let script = TempFile::new("echo begin\\n\nprint 1\ntrace *Fibon { print 2 }\n");
        let program = ["fibon", "--calls", "10"];
        let output = launched(&["--json", "-x", &script.path()], &program)?;
        assert!(output.status.success());
        assert_eq!(records(&text(&output.stdout), "hit").len(), 10);
        assert!(text(&output.stderr).contains("begin\n$1 = 1\n"));
        let output = launched(&["-x", &script.path()], &program)?;
        assert!(text(&output.stdout).contains("begin\n$1 = 1\n"));
        Ok(())
    });
}
