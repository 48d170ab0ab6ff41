//! What can be seen of a process from outside, and must be as before when a tracer has gone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Asks every millisecond until `condition` holds; false when the deadline comes first.
pub fn until(deadline: Instant, mut condition: impl FnMut() -> bool) -> bool {
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// A field of `/proc/PID/status`.
pub fn status_field(pid: i32, field: &str) -> Option<String> {
    field_of(
        &fs::read_to_string(format!("/proc/{pid}/status")).ok()?,
        field,
    )
}

fn field_of(status: &str, field: &str) -> Option<String> {
    status.lines().find_map(|line| {
        Some(
            line.strip_prefix(field)?
                .strip_prefix(':')?
                .trim()
                .to_owned(),
        )
    })
}

/// Waits until nobody traces the process.
pub fn wait_untraced(pid: i32) {
    let deadline = Instant::now() + super::app::PATIENCE;
    let left = until(deadline, || {
        threads(pid)
            .iter()
            .all(|status| field_of(status, "TracerPid").as_deref() == Some("0"))
    });
    assert!(left, "process {pid} is still traced");
}

/// Waits until some thread stands in a ptrace stop.
pub fn wait_for_stop(pid: i32) {
    let deadline = Instant::now() + super::app::PATIENCE;
    let stopped = until(deadline, || {
        threads(pid)
            .iter()
            .any(|status| field_of(status, "State").is_some_and(|state| state.starts_with('t')))
    });
    assert!(stopped, "no thread of process {pid} stops");
}

fn threads(pid: i32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap_or_else(|error| panic!("process {pid}: {error}"));
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .collect()
}

/// Signal masks of all threads and the dispositions of the process, as `/proc` shows them.
#[derive(Debug, PartialEq, Eq)]
pub struct Signals {
    pub blocked: BTreeMap<String, String>,
    pub ignored: Option<String>,
    caught: Option<String>,
}

/// The present [`Signals`] of a process.
pub fn signals(pid: i32) -> Signals {
    let blocked = threads(pid)
        .iter()
        .filter_map(|status| Some((field_of(status, "Pid")?, field_of(status, "SigBlk")?)))
        .collect();
    Signals {
        blocked,
        ignored: status_field(pid, "SigIgn"),
        caught: status_field(pid, "SigCgt"),
    }
}

/// What a tracer must not change, as it was before one came.
pub struct Seen {
    signals: Signals,
    /// The threads that a signal has stopped.
    stopped: BTreeMap<String, bool>,
}

impl Seen {
    pub fn of(pid: i32) -> Seen {
        let stopped = threads(pid)
            .iter()
            .filter_map(|status| {
                let state = field_of(status, "State")?;
                Some((field_of(status, "Pid")?, state.starts_with(['T', 't'])))
            })
            .collect();
        Seen {
            signals: signals(pid),
            stopped,
        }
    }

    /// The same when no thread is just being made: one that is blocks everything, the C library's own
    /// signals too.
    pub fn at_rest(pid: i32) -> Seen {
        const LIBRARY: u64 = 1 << 31 | 1 << 32;
        let made = |mask: &String| {
            u64::from_str_radix(mask, 16).is_ok_and(|mask| mask & LIBRARY != LIBRARY)
        };
        let mut seen = Seen::of(pid);
        let deadline = Instant::now() + super::app::PATIENCE;
        until(deadline, || {
            seen = Seen::of(pid);
            seen.signals.blocked.values().all(made)
        });
        seen
    }

    /// Asserts that all is as before and the text is the file's. Threads come and go, and one that makes
    /// another blocks everything for a moment: what stays different counts.
    pub fn is_as_before(&self, pid: i32, when: &str) {
        let mut now = Seen::of(pid);
        let deadline = Instant::now() + super::app::PATIENCE / 4;
        until(deadline, || {
            now = Seen::of(pid);
            self.is_like(&now)
        });
        let differences = self.differences(&now);
        assert!(differences.is_empty(), "{when}: {differences:#?}");
        assert_eq!(changed_text(pid), [], "{when}");
    }

    fn is_like(&self, now: &Seen) -> bool {
        self.differences(now).is_empty()
    }

    fn differences(&self, now: &Seen) -> Vec<String> {
        let mut found = Vec::new();
        for (tid, mask) in &self.signals.blocked {
            if let Some(other) = now.signals.blocked.get(tid).filter(|other| *other != mask) {
                found.push(format!("SigBlk of {tid}: {mask}, now {other}"));
            }
        }
        for (tid, stopped) in &self.stopped {
            if let Some(other) = now.stopped.get(tid).filter(|other| *other != stopped) {
                found.push(format!("{tid} stopped: {stopped}, now {other}"));
            }
        }
        let (old, new) = (&self.signals, &now.signals);
        if old.ignored != new.ignored {
            found.push(format!("SigIgn: {:?}, now {:?}", old.ignored, new.ignored));
        }
        if old.caught != new.caught {
            found.push(format!("SigCgt: {:?}, now {:?}", old.caught, new.caught));
        }
        found
    }
}

/// Where the executable mappings of the process differ from the files they come from:
/// `(address, byte in the file, byte in memory)`.
pub fn changed_text(pid: i32) -> Vec<(u64, u8, u8)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
    let memory = File::open(format!("/proc/{pid}/mem")).expect("memory of our child");
    let mut changed = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(permissions), Some(offset)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Some(path) = words.nth(2).filter(|path| path.starts_with('/')) else {
            continue;
        };
        if !permissions.contains('x') {
            continue;
        }
        let hex = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let (begin, end) = range
            .split_once('-')
            .map(|(begin, end)| (hex(begin), hex(end)))
            .expect("a range");
        let size = usize::try_from(end - begin).expect("a size");
        let (mut now, mut then) = (vec![0; size], vec![0; size]);
        if let Err(error) = memory.read_exact_at(&mut now, begin) {
            // A library may have been unloaded since the list was read.
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
            assert!(!maps.lines().any(|still| still == line), "{line}: {error}");
            continue;
        }
        // The last page of a file may be short: what is behind its end is zero in memory too.
        let file = File::open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut filled = 0;
        while let Ok(count @ 1..) = file.read_at(&mut then[filled..], hex(offset) + filled as u64) {
            filled += count;
        }
        changed.extend(
            (begin..)
                .zip(then.iter().zip(&now))
                .filter(|(_, (then, now))| then != now)
                .map(|(address, (then, now))| (address, *then, *now)),
        );
    }
    changed
}
