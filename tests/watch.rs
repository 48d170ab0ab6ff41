//! The processor's watchpoints and stops at system calls leave a program as it was: nobody dies of a trap
//! that no tracer takes any more, and no call is interrupted.

mod support;

use nix::sys::signal::Signal;
use support::blocked::{rounds, two_rounds_more};
use support::{App, Missing, TempFile, Tracer, process, test, testapp};

/// Threads that count as fast as they can.
fn busy(threads: &str) -> Result<App, Missing> {
    let mut target = App::start(&testapp("hot")?, &["--threads", threads]);
    target.expect("ready");
    target.ask("alive", &format!("alive {threads}"));
    Ok(target)
}

/// A session that has attached, whose script says `armed` when it has done all but `continue`.
fn session(pid: i32, script: &str) -> Result<(App, TempFile), Missing> {
    let script = TempFile::new(&format!("{script}\ncontinue\n"));
    let mut command = Tracer::Trapline.command()?;
    command.args(["--batch", "-p", &pid.to_string(), "-x", &script.path()]);
    Ok((App::spawn(command), script))
}

/// Every write of the first thread triggers; the body says so and goes on.
const EACH: &str = "watch -location *(unsigned long *)&counters
commands
  silent
  echo changed\\n
  continue
end";

#[test]
fn nobody_is_left_with_a_watchpoint() {
    test(|| {
        let mut target = busy("6")?;
        for _ in 0..8 {
            let (mut session, _script) = session(target.pid(), EACH)?;
            for _ in 0..20 {
                session.expect("changed");
            }
            session.signal(Signal::SIGINT);
            session.finish();
            process::wait_untraced(target.pid());
            target.ask("alive", "alive 6");
            assert_eq!(process::changed_text(target.pid()), []);
        }
        target.send("quit");
        target.succeed();
        Ok(())
    });
}

#[test]
fn nobody_is_left_with_one_by_a_killed_front() {
    test(|| {
        let mut target = busy("6")?;
        let signals = process::signals(target.pid());
        for round in 0..8 {
            let (mut session, _script) = session(target.pid(), EACH)?;
            for _ in 0..round * 3 {
                session.expect("changed");
            }
            session.signal(Signal::SIGKILL);
            session.finish();
            process::wait_untraced(target.pid());
            target.ask("alive", "alive 6");
            assert_eq!(process::signals(target.pid()), signals);
        }
        target.send("quit");
        target.succeed();
        Ok(())
    });
}

/// New threads are watched from their first instruction on, and no write is lost: threads that come
/// one after the other, each of which writes once.
#[test]
fn every_write_of_every_new_thread_is_seen() {
    test(|| {
        let program = testapp("threads")?.display().to_string();
        let script = TempFile::new(
            "watch *(long *)&passes\ncommands\nsilent\nprintf \"now %d\\n\", *(long *)&passes\ncontinue\nend\nrun\n",
        );
        let arguments = ["-x", &script.path(), "--args", &program];
        let text = Tracer::Trapline
            .batch(&[&arguments[..], &["--threads", "1", "--rounds", "60"]].concat())?
            .succeed();
        let seen: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("now "))
            .collect();
        let expected: Vec<String> = (1..=60).map(|n| format!("now {n}")).collect();
        assert_eq!(seen, expected);
        Ok(())
    });
}

/// All threads write at the same moment: each value that a stop shows is a new one, up to the last.
#[test]
fn writes_of_many_threads_at_once_end_with_the_last_value() {
    test(|| {
        let program = testapp("threads")?.display().to_string();
        let script = TempFile::new("watch *(long *)&passes\nrun\nwhile 1\ncontinue\nend\n");
        let arguments = ["-x", &script.path(), "--args", &program];
        let text = Tracer::Trapline
            .batch(&[&arguments[..], &["--threads", "12"]].concat())?
            .finish()
            .1;
        let values = |key: &str| -> Vec<u64> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(key));
            lines
                .map(|value| value.parse().expect("a number"))
                .collect()
        };
        let (old, new) = (values("Old value = "), values("New value = "));
        assert!(new.is_sorted_by(|a, b| a < b), "{text}");
        assert_eq!(new.last(), Some(&12), "{text}");
        assert_eq!(
            old[1..],
            new[..new.len() - 1],
            "each change begins where the last one ended"
        );
        assert!(text.contains("passes=12"), "{text}");
        Ok(())
    });
}

