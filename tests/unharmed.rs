//! Programs that do what is allowed and seldom done go on under a tracer as without it, and each of
//! their passes counts.

mod support;

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use support::app::number;
use support::{App, Missing, TempFile, Tracer, process, test, testapp};

/// Runs `program` under a counted breakpoint at `site`, until it ends with 0; how often the breakpoint
/// was hit, and the program's last line, which begins with `last`.
fn counted(program: &str, arguments: &[&str], last: &str) -> Result<(u64, String), Missing> {
    let program = testapp(program)?.display().to_string();
    let commands = [
        "-ex",
        "break *site",
        "-ex",
        "ignore 1 1000000000",
        "-ex",
        "run",
        "-ex",
        "info breakpoints",
        "--args",
        &program,
    ];
    let text = Tracer::Trapline
        .batch(&[&commands[..], arguments].concat())?
        .succeed();
    Ok((hits(&text), last_line(&text, last)))
}

/// The program's last line, out of a session in which it ended by itself, with 0.
fn last_line(text: &str, last: &str) -> String {
    assert!(text.contains("exited normally]"), "{text}");
    let line = text.lines().find(|line| line.starts_with(last));
    line.unwrap_or_else(|| panic!("no {last:?} in:\n{text}"))
        .to_owned()
}

/// The only count in `info breakpoints`, or in the summary of `trapline trace`.
fn hits(text: &str) -> u64 {
    let count =
        regex::Regex::new("breakpoint already hit ([0-9]+) time|probe 1: .*: ([0-9]+) hits")
            .expect("a pattern");
    let found = count
        .captures(text)
        .unwrap_or_else(|| panic!("no hits in:\n{text}"));
    let count = found.iter().skip(1).flatten().next().expect("a count");
    count.as_str().parse().expect("a number")
}

/// Starts `trapline trace`, under which signals do not stop the program, with a probe that says nothing.
fn trace(arguments: &[&str]) -> App {
    let mut command = support::tracer::trapline();
    command
        .args(["trace", "-e", "*site { while 0; end }"])
        .args(arguments);
    App::spawn(command)
}

/// Attaches with a counted breakpoint at `site`, lets `meanwhile` act, and leaves on Ctrl-C; how often it
/// was hit.
fn attached(target: &mut App, meanwhile: impl FnOnce(&mut App)) -> Result<String, Missing> {
    let mut session = Tracer::Trapline.counted(target.pid(), "*site")?;
    meanwhile(target);
    session.signal(Signal::SIGINT);
    let text = session.finish().1;
    process::wait_untraced(target.pid());
    Ok(text)
}

#[test]
fn passes_behind_the_leaders_end() {
    test(|| {
        let (hits, last) = counted("leader", &["--passes", "1000"], "passes=")?;
        assert_eq!((hits, last.as_str()), (1000, "passes=1000"));
        Ok(())
    });
}

#[test]
fn leaving_behind_the_leaders_end() {
    test(|| {
        let mut target = App::start(&testapp("leader")?, &[] as &[&str]);
        target.expect("ready");
        let mut begin = Instant::now();
        let text = attached(&mut target, |target| {
            target.ask("hit 500", "hit 500");
            target.ask("end", "ended");
            target.ask("hit 500", "hit 500");
            begin = Instant::now();
        })?;
        assert!(
            begin.elapsed() < Duration::from_secs(2),
            "nobody waits for a leader that has ended"
        );
        assert_eq!(hits(&text), 1000, "{text}");
        // An int3 left behind would end it.
        target.ask("hit 10", "hit 10");
        target.send("quit");
        target.succeed();
        Ok(())
    });
}

#[test]
fn attaching_behind_the_leaders_end() {
    test(|| {
        let mut target = App::start(&testapp("leader")?, &[] as &[&str]);
        target.expect("ready");
        target.ask("end", "ended");
        let text = attached(&mut target, |target| {
            target.ask("hit 500", "hit 500");
        })?;
        assert_eq!(hits(&text), 500, "{text}");
        target.ask("hit 10", "hit 10");
        // Its end is seen, too, of which only its parent is told.
        let mut session = trace(&["-p", &target.pid().to_string()]);
        session.expect("  probe 1: ");
        target.ask("hit 500", "hit 500");
        target.send("quit");
        assert_eq!(hits(&session.succeed()), 500);
        target.succeed();
        Ok(())
    });
}

