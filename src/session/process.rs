//! Finding a process and saying why it cannot be traced, from `/proc`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::engine::protocol::Failure;
use crate::error::{Error, fail};

/// The process that `text` means: digits are an id, `/REGEX/` is looked for in the command line,
/// anything else is the exact file name of the executable or of `argv[0]`.
pub fn find(text: &str) -> Result<i32, Error> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return match text.parse() {
            Ok(pid) if pid > 0 => Ok(pid),
            _ => fail!("{text} is no process id."),
        };
    }
    let regex = match text.strip_prefix('/').and_then(|t| t.strip_suffix('/')) {
        Some(pattern) if !pattern.is_empty() => Some(
            regex::bytes::Regex::new(pattern)
                .map_err(|error| Error::new(format!("{text} is no regular expression: {error}")))?,
        ),
        _ => None,
    };
    let own = std::process::id() as i32;
    let mut found: Vec<(i32, String)> = Vec::new();
    for pid in processes().filter(|pid| *pid != own) {
        let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else {
            continue;
        };
        let fits = match &regex {
            Some(regex) => !line.is_empty() && regex.is_match(&shown(&line)),
            None => is_named(pid, &line, text),
        };
        if fits {
            found.push((pid, String::from_utf8_lossy(&shown(&line)).into_owned()));
        }
    }
    match found.as_slice() {
        [(pid, _)] => Ok(*pid),
        [] => fail!(
            "No process is named {text}: give its id, the exact name of its program, or /REGEX/ for its command line."
        ),
        many => {
            let list: Vec<String> = many
                .iter()
                .map(|(pid, line)| format!("  {pid}  {}", line.trim_end()))
                .collect();
            fail!(
                "{text} means {} processes; give the id of one:\n{}",
                many.len(),
                list.join("\n")
            )
        }
    }
}

fn processes() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The command line with blanks where the kernel has zeros.
fn shown(line: &[u8]) -> Vec<u8> {
    let end = line.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    line[..end]
        .iter()
        .map(|b| if *b == 0 { b' ' } else { *b })
        .collect()
}

fn is_named(pid: i32, line: &[u8], name: &str) -> bool {
    let argv0 = line.split(|b| *b == 0).next().unwrap_or_default();
    let base = argv0.rsplit(|b| *b == b'/').next().unwrap_or_default();
    if base == name.as_bytes() {
        return true;
    }
    executable(pid).is_some_and(|path| {
        let bytes = path.as_os_str().as_bytes();
        let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
        bytes.rsplit(|b| *b == b'/').next() == Some(name.as_bytes())
    })
}

/// The file that a process runs.
pub fn executable(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The name of a thread.
pub fn thread_name(pid: i32, tid: i32) -> String {
    fs::read(format!("/proc/{pid}/task/{tid}/comm"))
        .map(|name| String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
        .unwrap_or_default()
}

/// A `Name:\tvalue` line of `/proc/PID/status`.
fn status(pid: i32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    Some(line.trim_start_matches(':').trim().to_string())
}

/// Whether a process is gone, but for its parent.
pub fn has_ended(pid: i32) -> bool {
    status(pid, "State").is_none_or(|state| state.starts_with(['Z', 'X']))
}

/// Whether a signal for the process waits to be taken by one of its threads.
pub fn is_pending(pid: i32, signal: i32) -> bool {
    let pending = status(pid, "ShdPnd").and_then(|bits| u64::from_str_radix(&bits, 16).ok());
    pending.is_some_and(|bits| bits >> (signal - 1) & 1 == 1)
}

/// Why a process cannot be attached to, before it is tried: what no system call says.
pub fn check(pid: i32) -> Result<(), Error> {
    if !Path::new(&format!("/proc/{pid}")).exists() {
        fail!("ptrace: No such process. (There is no process {pid}.)");
    }
    if pid == std::process::id() as i32 {
        fail!("Process {pid} is this very program; it cannot trace itself.");
    }
    if has_ended(pid) {
        fail!(
            "Process {pid} has ended already (it is a zombie that its parent has not waited for)."
        );
    }
    Ok(())
}

/// The sentence for a refused attach: what was tried, why it failed, and the cure.
pub fn explain_attach(pid: i32, failure: &Failure) -> Error {
    let Failure::System { errno, .. } = failure else {
        return Error::new(format!("Cannot attach to process {pid}: {failure:?}"));
    };
    match *errno {
        libc::ESRCH => Error::new(format!(
            "ptrace: No such process. (There is no process {pid}.)"
        )),
        libc::EPERM | libc::EACCES => {
            let why = crate::doctor::why_refused(pid);
            Error::new(format!(
                "ptrace: Operation not permitted.\n{}: {}.",
                why.seen, why.cure
            ))
        }
        errno => Error::new(format!(
            "Cannot attach to process {pid}: {}.",
            std::io::Error::from_raw_os_error(errno)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_an_id_and_nothing_else_is() {
        assert_eq!(find("12"), Ok(12));
        assert!(find("0").is_err());
        assert!(find("99999999999").is_err());
        let error = find("no-such-program-here").unwrap_err().message;
        assert!(error.starts_with("No process is named no-such-program-here"));
        assert!(
            find("/(/")
                .unwrap_err()
                .message
                .contains("no regular expression")
        );
    }

    #[test]
    fn a_refused_attach_names_the_cause() {
        let failure = Failure::System {
            call: crate::engine::protocol::Call::Seize,
            errno: libc::ESRCH,
        };
        assert!(
            explain_attach(1, &failure)
                .message
                .starts_with("ptrace: No such process.")
        );
    }
}
