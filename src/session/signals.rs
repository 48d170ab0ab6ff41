//! Signals by gdb's names and in gdb's order, and what happens to each: the table that `handle`
//! changes and `info signals` shows.

use std::borrow::Cow;

use crate::engine::protocol::SignalPolicy;

/// The first ones in gdb's own order, which is how `handle 10` counts: the name, what it means, and
/// its number on x86-64 Linux (0: not there).
const NAMED: &[(&str, &str, i32)] = &[
    ("SIGHUP", "Hangup", libc::SIGHUP),
    ("SIGINT", "Interrupt", libc::SIGINT),
    ("SIGQUIT", "Quit", libc::SIGQUIT),
    ("SIGILL", "Illegal instruction", libc::SIGILL),
    ("SIGTRAP", "Trace/breakpoint trap", libc::SIGTRAP),
    ("SIGABRT", "Aborted", libc::SIGABRT),
    ("SIGEMT", "Emulation trap", 0),
    ("SIGFPE", "Arithmetic exception", libc::SIGFPE),
    ("SIGKILL", "Killed", libc::SIGKILL),
    ("SIGBUS", "Bus error", libc::SIGBUS),
    ("SIGSEGV", "Segmentation fault", libc::SIGSEGV),
    ("SIGSYS", "Bad system call", libc::SIGSYS),
    ("SIGPIPE", "Broken pipe", libc::SIGPIPE),
    ("SIGALRM", "Alarm clock", libc::SIGALRM),
    ("SIGTERM", "Terminated", libc::SIGTERM),
    ("SIGURG", "Urgent I/O condition", libc::SIGURG),
    ("SIGSTOP", "Stopped (signal)", libc::SIGSTOP),
    ("SIGTSTP", "Stopped (user)", libc::SIGTSTP),
    ("SIGCONT", "Continued", libc::SIGCONT),
    ("SIGCHLD", "Child status changed", libc::SIGCHLD),
    ("SIGTTIN", "Stopped (tty input)", libc::SIGTTIN),
    ("SIGTTOU", "Stopped (tty output)", libc::SIGTTOU),
    ("SIGIO", "I/O possible", libc::SIGIO),
    ("SIGXCPU", "CPU time limit exceeded", libc::SIGXCPU),
    ("SIGXFSZ", "File size limit exceeded", libc::SIGXFSZ),
    ("SIGVTALRM", "Virtual timer expired", libc::SIGVTALRM),
    ("SIGPROF", "Profiling timer expired", libc::SIGPROF),
    ("SIGWINCH", "Window size changed", libc::SIGWINCH),
    ("SIGLOST", "Resource lost", 0),
    ("SIGUSR1", "User defined signal 1", libc::SIGUSR1),
    ("SIGUSR2", "User defined signal 2", libc::SIGUSR2),
    ("SIGPWR", "Power fail/restart", libc::SIGPWR),
    ("SIGPOLL", "Pollable event occurred", 0),
    ("SIGWIND", "SIGWIND", 0),
    ("SIGPHONE", "SIGPHONE", 0),
    ("SIGWAITING", "Process's LWPs are blocked", 0),
    ("SIGLWP", "Signal LWP", 0),
    ("SIGDANGER", "Swap space dangerously low", 0),
    ("SIGGRANT", "Monitor mode granted", 0),
    ("SIGRETRACT", "Need to relinquish monitor mode", 0),
    ("SIGMSG", "Monitor mode data available", 0),
    ("SIGSOUND", "Sound completed", 0),
    ("SIGSAK", "Secure attention", 0),
    ("SIGPRIO", "SIGPRIO", 0),
];

/// What comes behind the numbered ones.
const LAST: &[(&str, &str)] = &[
    ("SIGINFO", "Information request"),
    ("EXC_BAD_ACCESS", "Could not access memory"),
    ("EXC_BAD_INSTRUCTION", "Illegal instruction/operand"),
    ("EXC_ARITHMETIC", "Arithmetic exception"),
    ("EXC_EMULATION", "Emulation instruction"),
    ("EXC_SOFTWARE", "Software generated exception"),
    ("EXC_BREAKPOINT", "Breakpoint"),
    ("SIGLIBRT", "librt internal signal"),
];

