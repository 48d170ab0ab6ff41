//! The processes at the prompt as gdb numbers them: an inferior has a number and a program, and a
//! process or none.

use std::path::PathBuf;

use super::threads::{Row, Thread};
use super::{Session, Target};
use crate::engine::protocol::{TargetId, Tid};
use crate::error::{Error, fail};

/// See the module.
#[derive(Debug, Clone)]
pub struct Inferior {
    /// Its number.
    pub number: u32,
    /// What it runs, or has run last.
    program: PathBuf,
    /// It came of a fork: without a process it is forgotten.
    made: bool,
    /// Its process was left at a fork, for the child: nothing is known of it.
    empty: bool,
}

/// All that there are.
#[derive(Debug)]
pub struct Inferiors {
    list: Vec<Inferior>,
    /// Which of them commands are about.
    pub current: u32,
    /// The highest number there was.
    last: u32,
    /// A process was made since the last program was begun.
    forked: bool,
    /// A child that is followed and has its parent's memory still: its id, its number, and the parent.
    pub sharer: Option<(i32, u32, TargetId)>,
}

impl Default for Inferiors {
    fn default() -> Inferiors {
        let first = Inferior {
            number: 1,
            program: PathBuf::new(),
            made: false,
            empty: false,
        };
        Inferiors {
            list: vec![first],
            current: 1,
            last: 1,
            forked: false,
            sharer: None,
        }
    }
}

impl Inferiors {
    /// One more, that came of a fork.
    pub fn add(&mut self) -> u32 {
        self.last += 1;
        self.forked = true;
        self.list.push(Inferior {
            number: self.last,
            program: PathBuf::new(),
            made: true,
            empty: false,
        });
        self.last
    }

    /// A program begins in the current one. `alone`: there is no other process.
    pub fn begins(&mut self, alone: bool) -> u32 {
        self.forked &= !alone;
        let current = self.current;
        for inferior in self.list.iter_mut().filter(|it| it.number == current) {
            inferior.made = false;
            inferior.empty = false;
        }
        current
    }

    /// The process of one is gone.
    pub fn ended(&mut self, target: &Target) {
        for inferior in &mut self.list {
            if inferior.number == target.inferior {
                inferior.program.clone_from(&target.program);
            }
        }
    }

    /// Its process was left at a fork.
    pub(super) fn emptied(&mut self, number: u32) {
        let mut list = self.list.iter_mut();
        if let Some(inferior) = list.find(|it| it.number == number) {
            inferior.empty = true;
        }
    }

    /// True if a thread's number needs its inferior's in front.
    fn are_told(&self) -> bool {
        self.list.len() > 1 || self.list.iter().any(|it| it.number != 1)
    }
}

impl Session {
    /// Whether a target goes on when the user says so, and is looked at while it runs.
    pub(super) fn is_active(&self, index: usize) -> bool {
        self.show.never_stops() || index == self.current
    }

    /// Whether nothing is left that can be waited for.
    pub(super) fn is_over(&self) -> bool {
        match self.show.never_stops() {
            true => self.targets.is_empty(),
            false => self.target().is_none(),
        }
    }

    /// Forgets those that came of a fork, have no process and are not the current one.
    pub fn prune_inferiors(&mut self) {
        let (targets, current) = (&self.targets, self.inferiors.current);
        self.inferiors.list.retain(|it| {
            let runs = targets.iter().any(|target| target.inferior == it.number);
            !it.made || it.number == current || runs
        });
    }

    /// Where the process of an inferior is among the targets; `None`: it has none.
    pub fn index_of_inferior(&self, number: u32) -> Option<usize> {
        let mut targets = self.targets.iter();
        targets.position(|target| target.inferior == number)
    }

    /// Makes an inferior the one that commands are about.
    pub fn select_inferior(&mut self, number: u32) {
        self.inferiors.current = number;
        self.current = self.index_of_inferior(number).unwrap_or(super::NOBODY);
    }

    /// `1.2` where there are several inferiors, else `2`.
    pub fn thread_id(&self, index: usize, thread: &Thread) -> String {
        match self.qualifier(index) {
            Some(inferior) => format!("{inferior}.{}", thread.number),
            None => thread.number.to_string(),
        }
    }

    fn qualifier(&self, index: usize) -> Option<u32> {
        let target = self.targets.get(index)?;
        (!self.show.never_stops() && self.inferiors.are_told()).then_some(target.inferior)
    }

    /// `Thread 2 "name"`, if there has ever been another thread.
    pub(super) fn thread_told(&self, index: usize, tid: Tid) -> Option<String> {
        let target = &self.targets[index];
        let several = target.threads.several() || self.inferiors.forked;
        let thread = target.threads.get(tid).filter(|_| several)?;
        let name = super::process::thread_name(tid.0);
        Some(format!(
            "Thread {} \"{name}\"",
            self.thread_id(index, thread)
        ))
    }

    /// `Thread 2 "name" hit `, in front of `Breakpoint 1, `.
    pub(super) fn hit_prefix(&self, index: usize, tid: Tid) -> String {
        let who = self.thread_told(index, tid);
        who.map_or_else(String::new, |who| format!("{who} hit "))
    }

    /// Which of its places a breakpoint was hit at, as gdb numbers them: each in each inferior.
    pub(super) fn place_number(&self, index: usize, places: usize, at: Option<usize>) -> String {
        let there = self.inferiors.list.iter().filter(|it| !it.empty);
        let numbers: Vec<u32> = match self.show.never_stops() {
            true => Vec::new(),
            false => there.map(|it| it.number).collect(),
        };
        let number = self.targets[index].inferior;
        let own = numbers.iter().position(|it| *it == number).unwrap_or(0);
        let several = numbers.len().max(1);
        match at {
            Some(at) if places * several > 1 => format!(".{}", at * several + own + 1),
            _ => String::new(),
        }
    }

