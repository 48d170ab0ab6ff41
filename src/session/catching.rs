//! Catchpoints: the program stops when it gets a signal, makes a system call, loads a library.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use super::breakpoint::{Disposition, Event, Probe};
use super::events::{Stop, Wake};
use super::sites::unless_gone;
use super::{Session, signals};
use crate::arch::{LoadBias, syscall_name};
use crate::engine::protocol::{Birth, Calls, Tid};
use crate::error::Error;

/// What a catchpoint waits for.
#[derive(Debug, Clone)]
pub enum Catch {
    /// Signals.
    Signal(Caught),
    /// System calls, by their numbers; none: any.
    Call(Vec<u64>),
    /// A library that is loaded.
    Load(Option<Library>),
    /// A library that is unloaded.
    Unload(Option<Library>),
    /// `fork`, and the process that was made last.
    Fork(Option<i32>),
    /// `vfork`, likewise.
    Vfork(Option<i32>),
    /// `execve`, and the program that was executed last.
    Exec(Option<PathBuf>),
}

/// Which signals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caught {
    /// All.
    All,
    /// All but those that the debugger uses itself.
    Standard,
    /// These, by name, with their numbers.
    Some(Vec<(String, i32)>),
}

/// Which libraries: those whose name a regular expression is found in.
#[derive(Debug, Clone)]
pub struct Library {
    /// As it was typed.
    pub text: String,
    /// The same, compiled.
    pub regex: regex::Regex,
}

/// What was loaded and unloaded.
#[derive(Debug, Clone, Default)]
pub struct Loads {
    loaded: Vec<PathBuf>,
    unloaded: Vec<PathBuf>,
}

impl Caught {
    fn has(&self, number: i32) -> bool {
        match self {
            Caught::All => true,
            Caught::Standard => !matches!(number, libc::SIGTRAP | libc::SIGINT),
            Caught::Some(list) => list.iter().any(|(_, known)| *known == number),
        }
    }

    /// Bit n-1 is signal n.
    fn bits(&self) -> u64 {
        let one = |number: &i32| self.has(*number);
        (1..=64)
            .filter(one)
            .fold(0, |bits, number| bits | 1 << (number - 1))
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Caught::Some(list) => list.iter().map(|(name, _)| name.as_str()).collect(),
            Caught::All | Caught::Standard => Vec::new(),
        }
    }
}

/// `write`, or `999` of what has no name.
fn call_name(number: u64) -> String {
    syscall_name(number).map_or_else(|| number.to_string(), String::from)
}

/// What `catch` says of what it has made.
impl Display for Catch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Catch::Signal(Caught::All) => f.write_str("any signal"),
            Catch::Signal(Caught::Standard) => f.write_str("standard signals"),
            Catch::Signal(caught) => {
                let names = caught.names();
                write!(f, "signal{} {}", plural(names.len()), names.join(" "))
            }
            Catch::Call(numbers) if numbers.is_empty() => f.write_str("any syscall"),
            Catch::Call(numbers) => {
                write!(f, "syscall{}", plural(numbers.len()))?;
                numbers
                    .iter()
                    .try_for_each(|number| match syscall_name(*number) {
                        Some(name) => write!(f, " '{name}' [{number}]"),
                        None => write!(f, " {number}"),
                    })
            }
            Catch::Load(_) => f.write_str("load"),
            Catch::Unload(_) => f.write_str("unload"),
            Catch::Fork(_) => f.write_str("fork"),
            Catch::Vfork(_) => f.write_str("vfork"),
            Catch::Exec(_) => f.write_str("exec"),
        }
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

impl Catch {
    /// What `info breakpoints` shows of it.
    pub fn row(&self) -> String {
        match self {
            Catch::Signal(Caught::All) => "signal \"<any signal>\" ".into(),
            Catch::Signal(Caught::Standard) => "signal \"<standard signals>\" ".into(),
            Catch::Signal(caught) => {
                let names = caught.names();
                format!("signal{} \"{}\" ", plural(names.len()), names.join(" "))
            }
            Catch::Call(numbers) if numbers.is_empty() => "syscall \"<any syscall>\" ".into(),
            Catch::Call(numbers) => {
                let names: Vec<String> = numbers.iter().map(|number| call_name(*number)).collect();
                format!("syscall{} \"{}\" ", plural(names.len()), names.join(", "))
            }
            Catch::Load(library) => format!("load of library{}", matching(library)),
            Catch::Unload(library) => format!("unload of library{}", matching(library)),
            Catch::Fork(Some(pid)) => format!("fork, process {pid} "),
            Catch::Vfork(Some(pid)) => format!("vfork, process {pid} "),
            Catch::Exec(Some(program)) => format!("exec, program \"{}\" ", program.display()),
            Catch::Fork(None) | Catch::Vfork(None) | Catch::Exec(None) => self.to_string(),
        }
    }

