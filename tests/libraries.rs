//! Libraries that come and go under breakpoints and probes: every pass in them counts, from the first
//! constructor on, and the program never notices.

mod support;

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use support::app::PATIENCE;
use support::{App, Missing, TempFile, Tracer, normalise, process, test, testapp};

const NONE: &[&str] = &[];

fn loads() -> Result<App, Missing> {
    let mut app = App::start(&testapp("loads")?, NONE);
    app.expect("ready");
    Ok(app)
}

/// `trapline trace` with two probes in the library; the program is loaded with it or not.
fn trace(arguments: &[&str]) -> App {
    let mut command = support::tracer::trapline();
    command
        .args(["trace", "-e", "plugin_pass { while 0; end }"])
        .args(["-e", "plugin_begin { while 0; end }"])
        .args(arguments);
    App::spawn(command)
}

/// Attached to `target` with both probes in place, as far as they have one.
fn traced(target: &App) -> App {
    let mut session = trace(&["-p", &target.pid().to_string()]);
    session.expect("  probe 2: ");
    session
}

/// How often each of the two probes was hit, from the summary.
fn hits(text: &str) -> [u64; 2] {
    [1, 2].map(|probe| {
        let count =
            regex::Regex::new(&format!("probe {probe}: .*: ([0-9]+) hits?")).expect("a pattern");
        let found = count.captures(text);
        let found = found.unwrap_or_else(|| panic!("no hits of probe {probe} in:\n{text}"));
        found[1].parse().expect("a number")
    })
}

fn leave(target: &App, mut session: App) -> String {
    session.signal(Signal::SIGINT);
    let text = session.finish().1;
    process::wait_untraced(target.pid());
    text
}

/// The number behind the first word of an answer.
fn count(answer: &str) -> u64 {
    let word = answer.split_whitespace().nth(1);
    let count = word.and_then(|word| word.parse().ok());
    count.unwrap_or_else(|| panic!("no number in {answer:?}"))
}

/// `continue` lets go what stood before it was typed, and nothing that the front has not seen: a stop
/// that is told of later must still be one.
#[test]
fn a_stop_that_nobody_has_seen_is_not_continued() {
    test(|| {
        for _ in 0..8 {
            let mut target = loads()?;
            let pid = target.pid().to_string();
            let mut session = Tracer::Trapline.start(&["-p", &pid])?;
            session.send("echo armed\\n");
            session.expect("armed");
            // The leader loads a library on its way out.
            target.send("end");
            process::wait_for_stop(target.pid());
            session.send("continue");
            target.expect("ended");
            target.send("quit");
            target.succeed();
            assert!(session.finish().1.contains("exited normally]"));
        }
        Ok(())
    });
}

#[test]
fn a_breakpoint_that_is_hit_before_continue_is_shown() {
    test(|| {
        let mut target = loads()?;
        target.ask("open", "open");
        let pid = target.pid().to_string();
        let mut session = Tracer::Trapline.start(&["-p", &pid])?;
        session.send("break *plugin_pass");
        session.send("echo armed\\n");
        session.expect("armed");
        target.send("pass 2");
        process::wait_for_stop(target.pid());
        for _ in 0..2 {
            session.send("continue");
            session.line("a hit", |line| line.contains("hit Breakpoint 1, "));
        }
        session.send("info breakpoints");
        session.expect("\tbreakpoint already hit 2 times");
        session.send("delete");
        session.send("continue");
        target.expect("pass 2");
        target.send("quit");
        target.succeed();
        session.finish();
        Ok(())
    });
}

/// What the tracer says of a program that obeys `orders`; the program's own lines left out.
fn told(tracer: Tracer, script: &str, orders: &str) -> Result<(String, usize), Missing> {
    let orders = TempFile::new(orders);
    let script = TempFile::new(&format!(
        "{script}run < {}\ninfo breakpoints\n",
        orders.path()
    ));
    let program = testapp("loads")?.display().to_string();
    let text = tracer.batch(&["-x", &script.path(), &program])?.finish().1;
    let warning = "warning: Temporarily disabling breakpoints for unloaded shared library";
    let warnings = text
        .lines()
        .filter(|line| line.starts_with(warning))
        .count();
    let own = ["ready", "open", "pass", "again", "close", "elsewhere"];
    let text = normalise(&text);
    let lines = text
        .lines()
        .filter(|line| !own.iter().any(|own| line.starts_with(own)));
    // Whether a library's debug information is installed is another question.
    let symbols = regex::Regex::new(r"Yes( \(\*\))? +").expect("a pattern");
    let lines = lines.filter(|line| !line.starts_with("(*): "));
    let lines: Vec<_> = lines
        .map(|line| symbols.replace(line, "Yes ").into_owned())
        .collect();
    Ok((lines.join("\n"), warnings))
}

