//! A tracer that comes and goes changes nothing but what a script asked for: no interrupted call, no
//! signal mask, no handler, no state.

mod support;

use nix::sys::signal::Signal;
use support::blocked::two_rounds_more;
use support::{App, Missing, Tracer, process, test, testapp};

/// Attaches with one counted breakpoint, lets `meanwhile` act, and leaves on Ctrl-C.
fn attached(
    target: &mut App,
    location: &str,
    meanwhile: impl FnOnce(&mut App),
) -> Result<String, Missing> {
    let pid = target.pid();
    let mut session = Tracer::Trapline.counted(pid, location)?;
    meanwhile(target);
    session.signal(Signal::SIGINT);
    let text = session.finish().1;
    process::wait_untraced(pid);
    assert_eq!(process::changed_text(pid), []);
    Ok(text)
}

/// Nobody has ended a call, or made it end early or late.
const NONE: [&str; 3] = ["eintr", "early", "late"];

#[test]
fn blocked_calls_go_on() {
    test(|| {
        let mut target = App::start(&testapp("blocked")?, &["--ms", "300"]);
        target.expect("ready");
        for _ in 0..10 {
            // Both ways of being there: just passing by, and long enough for every thread to hit.
            attached(&mut target, "*returned", |_| ())?;
            attached(&mut target, "*returned", |target| {
                two_rounds_more(target, &NONE)
            })?;
        }
        two_rounds_more(&mut target, &NONE);
        Ok(())
    });
}

fn signals_as_before(disposition: &str) -> Result<(), Missing> {
    let mut target = App::start(&testapp("signals")?, &["--trap", disposition]);
    target.expect("ready");
    let before = process::signals(target.pid());
    let text = attached(&mut target, "*site", |target| {
        target.ask("hit 500", "hit 500");
        let mut now = process::signals(target.pid());
        if disposition == "ignore" {
            // Cannot be kept while threads run into int3s; it is ignored all the same, and again
            // by name when the tracer has gone.
            now.ignored = before.ignored.clone();
        }
        assert_eq!(now, before, "after hits in every thread");
        target.ask("hit 500", "hit 500");
    })?;
    assert!(
        text.contains("breakpoint already hit 3000 times"),
        "three threads, a thousand passes each: {text}"
    );
    assert_eq!(process::signals(target.pid()), before);
    target.ask("hit 10", "hit 10");
    if disposition == "handle" {
        assert_eq!(target.ask("raise", "trapped"), "trapped 1");
        assert_eq!(target.ask("int3", "trapped"), "trapped 2");
    }
    target.send("quit");
    target.succeed();
    Ok(())
}

#[test]
fn sigtrap_by_default() {
    test(|| signals_as_before("default"));
}

#[test]
fn sigtrap_ignored() {
    test(|| signals_as_before("ignore"));
}

#[test]
fn sigtrap_handled() {
    test(|| signals_as_before("handle"));
}

#[test]
fn stopped_before_is_stopped_behind() {
    test(|| {
        let mut target = App::start(&testapp("hot")?, &["--threads", "2"]);
        target.expect("ready");
        let state = |target: &App| process::status_field(target.pid(), "State").unwrap_or_default();
        target.signal(Signal::SIGSTOP);
        let deadline = std::time::Instant::now() + support::app::PATIENCE;
        assert!(process::until(deadline, || state(&target).starts_with('T')));
        attached(&mut target, "*site", |_| ())?;
        assert_eq!(state(&target), "T (stopped)");
        target.signal(Signal::SIGCONT);
        target.ask("alive", "alive 2");
        Ok(())
    });
}
