//! Finding a process and saying why it cannot be traced, from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::protocol::Failure;
use crate::error::{Error, fail};

/// The file that a process runs.
pub fn executable(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The name of a thread, which may be one of another process that shares the memory.
pub fn thread_name(tid: i32) -> String {
    fs::read(format!("/proc/{tid}/comm"))
        .map(|name| String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
        .unwrap_or_default()
}

/// The value of a `Name:\tvalue` line of `/proc/PID/status`.
pub(super) fn status(pid: i32, name: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/status")).ok()?;
    // The process's name is any bytes, and may be cut inside of a character.
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    Some(line.trim_start_matches(':').trim().to_string())
}

/// A thread by which `/proc` shows what a process is: a leader that has ended before its other threads
/// shows nothing. `None`: all have ended.
pub fn living_thread(pid: i32) -> Option<i32> {
    if !has_ended(pid) {
        return Some(pid);
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut tids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    tids.find(|tid| !has_ended(*tid))
}

/// The process that a thread belongs to.
pub fn of_thread(tid: i32) -> Option<i32> {
    status(tid, "Tgid")?.parse().ok()
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
    if living_thread(pid).is_none() {
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
