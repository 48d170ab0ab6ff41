//! Signals by gdb's names, and what gdb does with them unless told otherwise.

use crate::engine::protocol::SignalPolicy;

/// `(number, name, description)` on x86-64 Linux.
const NAMES: &[(i32, &str, &str)] = &[
    (1, "SIGHUP", "Hangup"),
    (2, "SIGINT", "Interrupt"),
    (3, "SIGQUIT", "Quit"),
    (4, "SIGILL", "Illegal instruction"),
    (5, "SIGTRAP", "Trace/breakpoint trap"),
    (6, "SIGABRT", "Aborted"),
    (7, "SIGBUS", "Bus error"),
    (8, "SIGFPE", "Arithmetic exception"),
    (9, "SIGKILL", "Killed"),
    (10, "SIGUSR1", "User defined signal 1"),
    (11, "SIGSEGV", "Segmentation fault"),
    (12, "SIGUSR2", "User defined signal 2"),
    (13, "SIGPIPE", "Broken pipe"),
    (14, "SIGALRM", "Alarm clock"),
    (15, "SIGTERM", "Terminated"),
    (16, "SIGSTKFLT", "Stack fault"),
    (17, "SIGCHLD", "Child status changed"),
    (18, "SIGCONT", "Continued"),
    (19, "SIGSTOP", "Stopped (signal)"),
    (20, "SIGTSTP", "Stopped (user)"),
    (21, "SIGTTIN", "Stopped (tty input)"),
    (22, "SIGTTOU", "Stopped (tty output)"),
    (23, "SIGURG", "Urgent I/O condition"),
    (24, "SIGXCPU", "CPU time limit exceeded"),
    (25, "SIGXFSZ", "File size limit exceeded"),
    (26, "SIGVTALRM", "Virtual timer expired"),
    (27, "SIGPROF", "Profiling timer expired"),
    (28, "SIGWINCH", "Window size changed"),
    (29, "SIGIO", "I/O possible"),
    (30, "SIGPWR", "Power fail/restart"),
    (31, "SIGSYS", "Bad system call"),
];

/// Signals that gdb lets by without a stop. 32 and 33 are glibc's own.
const QUIET: &[i32] = &[14, 17, 23, 26, 27, 28, 29, 32, 33];

/// Signals that stop and are then kept from the program.
const KEPT: &[i32] = &[2, 5];

const fn set(numbers: &[i32]) -> u64 {
    let mut bits = 0;
    let mut i = 0;
    while i < numbers.len() {
        bits |= 1 << (numbers[i] - 1);
        i += 1;
    }
    bits
}

/// What gdb does.
pub const GDB: SignalPolicy = SignalPolicy {
    stop: !set(QUIET),
    pass: !set(KEPT),
};

/// The numbers of the signals that have a name.
pub fn all() -> impl Iterator<Item = i32> {
    NAMES.iter().map(|(number, ..)| *number)
}

/// A signal by its name.
pub fn number(name: &str) -> Option<i32> {
    let found = NAMES.iter().find(|(_, known, _)| *known == name)?;
    Some(found.0)
}

/// A signal's line in `info signals`.
pub fn row(number: i32) -> String {
    let Some((_, name, text)) = NAMES.iter().find(|(n, ..)| *n == number) else {
        return String::new();
    };
    let word = |set: u64| {
        if set >> (number - 1) & 1 == 1 {
            "Yes"
        } else {
            "No"
        }
    };
    let stop = word(GDB.stop);
    format!("{name:<13} {stop}\t{stop}\t{}\t\t{text}\n", word(GDB.pass))
}

/// `SIGSEGV, Segmentation fault`.
pub fn describe(number: i32) -> String {
    match NAMES.iter().find(|(n, ..)| *n == number) {
        Some((_, name, text)) => format!("{name}, {text}"),
        None => format!("SIG{number}, Real-time event {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sets() {
        assert_eq!(describe(11), "SIGSEGV, Segmentation fault");
        assert_eq!(describe(34), "SIG34, Real-time event 34");
        const { assert!(GDB.stop >> 10 & 1 == 1 && GDB.stop >> 16 & 1 == 0) };
        const { assert!(GDB.pass >> 1 & 1 == 0 && GDB.pass >> 10 & 1 == 1) };
    }
}
