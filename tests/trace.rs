//! `trapline trace`: every hit is a line, on a stdout that may be slow.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::app::number;
use support::tracer::trace;
use support::{App, Missing, TempFile, json_lines, process, schema, test, testapp, text, unique};

/// Launches `fibon` with `calls` under `trace`; what it wrote to stdout.
fn launched(arguments: &[&str], calls: &str) -> Result<String, Missing> {
    let program = testapp("fibon")?.display().to_string();
    let mut command = trace(arguments);
    command.args(["--", &program, "--calls", calls]);
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("trapline runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    Ok(text(&output.stdout))
}

#[test]
fn the_default_line() {
    test(|| {
        let text = launched(&["-e", "*Fibon"], "200")?;
        let line = regex::Regex::new(
            r"^ *fibon-\d+ +\[\d+\] +\d+\.\d{9}: Fibon: \(0x[0-9a-f]+\) arg1=\S+ arg2=\S+",
        )
        .expect("a pattern");
        let hits = text.lines().filter(|text| line.is_match(text)).count();
        assert_eq!(hits, 200, "{text}");
        Ok(())
    });
}

#[test]
fn json_version_1() {
    test(|| {
        let text = launched(&["--json", "-e", "*Fibon"], "200")?;
        let records = json_lines(text.lines());
        let hits: Vec<_> = records
            .iter()
            .filter(|record| record["type"] == "hit")
            .collect();
        assert_eq!(hits.len(), 200, "{text}");
        for hit in hits {
            assert_eq!(hit["v"], 1, "{hit}");
            // 64-bit numbers are strings, as readers round them.
            let time = hit["mono_ns"]
                .as_str()
                .and_then(|time| time.parse::<u64>().ok());
            assert!(time.is_some_and(|time| time > 0), "{hit}");
            assert!(hit["tid"].is_u64() && hit["comm"] == "fibon", "{hit}");
        }
        Ok(())
    });
}

/// Every line, of each kind, is what `schema/record-v1.json` says.
#[test]
fn json_keeps_to_its_schema() {
    test(|| {
        let schema = schema("record-v1.json");
        let text = launched(
            &[
                "--json",
                "-e",
                "*Fibon",
                "-e",
                r#"*Fibon if $rdi == 3 { x/2xb $rsp; printf "n=%d \"\\ \t\n", $rdi; echo \377\n }"#,
                "-e",
                r"*(Fibon+4) { x/xb 8; echo never\n }",
                "-e",
                "*(Fibon+4) if *(char*)16 == 1",
                // What does not compile asks the front.
                "-e",
                "*(Fibon+1) { while $rdi < 0; end; print/x 77 }",
                "-e",
                "*(Fibon+1) { while $nothing; end; print $nothing + 1 }",
            ],
            "200",
        )?;
        let mut kinds = std::collections::BTreeSet::new();
        for record in json_lines(text.lines()) {
            if let Err(error) = schema.validate(&record) {
                panic!("{error}: {record}");
            }
            kinds.insert(record["type"].as_str().expect("a type").to_owned());
        }
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        assert_eq!(kinds, ["fault", "hit", "summary"], "{text}");
        let asked = text.matches(" = 0x4d\"").count();
        assert_eq!(asked, 200, "{text}");
        Ok(())
    });
}

/// Bodies that the front runs, in two processes that lie at different addresses.
#[test]
fn two_targets_are_asked_about_each_its_own() {
    test(|| {
        let start = || -> Result<App, Missing> {
            let mut target = App::start(&testapp("fibon")?, &["--wait", "--calls", "100"]);
            target.expect("ready");
            Ok(target)
        };
        let (mut first, mut second) = (start()?, start()?);
        let pids = [first.pid(), second.pid()];
        let [one, two] = pids.map(|pid| pid.to_string());
        let probe = r#"*Fibon { while 0; end; printf "at %d %d\n", $rip == (long)&Fibon, *(unsigned char*)&Fibon }"#;
        let mut tracer = App::spawn(trace(&["-p", &one, "-p", &two, "-e", probe]));
        tracer.expect("  probe 1: ");
        first.send("go");
        second.send("go");
        first.succeed();
        second.succeed();
        let text = tracer.succeed();
        assert_eq!(text.matches("at 1 85\n").count(), 200, "{text}");
        Ok(())
    });
}

#[test]
fn a_condition() {
    test(|| {
        let all = launched(&["-e", "*Fibon { printf \"n=%ld\\n\", $arg1 }"], "300")?;
        let some = launched(
            &["-e", "*Fibon if $arg1 == 3 { printf \"n=%ld\\n\", $arg1 }"],
            "300",
        )?;
        let threes = |text: &str| text.lines().filter(|line| *line == "n=3").count();
        assert!(threes(&all) > 0);
        assert_eq!(threes(&all), threes(&some));
        assert_eq!(
            some.lines().filter(|line| line.starts_with("n=")).count(),
            threes(&some)
        );
        Ok(())
    });
}

/// A target by name: the exact base name of what it was started as.
#[test]
fn attached_by_name() {
    test(|| {
        let name = unique("fibon");
        let link = TempFile::at(std::env::temp_dir().join(&name));
        std::os::unix::fs::symlink(testapp("fibon")?, &link).expect("a link");
        let mut target = App::start(link.as_ref(), &["--wait", "--calls", "300"]);
        drop(link);
        target.expect("ready");
        let mut tracer = App::spawn(trace(&["-p", &name, "-e", "*Fibon"]));
        // The banner comes when all is armed.
        tracer.expect("  probe 1: ");
        target.send("go");
        target.succeed();
        let text = tracer.succeed();
        assert_eq!(text.matches(": Fibon: (").count(), 300, "{text}");
        Ok(())
    });
}

/// Nobody reads stdout for five seconds: the target goes on, and what is dropped is counted and shown.
#[test]
fn a_stalled_reader_stalls_nobody() {
    test(|| {
        let mut target = App::start(&testapp("fibon")?, &["--wait", "--calls", "100000"]);
        target.expect("ready");
        let pid = target.pid();
        let mut tracer = trace(&["-p", &pid.to_string(), "-e", "*Fibon"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("trapline runs");
        let stdout = tracer.stdout.take().expect("a pipe");
        let mut stderr = BufReader::new(tracer.stderr.take().expect("a pipe"));
        // The banner comes when all is armed.
        let mut banner = String::new();
        while !banner.contains("  probe 1: ") {
            assert!(
                stderr.read_line(&mut banner).expect("stderr") > 0,
                "{banner}"
            );
        }

        target.send("go");
        let begin = Instant::now();
        let line = target.expect("calls=");
        assert_eq!(number(&line, "calls"), 100_000);
        // Five seconds in all without a reader, whatever the calls took.
        process::until(begin + Duration::from_secs(5), || false);

        let read = BufReader::new(stdout)
            .lines()
            .map_while(Result::ok)
            .filter(|line| line.contains(": Fibon: ("))
            .count();
        let mut summary = String::new();
        stderr.read_to_string(&mut summary).expect("stderr");
        let _ = kill(Pid::from_raw(tracer.id().cast_signed()), Signal::SIGINT);
        let status = tracer.wait().expect("our child");
        assert!(status.success(), "{summary}");
        assert!(read <= 100_000);
        let dropped = (100_000 - read).to_string();
        assert!(
            read == 100_000 || summary.contains("drop") && summary.contains(&dropped),
            "{read} lines read:\n{summary}"
        );
        Ok(())
    });
}
