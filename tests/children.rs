//! Processes that a traced process makes: followed, each of their passes counts, with their pid; let go,
//! they run on as if nobody had been there.

mod support;

use std::collections::BTreeSet;

use nix::sys::signal::Signal;
use support::app::number;
use support::tracer::trace;
use support::{App, Missing, Tracer, json_lines, process, test, testapp, text};

const ROUNDS: u64 = 30;
const PASSES: u64 = 10;

/// Every way of making a process, and how many of the passes of a round are made with the memory of the
/// program that was launched.
const WAYS: [(&str, u64); 8] = [
    ("fork", 1),
    ("vfork", 1),
    ("spawn", 1),
    ("shared", 3),
    ("exec", 1),
    ("thread", 1),
    ("nested", 1),
    ("storm", 4),
];

/// Runs `children` under `trace` with these options; its last line, and the records.
fn launched(options: &[&str], how: &str) -> Result<(String, Vec<serde_json::Value>), Missing> {
    let program = testapp("children")?.display().to_string();
    let (rounds, passes) = (ROUNDS.to_string(), PASSES.to_string());
    let mut command = trace(&["--json"]);
    command.args(options).args(["--", &program, "--how", how]);
    command.args(["--rounds", &rounds, "--passes", &passes]);
    let output = command.output().expect("trapline runs");
    let said = text(&output.stderr);
    assert!(output.status.success(), "{how}: {said}");
    let last = said.lines().find(|line| line.starts_with("processes="));
    let last = last.unwrap_or_else(|| panic!("{how}: it did not end well: {said}"));
    Ok((last.to_owned(), json_lines(text(&output.stdout).lines())))
}

/// How many hits the summary tells of, and how many were shown, from how many processes.
fn told(records: &[serde_json::Value]) -> (u64, u64, u64) {
    let summary = records.iter().find(|record| record["type"] == "summary");
    let counted = &summary.expect("a summary")["probes"][0]["hits"];
    let counted = counted
        .as_str()
        .map_or_else(|| counted.as_u64(), |text| text.parse().ok());
    let hits: Vec<_> = records.iter().filter(|it| it["type"] == "hit").collect();
    let pids: BTreeSet<_> = hits.iter().filter_map(|hit| hit["pid"].as_u64()).collect();
    (
        counted.expect("a count"),
        hits.len() as u64,
        pids.len() as u64,
    )
}

#[test]
fn every_pass_of_every_process_counts() {
    test(|| {
        // One body that the keeper runs by itself, and one that the front is asked about.
        for body in ["", "{ while 0; end }"] {
            let probe = format!("*site {body}");
            for (how, _) in WAYS {
                let (last, records) = launched(&["--follow", "-e", &probe], how)?;
                let passes = number(&last, "passes");
                let expected = (passes, passes, number(&last, "processes"));
                assert_eq!(told(&records), expected, "{how} {body}: {last}");
            }
        }
        Ok(())
    });
}

#[test]
fn those_that_are_let_go_run_on() {
    test(|| {
        for (how, own) in WAYS {
            let (last, records) = launched(&["-e", "*site"], how)?;
            let (counted, shown, _) = told(&records);
            assert_eq!(
                (counted, shown),
                (ROUNDS * PASSES * own, counted),
                "{how}: {last}"
            );
        }
        Ok(())
    });
}

/// While a child has the memory of its parent, that one neither runs nor stops.
#[test]
fn a_vforked_child_that_is_kept_stops_by_itself() {
    test(|| {
        let mut command = Tracer::Trapline.command()?;
        command.args(["--batch", "-ex", "set detach-on-fork off"]);
        command.args(["-ex", "break *site", "-ex", "run"]);
        for _ in 0..3 {
            command.args(["-ex", "info threads", "-ex", "continue"]);
        }
        command.args(["-ex", "continue", "--args"]);
        command.arg(testapp("couple")?).arg("vpass");
        let (status, said) = App::spawn(command).finish();
        let count = |what: &str| said.matches(what).count();
        assert!(status.success(), "{said}");
        assert_eq!(count("hit Breakpoint 1, "), 3, "{said}");
        assert_eq!(count("(running)"), 2, "{said}");
        assert_eq!(count("exited normally"), 1, "{said}");
        Ok(())
    });
}

