//! `trapline doctor` where something is in the way: it is named, with its cure, and nothing fails over it.

mod support;

use std::path::Path;
use std::process::Command;

use support::{App, Missing, TempFile, Tracer, json_lines, process, schema, test, testapp};

/// A copy of the command that every user may execute, wherever the build is.
fn public() -> TempFile {
    TempFile::copy(Path::new(support::tracer::trapline().get_program()))
}

fn root() -> Result<(), Missing> {
    match nix::unistd::geteuid().is_root() {
        true => Ok(()),
        false => Err(Missing("needs root".into())),
    }
}

/// What a command says and its exit status.
fn said(command: &mut Command) -> (i32, String) {
    let output = command.output().expect("a command that starts");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), text.into_owned())
}

fn doctor(arguments: &[&str]) -> (i32, String) {
    said(support::tracer::trapline().arg("doctor").args(arguments))
}

/// As nobody, who has no capability.
fn as_nobody(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", program])
        .args(arguments);
    command
}

/// A shell's command line in a mount namespace of its own.
fn in_own_mounts(script: &str) -> (i32, String) {
    said(Command::new("unshare").args(["-m", "sh", "-ec", script]))
}

/// The line of a check.
#[track_caller]
fn line<'a>(text: &'a str, area: &str, name: &str) -> &'a str {
    text.lines()
        .find(|line| line.split_whitespace().skip(1).take(2).eq([area, name]))
        .unwrap_or_else(|| panic!("no line {area} {name} in:\n{text}"))
}

#[track_caller]
fn assert_line(text: &str, area: &str, name: &str, state: &str, parts: &[&str]) {
    let line = line(text, area, name);
    assert!(line.starts_with(state), "{line}");
    for part in parts {
        assert!(line.contains(part), "no {part:?} in {line}");
    }
}

fn target(name: &str, arguments: &[&str]) -> Result<App, Missing> {
    let mut app = App::start(&testapp(name)?, arguments);
    app.expect("ready");
    Ok(app)
}

#[test]
fn root_can_trace_and_every_line_has_its_form() {
    test(|| {
        root()?;
        let mut app = target("blocked", &[])?;
        let pid = app.pid().to_string();
        let (status, text) = doctor(&["-p", &pid]);
        assert_eq!(status, 0, "{text}");
        assert_line(&text, "ptrace", "attach", "ok", &["(tried)"]);
        assert_line(&text, "target", "process", "ok", &[&pid, "(blocked)"]);
        assert_line(&text, "target", "attach", "ok", &[]);
        assert_line(&text, "target", "seccomp", "ok", &["no thread"]);
        assert_line(&text, "target", "modules", "ok", &["the program"]);
        assert_line(&text, "trapline", "kill", "part", &["trapline-keeper"]);
        for line in text.lines() {
            let state = line.split_whitespace().next().unwrap_or_default();
            assert!(["ok", "part", "no", "?"].contains(&state), "{line}");
            if state == "part" || state == "no" {
                assert!(line.contains(". Cure: "), "{line}");
            }
        }
        // Nothing was changed.
        assert_eq!(process::changed_text(app.pid()), []);
        assert_eq!(
            process::status_field(app.pid(), "TracerPid").as_deref(),
            Some("0")
        );
        app.close_stdin();
        Ok(())
    });
}

#[test]
fn json_keeps_to_its_schema() {
    let schema = schema("doctor-v1.json");
    let own = std::process::id().to_string();
    let (status, text) = doctor(&["--json", "-p", &own]);
    let lines = json_lines(text.lines());
    for line in &lines {
        assert!(schema.is_valid(line), "{line}");
    }
    let verdict = lines.last().expect("a verdict");
    assert_eq!(verdict["works"], serde_json::json!(status == 0));
    assert!(lines.len() > 15);
}

#[test]
fn wrong_usage_and_absent_targets_are_said() {
    let (status, text) = doctor(&["--no-such-option"]);
    assert_eq!(status, 2, "{text}");
    let (status, text) = doctor(&["-p", "no-such-program-here"]);
    assert_eq!(status, 1);
    assert!(text.starts_with("No process is named"), "{text}");
    let (status, text) = doctor(&["-p", "8388607"]);
    assert_eq!(status, 1);
    assert_line(&text, "target", "process", "no", &["ENOENT"]);
}