/// Nobody has ended a call, or made it end early; one that was begun anew may end late.
const NONE: [&str; 2] = ["eintr", "early"];

fn blocked_calls_survive(script: &str) -> Result<(), Missing> {
    let mut target = App::start(&testapp("blocked")?, &["--ms", "300"]);
    target.expect("ready");
    for _ in 0..4 {
        let (mut session, _script) = session(target.pid(), &format!("{script}\necho armed\\n"))?;
        session.expect("armed");
        two_rounds_more(&mut target, &NONE);
        session.signal(Signal::SIGINT);
        session.finish();
        process::wait_untraced(target.pid());
    }
    rounds(&mut target, &NONE);
    Ok(())
}

/// The threads are stopped for their debug registers when the watchpoint is made, and again when they are
/// left: what such a stop interrupts is begun again.
#[test]
fn blocked_calls_survive_a_watchpoint() {
    test(|| blocked_calls_survive("watch -location *(int *)&semaphore"));
}

#[test]
fn blocked_calls_survive_a_catchpoint() {
    test(|| blocked_calls_survive("catch syscall 999"));
}

#[test]
fn signals_are_told_of_while_the_program_runs() {
    test(|| {
        let mut target = App::start(&testapp("blocked")?, &["--ms", "300"]);
        target.expect("ready");
        let script = "handle SIGURG nostop print\nhandle SIGWINCH noprint nopass";
        let (mut session, _script) = session(target.pid(), &format!("{script}\necho armed\\n"))?;
        session.expect("armed");
        for signal in [Signal::SIGWINCH, Signal::SIGURG] {
            target.signal(signal);
        }
        let line = session.line("a signal", |line| line.contains("received signal"));
        assert!(
            line.ends_with("received signal SIGURG, Urgent I/O condition."),
            "{line}"
        );
        session.signal(Signal::SIGINT);
        session.finish();
        process::wait_untraced(target.pid());
        rounds(&mut target, &NONE);
        Ok(())
    });
}

/// Threads that run or block are told at once what a command changes; a call that this interrupts is
/// begun again.
#[test]
fn what_is_asked_of_a_running_program_interrupts_no_call() {
    test(|| {
        let mut target = App::start(&testapp("blocked")?, &["--ms", "300"]);
        target.expect("ready");
        let mut command = Tracer::Trapline.command()?;
        command.args(["-q", "-nx", "-p", &target.pid().to_string()]);
        let mut session = App::spawn(command);
        for line in [
            "continue &",
            "handle SIGURG nostop print",
            "catch syscall 999",
            "tcatch signal SIGWINCH",
            "watch *(int *)&semaphore",
            "echo typed\\n",
        ] {
            session.send(line);
        }
        session.line("the refusal", |line| {
            line.ends_with("Selected thread is running.")
        });
        session.line("the echo", |line| line.ends_with("typed"));
        two_rounds_more(&mut target, &NONE);
        target.signal(Signal::SIGURG);
        session.line("a signal", |line| line.contains("received signal SIGURG"));
        target.signal(Signal::SIGWINCH);
        session.line("a stop", |line| {
            line.contains("Catchpoint 2 (signal SIGWINCH)")
        });
        session.send("quit");
        session.finish();
        process::wait_untraced(target.pid());
        rounds(&mut target, &NONE);
        Ok(())
    });
}

/// What a condition lets by costs no round trip to the front, and counts all the same.
#[test]
fn conditions_and_ignored_hits_are_decided_at_once() {
    test(|| {
        let program = testapp("threads")?.display().to_string();
        let script = "watch *(long *)&passes if *(long *)&passes > 3\nignore 1 20\nrun\ninfo watchpoints\ndelete\ncontinue\n";
        let script = TempFile::new(script);
        let arguments = ["-x", &script.path(), "--args", &program];
        let text = Tracer::Trapline
            .batch(&[&arguments[..], &["--threads", "1", "--rounds", "40"]].concat())?
            .succeed();
        assert!(text.contains("Old value = 23\nNew value = 24\n"), "{text}");
        assert!(text.contains("breakpoint already hit 21 times"), "{text}");
        Ok(())
    });
}
