//! Which processes are meant: by number, by name, by a pattern, by a library that they use; those
//! that are there, and those that are still to come.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use super::process::{executable, status};
use crate::engine::arrivals::Arrivals;
use crate::engine::keeper;
use crate::error::{Error, fail};
use crate::symbols::{Backing, is_library, parse_maps, regex_text};

/// How often new processes are looked for where the kernel does not tell of them.
const LISTING: Duration = Duration::from_millis(10);

/// How often all processes are looked at: one may load a library late, or take another name.
const ALL: Duration = Duration::from_millis(250);

/// So long a process counts as new, and is looked at whenever anything is.
const NEW: Duration = Duration::from_secs(2);

/// What a person calls a process by.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// Its id.
    Pid(i32),
    /// The exact file name of its executable or of `argv[0]`.
    Name(String),
    /// A pattern on its command line.
    Pattern(regex::bytes::Regex, String),
    /// A library that it has mapped.
    Library(String),
}

impl Wanted {
    /// Digits are an id, `/REGEX/` is looked for in the command line, anything else is a name.
    pub fn parse(text: &str) -> Result<Wanted, Error> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return match text.parse() {
                Ok(pid) if pid > 0 => Ok(Wanted::Pid(pid)),
                _ => fail!("{text} is no process id."),
            };
        }
        match regex_text(text) {
            Some(pattern) => match regex::bytes::Regex::new(pattern) {
                Ok(regex) => Ok(Wanted::Pattern(regex, text.into())),
                Err(error) => fail!("{text} is no regular expression: {error}"),
            },
            None => Ok(Wanted::Name(text.into())),
        }
    }

    /// Whether a process is one of those that are meant.
    pub fn fits(&self, pid: i32) -> bool {
        let line = || fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        match self {
            Wanted::Pid(wanted) => *wanted == pid,
            Wanted::Name(name) => is_named(pid, &line(), name),
            Wanted::Pattern(regex, _) => {
                let line = line();
                !line.is_empty() && regex.is_match(&shown(&line))
            }
            Wanted::Library(name) => uses(pid, name),
        }
    }

    /// The processes that it means now, but for this one, its helpers and, where not one process
    /// is named but a kind of them, those that started it.
    pub fn processes(&self) -> Vec<i32> {
        if let Wanted::Pid(pid) = self {
            return vec![*pid];
        }
        let left_out = self.left_out();
        let all = processes().filter(|pid| !left_out.contains(pid));
        all.filter(|pid| self.fits(*pid) && !is_keeper(*pid))
            .collect()
    }

    fn left_out(&self) -> HashSet<i32> {
        match self {
            Wanted::Pid(_) | Wanted::Name(_) => HashSet::from([std::process::id() as i32]),
            Wanted::Pattern(..) | Wanted::Library(_) => ancestors(),
        }
    }

    /// Nothing fits.
    pub fn nothing(&self) -> Error {
        Error::new(match self {
            Wanted::Pid(pid) => format!("There is no process {pid}."),
            Wanted::Name(text) | Wanted::Pattern(_, text) => format!(
                "No process is named {text}: give its id, the exact name of its program, or /REGEX/ for its command line."
            ),
            Wanted::Library(name) => format!("No process that can be looked at uses {name}."),
        })
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wanted::Pid(pid) => write!(f, "process {pid}"),
            Wanted::Name(text) | Wanted::Pattern(_, text) => write!(f, "a process named {text}"),
            Wanted::Library(name) => write!(f, "a process that uses {name}"),
        }
    }
}

/// The one process that `text` means.
pub fn find(text: &str) -> Result<i32, Error> {
    let wanted = Wanted::parse(text)?;
    only(&wanted, text)?.ok_or_else(|| wanted.nothing())
}

/// The one process that fits, if any does.
fn only(wanted: &Wanted, text: &str) -> Result<Option<i32>, Error> {
    match wanted.processes().as_slice() {
        [] => Ok(None),
        [pid] => Ok(Some(*pid)),
        many => fail!(
            "{text} means {} processes; give the id of one:\n{}",
            many.len(),
            listed(many)
        ),
    }
}

/// The one process that `text` means, or the first one that will. `None`: `ends` said so.
pub fn wait_for(text: &str, ends: impl Fn() -> bool) -> Result<Option<i32>, Error> {
    let wanted = Wanted::parse(text)?;
    let mut search = Search::new();
    let found = only(&wanted, text)?;
    if found.is_some() {
        return Ok(found);
    }
    search.add(wanted, false);
    while !ends() {
        if let Some(pid) = search.next(LISTING).first() {
            return Ok(Some(*pid));
        }
    }
    Ok(None)
}

/// Ids and command lines, one process a line.
pub fn listed(pids: &[i32]) -> String {
    let lines: Vec<String> = pids
        .iter()
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&shown(&line)).into_owned();
            format!("  {pid}  {}", line.trim_end())
        })
        .collect();
    lines.join("\n")
}

fn processes() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// This process and those that started it.
fn ancestors() -> HashSet<i32> {
    let mut found = HashSet::new();
    let mut next = Some(std::process::id() as i32);
    while let Some(pid) = next.filter(|pid| *pid > 0 && found.insert(*pid)) {
        next = status(pid, "PPid").and_then(|parent| parent.parse().ok());
    }
    found
}