#[test]
fn another_users_process_is_named_with_both_users() {
    test(|| {
        root()?;
        let public = public();
        let app = target("blocked", &[])?;
        let pid = app.pid().to_string();
        let (status, text) = said(&mut as_nobody(&public.path(), &["doctor", "-p", &pid]));
        assert_eq!(status, 1, "{text}");
        let why = "belongs to user 0 and you are user 65534";
        assert_line(&text, "ptrace", "attach", "ok", &[]);
        assert_line(
            &text,
            "ptrace",
            "rights",
            "part",
            &["without CAP_SYS_PTRACE"],
        );
        assert_line(&text, "target", "attach", "no", &[why]);
        let (status, text) = said(&mut as_nobody(
            &public.path(),
            &["trace", "-p", &pid, "-e", "main"],
        ));
        assert_eq!(status, 1, "{text}");
        assert!(
            text.contains("Operation not permitted") && text.contains(why),
            "{text}"
        );
        // Without a target an ordinary user can work.
        let (status, text) = said(&mut as_nobody(&public.path(), &["doctor"]));
        assert_eq!(status, 0, "{text}");
        assert_line(&text, "uprobe", "open", "no", &["EACCES", "CAP_PERFMON"]);
        assert_line(&text, "bpf", "program", "no", &["EPERM", "CAP_BPF"]);
        Ok(())
    });
}

#[test]
fn inside_a_user_namespace_the_world_outside_is_another() {
    test(|| {
        root()?;
        let app = target("blocked", &[])?;
        let pid = app.pid().to_string();
        let trapline = support::tracer::trapline();
        let mut command = Command::new("unshare");
        command
            .arg("-U")
            .arg(trapline.get_program())
            .args(["doctor", "-p", &pid]);
        let (status, text) = said(&mut command);
        assert_eq!(status, 1, "{text}");
        assert_line(&text, "ptrace", "attach", "ok", &[]);
        assert_line(&text, "ptrace", "namespaces", "part", &["a user namespace"]);
        assert_line(&text, "target", "attach", "no", &["another user namespace"]);
        Ok(())
    });
}

#[test]
fn a_filter_on_ourselves_is_named_whether_it_refuses_or_kills() {
    test(|| {
        let refuse = testapp("refuse")?;
        let run = |call: i64, action: &str| {
            let trapline = support::tracer::trapline();
            let mut command = Command::new(&refuse);
            command
                .args([&call.to_string(), action])
                .arg(trapline.get_program())
                .arg("doctor");
            said(&mut command)
        };
        let (status, text) = run(libc::SYS_ptrace, "eperm");
        assert_eq!(status, 1, "{text}");
        let seized = ["PTRACE_SEIZE", "EPERM", "--cap-add=SYS_PTRACE"];
        assert_line(&text, "ptrace", "attach", "no", &seized);
        assert_line(&text, "ptrace", "seccomp", "part", &["1 filter"]);
        let (status, text) = run(libc::SYS_ptrace, "kill");
        assert_eq!(status, 1, "{text}");
        assert_line(&text, "ptrace", "attach", "no", &["PTRACE_SEIZE", "SIGSYS"]);
        let (status, text) = run(libc::SYS_process_vm_readv, "kill");
        assert_eq!(status, 1, "{text}");
        assert_line(
            &text,
            "ptrace",
            "attach",
            "no",
            &["process_vm_readv", "SIGSYS"],
        );
        let (status, text) = run(libc::SYS_process_vm_readv, "eperm");
        assert_eq!(status, 0, "{text}");
        assert_line(
            &text,
            "ptrace",
            "read",
            "part",
            &["process_vm_readv", "EPERM"],
        );
        let (status, text) = run(libc::SYS_bpf, "kill");
        assert_eq!(status, 0, "{text}");
        assert_line(&text, "bpf", "program", "no", &["SIGSYS"]);
        Ok(())
    });
}

#[test]
fn the_tracer_that_is_there_already_is_named() {
    test(|| {
        root()?;
        let app = target("blocked", &[])?;
        let pid = app.pid().to_string();
        let mut gdb = Tracer::Gdb.start(&["-p", &pid])?;
        gdb.send("echo here\\n");
        gdb.line("here", |line| line.ends_with("here"));
        let why = format!("traced by process {} (gdb) already", gdb.pid());
        let (status, text) = doctor(&["-p", &pid]);
        assert_eq!(status, 1, "{text}");
        assert_line(
            &text,
            "target",
            "attach",
            "no",
            &[&why, "end that one first"],
        );
        let (status, text) =
            said(support::tracer::trapline().args(["trace", "-p", &pid, "-e", "main"]));
        assert_eq!(status, 1);
        assert!(text.contains(&why), "{text}");
        gdb.send("detach");
        gdb.line("Inferior", |line| line.contains("[Inferior 1"));
        Ok(())
    });
}

/// The kernel of the test may have no yama; its file may be there all the same.
#[test]
fn each_value_of_yama_is_told_with_its_meaning() {
    test(|| {
        root()?;
        let public = public();
        for (value, state, meaning) in [
            ("0", "ok", "no restriction"),
            ("1", "part", "only a parent may trace"),
            ("2", "no", "only root"),
            ("3", "no", "until the next boot"),
            ("9", "?", "unknown"),
        ] {
            let (_, text) = in_own_mounts(&format!(
                "mount -t tmpfs none /proc/sys/kernel; mkdir /proc/sys/kernel/yama
                 echo {value} > /proc/sys/kernel/yama/ptrace_scope
                 setpriv --reuid=65534 --regid=65534 --clear-groups {} doctor",
                public.path()
            ));
            assert_line(&text, "ptrace", "yama", state, &[meaning]);
        }
        Ok(())
    });
}