#[test]
fn a_site_that_faults() {
    test(|| {
        let program = testapp("handlers")?.display().to_string();
        for leave in ["return", "jump"] {
            let options = ["--", &program, "--signal", "fault", "--leave", leave];
            let text = trace(&options).succeed();
            let last = last_line(&text, "calls=");
            assert_eq!(number(&last, "handled"), 50, "{last}");
            assert_eq!(number(&last, "elsewhere"), 0, "{last}");
            assert_eq!(hits(&text), 100, "left by {leave}: {last}");
        }
        Ok(())
    });
}

/// Many passes of `handlers` with an alarm now and then.
fn alarms(leave: &str) -> Result<(u64, String), Missing> {
    let options = ["--signal", "alarm", "--calls", "50000", "--leave", leave];
    let (hits, last) = counted("handlers", &options, "calls=")?;
    assert!(number(&last, "handled") > 0, "{last}");
    Ok((hits, last))
}

#[test]
fn alarms_upon_a_site() {
    test(|| {
        let (hits, last) = alarms("return")?;
        assert_eq!(hits, 50_000, "{last}");
        Ok(())
    });
}

/// A pass that was begun and left by an alarm may be a hit whose instruction never ran; no other may.
#[test]
fn alarms_that_jump_away_from_a_site() {
    test(|| {
        let (hits, last) = alarms("jump")?;
        let (passes, jumps) = (number(&last, "passes"), number(&last, "jumps"));
        assert!(jumps > 0, "{last}");
        assert!((passes..=50_000).contains(&hits), "{hits} hits: {last}");
        Ok(())
    });
}

#[test]
fn a_thread_with_a_filter_of_its_own() {
    test(|| {
        let (hits, last) = counted("filtered", &[], "passes=")?;
        assert_eq!((hits, last.as_str()), (10, "passes=10"));
        Ok(())
    });
}

#[test]
fn sigtraps_of_the_programs_own() {
    test(|| {
        for (arguments, found) in [
            (
                &["--trap", "ignore"][..],
                "trapped=0 blocked=0 pending=0 kept=1",
            ),
            (&["--block"], "trapped=0 blocked=1 pending=1 kept=1"),
            (
                &["--trap", "handle", "--block"],
                "trapped=0 blocked=1 pending=1 kept=1",
            ),
        ] {
            let mut target = App::start(&testapp("raises")?, arguments);
            target.expect("ready");
            let mut session = trace(&["-p", &target.pid().to_string()]);
            session.expect("  probe 1: ");
            target.ask("go", "raised");
            session.signal(Signal::SIGINT);
            let text = session.finish().1;
            process::wait_untraced(target.pid());
            let last = target.ask("end", "passes=");
            assert_eq!(last, format!("passes=200 {found}"), "{arguments:?}");
            assert_eq!(hits(&text), 200, "{arguments:?}: {text}");
            target.succeed();
        }
        Ok(())
    });
}

/// Runs `constant` with a script; the program's last line.
fn scripted(script: &str) -> Result<String, Missing> {
    let program = testapp("constant")?.display().to_string();
    let script = TempFile::new(script);
    let text = Tracer::Trapline
        .batch(&["-x", &script.path(), "--args", &program])?
        .succeed();
    Ok(last_line(&text, "sum="))
}

#[test]
fn what_a_script_writes_over_an_armed_instruction_runs() {
    test(|| {
        let at_the_site =
            "break *site\ncommands\nsilent\nset {char}((char*)$rip+1)=7\ncontinue\nend\nrun\n";
        assert_eq!(scripted(at_the_site)?, "sum=70 passes=10");
        let elsewhere = "break *site\ncommands\nsilent\ncontinue\nend\ntbreak *tick\nrun\n\
                         set {char}((char*)&site+1)=7\ncontinue\n";
        assert_eq!(scripted(elsewhere)?, "sum=68 passes=10");
        Ok(())
    });
}

#[test]
fn children_of_a_fork_at_any_moment() {
    test(|| {
        let mut target = App::start(&testapp("forks")?, &[] as &[&str]);
        target.expect("ready");
        for _ in 0..8 {
            attached(&mut target, |target| {
                target.ask("report", "children=");
            })?;
        }
        let last = target.ask("quit", "children=");
        assert_eq!(number(&last, "died"), 0, "{last}");
        target.succeed();
        Ok(())
    });
}
