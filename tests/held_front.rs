//! A command that stands (Ctrl-Z, a debugger) holds up nobody: the target goes on, its hits are counted, and
//! what was not told is told in short.

mod support;

use std::time::Instant;

use nix::sys::signal::Signal;
use support::tracer::trace;
use support::{App, Missing, Tracer, process, test, testapp};

/// More than fit into what waits for the front, and much more than the socket takes.
const THREADS: usize = 25;
const ROUNDS: usize = 200;
const PASSES: usize = THREADS * ROUNDS;

/// A program that makes its threads when a line comes.
fn target() -> Result<App, Missing> {
    let (threads, rounds) = (THREADS.to_string(), ROUNDS.to_string());
    let arguments = ["--wait", "--threads", &threads, "--rounds", &rounds];
    let mut target = App::start(&testapp("threads")?, &arguments);
    target.expect("ready");
    Ok(target)
}

fn wait_for_state(pid: i32, wanted: fn(char) -> bool) {
    let deadline = Instant::now() + support::app::PATIENCE;
    let reached = process::until(deadline, || {
        let state = process::status_field(pid, "State");
        state.is_some_and(|state| state.starts_with(wanted))
    });
    assert!(reached, "process {pid} is not in the state");
}

fn hold(session: &App, target: &App) {
    // Not while the prompt has the target stopped.
    wait_for_state(target.pid(), |state| state != 't');
    session.signal(Signal::SIGSTOP);
    wait_for_state(session.pid(), |state| state == 'T');
}

#[test]
fn a_prompt_that_stands_holds_up_nobody() {
    test(|| {
        let mut target = target()?;
        let mut session = Tracer::Trapline.counted(target.pid(), "*site")?;
        hold(&session, &target);
        target.ask("go", &format!("passes={PASSES}"));
        session.signal(Signal::SIGCONT);
        let (status, text) = session.finish();
        let hits = format!("breakpoint already hit {PASSES} times");
        for part in [
            hits.as_str(),
            "exited normally",
            "threads that began and ended meanwhile only the hits are known.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(status.success(), "{text}");
        target.succeed();
        Ok(())
    });
}

#[test]
fn a_tracer_that_stands_holds_up_nobody() {
    test(|| {
        let mut target = target()?;
        let pid = target.pid().to_string();
        let mut session = App::spawn(trace(&["-p", &pid, "-e", "*site"]));
        session.expect("  probe 1: ");
        hold(&session, &target);
        target.ask("go", &format!("passes={PASSES}"));
        session.signal(Signal::SIGCONT);
        let (status, text) = session.finish();
        assert!(
            text.contains(&format!("probe 1: *site: {PASSES} hits")),
            "{text}"
        );
        let lines = text
            .lines()
            .filter(|line| line.contains(": site: ("))
            .count();
        assert!(
            lines == PASSES || text.contains("dropped"),
            "{lines}: {text}"
        );
        assert!(status.success(), "{text}");
        target.succeed();
        Ok(())
    });
}

#[test]
fn killed_while_it_stands() {
    test(|| {
        let mut target = target()?;
        let pid = target.pid();
        let mut session = App::spawn(trace(&["-p", &pid.to_string(), "-e", "*site"]));
        session.expect("  probe 1: ");
        hold(&session, &target);
        target.send("go");
        // The queue is long in the middle of it.
        let deadline = Instant::now() + support::app::PATIENCE;
        let begun = process::until(deadline, || {
            let time = std::fs::read_to_string(format!("/proc/{pid}/schedstat"));
            time.is_ok_and(|text| text.split(' ').next().is_some_and(|ns| ns.len() > 7))
        });
        assert!(begun);
        session.signal(Signal::SIGKILL);
        drop(session);
        target.expect(&format!("passes={PASSES}"));
        target.succeed();
        Ok(())
    });
}