    /// What stands behind `catch`.
    pub fn command(&self) -> String {
        let with = |word: &str, rest: String| format!("{word} {rest}").trim_end().to_string();
        match self {
            Catch::Signal(Caught::All) => "signal all".into(),
            Catch::Signal(caught) => with("signal", caught.names().join(" ")),
            Catch::Call(numbers) => {
                let names: Vec<String> = numbers.iter().map(|number| call_name(*number)).collect();
                with("syscall", names.join(" "))
            }
            Catch::Load(library) => with("load", typed(library)),
            Catch::Unload(library) => with("unload", typed(library)),
            Catch::Fork(_) | Catch::Vfork(_) | Catch::Exec(_) => self.to_string(),
        }
    }
}

fn matching(library: &Option<Library>) -> String {
    let text = library.as_ref().map(|library| &library.text);
    text.map_or_else(String::new, |text| format!(" matching {text}"))
}

fn typed(library: &Option<Library>) -> String {
    let text = library.as_ref().map(|library| library.text.clone());
    text.unwrap_or_default()
}

fn caught_by(probe: &Probe) -> Option<&Catch> {
    match &probe.event {
        Some(Event::Catch(catch)) if probe.enabled => Some(catch),
        _ => None,
    }
}

fn catch_of(probe: &mut Probe) -> Option<&mut Catch> {
    match &mut probe.event {
        Some(Event::Catch(catch)) => Some(catch),
        _ => None,
    }
}

impl Session {
    /// The signals that catchpoints wait for; bit n-1 is signal n.
    pub(super) fn caught_signals(&self) -> u64 {
        let caught = self.probes.iter().filter_map(caught_by);
        caught.fold(0, |bits, catch| match catch {
            Catch::Signal(caught) => bits | caught.bits(),
            _ => bits,
        })
    }

    /// The system calls that catchpoints wait for.
    fn caught_calls(&self) -> Calls {
        let mut calls = Calls::default();
        for catch in self.probes.iter().filter_map(caught_by) {
            if let Catch::Call(numbers) = catch {
                calls.all |= numbers.is_empty();
                calls.numbers.extend(numbers);
            }
        }
        calls.numbers.sort_unstable();
        calls.numbers.dedup();
        calls
    }

    /// Tells the keeper which system calls stop a thread.
    pub(super) fn sync_calls(&mut self) -> Result<(), Error> {
        let calls = self.caught_calls();
        for index in 0..self.targets.len() {
            if self.targets[index].calls == calls {
                continue;
            }
            let id = self.targets[index].id;
            unless_gone(self.keeper()?.catch_calls(id, calls.clone()))?;
            self.targets[index].calls = calls.clone();
        }
        Ok(())
    }

    /// The catchpoints that stop a thread, of those that `is` chooses.
    fn catch_hits(&mut self, tid: Tid, is: impl Fn(&Catch) -> bool) -> Vec<u32> {
        let chosen = |probe: &&Probe| caught_by(probe).is_some_and(&is);
        let numbers = self.probes.iter().filter(chosen).map(|probe| probe.number);
        let numbers: Vec<u32> = numbers.collect();
        let hits = numbers.into_iter();
        hits.filter(|number| self.holds(*number, tid) && self.counts(*number))
            .collect()
    }

    /// `\n[Thread 2 "t" hit ]Catchpoint 1`
    fn catch_banner(&self, index: usize, tid: Tid, number: u32, tells_temporary: bool) -> String {
        let prefix = self.hit_prefix(index, tid);
        let temporary = self
            .probes
            .get(number)
            .is_some_and(|probe| probe.disposition == Disposition::Delete && tells_temporary);
        let noun = if temporary {
            "Temporary catchpoint"
        } else {
            "Catchpoint"
        };
        format!("\n{prefix}{noun} {number}")
    }

    /// A thread got a signal that catchpoints may wait for. `None`: none does. Where one does, what
    /// `handle` says is of no account, even if the catchpoint lets it by.
    pub(super) fn signal_caught(
        &mut self,
        index: usize,
        stop: &Stop,
        signal: i32,
        all_stand: bool,
    ) -> Result<Option<Option<Wake>>, Error> {
        self.current = index;
        let is = |catch: &Catch| matches!(catch, Catch::Signal(caught) if caught.has(signal));
        if !self.probes.iter().filter_map(caught_by).any(is) {
            return Ok(None);
        }
        let hits = self.catch_hits(stop.tid, is);
        let banner = match hits.first() {
            Some(first) => self.catch_banner(index, stop.tid, *first, false),
            None => String::new(),
        };
        let said = format!("{banner} (signal {}), ", signals::name(signal));
        self.present_event(index, stop.tid, all_stand, &hits, &said)
            .map(Some)
    }

