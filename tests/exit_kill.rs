//! Whether a launched program ends with the command that is killed.

mod support;

use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::app::PATIENCE;
use support::{App, Missing, TempFile, process, test, testapp, tracer};

/// Launches a program under a tracer that runs `script` and is killed then; the program.
fn orphan(script: &str) -> Result<i32, Missing> {
    let script = TempFile::new(&format!("{script}\ntrace *tick\n"));
    let mut command = tracer::trapline();
    command
        .args(["trace", "--json", "-x", &script.path(), "--"])
        .arg(testapp("ticks")?);
    let mut session = App::spawn(command);
    let hit = session.line("a hit", |line| line.contains("\"type\":\"hit\""));
    session.signal(Signal::SIGKILL);
    let hit: serde_json::Value = serde_json::from_str(&hit).expect("JSON");
    Ok(hit["pid"].as_i64().expect("a pid") as i32)
}

fn is_there(pid: i32) -> bool {
    let state = process::status_field(pid, "State");
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

#[test]
fn a_launched_program_goes_on_when_the_command_is_killed() {
    test(|| {
        for script in ["", "set exit-kill on\nset exit-kill off"] {
            let pid = orphan(script)?;
            process::wait_untraced(pid);
            assert!(is_there(pid));
            assert_eq!(process::changed_text(pid), []);
            kill(Pid::from_raw(pid), Signal::SIGKILL).expect("the program is there");
        }
        Ok(())
    });
}

#[test]
fn exit_kill_ends_it() {
    test(|| {
        let pid = orphan("set exit-kill on")?;
        assert!(process::until(Instant::now() + PATIENCE, || !is_there(pid)));
        Ok(())
    });
}