#[test]
fn missing_parts_of_the_system_are_unknown_and_no_more() {
    test(|| {
        root()?;
        let public = public();
        let path = public.path();
        let (status, text) = in_own_mounts(&format!("mount -t tmpfs none /sys; {path} doctor"));
        assert_eq!(status, 0, "{text}");
        assert_line(&text, "uprobe", "events", "?", &["/sys is not mounted"]);
        assert_line(&text, "bpf", "lockdown", "?", &[]);
        // Without /proc there is no memory of a target and no second start of ourselves.
        let (status, text) = in_own_mounts(&format!(
            "mount -t tmpfs none /proc; {path} doctor -p 1 || exit $?"
        ));
        assert_eq!(status, 1, "{text}");
        assert_line(&text, "ptrace", "attach", "no", &["/proc"]);
        assert_line(&text, "ptrace", "rights", "?", &[]);
        assert_line(&text, "limits", "proc", "no", &["not mounted"]);
        assert_line(&text, "target", "process", "no", &[]);
        assert_line(&text, "trapline", "keeper", "no", &[]);
        let (status, text) = in_own_mounts(&format!(
            "mount -t proc -o hidepid=2 proc /proc
             setpriv --reuid=65534 --regid=65534 --clear-groups {path} doctor -p 1 || exit $?"
        ));
        assert_eq!(status, 1, "{text}");
        assert_line(&text, "limits", "proc", "part", &["hidepid="]);
        assert_line(&text, "target", "process", "no", &["hidepid"]);
        Ok(())
    });
}

#[test]
fn what_is_special_about_a_target_is_told() {
    test(|| {
        root()?;
        let special = |app: &App| doctor(&["-p", &app.pid().to_string()]);
        let mut app = target("leader", &[])?;
        app.ask("end", "ended");
        let (status, text) = special(&app);
        assert_eq!(status, 0, "{text}");
        assert_line(
            &text,
            "target",
            "process",
            "ok",
            &["first thread has ended"],
        );
        assert_line(&text, "target", "attach", "ok", &[]);
        app.ask("quit", "passes=0");

        let app = target("fibon-static", &["--wait"])?;
        let (_, text) = special(&app);
        assert_line(
            &text,
            "target",
            "modules",
            "ok",
            &["(static)", "0 libraries"],
        );

        let app = target("blocked", &[])?;
        app.signal(nix::sys::signal::Signal::SIGSTOP);
        let deadline = std::time::Instant::now() + support::app::PATIENCE;
        assert!(process::until(deadline, || {
            process::status_field(app.pid(), "State").is_some_and(|state| state.starts_with('T'))
        }));
        let (_, text) = special(&app);
        assert_line(
            &text,
            "target",
            "process",
            "part",
            &["stopped", "kill -CONT"],
        );

        let mut filtered = App::start(
            Path::new(&testapp("refuse")?),
            &[
                &libc::SYS_reboot.to_string(),
                "eperm",
                testapp("blocked")?.to_str().expect("a plain path"),
            ],
        );
        filtered.expect("ready");
        let (_, text) = special(&filtered);
        let task = format!("/proc/{}/task", filtered.pid());
        let all = std::fs::read_dir(task).expect("it runs").count();
        assert_line(
            &text,
            "target",
            "seccomp",
            "part",
            &[&*format!("{all} of {all} threads"), "1 filter"],
        );
        Ok(())
    });
}

#[test]
fn a_process_that_may_not_be_dumped_is_told_so() {
    test(|| {
        root()?;
        let public = public();
        let program = TempFile::copy(&testapp("leader")?);
        let mut app = App::spawn(as_nobody(&program.path(), &[]));
        app.expect("ready");
        app.ask("hide", "hidden");
        let pid = app.pid().to_string();
        let (status, text) = said(&mut as_nobody(&public.path(), &["doctor", "-p", &pid]));
        assert_eq!(status, 1, "{text}");
        assert_line(&text, "target", "dumpable", "part", &["user 0"]);
        assert_line(&text, "target", "attach", "no", &["not dumpable"]);
        let (status, text) = doctor(&["-p", &pid]);
        assert_eq!(status, 0, "{text}");
        Ok(())
    });
}

#[test]
fn few_descriptors_are_told() {
    let trapline = support::tracer::trapline();
    let mut command = Command::new("prlimit");
    command
        .arg("--nofile=20:20")
        .arg(trapline.get_program())
        .arg("doctor");
    let (_, text) = said(&mut command);
    assert_line(&text, "limits", "files", "part", &["20", "ulimit -n"]);
}
