//! Processes that are still to come, several that fit, those that use a library.

mod support;

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use support::{App, Missing, TempFile, Tracer, process, temp_path, test, testapp, unique};

/// A copy of the library under a name that no other test uses.
struct Library(TempFile);

impl Library {
    fn new() -> Result<Library, Missing> {
        let file = TempFile::at(temp_path("plugin").with_extension("so"));
        std::fs::copy(testapp("libplugin.so")?, &file).expect("a copy");
        Ok(Library(file))
    }

    fn name(&self) -> String {
        let path: &Path = self.0.as_ref();
        path.file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    }
}

/// `loads` under another name.
fn loads(name: &str, library: Option<&Library>) -> Result<App, Missing> {
    let mut command = Command::new(testapp("loads")?);
    command.arg0(name);
    if let Some(library) = library {
        command.arg("--library").arg(library.0.path());
    }
    let mut app = App::spawn(command);
    app.expect("ready");
    Ok(app)
}

fn trace(arguments: &[&str]) -> App {
    let mut command = support::tracer::trapline();
    command.args(["trace", "-e", "plugin_pass"]).args(arguments);
    App::spawn(command)
}

fn quit(mut target: App) {
    process::wait_untraced(target.pid());
    target.ask("pass 1", "pass");
    target.send("quit");
    target.succeed();
}

/// How many hits were shown of which process: `COMM-TID (PID) [CPU] ...`.
fn shown(text: &str, pid: i32) -> usize {
    let of = format!(" ({pid}) [");
    text.lines()
        .filter(|line| line.contains(&of) && line.contains("plugin_pass: (0x"))
        .count()
}

fn passes(target: &mut App, times: u32) {
    target.ask("open", "open");
    target.ask(&format!("pass {times}"), "pass");
}

#[test]
fn a_process_that_comes_later() {
    test(|| {
        let name = unique("comes");
        let mut session = trace(&["--wait", "-p", &name]);
        session.expect("trapline: waiting for a process named ");
        let mut target = loads(&name, None)?;
        session.expect(&format!("trapline: tracing process {} ", target.pid()));
        session.expect("  probe 1: ");
        passes(&mut target, 3);
        session.signal(Signal::SIGINT);
        let (status, text) = session.finish();
        assert!(status.success() && text.contains(": 3 hits"), "{text}");
        quit(target);
        Ok(())
    });
}

#[test]
fn the_prompt_waits_too() {
    test(|| {
        let name = unique("comes");
        let mut session = Tracer::Trapline.batch(&[
            "--wait",
            "-p",
            &format!("/{name}/"),
            "-ex",
            "set breakpoint pending on",
            "-ex",
            "tbreak plugin_begin",
            "-ex",
            "echo armed\\n",
            "-ex",
            "continue",
        ])?;
        session.expect("Waiting for a process named ");
        let mut target = loads(&name, None)?;
        session.expect("armed");
        target.ask("open", "open");
        let text = session.succeed();
        assert!(text.contains("hit Temporary breakpoint 1, "), "{text}");
        quit(target);
        Ok(())
    });
}

#[test]
fn nobody_comes() {
    test(|| {
        let mut session = trace(&["--wait", "-p", &unique("nobody")]);
        session.expect("trapline: waiting for ");
        session.signal(Signal::SIGINT);
        let (status, text) = session.finish();
        assert!(status.code() == Some(0), "{status}: {text}");

        let mut session = Tracer::Trapline.batch(&["--wait", "-p", &unique("nobody")])?;
        session.expect("Waiting for ");
        session.signal(Signal::SIGINT);
        session.finish();

        let (status, text) = trace(&["-p", &unique("nobody")]).finish();
        assert!(
            status.code() == Some(1) && text.contains("No process is named"),
            "{text}"
        );
        let (status, text) = trace(&["--using", &unique("nothing")]).finish();
        assert!(
            status.code() == Some(1) && text.contains("No process that can be looked at uses"),
            "{text}"
        );
        Ok(())
    });
}