#[test]
fn breakpoints_follow_their_library_as_in_gdb() {
    test(|| {
        let script = "set breakpoint pending on\nbreak plugin_pass\ncommands\nsilent\n\
            info breakpoints\ninfo sharedlibrary\ncontinue\nend\n\
            tbreak plugin_begin if 1\ncommands\nsilent\ninfo breakpoints\n\
            info sharedlibrary plug\ninfo sharedlibrary zzz\ninfo sharedlibrary (\ncontinue\nend\ninfo breakpoints\n";
        let orders = "open\npass 2\nclose\nopen\npass 1\nagain\npass 1\nclose\nclose\nelsewhere\npass 1\nquit\n";
        let gdb = told(Tracer::Gdb, script, orders)?;
        let ours = told(Tracer::Trapline, script, orders)?;
        assert_eq!(ours.0, gdb.0);
        assert!(ours.0.contains("already hit 6 times"), "{}", ours.0);
        assert_eq!(ours.1, gdb.1.min(3), "warnings");
        Ok(())
    });
}

/// Of three copies the last comes to lie before the others, of which one is disabled and stays so.
#[test]
fn a_disabled_location_stays_disabled_as_in_gdb() {
    test(|| {
        let script = "set breakpoint pending on\nbreak plugin_pass\ncommands\nsilent\ninfo breakpoints\n\
            if $once == 0\nset $once = 1\ndisable 1.1\nend\ncontinue\nend\nset $once = 0\n";
        let orders = "open\nagain\npass 2\nagain\npass 2\nquit\n";
        let gdb = told(Tracer::Gdb, script, orders)?;
        let ours = told(Tracer::Trapline, script, orders)?;
        assert_eq!(ours.0, gdb.0);
        let off = |number: &str| {
            let start = format!("{number:<28}n");
            ours.0.lines().any(|line| line.starts_with(&start))
        };
        assert!(off("1.2") && !off("1.3"), "{}", ours.0);
        Ok(())
    });
}

#[test]
fn a_name_that_is_nowhere_waits_or_does_not_as_in_gdb() {
    test(|| {
        let program = testapp("loads")?.display().to_string();
        for setting in ["on", "off", "auto"] {
            for confirm in ["on", "off"] {
                let commands = format!(
                    "set breakpoint pending {setting}\nset confirm {confirm}\nbreak plugin_pass\n\
                     tbreak plugin_pass if unknown_thing > 3\nshow breakpoint pending\ninfo breakpoints\nquit\n"
                );
                let text = |tracer: Tracer| -> Result<String, Missing> {
                    let mut session = tracer.start(&[&program])?;
                    commands.lines().for_each(|line| session.send(line));
                    let text = normalise(&session.finish().1.replace("(gdb) ", ""));
                    // What is on which stream may be mixed differently.
                    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
                    lines.retain(|line| {
                        !line.starts_with("Reading symbols") && !line.starts_with("(No debugging")
                    });
                    lines.sort();
                    Ok(lines.join("\n"))
                };
                let (gdb, ours) = (text(Tracer::Gdb)?, text(Tracer::Trapline)?);
                assert_eq!(ours, gdb, "pending {setting}, confirm {confirm}");
            }
        }
        Ok(())
    });
}

#[test]
fn every_pass_counts_in_every_copy() {
    test(|| {
        let mut target = loads()?;
        let session = traced(&target);
        for order in [
            "open", "pass 3", "again", "pass 4", "close", "pass 5", "close",
        ] {
            target.ask(order, order);
        }
        for order in ["elsewhere", "pass 6", "close", "open", "pass 1"] {
            target.ask(order, order);
        }
        target.ask("end", "ended");
        for order in ["pass 1", "close", "open", "pass 1"] {
            target.ask(order, order);
        }
        let text = leave(&target, session);
        assert_eq!(hits(&text), [3 + 2 * 4 + 5 + 6 + 1 + 1 + 1, 5], "{text}");
        // An int3 left behind would end it.
        for order in ["pass 1", "close", "open", "pass 1", "quit"] {
            target.send(order);
        }
        target.succeed();
        Ok(())
    });
}