    /// A thread begins a system call, or has ended one.
    pub(super) fn call_caught(
        &mut self,
        index: usize,
        stop: &Stop,
        (call, begins): (u64, bool),
        all_stand: bool,
    ) -> Result<Option<Wake>, Error> {
        self.current = index;
        let is = |catch: &Catch| matches!(catch, Catch::Call(numbers) if numbers.is_empty() || numbers.contains(&call));
        let hits = self.catch_hits(stop.tid, is);
        let banner = match hits.first() {
            Some(first) => self.catch_banner(index, stop.tid, *first, true),
            None => String::new(),
        };
        let what = if begins { "call to" } else { "returned from" };
        let said = format!("{banner} ({what} syscall {}), ", call_name(call));
        self.present_event(index, stop.tid, all_stand, &hits, &said)
    }

    /// Whether a catchpoint waits for processes that are made.
    pub(super) fn catches_forks(&self) -> bool {
        let mut caught = self.probes.iter().filter_map(caught_by);
        caught.any(|catch| matches!(catch, Catch::Fork(_) | Catch::Vfork(_)))
    }

    /// A thread has made a process. What becomes of that is decided when it goes on. `None`: no
    /// catchpoint stops it.
    pub(super) fn fork_caught(
        &mut self,
        index: usize,
        stop: &Stop,
        (child, birth): (i32, Birth),
        all_stand: bool,
    ) -> Result<Option<Wake>, Error> {
        if self.show.never_stops() {
            return Ok(None);
        }
        let (target, vfork) = (self.targets[index].id, birth == Birth::Vfork);
        let is = |catch: &Catch| match catch {
            Catch::Fork(_) => !vfork,
            Catch::Vfork(_) => vfork,
            _ => false,
        };
        // It is shown whether it stops the program or not.
        self.keep_last(is, || match vfork {
            true => Catch::Vfork(Some(child)),
            false => Catch::Fork(Some(child)),
        });
        let hits = self.about(index, |session| session.catch_hits(stop.tid, is));
        let Some(first) = hits.first() else {
            return Ok(None);
        };
        let banner = self.catch_banner(index, stop.tid, *first, true);
        let how = if vfork { "vforked" } else { "forked" };
        let said = format!("{banner} ({how} process {child}), ");
        self.forking = Some((target, stop.clone(), child, birth));
        self.current = index;
        self.present_event(index, stop.tid, all_stand, &hits, &said)
    }

    /// What has happened last to what catchpoints wait for.
    fn keep_last(&mut self, is: impl Fn(&Catch) -> bool, last: impl Fn() -> Catch) {
        let on = self.probes.iter_mut().filter(|probe| probe.enabled);
        for catch in on.filter_map(catch_of).filter(|catch| is(catch)) {
            *catch = last();
        }
    }

    /// A thread runs another program. `None`: no catchpoint stops it.
    pub(super) fn exec_caught(
        &mut self,
        index: usize,
        stop: &Stop,
        all_stand: bool,
    ) -> Result<Option<Wake>, Error> {
        if self.show.never_stops() {
            return Ok(None);
        }
        let program = self.targets[index].program.clone();
        let is = |catch: &Catch| matches!(catch, Catch::Exec(_));
        self.keep_last(is, || Catch::Exec(Some(program.clone())));
        let hits = self.about(index, |session| session.catch_hits(stop.tid, is));
        let Some(first) = hits.first() else {
            return Ok(None);
        };
        let banner = self.catch_banner(index, stop.tid, *first, true);
        let said = format!("{banner} (exec'd {}), ", program.display());
        self.current = index;
        self.present_event(index, stop.tid, all_stand, &hits, &said)
    }

