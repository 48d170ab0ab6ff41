//! gdb and trapline, driven with the same arguments, and their texts made comparable.

use std::path::PathBuf;
use std::process::Command;

use super::{App, Missing};

/// Who traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    Trapline,
    Gdb,
}

impl Tracer {
    /// Starts it with gdb's arguments, without start-up files.
    pub fn start(self, arguments: &[&str]) -> Result<App, Missing> {
        let mut command = self.command()?;
        command.args(arguments);
        Ok(App::spawn(command))
    }

    /// As [`Tracer::start`] with `--batch`.
    pub fn batch(self, arguments: &[&str]) -> Result<App, Missing> {
        let mut command = self.command()?;
        command.arg("--batch").args(arguments);
        Ok(App::spawn(command))
    }

    /// A batch run that goes on after `arguments` with its breakpoints in place, and does `after` when it has
    /// stopped again.
    pub fn armed(self, arguments: &[&str], after: &[&str]) -> Result<App, Missing> {
        const GO: [&str; 4] = ["-ex", "echo armed\\n", "-ex", "continue"];
        let mut session = self.batch(&[arguments, &GO, after].concat())?;
        session.expect("armed");
        Ok(session)
    }

    /// A batch run with one breakpoint that counts and never stops the process, in place; it tells its
    /// breakpoints when it has stopped.
    pub fn counted(self, pid: i32, location: &str) -> Result<App, Missing> {
        let pid = pid.to_string();
        let stop = format!("break {location}");
        let arguments = ["-p", &pid, "-ex", &stop, "-ex", "ignore 1 1000000000"];
        self.armed(&arguments, &["-ex", "info breakpoints"])
    }

    /// The command line without its arguments.
    pub fn command(self) -> Result<Command, Missing> {
        let mut command = match self {
            Tracer::Trapline => trapline(),
            Tracer::Gdb => Command::new(gdb()?),
        };
        // No colors, no pager, no questions to a server, whatever the caller's environment says; and the
        // two variables that gdb would add to a program's environment, so that stacks begin alike.
        command
            .args(["-nx", "-q"])
            .env("TERM", "dumb")
            .env("LC_ALL", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .envs([("LINES", "24"), ("COLUMNS", "80")])
            .env_remove("DEBUGINFOD_URLS");
        Ok(command)
    }
}

/// The command under test; `TRAPLINE_BIN` names another build, or gdb itself, to try the tests on.
pub fn trapline() -> Command {
    match std::env::var_os("TRAPLINE_BIN") {
        Some(path) => Command::new(path),
        None => Command::new(env!("CARGO_BIN_EXE_trapline")),
    }
}

/// `trapline trace`.
pub fn trace(arguments: &[&str]) -> Command {
    let mut command = trapline();
    command.arg("trace").args(arguments).env("TERM", "dumb");
    command
}

fn gdb() -> Result<PathBuf, Missing> {
    if let Some(path) = std::env::var_os("TRAPLINE_GDB") {
        return Ok(path.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join("gdb"))
        .find(|gdb| gdb.exists())
        .ok_or_else(|| Missing("gdb is not installed".into()))
}

/// What differs from run to run, or belongs to gdb's thread library and source lookup, taken out of the text.
pub fn normalise(text: &str) -> String {
    const NOISE: [&str; 10] = [
        "[Thread debugging using libthread_db",
        "Using host libthread_db library",
        "[New LWP ",
        "[New Thread ",
        "[Switching to ",
        "[Attaching after ",
        "Download failed",
        "warning: ",
        "[Thread 0x",
        "[LWP ",
    ];
    let stack = regex::Regex::new(r"0x7fffff[0-9a-f]{6}\b").expect("a pattern");
    let pid = regex::Regex::new(r"\b(process|ready) \d+").expect("a pattern");
    let source = regex::Regex::new(r"^\d+\t.*: No such file or directory\.$").expect("a pattern");
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches("(gdb) "))
        .filter(|line| {
            !NOISE.iter().any(|noise| line.starts_with(noise))
                && !source.is_match(line)
                && !line.trim().is_empty()
        });
    // The stack begins where the environment ends, and gdb adds to it.
    lines
        .map(|line| {
            pid.replace_all(&stack.replace_all(line, "0xSTACK"), "$1 PID")
                .into_owned()
        })
        .collect::<Vec<_>>()
        .join("\n")
}
