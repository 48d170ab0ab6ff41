//! What is said of threads, stops and ends, in gdb's words.

use super::breakpoint::Probe;
use super::view::Names;
use super::{Announced, Session, signals};
use crate::arch::Registers;
use crate::engine::protocol::Tid;
use crate::lang;

impl Session {
    /// Prints `[New Thread …]` for those that were not told of yet.
    pub fn announce_threads(&mut self, index: usize) {
        let new: Vec<Tid> = self.targets[index]
            .threads
            .iter()
            .filter(|t| !t.announced)
            .map(|t| t.tid)
            .collect();
        for tid in new {
            self.registers(tid);
            if let Some(thread) = self.targets[index].threads.get_mut(tid) {
                thread.announced = true;
                let text = format!("[New {}]\n", thread.title());
                self.tell(&text);
            }
        }
    }

    /// `[Switching to Thread …]`, the blank line and `Breakpoint 1, 0x… in f ()`, as far as a
    /// silent body wants them.
    pub(super) fn banner(&mut self, index: usize, tid: Tid, first: u32, hit: &[u32]) {
        self.switching(index, tid);
        let silent = self.any_silent(hit);
        let mut text = String::new();
        if !silent
            && let Some(registers) = self.registers(tid)
            && let Some(probe) = self.probes.get(first)
        {
            text = self.hit_text(index, tid, probe, &registers);
        }
        let shown = !silent;
        self.announced = Some(Announced { text, shown });
    }

    /// `\nThread 2 "t" hit Breakpoint 1, 0x… in f ()\n`
    pub(super) fn hit_text(
        &self,
        index: usize,
        tid: Tid,
        probe: &Probe,
        registers: &Registers,
    ) -> String {
        let pc = registers.pc();
        let places = &probe.locations;
        let at = places.iter().position(|l| l.address == pc);
        let which = self.place_number(index, places.len(), at);
        format!(
            "\n{}{} {}{which}, {}\n",
            self.hit_prefix(index, tid),
            probe.noun(),
            probe.number,
            self.frame(index, registers)
        )
    }

    /// Prints `[Switching to Thread …]` if another thread was shown last.
    pub(super) fn switching(&mut self, index: usize, tid: Tid) {
        let target = &mut self.targets[index];
        if target.previous != tid {
            target.previous = tid;
            if let Some(thread) = target.threads.get(tid) {
                let text = format!("[Switching to {}]\n", thread.title());
                self.tell(&text);
            }
        }
    }

    /// The signal is told before the thread that it came to is switched to, as in gdb.
    pub(super) fn present_signal(&mut self, index: usize, tid: Tid, number: i32) {
        self.announce_threads(index);
        self.targets[index].selected = tid;
        let Some(registers) = self.registers(tid) else {
            return;
        };
        self.tell(&self.signal_text(index, tid, number));
        self.switching(index, tid);
        let text = format!("{}\n", self.frame(index, &registers));
        self.announced = Some(Announced { text, shown: true });
    }

    /// `\nThread 2 "t" received signal SIGUSR1, User defined signal 1.\n`
    pub(super) fn signal_text(&self, index: usize, tid: Tid, number: i32) -> String {
        let who = self.thread_told(index, tid);
        let who = who.unwrap_or_else(|| "Program".into());
        let what = signals::describe(number);
        format!("\n{who} received signal {what}.\n")
    }

    /// `0x… in f () from LIB`, what gdb shows for a frame without debug info.
    pub fn frame(&self, index: usize, registers: &Registers) -> String {
        let pc = registers.pc();
        let images = &self.targets[index].images;
        let name = images
            .symbol_at(pc)
            .map_or_else(|| "??".into(), |(name, _)| name);
        let from = images
            .library_at(pc)
            .map(|library| format!(" from {library}"))
            .unwrap_or_default();
        format!("{pc:#018x} in {name} (){from}")
    }

    /// gdb's words for the end of a process.
    pub(super) fn tell_end(
        &mut self,
        inferior: u32,
        pid: i32,
        code: Option<i32>,
        signal: Option<i32>,
    ) {
        match (code, signal) {
            (_, Some(number)) => {
                self.tell(&format!(
                    "\nProgram terminated with signal {}.\nThe program no longer exists.\n",
                    signals::describe(number)
                ));
            }
            (Some(0), _) | (None, None) => self.tell(&format!(
                "[Inferior {inferior} (process {pid}) exited normally]\n"
            )),
            (Some(code), _) => self.tell(&format!(
                "[Inferior {inferior} (process {pid}) exited with code 0{code:o}]\n"
            )),
        }
        let exit = lang::Value::from_u64(lang::Type::int(), code.unwrap_or(0) as u64);
        if code.is_some() {
            let counters = self.keeper.as_ref().map(|k| k.counters());
            self.variables.set("_exitcode", exit, counters);
        }
    }

    /// Text about the targets: part of the output at the prompt, beside it where records own it.
    pub fn tell(&mut self, text: &str) {
        if self.show.never_stops() {
            self.output.complain(text.trim_matches('\n'));
        } else {
            self.output.print(text);
        }
    }
}

/// What a front that was held up was not told of.
pub(super) fn missed(threads: u64, children: u64) -> String {
    let threads = (threads > 0).then(|| format!("{threads} threads that began and ended"));
    let children = (children > 0).then(|| format!("{children} children that were let go"));
    let what: Vec<String> = threads.into_iter().chain(children).collect();
    format!(
        "warning: trapline was held up for long: of {} meanwhile only the hits are known.",
        what.join(" and ")
    )
}