    /// Keeps what came and went, by the linker's names; `names` are those before.
    pub(super) fn note_loads(
        &mut self,
        index: usize,
        before: &BTreeMap<u64, PathBuf>,
        after: &BTreeMap<u64, PathBuf>,
        names: &HashMap<LoadBias, PathBuf>,
    ) {
        let target = &mut self.targets[index];
        let new_names = &target.images.names;
        let missing = |from: &BTreeMap<u64, PathBuf>,
                       other: &BTreeMap<u64, PathBuf>,
                       names: &HashMap<LoadBias, PathBuf>| {
            let gone = from
                .iter()
                .filter(|(bias, path)| other.get(bias) != Some(path));
            let named = |(bias, path): (&u64, &PathBuf)| {
                names.get(&LoadBias(*bias)).unwrap_or(path).clone()
            };
            gone.map(named).collect::<Vec<_>>()
        };
        let loaded = missing(after, before, new_names);
        let unloaded = missing(before, after, names);
        target.loads.loaded.extend(loaded);
        target.loads.unloaded.extend(unloaded);
    }

    /// Stops for libraries that came or went, if catchpoints wait for that. `None`: none does.
    pub(super) fn loads_caught(
        &mut self,
        index: usize,
        stop: &Stop,
        all_stand: bool,
    ) -> Result<Option<Wake>, Error> {
        let loads = std::mem::take(&mut self.targets[index].loads);
        if self.show.never_stops() || loads.loaded.is_empty() && loads.unloaded.is_empty() {
            return Ok(None);
        }
        self.current = index;
        let fits = |library: &Option<Library>, paths: &[PathBuf]| {
            let fits = |path: &PathBuf| match library {
                Some(library) => library.regex.is_match(&path.to_string_lossy()),
                None => true,
            };
            paths.iter().any(fits)
        };
        let hits = self.catch_hits(stop.tid, |catch| match catch {
            Catch::Load(library) => fits(library, &loads.loaded),
            Catch::Unload(library) => fits(library, &loads.unloaded),
            _ => false,
        });
        let Some(first) = hits.first() else {
            return Ok(None);
        };
        let banner = self.catch_banner(index, stop.tid, *first, true);
        let said = format!(
            "{banner}\n{}{}",
            list("unloaded", &loads.unloaded),
            list("loaded", &loads.loaded)
        );
        self.present_event(index, stop.tid, all_stand, &hits, &said)
    }
}

/// `  Inferior loaded A\n    B\n`
fn list(what: &str, paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let names: Vec<String> = paths.iter().map(|path: &PathBuf| shown(path)).collect();
    format!("  Inferior {what} {}\n", names.join("\n    "))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_and_shown_is_gdbs() {
        let some = |names: &[(&str, i32)]| {
            let list = names.iter().map(|(name, n)| (name.to_string(), *n));
            Catch::Signal(Caught::Some(list.collect()))
        };
        let two = some(&[("SIGUSR2", 12), ("SIG36", 36)]);
        assert_eq!(two.to_string(), "signals SIGUSR2 SIG36");
        assert_eq!(two.row(), "signals \"SIGUSR2 SIG36\" ");
        assert_eq!(two.command(), "signal SIGUSR2 SIG36");
        assert_eq!(Catch::Signal(Caught::Standard).command(), "signal");
        let calls = Catch::Call(vec![1, 999]);
        assert_eq!(calls.to_string(), "syscalls 'write' [1] 999");
        assert_eq!(calls.row(), "syscalls \"write, 999\" ");
        assert_eq!(calls.command(), "syscall write 999");
        assert_eq!(Catch::Call(Vec::new()).command(), "syscall");
        assert_eq!(Catch::Load(None).row(), "load of library");
        assert_eq!(Catch::Fork(None).row(), "fork");
        assert_eq!(Catch::Vfork(Some(7)).row(), "vfork, process 7 ");
        assert_eq!(Catch::Vfork(Some(7)).command(), "vfork");
        assert_eq!(
            Catch::Exec(Some("/p".into())).row(),
            "exec, program \"/p\" "
        );
        let library = Library {
            text: "lib.*".into(),
            regex: regex::Regex::new("lib.*").unwrap(),
        };
        let unload = Catch::Unload(Some(library));
        assert_eq!(unload.row(), "unload of library matching lib.*");
        assert_eq!(unload.command(), "unload lib.*");
    }

    #[test]
    fn which_signals_are_caught() {
        let has = |caught: &Caught, number: i32| caught.bits() >> (number - 1) & 1 == 1;
        assert!(has(&Caught::All, libc::SIGTRAP) && has(&Caught::All, 64));
        assert!(!has(&Caught::Standard, libc::SIGINT) && has(&Caught::Standard, 1));
        let one = Caught::Some(vec![("SIGUSR1".into(), libc::SIGUSR1)]);
        assert_eq!(one.bits(), 1 << (libc::SIGUSR1 - 1));
        assert_eq!(Caught::Some(vec![("SIGEMT".into(), 0)]).bits(), 0);
    }
}