fn is_keeper(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).next() == Some(keeper::NAME.as_bytes())
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

/// Whether a process has a library mapped: by its path, or its file's name with or without version.
fn uses(pid: i32, name: &str) -> bool {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let is_path = name.contains('/');
    let real = is_path.then(|| fs::canonicalize(name).ok()).flatten();
    parse_maps(&maps).iter().any(|map| match &map.backing {
        Backing::File { path, .. } => is_library(path, name) || real.as_ref() == Some(path),
        _ => false,
    })
}

/// Looks for processes as they come.
pub struct Search {
    /// What is looked for, and whether more than one may fit.
    wanted: Vec<(Wanted, bool)>,
    /// The kernel's word; where it gives none `/proc` is listed often.
    arrivals: Option<Arrivals>,
    /// All that were there at the last look.
    known: HashSet<i32>,
    /// Those that are looked at often, and since when.
    new: HashMap<i32, Instant>,
    /// Those that were given out.
    given: HashSet<i32>,
    left_out: HashSet<i32>,
    last: Instant,
}

impl Search {
    /// Begins to look, for nothing yet.
    pub fn new() -> Search {
        Search {
            arrivals: Arrivals::listen(),
            wanted: Vec::new(),
            known: processes().collect(),
            new: HashMap::new(),
            given: HashSet::new(),
            left_out: HashSet::new(),
            last: Instant::now(),
        }
    }

    /// Looks for this too: once, or for all that come.
    pub fn add(&mut self, wanted: Wanted, several: bool) {
        self.left_out.extend(wanted.left_out());
        self.wanted.push((wanted, several));
    }

    /// This process is known already.
    pub fn knows(&mut self, pid: i32) {
        self.given.insert(pid);
    }

    /// What is looked for was found.
    pub fn is_over(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The processes that fit and were not given out before: within `timeout`, or none.
    pub fn next(&mut self, timeout: Duration) -> Vec<i32> {
        let end = Instant::now() + timeout;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            self.notice(left.min(LISTING));
            let found = self.look();
            if !found.is_empty() || Instant::now() >= end {
                return found;
            }
        }
    }

    /// Learns of new processes, waiting at most `timeout` for one.
    fn notice(&mut self, timeout: Duration) {
        let told = match &self.arrivals {
            Some(arrivals) => arrivals.wait(timeout),
            None => {
                std::thread::sleep(timeout);
                None
            }
        };
        let now = Instant::now();
        match told {
            Some(pids) => {
                // It is another program now.
                self.given.retain(|pid| !pids.contains(pid));
                self.new.extend(pids.into_iter().map(|pid| (pid, now)));
            }
            None => {
                let all: HashSet<i32> = processes().collect();
                let unknown = all.difference(&self.known).map(|pid| (*pid, now));
                self.new.extend(unknown);
                self.given.retain(|pid| all.contains(pid));
                self.known = all;
            }
        }
    }

    fn look(&mut self) -> Vec<i32> {
        let now = Instant::now();
        let mut among: BTreeSet<i32> = self.new.keys().copied().collect();
        if now.duration_since(self.last) >= ALL {
            self.last = now;
            among.extend(processes());
        }
        self.new.retain(|_, since| now.duration_since(*since) < NEW);
        let mut found = Vec::new();
        for pid in among {
            if self.given.contains(&pid) || self.left_out.contains(&pid) {
                continue;
            }
            let fits = |(wanted, _): &(Wanted, bool)| wanted.fits(pid);
            if let Some(at) = self.wanted.iter().position(fits)
                && !is_keeper(pid)
            {
                found.push(pid);
                self.given.insert(pid);
                if !self.wanted[at].1 {
                    self.wanted.remove(at);
                }
            }
        }
        found
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
    fn libraries_by_name_and_path() {
        let own = std::process::id() as i32;
        assert!(uses(own, "libc.so.6"));
        assert!(uses(own, "libc.so"));
        assert!(!uses(own, "libc.so.7"));
        assert!(!uses(own, "lib"));
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with("/libc.so.6"));
        let path = line.unwrap().split_whitespace().next_back().unwrap();
        assert!(uses(own, path));
        assert!(!uses(own, &format!("/elsewhere{path}")));
    }

    /// Whether the kernel tells of processes or not.
    #[test]
    fn processes_that_come_are_given_once() {
        for told in [true, false] {
            let name = format!("trapline-search-{}-{told}", std::process::id());
            let mut search = Search::new();
            search.add(Wanted::Name(name.clone()), told);
            if !told {
                search.arrivals = None;
            }
            assert!(search.next(Duration::from_millis(20)).is_empty());
            let mut command = std::process::Command::new("/bin/sleep");
            std::os::unix::process::CommandExt::arg0(&mut command, &name);
            let mut child = command.arg("1000").spawn().unwrap();
            let found = search.next(Duration::from_secs(20));
            let again = search.next(ALL * 2);
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(found, [child.id() as i32], "told {told}");
            assert!(again.is_empty(), "{again:?}");
            assert_eq!(search.is_over(), !told);
        }
    }

    #[test]
    fn who_started_us_is_no_kind_of_process() {
        let own = ancestors();
        assert!(own.contains(&(std::process::id() as i32)) && own.len() > 1);
        let all = Wanted::parse("/./").unwrap().processes();
        assert!(all.iter().all(|pid| !own.contains(pid)));
    }
}