/// Which number the thread has afterwards is not the same in each of gdb's own runs: nothing to compare.
#[test]
fn a_thread_that_is_not_the_first_one_executes_a_program() {
    test(|| {
        let mut command = Tracer::Trapline.command()?;
        command.args(["--batch", "-ex", "break *site", "-ex", "run"]);
        for _ in 0..3 {
            command.args(["-ex", "continue"]);
        }
        command.arg("--args").arg(testapp("couple")?).arg("thread");
        let (_, said) = App::spawn(command).finish();
        let count = |what: &str| said.matches(what).count();
        assert_eq!(count("Breakpoint 1, 0x"), 3, "{said}");
        assert_eq!(count("is executing new program: "), 1, "{said}");
        assert_eq!(count("exited with code 03]"), 1, "{said}");
        Ok(())
    });
}

/// A process with children that go on until they are told to end.
struct Tree {
    app: App,
    pids: Vec<i32>,
}

const BRANCHES: usize = 8;

impl Tree {
    fn grow() -> Result<Tree, Missing> {
        let branches = BRANCHES.to_string();
        let arguments = ["--how", "tree", "--stay", "--rounds", &branches];
        let app = App::start(&testapp("children")?, &arguments);
        let mut tree = Tree {
            pids: vec![app.pid()],
            app,
        };
        tree.app.expect("ready");
        Ok(tree)
    }

    /// Makes the children.
    fn branch(&mut self) {
        self.app.send("grow");
        for _ in 0..BRANCHES {
            let line = self.app.expect("child ");
            self.pids.extend(
                line.rsplit(' ')
                    .next()
                    .and_then(|pid| pid.parse::<i32>().ok()),
            );
        }
        self.app.expect("grown");
    }

    /// Nobody traces any of them any more, and nothing tells that somebody did.
    fn is_untouched(&mut self) {
        for pid in &self.pids {
            process::wait_untraced(*pid);
            assert_eq!(process::changed_text(*pid), [], "process {pid}");
            let state = process::status_field(*pid, "State").unwrap_or_default();
            assert!(state.starts_with(['R', 'S']), "process {pid}: {state}");
        }
        self.app.ask("alive", &format!("alive {BRANCHES}"));
    }

    fn ends_well(mut self) {
        let last = self.app.ask("quit", "failed=");
        assert_eq!(last, "failed=0 disturbed=0");
        self.app.succeed();
    }
}

/// Follows a tree from before it grows.
fn following(tree: &mut Tree) -> App {
    let pid = tree.app.pid().to_string();
    let mut session = App::spawn(trace(&["--follow", "-e", "*site", "-p", &pid]));
    session.expect("  probe 1: ");
    tree.branch();
    for pid in tree.pids.clone().into_iter().skip(1) {
        let mark = format!("({pid})");
        session.line("a hit in each child", |line| {
            line.contains("site: (") && line.contains(&mark)
        });
    }
    session
}

#[test]
fn ctrl_c_leaves_all_of_them() {
    test(|| {
        let mut tree = Tree::grow()?;
        let mut session = following(&mut tree);
        session.signal(Signal::SIGINT);
        session.succeed();
        tree.is_untouched();
        tree.ends_well();
        Ok(())
    });
}

#[test]
fn a_killed_front_leaves_all_of_them() {
    test(|| {
        for _ in 0..5 {
            let mut tree = Tree::grow()?;
            let session = following(&mut tree);
            session.signal(Signal::SIGKILL);
            tree.is_untouched();
            tree.ends_well();
        }
        Ok(())
    });
}