#[test]
fn storms_of_loading_are_counted() {
    test(|| {
        let mut target = loads()?;
        let session = traced(&target);
        let alone = count(&target.ask("storm 200 1", "storm"));
        let together = count(&target.ask("storm 50 4", "storm"));
        assert_eq!((alone, together), (200, 200));
        let text = leave(&target, session);
        let [passes, begun] = hits(&text);
        assert_eq!(passes, 400, "{text}");
        assert!((201..=400).contains(&begun), "{text}");
        target.send("quit");
        target.succeed();
        Ok(())
    });
}

#[test]
fn a_launched_program_loads_as_it_likes() {
    test(|| {
        let program = testapp("loads")?.display().to_string();
        let orders = TempFile::new("storm 20 1\nopen\nagain\npass 2\nend\npass 1\nquit\n");
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", "exec \"$0\" trace -e 'plugin_pass { while 0; end }' -e 'plugin_begin { while 0; end }' -- \"$1\" < \"$2\""]);
        let binary = support::tracer::trapline();
        command
            .arg(binary.get_program())
            .arg(&program)
            .arg(orders.path());
        let text = App::spawn(command).succeed();
        assert_eq!(hits(&text), [20 + 4 + 2, 22], "{text}");
        Ok(())
    });
}

#[test]
fn memory_that_takes_a_librarys_place_is_not_written_to() {
    test(|| {
        let mut target = loads()?;
        let session = traced(&target);
        for order in ["open", "pass 1", "reuse"] {
            target.ask(order, order);
        }
        assert_eq!(target.ask("check", "check"), "check 0xCC");
        let text = leave(&target, session);
        assert_eq!(hits(&text), [1, 1], "{text}");
        assert_eq!(target.ask("check", "check"), "check 0xCC");
        target.send("quit");
        target.succeed();
        Ok(())
    });
}

#[test]
fn leaving_in_the_middle_of_storms() {
    test(|| {
        let mut target = loads()?;
        target.ask("forever 3", "begun");
        for round in 0..50 {
            let pid = target.pid().to_string();
            let arguments = [
                "-p",
                &pid,
                "-ex",
                "set breakpoint pending on",
                "-ex",
                "break *plugin_pass",
                "-ex",
                "ignore 1 1000000000",
            ];
            let session = Tracer::Trapline.armed(&arguments, &[])?;
            std::thread::sleep(Duration::from_millis(round % 7));
            leave(&target, session);
        }
        let passes = count(&target.ask("stop", "forever"));
        assert!(passes > 0);
        target.ask("open", "open");
        assert_eq!(process::changed_text(target.pid()), []);
        target.send("quit");
        target.succeed();
        Ok(())
    });
}

#[test]
fn a_front_that_is_killed_in_the_middle_of_storms() {
    test(|| {
        let mut target = loads()?;
        target.ask("forever 2", "begun");
        for round in 0..10 {
            let session = traced(&target);
            std::thread::sleep(Duration::from_millis(round));
            session.signal(Signal::SIGKILL);
            drop(session);
            process::wait_untraced(target.pid());
        }
        target.ask("stop", "forever");
        target.ask("open", "open");
        assert_eq!(process::changed_text(target.pid()), []);
        target.send("quit");
        target.succeed();
        Ok(())
    });
}

/// A front that is held up holds nobody up for long, and finds what came meanwhile.
#[test]
fn loading_while_the_front_does_not_answer() {
    test(|| {
        let mut target = loads()?;
        let mut session = traced(&target);
        session.signal(Signal::SIGSTOP);
        for order in ["open", "pass 1", "close", "open", "pass 1"] {
            target.ask(order, order);
        }
        session.signal(Signal::SIGCONT);
        session.line("a warning", |line| {
            line.contains("while this command was held up")
        });
        // Bytes of ours in the dynamic linker and in both functions.
        let armed = || process::changed_text(target.pid()).len() == 3;
        assert!(process::until(Instant::now() + PATIENCE, armed));
        target.ask("pass 3", "pass");
        target.ask("close", "close");
        target.ask("open", "open");
        let text = leave(&target, session);
        assert_eq!(hits(&text), [3, 1], "{text}");
        target.send("quit");
        target.succeed();
        Ok(())
    });
}

/// A program without a dynamic linker has nothing to be watched.
#[test]
fn a_static_program() {
    test(|| {
        let program = testapp("fibon-static")?.display().to_string();
        let text = Tracer::Trapline
            .batch(&[
                "-ex",
                "break Fibon",
                "-ex",
                "run",
                "-ex",
                "info sharedlibrary",
                "-ex",
                "kill",
                &program,
            ])?
            .finish()
            .1;
        assert!(text.contains("Breakpoint 1, "), "{text}");
        assert!(
            text.contains("No shared libraries loaded at this time."),
            "{text}"
        );
        Ok(())
    });
}