/// Signals that gdb lets by without a word.
const QUIET: &[&str] = &[
    "SIGALRM",
    "SIGURG",
    "SIGIO",
    "SIGVTALRM",
    "SIGPROF",
    "SIGCHLD",
    "SIGPOLL",
    "SIGWINCH",
    "SIGWAITING",
    "SIGLWP",
    "SIGPRIO",
    "SIGCANCEL",
    "SIGLIBRT",
];

/// Signals that the debugger uses itself: they stop and are then kept from the program.
const OWN: &[&str] = &["SIGTRAP", "SIGINT"];

/// The signals that the C library uses for its threads.
const LIBRARY: [i32; 2] = [32, 33];

/// The highest signal that x86-64 Linux has.
const LAST_NUMBER: i32 = 64;

/// One signal, and what happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// gdb's name.
    pub name: Cow<'static, str>,
    /// What it means.
    text: Cow<'static, str>,
    /// Its number, 0 for one that Linux does not have.
    pub number: i32,
    /// A thread that gets it stops.
    pub stop: bool,
    /// It is told of.
    pub print: bool,
    /// The program gets it.
    pub pass: bool,
}

impl Row {
    fn new(
        name: impl Into<Cow<'static, str>>,
        text: impl Into<Cow<'static, str>>,
        number: i32,
    ) -> Row {
        let name = name.into();
        let quiet = QUIET.contains(&&*name);
        Row {
            text: text.into(),
            number,
            stop: !quiet,
            print: !quiet,
            pass: !OWN.contains(&&*name),
            name,
        }
    }

    fn real_time(number: i32) -> Row {
        let known = if number <= LAST_NUMBER { number } else { 0 };
        let text = format!("Real-time event {number}");
        Row::new(format!("SIG{number}"), text, known)
    }

    /// Its line in `info signals`.
    fn line(&self) -> String {
        let word = |is: bool| if is { "Yes" } else { "No" };
        let (stop, print, pass) = (word(self.stop), word(self.print), word(self.pass));
        format!(
            "{:<13} {stop}\t{print}\t{pass}\t\t{}\n",
            self.name, self.text
        )
    }

    fn bit(&self) -> u64 {
        match self.number {
            0 => 0,
            number => 1 << (number - 1),
        }
    }
}

/// All signals in gdb's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signals {
    rows: Vec<Row>,
}

impl Default for Signals {
    /// What gdb does.
    fn default() -> Signals {
        let named = NAMED
            .iter()
            .map(|(name, text, n)| Row::new(*name, *text, *n));
        let last = LAST.iter().map(|(name, text)| Row::new(*name, *text, 0));
        let rows = named
            .chain((33..=63).map(Row::real_time))
            .chain([Row::new("SIGCANCEL", "LWP internal signal", 0)])
            .chain([32].into_iter().chain(64..=127).map(Row::real_time))
            .chain(last);
        Signals {
            rows: rows.collect(),
        }
    }
}

/// What `info signals` begins with.
pub const HEAD: &str = "Signal        Stop\tPrint\tPass to program\tDescription\n";

/// What is said of a number that is none of those that `handle` takes.
pub const ONLY: &str = "Only signals 1-15 are valid as numeric signals.\nUse \"info signals\" for a list of symbolic signals.";