#[test]
fn a_tracer_that_comes_and_goes_while_children_are_made() {
    test(|| {
        let mut target = App::start(&testapp("forks")?, &[] as &[&str]);
        target.expect("ready");
        let pid = target.pid().to_string();
        for round in 0..8 {
            let arguments = ["--follow", "-e", "*site { while 0; end }", "-p", &pid];
            let mut session = App::spawn(trace(&arguments));
            session.expect("  probe 1: ");
            target.ask("report", "children=");
            let how = [Signal::SIGINT, Signal::SIGKILL][round % 2];
            session.signal(how);
            session.finish();
            process::wait_untraced(target.pid());
            assert_eq!(process::changed_text(target.pid()), [], "{how}");
        }
        let last = target.ask("quit", "children=");
        assert_eq!(number(&last, "died"), 0, "{last}");
        target.succeed();
        Ok(())
    });
}

#[test]
fn a_target_that_another_debugger_holds_is_named_and_left_alone() {
    test(|| {
        let start = || -> Result<App, Missing> {
            let mut app = App::start(&testapp("hot")?, &["--threads", "2"]);
            app.expect("ready");
            Ok(app)
        };
        let (mut held, mut free) = (start()?, start()?);
        let pids = [held.pid().to_string(), free.pid().to_string()];
        let mut command = Tracer::Gdb.command()?;
        command.args(["-nx", "-q", "-p", &pids[0], "-ex", "echo held\\n"]);
        let mut debugger = App::spawn(command);
        debugger.line("that it holds the process", |line| line.ends_with("held"));
        let mut session = App::spawn(trace(&[
            "-e",
            "*site { while 0; end }",
            "-p",
            &pids[0],
            "-p",
            &pids[1],
        ]));
        let line = session.expect("warning: ");
        let wanted = format!("warning: Process {} (hot) is not traced: ", pids[0]);
        assert!(line.starts_with(&wanted), "{line}");
        let why = session.line("who holds it", |line| line.contains("gdb"));
        assert!(why.contains(&debugger.pid().to_string()), "{why}");
        session.expect(&format!("trapline: tracing process {} ", pids[1]));
        let mark = format!("({})", pids[1]);
        session.line("a hit in the other", |line| {
            line.contains("site: (") && line.contains(&mark)
        });
        session.signal(Signal::SIGINT);
        session.succeed();
        process::wait_untraced(free.pid());
        assert_eq!(process::changed_text(free.pid()), []);
        // The debugger has noticed nothing.
        debugger.send("detach");
        debugger.send("quit");
        debugger.succeed();
        for app in [&mut held, &mut free] {
            app.ask("alive", "alive 2");
            app.send("quit");
            app.succeed();
        }
        Ok(())
    });
}

/// The child is followed and stops, and its parent is left: what the parent waits for must not end with
/// EINTR, although the thread that traced it traces on.
#[test]
fn a_parent_that_is_left_for_its_child_goes_on_waiting() {
    test(|| {
        let mut tree = Tree::grow()?;
        let pid = tree.app.pid().to_string();
        let mut command = Tracer::Trapline.command()?;
        command.args(["-p", &pid]);
        let mut session = App::spawn(command);
        for line in ["set follow-fork-mode child", "break *site", "continue"] {
            session.send(line);
        }
        session.expect("Breakpoint 1 at ");
        // Where the parent stands is not told; the hit is the child's.
        tree.app.send("grow");
        session.expect("[Attaching after ");
        session.line("the parent's end", |line| {
            line.ends_with(&format!("(process {pid}) detached]"))
        });
        session.line("a hit in the child", |line| {
            line.contains(" hit Breakpoint 1, ")
        });
        // The others are made behind that, and traced by nobody.
        for _ in 0..BRANCHES {
            tree.app.expect("child ");
        }
        tree.app.expect("grown");
        tree.app.ask("alive", &format!("alive {BRANCHES}"));
        session.send("detach");
        session.send("quit");
        session.succeed();
        process::wait_untraced(tree.app.pid());
        assert_eq!(process::changed_text(tree.app.pid()), []);
        // Of the child that all threads of have stood nothing is asked.
        let last = tree.app.ask("quit", "failed=");
        assert_eq!(number(&last, "disturbed"), 0, "{last}");
        Ok(())
    });
}
