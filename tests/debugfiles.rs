//! Separate debug files: names of functions that the stripped library does not have any more, found as gdb
//! finds them, and files that do not fit refused as there.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{App, Missing, TempDir, Tracer, normalise, test, testapp, text};

/// A directory with a library that was split.
struct Split {
    root: TempDir,
    build_id: String,
}

fn run(program: &str, arguments: &[&str], directory: &Path) -> Result<String, Missing> {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(directory).output();
    let output = output.map_err(|error| Missing(format!("no {program}: {error}")))?;
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Split {
    /// `lib/libsplit.so` without `.symtab` and the debug file `libsplit.debug` beside no one.
    fn new() -> Result<Split, Missing> {
        let directory = TempDir::new("trapline-split");
        let root = directory.path();
        fs::create_dir(root.join("lib")).expect("a directory");
        fs::copy(testapp("libsplit.so")?, root.join("lib/libsplit.so")).expect("a copy");
        let notes = run("readelf", &["-n", "lib/libsplit.so"], root)?;
        let id = notes.split("Build ID: ").nth(1).expect("a build id");
        let id = id.split_whitespace().next().expect("a build id").into();
        let debug = ["--only-keep-debug", "lib/libsplit.so", "libsplit.debug"];
        run("objcopy", &debug, root)?;
        run("strip", &["lib/libsplit.so"], root)?;
        Ok(Split {
            root: directory,
            build_id: id,
        })
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    /// Copies the debug file; the directories are made.
    fn put(&self, place: &str) -> PathBuf {
        let path = self.path(place);
        fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
        fs::copy(self.path("libsplit.debug"), &path).expect("a copy");
        path
    }

    /// The place in the debug-file-directory `global`.
    fn by_build_id(&self) -> String {
        let (first, rest) = self.build_id.split_at(2);
        format!("global/.build-id/{first}/{rest}.debug")
    }

    /// Writes `.gnu_debuglink` into the library.
    fn link(&self) -> Result<(), Missing> {
        let link = ["--add-gnu-debuglink=libsplit.debug", "lib/libsplit.so"];
        run("objcopy", &link, self.root.path()).map(|_| ())
    }

    /// What a tracer prints that breaks in the library's static function: on both streams.
    fn traced(&self, tracer: Tracer) -> Result<(String, String), Missing> {
        let global = self.path("nowhere").display().to_string() + ":";
        let set = format!(
            "set debug-file-directory {global}{}",
            self.path("global").display()
        );
        let mut command = tracer.command()?;
        command.args(["--batch", "-ex", &set, "-ex", "show debug-file-directory"]);
        for line in [
            "set breakpoint pending on",
            "break hidden_function",
            "run",
            "info symbol $pc",
            "x/3i $pc",
            "print hidden_function",
            "info breakpoints",
            "continue",
        ] {
            command.args(["-ex", line]);
        }
        command
            .arg(testapp("split-client")?)
            .env("LD_LIBRARY_PATH", self.path("lib"))
            .stdin(Stdio::null());
        let output = command.output().expect("the tracer runs");
        Ok((normalise(&text(&output.stdout)), text(&output.stderr)))
    }

    /// The same text from both; ours, with the warnings.
    fn compared(&self) -> Result<(String, Vec<String>), Missing> {
        let (ours, warnings) = self.traced(Tracer::Trapline)?;
        let (gdb, said) = self.traced(Tracer::Gdb)?;
        assert_eq!(ours, gdb, "{warnings}\n{said}");
        let warnings = warnings
            .lines()
            .filter(|line| line.starts_with("warning: "));
        let warnings: Vec<String> = warnings.map(String::from).collect();
        for warning in &warnings {
            assert!(
                said.lines().any(|line| line == warning),
                "{warning}\n{said}"
            );
        }
        Ok((ours, warnings))
    }
}

fn hits(text: &str) -> bool {
    text.contains("Breakpoint 1, ") && text.contains(" in hidden_function () from ")
}

#[test]
fn by_build_id() {
    test(|| {
        let split = Split::new()?;
        let (text, _) = split.compared()?;
        assert!(!hits(&text), "{text}");
        split.put(&split.by_build_id());
        let (text, warnings) = split.compared()?;
        assert!(hits(&text), "{text}");
        assert_eq!(warnings, Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn by_link() {
    test(|| {
        let split = Split::new()?;
        split.link()?;
        let home = split.path("lib");
        let home = home.strip_prefix("/").expect("an absolute path").display();
        let global = format!("global/{home}/libsplit.debug");
        for place in ["lib/libsplit.debug", "lib/.debug/libsplit.debug", &global] {
            let file = split.put(place);
            let (text, warnings) = split.compared()?;
            assert!(hits(&text), "{place}\n{text}");
            assert_eq!(warnings, Vec::<String>::new());
            fs::remove_file(file).expect("it was there");
        }
        Ok(())
    });
}

/// A file that was changed after the split, and the one of another build: each with gdb's line.
#[test]
fn what_does_not_fit_is_refused() {
    test(|| {
        let split = Split::new()?;
        split.link()?;
        let file = split.put("lib/.debug/libsplit.debug");
        let mut changed = fs::read(&file).expect("the debug file");
        changed.push(0);
        fs::write(&file, &changed).expect("written");
        let (text, warnings) = split.compared()?;
        assert!(!hits(&text), "{text}");
        let wanted = format!(
            "warning: the debug information found in \"{}\" does not match \"{}\" (CRC mismatch).",
            file.display(),
            split.path("lib/libsplit.so").display()
        );
        assert_eq!(warnings, [wanted]);
        fs::remove_file(file).expect("it was there");

        let file = split.put(&split.by_build_id());
        let mut changed = fs::read(&file).expect("the debug file");
        let id: Vec<u8> = (0..split.build_id.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&split.build_id[at..at + 2], 16).expect("hexadecimal"))
            .collect();
        let at = changed.windows(id.len()).position(|bytes| bytes == id);
        changed[at.expect("the build id")] ^= 1;
        fs::write(&file, &changed).expect("written");
        let (text, warnings) = split.compared()?;
        assert!(!hits(&text), "{text}");
        let wanted = format!(
            "warning: File \"{}\" has a different build-id, file skipped",
            file.display()
        );
        assert_eq!(warnings, [wanted]);
        Ok(())
    });
}

fn symbols(arguments: &[&str]) -> (String, String) {
    let mut command = support::tracer::trapline();
    command.arg("symbols").args(arguments);
    let output = command.output().expect("trapline runs");
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_symbols_of_a_file() {
    test(|| {
        let split = Split::new()?;
        let library = split.path("lib/libsplit.so").display().to_string();
        let global = split.path("global").display().to_string();
        let arguments = [
            "--debug-file-directory",
            &global,
            &library,
            "hidden_function",
        ];
        let (text, complaint) = symbols(&arguments);
        assert_eq!(text, "", "{complaint}");
        split.put(&split.by_build_id());
        let (text, complaint) = symbols(&arguments);
        assert!(text.contains("function"), "{text}{complaint}");
        // The first instruction's price is known: the code is the library's own.
        let whole = testapp("libsplit.so")?.display().to_string();
        assert_eq!(text, symbols(&[&whole, "hidden_function"]).0);
        // What the library imports and exports is listed once.
        let (text, _) = symbols(&arguments[..3]);
        assert_eq!(text, symbols(&[&whole]).0);
        Ok(())
    });
}

/// The library and its debug file are on a file system that only the process sees.
#[test]
fn in_the_root_of_the_process() {
    test(|| {
        let split = Split::new()?;
        split.link()?;
        let allowed = Command::new("unshare").args(["-m", "true"]).output();
        if !allowed.is_ok_and(|output| output.status.success()) {
            return Err(Missing("namespaces cannot be made (unshare)".into()));
        }
        let inside = split.path("inside");
        fs::create_dir(&inside).expect("a directory");
        let script = format!(
            "set -e; cd '{}'; mount -t tmpfs none inside; cp lib/libsplit.so libsplit.debug inside; LD_LIBRARY_PATH=$PWD/inside exec '{}' wait",
            split.root.path().display(),
            testapp("split-client")?.display()
        );
        let mut command = Command::new("unshare");
        command.args(["-m", "/bin/sh", "-c", &script]);
        let mut app = App::spawn(command);
        app.expect("ready");
        assert!(!inside.join("libsplit.so").exists());
        let pid = app.pid().to_string();
        let (text, complaint) = symbols(&["-p", &pid, "hidden_function"]);
        assert!(text.contains("hidden_function"), "{text}{complaint}");
        app.send("");
        assert!(app.succeed().contains("42"));
        Ok(())
    });
}
