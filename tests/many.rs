//! Thousands of sites at once: armed in a moment, counted exactly, taken out again, and what cannot be armed
//! is told.

mod support;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::process::Command;

use support::app::number;
use support::tracer::trace;
use support::{App, Missing, TempFile, Tracer, process, test, testapp, text};

const FUNCTIONS: usize = 5000;

/// The seconds of `5000 sites armed in 0.035 s`.
fn arming_time(stderr: &str, sites: usize) -> f64 {
    let before = format!("  {sites} sites armed in ");
    let line = stderr.lines().find_map(|line| line.strip_prefix(&before));
    let seconds = line.and_then(|rest| rest.strip_suffix(" s")?.parse().ok());
    seconds.unwrap_or_else(|| panic!("{stderr}"))
}

#[test]
fn every_function_of_thousands_is_hit_exactly() {
    test(|| {
        let program = testapp("many")?.display().to_string();
        let output = trace(&["-e", "/^many_/", "--", &program, "--rounds", "3"]).output();
        let output = output.expect("trapline runs");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{err}");
        assert!(arming_time(&err, FUNCTIONS) < 5.0, "{err}");
        let mut hits: BTreeMap<&str, usize> = BTreeMap::new();
        for line in out.lines().filter(|line| line.contains(": many_")) {
            let name = line.split(": ").nth(1).unwrap_or_default();
            *hits.entry(name).or_default() += 1;
        }
        assert_eq!(hits.len(), FUNCTIONS);
        assert!(hits.values().all(|count| *count == 3), "{hits:?}");
        assert!(hits.contains_key("many_4999"), "{hits:?}");
        Ok(())
    });
}

/// A program that waits; `ready` when its libraries are there.
fn waiting() -> Result<App, Missing> {
    let mut command = Command::new(testapp("many")?);
    command.args(["--wait", "--rounds", "2"]);
    let app = App::spawn(command);
    let waits = || {
        let call = std::fs::read_to_string(format!("/proc/{}/syscall", app.pid()));
        call.is_ok_and(|text| text.starts_with("0 0x0 "))
    };
    let deadline = std::time::Instant::now() + support::app::PATIENCE;
    assert!(process::until(deadline, waits));
    Ok(app)
}

fn address_of(pid: i32, name: &str) -> u64 {
    let mut command = support::tracer::trapline();
    command.args([
        "symbols",
        "--json",
        "-p",
        &pid.to_string(),
        &format!("many:/^{name}$/"),
    ]);
    let output = command.output().expect("trapline runs");
    let row: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one row");
    let text = row["runtime"].as_str().unwrap_or_default();
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{row}"))
}

#[test]
fn what_cannot_be_armed_is_told_and_the_rest_is_traced() {
    test(|| {
        let mut app = waiting()?;
        let pid = app.pid();
        // Somebody else's int3s, whom we never overwrite.
        let foreign: Vec<u64> = (0..12)
            .map(|n| address_of(pid, &format!("many_00{n:02}")))
            .collect();
        let memory = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"));
        let memory = memory.expect("memory of our child");
        let byte = |address: u64| {
            let mut byte = [0];
            memory.read_exact_at(&mut byte, address).expect("mapped");
            byte[0]
        };
        let originals: Vec<u8> = foreign.iter().map(|address| byte(*address)).collect();
        for address in &foreign {
            memory
                .write_all_at(&[0xcc], *address)
                .expect("writable by a tracer");
        }
        let target = pid.to_string();
        let output = trace(&["-p", &target, "-e", "/^many_/", "--duration", "50ms"]).output();
        let output = output.expect("trapline runs");
        let err = text(&output.stderr);
        assert!(output.status.success(), "{err}");
        arming_time(&err, FUNCTIONS - foreign.len());
        let told = "warning: not armed: 12 places: an int3 is there already, another debugger's or tracer's, or a uprobe's for this process: ";
        let line = err.lines().find(|line| line.starts_with(told));
        let line = line.unwrap_or_else(|| panic!("{err}"));
        for address in &foreign {
            assert!(line.contains(&format!("{address:#x} <many_00")), "{line}");
            assert_eq!(byte(*address), 0xcc);
        }
        // One that is nowhere is an error.
        let output = trace(&["-p", &target, "-e", "many_0003", "--duration", "50ms"]).output();
        let output = output.expect("trapline runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        for (address, original) in foreign.iter().zip(originals) {
            memory
                .write_all_at(&[original], *address)
                .expect("writable by a tracer");
        }
        process::wait_untraced(pid);
        assert_eq!(process::changed_text(pid), []);
        app.send("go");
        let text = app.succeed();
        let line = text.lines().last().unwrap_or_default();
        assert_eq!(number(line, "calls"), 2 * FUNCTIONS as u64, "{text}");
        Ok(())
    });
}

#[test]
fn rbreak_sets_one_breakpoint_a_function_and_commands_are_for_all() {
    test(|| {
        let program = testapp("many")?.display().to_string();
        let script = TempFile::new(
            "rbreak ^many_\ncommands\nsilent\ncontinue\nend\nrun\ninfo breakpoints\n",
        );
        let arguments = ["-x", &script.path(), "--args", &program, "--rounds", "2"];
        let text = Tracer::Trapline.batch(&arguments)?.succeed();
        assert!(text.contains("\nBreakpoint 5000 at 0x"), "{text}");
        assert!(
            text.contains("\n<function, no debug info> many_4999;\n"),
            "{text}"
        );
        let hits = text.matches("\tbreakpoint already hit 2 times\n").count();
        assert_eq!(hits, FUNCTIONS);
        Ok(())
    });
}

#[test]
fn rbreak_says_what_gdb_says() {
    test(|| {
        let program = testapp("fibon")?.display().to_string();
        for regex in [
            "^Fib",
            r"^opt\|^numb",
            "^opt|^numb",
            "[",
            r"\(",
            "no_such",
            "^[FG]ib*on$",
            "^main$",
        ] {
            let script = TempFile::new(&format!(
                "rbreak ^until_line$\nrbreak {regex}\ncommands\nsilent\nend\ninfo breakpoints\n"
            ));
            let run = |tracer: Tracer| -> Result<String, Missing> {
                let mut app = tracer.batch(&["-x", &script.path(), &program])?;
                Ok(support::normalise(&app.finish().1))
            };
            assert_eq!(run(Tracer::Trapline)?, run(Tracer::Gdb)?, "{regex}");
        }
        Ok(())
    });
}
