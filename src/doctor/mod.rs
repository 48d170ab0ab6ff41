//! What this machine allows, and the cure for what it does not: `trapline doctor`.
//!
//! Everything is looked up in `/proc` and `/sys` or tried on a process of our own; nothing is
//! changed. What cannot be found out is said to be unknown. A check is one line.

mod access;
mod debug;
mod kernel;
mod limits;
mod process;
mod status;
mod tracing;

use std::fmt;
use std::path::Path;

use crate::engine::trial::Outcome;

pub use access::why_refused;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// All of it is there.
    Ok,
    /// Some of it is, or it is with a restriction.
    Part,
    /// It is not there.
    No,
    /// It could not be found out.
    Unknown,
}

/// What became of a call that was tried.
fn became(what: &str, outcome: Outcome) -> String {
    match outcome {
        Outcome::Done => format!("{what} works (tried)"),
        Outcome::Refused(number) => format!("{what} fails: {} (tried)", errno(number)),
        Outcome::Killed(number) => {
            let signal = signal(number);
            format!("{what} gets the caller killed by {signal} (tried)")
        }
        Outcome::NotTried => format!("{what} could not be tried"),
    }
}

impl State {
    /// As the JSON form has it.
    fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Part => "part",
            State::No => "no",
            State::Unknown => "unknown",
        }
    }
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What it belongs to: `ptrace`, `target`, `uprobe`, `bpf`, `limits`, `trapline`.
    pub area: &'static str,
    /// What was looked at.
    pub name: &'static str,
    /// The outcome.
    pub state: State,
    /// What was seen.
    pub seen: String,
    /// What to do about it; never there with [`State::Ok`].
    pub cure: Option<String>,
}

impl Check {
    fn new(area: &'static str, name: &'static str, state: State, seen: impl Into<String>) -> Check {
        let seen = seen.into();
        Check {
            area,
            name,
            state,
            seen: one_line(&seen),
            cure: None,
        }
    }

    fn cure(mut self, cure: impl AsRef<str>) -> Check {
        if self.state != State::Ok {
            self.cure = Some(one_line(cure.as_ref()));
        }
        self
    }

    /// The JSON form, as `schema/doctor-v1.json` says.
    pub fn json(&self) -> String {
        serde_json::json!({
            "v": 1,
            "type": "check",
            "area": self.area,
            "name": self.name,
            "state": self.state.name(),
            "seen": self.seen,
            "cure": self.cure,
        })
        .to_string()
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Unknown => "?",
            state => state.name(),
        };
        write!(
            f,
            "{state:<5}{:<9}{:<12} {}",
            self.area, self.name, self.seen
        )?;
        match &self.cure {
            Some(cure) => write!(f, ". Cure: {cure}"),
            None => Ok(()),
        }
    }
}

/// All checks, and what follows from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// In the order of showing.
    pub checks: Vec<Check>,
    /// trapline can trace: a process of its own, or the target that was asked for.
    pub works: bool,
}

impl Report {
    /// The last line of the JSON form.
    pub fn json_verdict(&self) -> String {
        serde_json::json!({"v": 1, "type": "doctor", "works": self.works}).to_string()
    }
}

/// Looks at the machine, and at one process of it if there is one; and starts the tracing process.
pub fn run(pid: Option<i32>) -> Report {
    let mut report = examine(pid);
    let keeper = limits::keeper();
    report.works &= keeper.iter().all(|check| check.state != State::No);
    report.checks.extend(keeper);
    report
}

/// All but the tracing process, which is this very program, run again.
fn examine(pid: Option<i32>) -> Report {
    let mut checks = vec![machine()];
    let mut works = tracing::examine(&mut checks);
    if let Some(pid) = pid {
        works &= process::examine(pid, &mut checks);
    }
    kernel::examine(&mut checks);
    limits::examine(&mut checks);
    Report { checks, works }
}

fn machine() -> Check {
    let version = env!("CARGO_PKG_VERSION");
    match nix::sys::utsname::uname() {
        Ok(name) => Check::new(
            "trapline",
            "machine",
            State::Ok,
            format!(
                "version {version}, {} {} on {}",
                name.sysname().to_string_lossy(),
                name.release().to_string_lossy(),
                name.machine().to_string_lossy()
            ),
        ),
        Err(error) => Check::new(
            "trapline",
            "machine",
            State::Unknown,
            format!("version {version}, {error}"),
        ),
    }
}

/// Text from a process or a file, fit for one line of a terminal.
fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            let plain = escaped.is_none().then_some(c);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

/// A small file of the kernel's, without the final newline; the error is its name in words.
fn read(path: impl AsRef<Path>) -> Result<String, nix::errno::Errno> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(bytes.trim_ascii()).into_owned()),
        Err(error) => Err(nix::errno::Errno::from_raw(
            error.raw_os_error().unwrap_or(0),
        )),
    }
}

/// `EPERM: Operation not permitted`.
fn errno(number: i32) -> String {
    nix::errno::Errno::from_raw(number).to_string()
}

/// The name of a signal for a sentence.
fn signal(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number)
        .map_or_else(|_| format!("signal {number}"), |signal| signal.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_one_line_whatever_was_seen() {
        let check = Check::new("target", "process", State::Part, "a\nb\x1b[31m é").cure("x\ty");
        assert_eq!(
            check.to_string(),
            "part target   process      a\\nb\\u{1b}[31m é. Cure: x\\ty"
        );
        let fine = Check::new("ptrace", "yama", State::Ok, "0").cure("nothing");
        assert_eq!(fine.to_string(), "ok   ptrace   yama         0");
    }

    #[test]
    fn the_json_form_is_what_the_schema_says() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../schema/doctor-v1.json")).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let report = examine(Some(std::process::id() as i32));
        let lines = report.checks.iter().map(Check::json);
        for line in lines.chain([report.json_verdict()]) {
            let value = serde_json::from_str(&line).unwrap();
            assert!(validator.is_valid(&value), "{line}");
        }
        assert!(!validator.is_valid(&serde_json::json!({"v": 1, "type": "check"})));
    }

    #[test]
    fn every_trouble_has_a_cure() {
        for check in examine(None).checks {
            match check.state {
                State::No | State::Part => assert!(check.cure.is_some(), "{check}"),
                State::Ok => assert!(check.cure.is_none(), "{check}"),
                State::Unknown => {}
            }
        }
    }
}
