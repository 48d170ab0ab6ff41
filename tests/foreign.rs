//! Other tools at our addresses: each is named, none is taken for ours, and the target never pays for it.

mod support;

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::sys::signal::Signal;
use support::app::number;
use support::tracer::{trace, trapline};
use support::{App, Missing, TempFile, process, test, testapp};

/// A program that waits with its hundred calls, from a file of its own: a uprobe is for all that run it.
struct Target {
    file: TempFile,
    app: App,
}

impl Target {
    fn start() -> Result<Target, Missing> {
        let file = TempFile::copy(&testapp("fibon")?);
        let mut app = App::start(file.as_ref(), &["--wait", "--calls", "100"]);
        app.expect("ready");
        Ok(Target { file, app })
    }

    fn pid(&self) -> i32 {
        self.app.pid()
    }

    fn trace(&self) -> App {
        let pid = self.pid().to_string();
        App::spawn(trace(&["-p", &pid, "-e", "*Fibon"]))
    }

    /// The function's offset in the file, and its address in the process.
    fn place(&self) -> (u64, u64) {
        let mut command = trapline();
        command.args([
            "symbols",
            "--json",
            "-p",
            &self.pid().to_string(),
            "/^Fibon$/",
        ]);
        let output = command.output().expect("trapline runs").stdout;
        let row = &support::json_lines(support::text(&output).lines())[0];
        let hex =
            |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a number");
        let runtime = hex(row["runtime"].as_str().expect("an address"));
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid())).expect("maps");
        for line in maps.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = words[0].split_once('-').expect("a range");
            if (hex(start)..hex(end)).contains(&runtime) {
                return (runtime - hex(start) + hex(words[2]), runtime);
            }
        }
        panic!("{runtime:#x} is not in\n{maps}");
    }

    /// A uprobe at the function, of all processes or of this one.
    fn uprobe(&self, own: bool) -> Result<App, Missing> {
        let mut arguments = vec![self.file.path(), self.place().0.to_string()];
        arguments.extend(own.then(|| self.pid().to_string()));
        let mut app = App::start(&testapp("uprobe")?, &arguments);
        let line = app.line("armed", |_| true);
        if line == "armed" {
            return Ok(app);
        }
        Err(Missing(format!("no uprobes here: {line}")))
    }

    fn ends_well(&mut self) {
        let line = self.app.ask("go", "calls=");
        assert_eq!(number(&line, "calls"), 100, "{line}");
        self.app.succeed();
    }
}

/// `trace` is refused at the function, with a line that says why.
fn refused(target: &Target, parts: &[&str]) {
    let mut tracer = target.trace();
    let (status, text) = tracer.finish();
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!status.success(), "{text}");
    process::wait_untraced(target.pid());
}

#[test]
fn a_uprobe_that_was_there_first() {
    test(|| {
        for own in [false, true] {
            let mut target = Target::start()?;
            let mut uprobe = target.uprobe(own)?;
            let who = match own {
                false => {
                    "a uprobe of the kernel's is there already (perf, ftrace and bpftrace set such)"
                }
                true => {
                    "an int3 is there already, another debugger's or tracer's, or a uprobe's for this process"
                }
            };
            refused(&target, &[who, "Memory there is cc "]);
            target.ends_well();
            // It has lost nothing by us. (That of all processes counts one processor's.)
            let line = uprobe.ask("count", "count ");
            assert!(!own || line == "count 100", "{line}");
        }
        Ok(())
    });
}

#[test]
fn a_uprobe_that_comes_later() {
    test(|| {
        let mut target = Target::start()?;
        let (_, address) = target.place();
        let mut tracer = target.trace();
        tracer.expect("  probe 1: ");
        let _uprobe = target.uprobe(false)?;
        target.ends_well();
        let (_, text) = tracer.finish();
        let warning = format!(
            "warning: a uprobe of the kernel's (perf, ftrace or bpftrace) was set over the int3 at {address:#x} <Fibon>"
        );
        assert!(text.contains(&warning), "{text}");
        Ok(())
    });
}

#[test]
fn a_uprobe_that_comes_and_goes() {
    test(|| {
        let mut target = Target::start()?;
        let (_, address) = target.place();
        let mut tracer = target.trace();
        tracer.expect("  probe 1: ");
        let mut uprobe = target.uprobe(true)?;
        uprobe.succeed();
        tracer.signal(Signal::SIGINT);
        let (_, text) = tracer.finish();
        let warning = format!("took out the int3 at {address:#x} <Fibon>: the hits since then");
        assert!(text.contains(&warning), "{text}");
        process::wait_untraced(target.pid());
        assert_eq!(process::changed_text(target.pid()), []);
        target.ends_well();
        Ok(())
    });
}

/// Writes into the program's text, as other tools do.
fn overwrite(pid: i32, address: u64, bytes: &[u8]) -> Vec<u8> {
    let path = format!("/proc/{pid}/mem");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(Path::new(&path));
    let memory = file.expect("memory of our child");
    let mut before = vec![0; bytes.len()];
    memory.read_exact_at(&mut before, address).expect("text");
    memory.write_all_at(bytes, address).expect("text");
    before
}

#[test]
fn a_jump_of_a_hook() {
    test(|| {
        let mut target = Target::start()?;
        let (_, address) = target.place();
        // To a place in no module, and through memory.
        let far = [0x48, 0xb8, 0, 0, 0, 0x10, 0, 0, 0, 0, 0xff, 0xe0];
        let near = [0xe9, 0xfb, 0xff, 0xff, 0xff];
        let through = [0xff, 0x25, 0, 0, 0, 0];
        let hooks: [(&[u8], String); 3] = [
            (
                &far,
                "a jump to 0x10000000 in memory of no module is there".into(),
            ),
            (&near, format!("a jump to {address:#x} <Fibon> is there")),
            (&through, "a jump to an address in memory is there".into()),
        ];
        for (code, says) in hooks {
            let before = overwrite(target.pid(), address, code);
            refused(
                &target,
                &[&says, "another tool's hook (Frida and others set such)"],
            );
            // As it was left.
            assert_eq!(overwrite(target.pid(), address, &before), code);
        }
        target.ends_well();
        Ok(())
    });
}

#[test]
fn an_int3_that_a_debugger_left() {
    test(|| {
        let mut target = Target::start()?;
        let (_, address) = target.place();
        let before = overwrite(target.pid(), address, &[0xcc]);
        refused(
            &target,
            &["an int3 is there already", "Memory there is cc "],
        );
        assert_eq!(overwrite(target.pid(), address, &before), [0xcc]);
        target.ends_well();
        Ok(())
    });
}
