//! The threads of one target as gdb numbers and shows them.

use std::time::{Duration, Instant};

use super::process;
use crate::arch::{Register, Registers};
use crate::engine::protocol::{Reason, Tid, Trigger};

/// How old the name of a thread may be.
const NAME_AGE: Duration = Duration::from_secs(1);

/// One thread.
#[derive(Debug, Clone)]
pub struct Thread {
    /// The kernel's id.
    pub tid: Tid,
    /// gdb's number, from 1 in the order of birth.
    pub number: u32,
    /// What `pthread_self` gives, once a stop showed it.
    pub handle: Option<u64>,
    /// `[New Thread …]` has been printed.
    pub announced: bool,
    /// Why it stands, where it stands on its own.
    pub reason: Option<Reason>,
    /// What it stands for, where that is no place.
    pub stopped_by: Option<u32>,
    /// What it has touched of what is watched.
    pub touched: Vec<Trigger>,
    /// Its name when it was looked at last: the process may have ended before a hit is shown.
    pub name: String,
    /// When it was.
    looked: Option<Instant>,
    /// Its registers, as long as it stands and nobody changed them.
    pub registers: Option<Box<Registers>>,
}

impl Thread {
    /// `Thread 0x7ffff7dd2740 (LWP 9001)`.
    pub fn title(&self) -> String {
        match self.handle {
            Some(handle) if handle != 0 => format!("Thread {handle:#x} (LWP {})", self.tid.0),
            _ => format!("LWP {}", self.tid.0),
        }
    }

    /// Looks its name up, as long as it has one; not more often than [`NAME_AGE`].
    pub fn learn_name(&mut self) {
        if self
            .looked
            .is_some_and(|looked| looked.elapsed() < NAME_AGE)
        {
            return;
        }
        self.looked = Some(Instant::now());
        let name = process::thread_name(self.tid.0);
        if !name.is_empty() {
            self.name = name;
        }
    }

    /// Where it stands, as far as its registers were looked at.
    pub fn pc(&self) -> Option<u64> {
        Some(self.registers.as_ref()?.pc())
    }

    /// Keeps what a stop tells.
    pub fn stands(&mut self, reason: Option<Reason>, registers: Box<Registers>) {
        // A program that has just begun has no thread block yet; until then this is who it was.
        if !matches!(reason, Some(Reason::Exec { .. })) {
            self.handle = Some(registers.get(Register::FsBase));
        }
        if reason.is_some() {
            self.reason = reason;
        }
        self.registers = Some(registers);
    }

    /// It goes on.
    pub fn goes(&mut self) {
        self.reason = None;
        self.stopped_by = None;
        self.touched.clear();
        self.registers = None;
    }
}

/// All threads of a target, in the order of birth.
#[derive(Debug, Default)]
pub struct Threads {
    list: Vec<Thread>,
    born: u32,
}

impl Threads {
    /// A thread that exists since before or was born now; one that is known stays as it is.
    pub fn add(&mut self, tid: Tid) {
        if self.list.iter().any(|t| t.tid == tid) {
            return;
        }
        self.born += 1;
        self.list.push(Thread {
            tid,
            number: self.born,
            handle: None,
            // The first one is the program itself.
            announced: self.born == 1,
            reason: None,
            stopped_by: None,
            touched: Vec::new(),
            name: String::new(),
            looked: None,
            registers: None,
        });
    }

    /// It has ended.
    pub fn remove(&mut self, tid: Tid) -> Option<Thread> {
        let at = self.list.iter().position(|t| t.tid == tid)?;
        Some(self.list.remove(at))
    }

    /// By kernel id.
    pub fn get(&self, tid: Tid) -> Option<&Thread> {
        self.list.iter().find(|t| t.tid == tid)
    }

    /// By kernel id.
    pub fn get_mut(&mut self, tid: Tid) -> Option<&mut Thread> {
        self.list.iter_mut().find(|t| t.tid == tid)
    }

    /// By gdb's number.
    pub fn numbered(&self, number: u32) -> Option<&Thread> {
        self.list.iter().find(|t| t.number == number)
    }

    /// All.
    pub fn iter(&self) -> std::slice::Iter<'_, Thread> {
        self.list.iter()
    }

    /// All.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Thread> {
        self.list.iter_mut()
    }

    /// Whether there has ever been a second one: then gdb names the thread with a stop.
    pub fn several(&self) -> bool {
        self.born > 1
    }
}

/// A line of `info threads`.
#[derive(Debug)]
pub struct Row {
    /// It is the selected one.
    pub mark: bool,
    /// Its number, `2` or `1.2`.
    pub id: String,
    /// `Thread 0x7ffff7dd2740 (LWP 9001) "name"`.
    pub title: String,
    /// Where it stands.
    pub frame: String,
}

/// What `info threads` prints.
pub fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "No threads.\n".into();
    }
    let titles = rows.iter().map(|row| row.title.len());
    let width = titles.max().unwrap_or(0).max(9);
    let mut out = format!("  Id   {:<width$} Frame \n", "Target Id");
    for row in rows {
        let mark = if row.mark { '*' } else { ' ' };
        out += &format!("{mark} {:<4} {:<width$} {}\n", row.id, row.title, row.frame);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_never_used_again() {
        let mut threads = Threads::default();
        threads.add(Tid(10));
        assert!(!threads.several());
        threads.add(Tid(11));
        threads.add(Tid(11));
        threads.remove(Tid(11));
        threads.add(Tid(12));
        assert_eq!(threads.get(Tid(12)).map(|t| t.number), Some(3));
        assert!(threads.several());
    }

    #[test]
    fn the_table_is_gdbs() {
        let mut threads = Threads::default();
        threads.add(Tid(9001));
        if let Some(thread) = threads.get_mut(Tid(9001)) {
            thread.handle = Some(0x7ffff7dd2740);
        }
        let rows = threads.iter().map(|thread| Row {
            mark: true,
            id: thread.number.to_string(),
            title: format!("{} \"\"", thread.title()),
            frame: "0x1 in f ()".into(),
        });
        let table = table(&rows.collect::<Vec<_>>());
        let expected = "  Id   Target Id                           Frame 
* 1    Thread 0x7ffff7dd2740 (LWP 9001) \"\" 0x1 in f ()
";
        assert_eq!(table, expected);
    }
}
