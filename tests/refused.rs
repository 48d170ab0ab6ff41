//! What `trapline trace` refuses before it touches anything, and what it goes on without.

mod support;

use std::io::Write;
use std::process::{Output, Stdio};

use nix::sys::signal::Signal;
use support::{App, Missing, TempFile, process, temp_path, test, testapp, text};

/// Launches `program` under `trace`, with `input` on standard input.
fn launched(arguments: &[&str], program: &[&str], input: &str) -> Result<Output, Missing> {
    let mut child = support::tracer::trapline()
        .arg("trace")
        .args(arguments)
        .arg("--")
        .arg(testapp(program[0])?)
        .args(&program[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("trapline runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // Who refuses at once does not read it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    Ok(child.wait_with_output().expect("trapline runs"))
}

const FIBON: &[&str] = &["fibon", "--calls", "10"];

/// The program was not even begun.
fn refused(arguments: &[&str], status: i32, parts: &[&str]) -> Result<(), Missing> {
    let output = launched(arguments, FIBON, "")?;
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{errors}");
    for part in parts {
        assert!(errors.contains(part), "{part:?} is not in:\n{errors}");
    }
    assert!(
        output.stdout.is_empty() && !errors.contains("calls="),
        "{errors}"
    );
    Ok(())
}

#[test]
fn wrong_wording_is_no_name_that_may_come_later() {
    test(|| {
        let use_it =
            "`%ret' behind main is nothing that is known; use main%return for its ways out.";
        refused(
            &["-e", "*Fibon", "-e", "main%ret"],
            2,
            &["-e 'main%ret': ", use_it],
        )?;
        refused(
            &["-e", "%return"],
            2,
            &["-e '%return': ", "FUNCTION%return"],
        )?;
        refused(
            &["-e", "/(/"],
            2,
            &["-e '/(/': Invalid regexp /(/: unclosed group."],
        )?;
        let script = TempFile::new("trace main%ret\n");
        let output = launched(&["-x", &script.path()], FIBON, "")?;
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(use_it), "{errors}");
        assert!(!errors.contains("nowhere yet"), "{errors}");
        Ok(())
    });
}

#[test]
fn one_output_given_twice_is_not_made() {
    test(|| {
        let path = temp_path("twice");
        let (text, json) = (
            format!("text:{}", path.display()),
            format!("jsonl:{}", path.display()),
        );
        refused(
            &["-e", "*Fibon", "-o", &text, "-o", &json],
            2,
            &["it is given twice"],
        )?;
        assert!(!path.exists());
        Ok(())
    });
}

#[test]
fn a_script_without_an_end() {
    test(|| {
        let said = "/dev/zero: it has more than 16 MiB, which no script of commands has.";
        refused(&["-x", "/dev/zero"], 1, &[said])?;
        let script = TempFile::new("source /dev/zero\n");
        let output = launched(&["-x", &script.path()], FIBON, "")?;
        assert!(text(&output.stderr).contains(said));
        Ok(())
    });
}

/// A pipe gives its text once: what was checked is what runs.
#[test]
fn a_script_from_a_pipe_is_checked_and_run() {
    test(|| {
        let arguments = ["--read-only", "-x", "/dev/stdin"];
        let output = launched(&arguments, FIBON, "trace *Fibon\n")?;
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{errors}");
        assert!(errors.contains("probe 1: *Fibon: 10 hits"), "{errors}");
        let output = launched(&arguments, FIBON, "trace *Fibon { set $rdi = 1 }\n")?;
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(
            errors.contains("`set $rdi = 1' would change the program"),
            "{errors}"
        );
        Ok(())
    });
}

#[test]
fn a_probe_that_cannot_be_armed_is_left_out() {
    test(|| {
        let first = ["first", "--calls", "5"];
        let probes = ["-e", "*r_int3 { }", "-e", "main", "-e", "*r_ud2 { }"];
        let output = launched(&probes, &first, "")?;
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        for (number, name, why) in [
            (1, "r_int3", "an interrupt reports its own address"),
            (3, "r_ud2", "fault at its own address"),
        ] {
            let of = |start: &str| {
                let lines = errors.lines().filter(|line| line.starts_with(start));
                lines.filter(|line| line.contains(why)).count()
            };
            assert_eq!(of("warning: not armed: 0x"), 1, "{errors}");
            let end = format!("probe {number} (*{name}): not armed: 0x");
            assert_eq!(of(&end), 1, "{errors}");
        }
        assert!(errors.contains("probe 2: main: 1 hit"), "{errors}");
        // Alone it is an error at once.
        let output = launched(&probes[..2], &first, "")?;
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("Cannot insert breakpoint 1."), "{errors}");
        assert!(!errors.contains("hits"), "{errors}");
        Ok(())
    });
}

#[test]
fn a_probe_that_one_of_several_processes_lacks_is_told_once() {
    test(|| {
        let mut fibon = App::start(&testapp("fibon")?, &["--wait", "--calls", "10"]);
        fibon.expect("ready");
        let mut loads = App::start::<&str>(&testapp("loads")?, &[]);
        loads.expect("ready");
        let mut command = support::tracer::trapline();
        command.args(["trace", "-e", "Fibon", "-e", "main in fibon"]);
        command.args([
            "-p",
            &fibon.pid().to_string(),
            "-p",
            &loads.pid().to_string(),
        ]);
        let mut session = App::spawn(command);
        session.expect("  probe 2: ");
        // Everything is looked for again.
        loads.ask("open", "open");
        loads.ask("close", "close");
        session.signal(Signal::SIGINT);
        let (status, errors) = session.finish();
        assert!(status.success(), "{errors}");
        let said = format!(
            "warning: probe 1 (Fibon) is not in process {} (loads): Function \"Fibon\" not defined.",
            loads.pid()
        );
        assert_eq!(errors.matches(&said).count(), 1, "{errors}");
        assert_eq!(errors.matches("is not in process").count(), 1, "{errors}");
        process::wait_untraced(loads.pid());
        loads.send("quit");
        fibon.send("go");
        loads.succeed();
        fibon.succeed();
        Ok(())
    });
}