impl Signals {
    /// All.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The place of a signal in the list, by its name.
    pub fn named(&self, name: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.name == name)
    }

    /// The place of a signal by gdb's own number, which is given to the first few only.
    pub fn numbered(number: i64) -> Option<usize> {
        (1..=15).contains(&number).then(|| number as usize - 1)
    }

    /// A thread that gets it stops.
    pub fn stops(&self, number: i32) -> bool {
        self.of_system(number).is_none_or(|row| row.stop)
    }

    /// It is told of.
    pub fn prints(&self, number: i32) -> bool {
        self.of_system(number).is_none_or(|row| row.print)
    }

    fn of_system(&self, number: i32) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.number == number && number > 0)
    }

    /// The debugger uses it itself.
    pub fn is_own(&self, place: usize) -> bool {
        let row = self.rows.get(place);
        row.is_some_and(|row| OWN.contains(&&*row.name))
    }

    /// Some of them, to be changed.
    pub fn chosen<'a>(&'a mut self, places: &'a [usize]) -> impl Iterator<Item = &'a mut Row> {
        let rows = self.rows.iter_mut().enumerate();
        rows.filter(|(place, _)| places.contains(place))
            .map(|(_, row)| row)
    }

    /// The lines of some of them, in order.
    pub fn lines(&self, places: &[usize]) -> String {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(place, _)| places.contains(place))
            .map(|(_, row)| row.line())
            .collect()
    }

    /// What `info signals` prints.
    pub fn table(&self) -> String {
        let lines: String = self.rows.iter().map(Row::line).collect();
        format!("{HEAD}\n{lines}\nUse the \"handle\" command to change these tables.\n")
    }

    /// There is a process: the signals of its C library's threads are nobody's business.
    pub fn with_threads(&mut self) {
        for row in &mut self.rows {
            if LIBRARY.contains(&row.number) {
                (row.stop, row.print) = (false, false);
            }
        }
    }

    /// What a process's signals do. `caught` stop besides.
    pub fn policy(&self, caught: u64) -> SignalPolicy {
        // One that has no name is treated like most of them.
        let all = |is: fn(&Row) -> bool| {
            let others = self.rows.iter().filter(|row| !is(row));
            !others.fold(0, |bits, row| bits | row.bit())
        };
        SignalPolicy {
            stop: all(|row| row.stop) | caught,
            tell: all(|row| row.print),
            pass: all(|row| row.pass),
        }
    }

    /// The same where nothing ever stops: the program gets what it would get, but for signals that
    /// the user wants kept from it.
    pub fn policy_without_stops(&self) -> SignalPolicy {
        let kept = |row: &&Row| !row.pass && !OWN.contains(&&*row.name);
        let kept = self.rows.iter().filter(kept);
        let kept = kept.fold(0, |bits, row| bits | row.bit());
        SignalPolicy {
            pass: !kept,
            ..SignalPolicy::TRANSPARENT
        }
    }
}

/// A signal's name by its number on this system.
pub fn name(number: i32) -> String {
    let named = NAMED.iter().find(|(.., n)| *n == number && number > 0);
    named.map_or_else(|| format!("SIG{number}"), |(name, ..)| (*name).into())
}

/// `SIGSEGV, Segmentation fault`.
pub fn describe(number: i32) -> String {
    let named = NAMED.iter().find(|(.., n)| *n == number && number > 0);
    match named {
        Some((name, text, _)) => format!("{name}, {text}"),
        None if number == libc::SIGSTKFLT => "SIGSTKFLT, Stack fault".into(),
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
        let mut signals = Signals::default();
        let policy = signals.policy(0);
        let has = |set: u64, number: i32| set >> (number - 1) & 1 == 1;
        assert!(has(policy.stop, 11) && !has(policy.stop, libc::SIGCHLD));
        assert!(!has(policy.pass, libc::SIGINT) && has(policy.pass, 11));
        assert!(has(policy.stop, 33) && has(policy.stop, 64));
        signals.with_threads();
        assert!(!has(signals.policy(0).stop, 33) && has(signals.policy(1 << 32).stop, 33));
    }

    #[test]
    fn numbers_are_gdbs_own() {
        let signals = Signals::default();
        let name = |number| &*signals.rows()[Signals::numbered(number).unwrap()].name;
        assert_eq!(name(1), "SIGHUP");
        assert_eq!(name(10), "SIGBUS");
        assert_eq!(name(15), "SIGTERM");
        assert_eq!(Signals::numbered(16), None);
        assert_eq!(Signals::numbered(0), None);
    }

    #[test]
    fn a_tracer_keeps_what_it_is_told_to_keep() {
        let mut signals = Signals::default();
        assert_eq!(signals.policy_without_stops(), SignalPolicy::TRANSPARENT);
        let place = signals.named("SIGUSR1").unwrap();
        signals.chosen(&[place]).for_each(|row| row.pass = false);
        let policy = signals.policy_without_stops();
        assert_eq!(policy.pass, !(1 << (libc::SIGUSR1 - 1)));
        assert_eq!((policy.stop, policy.tell), (0, 0));
    }
}
