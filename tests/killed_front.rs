//! `kill -9` of the command leaves the target as if nobody had been there.

mod support;

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use support::{App, Missing, TempFile, Tracer, process, test, testapp};

const ROUNDS: u32 = 20;

/// Delays between 0 and 50 ms, the same in each run.
fn delays() -> impl Iterator<Item = Duration> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Duration::from_micros(state % 50_000)
    })
}

/// Kills the front again and again while `site` runs `body` at each hit: compiled, or asking the front.
fn killed(program: &str, arguments: &[&str], body: &str) -> Result<(), Missing> {
    let mut target = App::start(&testapp(program)?, arguments);
    target.expect("ready");
    let pid = target.pid();
    let signals = process::signals(pid);
    let checksum = target.ask("text", "text ");
    let script = TempFile::new(&format!(
        "break *site\ncommands\nsilent\n{body}\ncont\nend\necho armed\\n\n"
    ));
    for (round, delay) in (1..=ROUNDS).zip(delays()) {
        let mut session = Tracer::Trapline.batch(&[
            "-p",
            &pid.to_string(),
            "-x",
            &script.path(),
            "-ex",
            "continue",
        ])?;
        session.expect("armed");
        // Nothing to wait for: the moment of the kill is what varies.
        let moment = Instant::now() + delay;
        process::until(moment, || false);
        session.signal(Signal::SIGKILL);
        drop(session);
        process::wait_untraced(pid);
        assert_eq!(process::changed_text(pid), [], "round {round}");
        assert_eq!(process::signals(pid), signals, "round {round}");
        target.ask("alive", "alive 20");
        assert_eq!(target.ask("text", "text "), checksum, "round {round}");
        let state = process::status_field(pid, "State").unwrap_or_default();
        assert!(state.starts_with(['R', 'S']), "round {round}: {state}");
    }
    target.send("quit");
    target.succeed();
    Ok(())
}

#[test]
fn while_bodies_run_in_the_keeper() {
    test(|| {
        killed(
            "hot",
            &["--threads", "20"],
            "x/2xg $rsp\nset {char}($rsp-128) = 0x61",
        )
    });
}

#[test]
fn while_threads_wait_for_the_front() {
    test(|| killed("hot", &["--threads", "20"], "info registers rip"));
}

#[test]
fn without_a_body_that_prints() {
    test(|| killed("hot", &["--threads", "20"], "set $n = 1"));
}