    /// The rows of `info threads`.
    pub fn thread_rows(&mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        for index in 0..self.targets.len() {
            let tids: Vec<Tid> = self.targets[index].threads.iter().map(|t| t.tid).collect();
            self.about(index, |session| {
                tids.iter().for_each(|tid| drop(session.registers(*tid)));
            });
            let target = &self.targets[index];
            let current = index == self.current;
            for thread in target.threads.iter() {
                let name = super::process::thread_name(thread.tid.0);
                rows.push(Row {
                    mark: current && thread.tid == target.selected,
                    id: self.thread_id(index, thread),
                    title: format!("{} \"{name}\"", thread.title()),
                    frame: match &thread.registers {
                        Some(registers) => self.frame(index, registers),
                        None => "(running)".into(),
                    },
                });
            }
        }
        rows
    }

    /// A thread by the number that the user gives: `2`, or `1.2`.
    pub fn numbered_thread(&self, text: &str) -> Result<(u32, Tid), Error> {
        let (inferior, number) = match text.split_once('.') {
            Some((inferior, number)) => (inferior.parse().ok(), number),
            None => (Some(self.inferiors.current), text),
        };
        let (Some(inferior), Ok(number)) = (inferior, number.parse::<u32>()) else {
            fail!("Invalid thread ID: {text}");
        };
        let known = self.inferiors.list.iter().any(|it| it.number == inferior);
        if !known {
            fail!("No inferior number '{inferior}'");
        }
        let target = self.index_of_inferior(inferior).map(|at| &self.targets[at]);
        match target.and_then(|target| target.threads.numbered(number)) {
            Some(thread) => Ok((inferior, thread.tid)),
            None => fail!("Unknown thread {text}."),
        }
    }

    /// `inferior 2 [process 7] (FILE)`, without the word.
    fn inferior_told(&self, number: u32) -> String {
        let (what, program) = self.inferior_state(number);
        format!("{number} [{what}] ({program})")
    }

    fn inferior_state(&self, number: u32) -> (String, String) {
        if let Some(index) = self.index_of_inferior(number) {
            let target = &self.targets[index];
            let program = target.program.display().to_string();
            return (format!("process {}", target.pid), program);
        }
        let mut list = self.inferiors.list.iter();
        let inferior = list.find(|it| it.number == number);
        let run = inferior.filter(|it| !it.program.as_os_str().is_empty());
        let program = run.map(|it| &it.program);
        let program = program.or(self.program.as_ref().map(|images| &images.program));
        let program = program.map_or_else(String::new, |it| it.display().to_string());
        ("<null>".into(), program)
    }

    /// `info inferiors`; without numbers all of them.
    pub fn inferior_table(&self, numbers: &[u32]) -> String {
        let list = self.inferiors.list.iter().map(|it| it.number);
        let wanted: Vec<u32> = list
            .filter(|it| numbers.is_empty() || numbers.contains(it))
            .collect();
        if wanted.is_empty() {
            return "No inferiors.\n".into();
        }
        let states: Vec<_> = wanted.iter().map(|it| self.inferior_state(*it)).collect();
        let width = states
            .iter()
            .map(|(what, _)| what.len())
            .max()
            .unwrap_or(0)
            .max(17);
        let mut out = format!(
            "  Num  {:<width$} {:<20} {:<17} \n",
            "Description", "Connection", "Executable"
        );
        for (number, (what, program)) in wanted.iter().zip(&states) {
            let mark = if *number == self.inferiors.current {
                '*'
            } else {
                ' '
            };
            let connection = if what == "<null>" { "" } else { "1 (native)" };
            out += &format!("{mark} {number:<4} {what:<width$} {connection:<20} {program:<17} \n");
        }
        out
    }

    /// `[Current inferior is 1 [process 7] (FILE)]`
    pub fn current_inferior(&self) -> String {
        let told = self.inferior_told(self.inferiors.current);
        format!("[Current inferior is {told}]\n")
    }

    /// Selects an inferior and says what is selected now.
    pub fn switch_inferior(&mut self, number: u32) -> Result<String, Error> {
        self.know_inferior(number)?;
        self.select_inferior(number);
        let mut text = format!("[Switching to inferior {}]\n", self.inferior_told(number));
        if let Some(tid) = self.target().map(|target| target.selected) {
            text += &self.switched_thread(tid);
        }
        Ok(text)
    }

    /// What is said of a thread that was selected.
    pub fn switched_thread(&mut self, tid: Tid) -> String {
        let frame = match self.registers(tid) {
            Some(registers) => self.frame(self.current, &registers),
            None => "(running)".into(),
        };
        let target = self.target();
        let thread = target.and_then(|target| target.threads.get(tid));
        let told = thread.map(|it| (self.thread_id(self.current, it), it.title()));
        let (id, title) = told.unwrap_or_default();
        format!("[Switching to thread {id} ({title})]\n#0  {frame}\n")
    }

    /// gdb's complaint about a number that no inferior has.
    pub fn know_inferior(&self, number: u32) -> Result<(), Error> {
        match self.inferiors.list.iter().any(|it| it.number == number) {
            true => Ok(()),
            false => fail!("Inferior ID {number} not known."),
        }
    }
}
