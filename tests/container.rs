//! Targets in mount and pid namespaces of their own, with a library that exists only there; and files that
//! were replaced since they were loaded.

mod support;

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;
use support::{App, Missing, TempDir, process, test, testapp};

/// A shell, the first process of its own namespaces, with the library on a file system that only it sees:
/// `$library`; `$loads` and `$trapline` are the programs.
fn inside(directory: &TempDir, script: &str) -> Result<App, Missing> {
    let mut probe = Command::new("unshare");
    let allowed = probe
        .args(["-m", "-p", "-f", "--mount-proc", "true"])
        .output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        return Err(Missing(
            "namespaces cannot be made (unshare, CAP_SYS_ADMIN)".into(),
        ));
    }
    let mut command = Command::new("unshare");
    let prepared = format!(
        "set -e; mount -t tmpfs none '{0}'; cp '{1}' '{0}/libinside.so'; library='{0}/libinside.so'; {script}",
        directory.path().display(),
        testapp("libplugin.so")?.display(),
    );
    command
        .args(["-m", "-p", "-f", "--mount-proc", "/bin/sh", "-c", &prepared])
        .env("loads", testapp("loads")?)
        .env("trapline", support::tracer::trapline().get_program());
    Ok(App::spawn(command))
}

/// The only child of a process, as this namespace numbers it.
fn child(pid: i32) -> i32 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(path).expect("its children");
    let only = children.split_whitespace().next().expect("a child");
    only.parse().expect("a number")
}

const PROBES: [&str; 4] = [
    "-e",
    "plugin_pass { while 0; end }",
    "-e",
    "plugin_begin { while 0; end }",
];

fn counts(text: &str, passes: u32, begun: u32) {
    for (probe, count) in [(1, passes), (2, begun)] {
        let line = text
            .lines()
            .find(|line| line.contains(&format!("probe {probe}: ")) && line.contains(" hit"));
        let line = line.unwrap_or_else(|| panic!("no probe {probe} in:\n{text}"));
        let s = if count == 1 { "" } else { "s" };
        assert!(
            line.contains(&format!(": {count} hit{s}")),
            "{line}, expected {count}:\n{text}"
        );
    }
}

#[test]
fn from_outside() {
    test(|| {
        let directory = TempDir::new("trapline-container");
        let mut target = inside(&directory, "exec \"$loads\" --library \"$library\"")?;
        // Its number inside.
        assert_eq!(target.expect("ready"), "ready 1");
        let outside = child(target.pid());
        assert!(!directory.join("libinside.so").exists());
        for loaded in [false, true] {
            if loaded {
                target.ask("open", "open");
            }
            let mut command = support::tracer::trapline();
            command
                .arg("trace")
                .args(PROBES)
                .args(["-p", &outside.to_string()]);
            let mut session = App::spawn(command);
            session.expect("  probe 2: ");
            if !loaded {
                target.ask("open", "open");
            }
            target.ask("pass 4", "pass");
            target.ask("close", "close");
            session.signal(Signal::SIGINT);
            let text = session.finish().1;
            process::wait_untraced(outside);
            counts(&text, 4, u32::from(!loaded));
        }
        target.ask("open", "open");
        target.ask("pass 1", "pass");
        target.send("quit");
        target.succeed();
        Ok(())
    });
}

#[test]
fn from_inside_without_the_administrators_capability() {
    test(|| {
        let directory = TempDir::new("trapline-container");
        let mut both = inside(
            &directory,
            "exec 3<&0; \"$loads\" --library \"$library\" <&3 & target=$!; \
             setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin -- \
             \"$trapline\" trace -e 'plugin_pass' -e 'plugin_begin' -p $target --count 4 </dev/null >/dev/null & \
             wait $!; echo left; wait",
        )?;
        both.expect("  probe 2: ");
        both.send("open");
        both.send("pass 3");
        both.line("left", |line| line == "left");
        both.ask("pass 2", "pass 2");
        both.send("quit");
        let text = both.succeed();
        counts(&text, 3, 1);
        Ok(())
    });
}

#[test]
fn a_library_that_was_replaced() {
    test(|| {
        let directory = TempDir::new("trapline-container");
        let library = directory.join("libreplaced.so");
        fs::copy(testapp("libplugin.so")?, &library).expect("a copy");
        let mut target = App::start(
            &testapp("loads")?,
            &["--library", &library.display().to_string()],
        );
        target.expect("ready");
        target.ask("open", "open");
        // Another file takes its name, as a package's upgrade does.
        let other = directory.join("new");
        fs::copy(testapp("fibon")?, &other).expect("a copy");
        fs::rename(&other, &library).expect("a new name");
        let mut command = support::tracer::trapline();
        command
            .arg("trace")
            .args(PROBES)
            .args(["-p", &target.pid().to_string()]);
        let mut session = App::spawn(command);
        session.expect("  probe 2: ");
        target.ask("pass 7", "pass");
        session.signal(Signal::SIGINT);
        let text = session.finish().1;
        process::wait_untraced(target.pid());
        counts(&text, 7, 0);

        // Without the right to read what is mapped, that is said.
        let mut command = Command::new("setpriv");
        command
            .args([
                "--bounding-set=-sys_admin,-checkpoint_restore",
                "--inh-caps=-sys_admin,-checkpoint_restore",
                "--",
            ])
            .arg(support::tracer::trapline().get_program())
            .arg("trace")
            .args(PROBES)
            .args(["-p", &target.pid().to_string()]);
        let mut session = App::spawn(command);
        session.expect("  probe 2: ");
        session.signal(Signal::SIGINT);
        let text = session.finish().1;
        assert!(
            text.contains("libreplaced.so") && text.contains("was replaced or deleted"),
            "{text}"
        );
        target.send("quit");
        target.succeed();
        Ok(())
    });
}