#[test]
fn several_that_fit() {
    test(|| {
        let name = unique("several");
        let mut targets = Vec::new();
        for _ in 0..3 {
            targets.push(loads(&name, None)?);
        }
        let (status, text) = trace(&["-p", &name]).finish();
        assert_eq!(status.code(), Some(1), "{text}");
        for target in &targets {
            assert!(text.contains(&format!("\n  {}  ", target.pid())), "{text}");
        }
        assert!(text.contains("--all"), "{text}");

        // One is held by another tracer, and one ends before the others.
        let mut holder = trace(&["-p", &targets[0].pid().to_string()]);
        holder.expect("  probe 1: ");
        let mut session = trace(&["--all", "-p", &name]);
        let refused = format!("warning: Process {} ", targets[0].pid());
        let refused = session.expect(&refused);
        assert!(refused.contains("is not traced"), "{refused}");
        session.expect("  probe 1: ");
        passes(&mut targets[1], 2);
        let mut ended = targets.remove(1);
        let first = ended.pid();
        ended.send("quit");
        ended.succeed();
        session.expect(&format!("[Inferior 1 (process {first}) exited normally]"));
        passes(&mut targets[1], 3);
        session.signal(Signal::SIGINT);
        let (status, text) = session.finish();
        assert!(status.success(), "{text}");
        assert_eq!(
            [shown(&text, first), shown(&text, targets[1].pid())],
            [2, 3],
            "{text}"
        );
        passes(&mut targets[0], 4);
        holder.signal(Signal::SIGINT);
        let text = holder.finish().1;
        assert!(text.contains(": 4 hits"), "{text}");
        targets.into_iter().for_each(quit);
        Ok(())
    });
}

#[test]
fn a_probe_of_one_process() {
    test(|| {
        let library = Library::new()?;
        let names = [unique("first"), unique("second")];
        let mut targets = Vec::new();
        for name in &names {
            targets.push(loads(name, Some(&library))?);
            targets.last_mut().expect("one").ask("open", "open");
        }
        let mut command = support::tracer::trapline();
        command.args(["trace", "-p", &names[0], "-p", &names[1]]);
        command.args(["-e", "plugin_pass"]);
        command.args(["-e", &format!("plugin_pass in {}", names[1])]);
        command.args([
            "-e",
            &format!("plugin_pass%return in /{}/ if $_retval >= 0", names[0]),
        ]);
        command.args(["-e", "plugin_pass in nobody-of-that-name"]);
        let mut session = App::spawn(command);
        session.expect("  probe 4: ");
        targets[0].ask("pass 2", "pass");
        targets[1].ask("pass 5", "pass");
        session.signal(Signal::SIGINT);
        let (status, text) = session.finish();
        for line in [
            "probe 1: plugin_pass: 7 hits".to_string(),
            format!("probe 2: plugin_pass in {}: 5 hits", names[1]),
            format!("probe 3: plugin_pass%return in /{}/: 2 hits", names[0]),
            "none is a process named nobody-of-that-name".to_string(),
        ] {
            assert!(text.contains(&line), "{line}: {text}");
        }
        assert_eq!(status.code(), Some(1), "{text}");
        let (status, text) = trace(&["-p", &names[0], "-e", "plugin_pass in /(/"]).finish();
        assert!(
            status.code() == Some(1) && text.contains("/(/ is no regular expression"),
            "{text}"
        );
        targets.into_iter().for_each(quit);
        Ok(())
    });
}

#[test]
fn all_that_use_a_library() {
    test(|| {
        let library = Library::new()?;
        let mut targets = Vec::new();
        for _ in 0..3 {
            targets.push(loads("user", Some(&library))?);
        }
        passes(&mut targets[0], 1);
        passes(&mut targets[1], 1);
        let mut session = trace(&["--wait", "--using", &library.name()]);
        session.expect("  probe 1: ");
        for target in &mut targets[..2] {
            target.ask("pass 2", "pass");
        }
        // It loads the library now.
        targets[2].ask("open", "open");
        session.expect(&format!("trapline: tracing process {} ", targets[2].pid()));
        // One of our bytes is in its dynamic linker, the other one in the library.
        while process::changed_text(targets[2].pid()).len() < 2 {
            std::thread::yield_now();
        }
        targets[2].ask("pass 5", "pass");
        session.signal(Signal::SIGINT);
        let (status, text) = session.finish();
        assert!(status.success(), "{text}");
        let counts: Vec<_> = targets
            .iter()
            .map(|target| shown(&text, target.pid()))
            .collect();
        assert_eq!(counts, [2, 2, 5], "{text}");
        targets.into_iter().for_each(quit);
        Ok(())
    });
}

#[test]
fn all_that_come() {
    test(|| {
        let name = unique("all");
        let mut first = loads(&name, None)?;
        let mut session = trace(&["--wait", "--all", "-p", &name, "--count", "6"]);
        session.expect("  probe 1: ");
        passes(&mut first, 2);
        let mut second = loads(&name, None)?;
        session.expect(&format!("trapline: tracing process {} ", second.pid()));
        first.send("quit");
        first.succeed();
        passes(&mut second, 3);
        second.send("quit");
        second.succeed();
        // All have ended; the next one is waited for.
        let mut third = loads(&name, None)?;
        session.expect(&format!("trapline: tracing process {} ", third.pid()));
        passes(&mut third, 1);
        let (status, text) = session.finish();
        assert!(status.success() && text.contains(": 6 hits"), "{text}");
        quit(third);
        Ok(())
    });
}
