//! Memory that the processor watches: the debug registers of every thread of a process.
//!
//! Only a thread that stands can be given them. One that runs is interrupted for that; a system call
//! that an interrupt would end is begun again. New threads get them at their first stop. Nobody is
//! left with them: their trap would kill a process that is not traced.

use std::io;
use std::sync::atomic::Ordering;

use super::stop::Stopped;
use super::sys;
use super::target::{Target, failure};
use crate::arch::{
    Access as Slot, DEBUG_CONTROL, DEBUG_STATUS, DebugRegisters, Registers, debug_hits,
};
use crate::engine::protocol::{
    Access, Answer, Call, Event, Failure, Reason, Tid, Trigger, WatchSpec,
};
use crate::probe::interpret::{self, Outcome};
use crate::probe::program::Program;

/// `si_code` of a SIGTRAP that the debug registers have raised (`<asm-generic/siginfo.h>`).
const TRAP_HWBKPT: i32 = 4;

/// What is watched in a process.
#[derive(Default)]
pub struct Watches {
    list: Vec<Watched>,
    registers: DebugRegisters,
    /// There was something since the process runs this program, so that traps may be on their way.
    ever: bool,
    /// The request under way that changes it, by its number.
    changing: Option<u32>,
}

struct Watched {
    spec: WatchSpec,
    /// The debug registers that watch it, a bit each.
    slots: u8,
    /// What was there last.
    last: Vec<Vec<u8>>,
}

impl Watched {
    /// Whether a touch is told of.
    fn tells(&self, changed: bool) -> bool {
        match self.spec.access {
            Access::Write => changed,
            Access::Read => !changed,
            Access::Any => true,
        }
    }
}

impl Target {
    /// Watches these, and nothing else any more. `None`: the answer follows when every thread does.
    pub(super) fn set_watches(&mut self, number: u32, specs: Vec<WatchSpec>) -> Option<Answer> {
        let mut registers = DebugRegisters::default();
        let mut list = Vec::new();
        let mut refused = Vec::new();
        for spec in specs {
            match self.allot(&mut registers, spec) {
                Ok(watched) => list.push(watched),
                Err(probe) => refused.push(probe),
            }
        }
        if !refused.is_empty() {
            return Some(Answer::Unwatched(refused));
        }
        let before = std::mem::replace(&mut self.watches.list, list);
        let registers = std::mem::replace(&mut self.watches.registers, registers);
        self.watches.ever |= !self.watches.list.is_empty();
        if let Err(error) = self.load_held() {
            // The kernel has them for somebody else, or does not watch there.
            self.watches.list = before;
            self.watches.registers = registers;
            let _ = self.load_held();
            return Some(Answer::Failed(failure(Call::Watch, &error)));
        }
        self.watches.changing = Some(number);
        for thread in self.threads.values() {
            if !thread.is_held() && self.is_outdated(thread.tid) {
                // ESRCH: it has died, and its end is on the way.
                let _ = sys::interrupt(thread.tid);
            }
        }
        self.watches_changed();
        None
    }

    /// Finds debug registers for one; gives its probe if there are none left.
    fn allot(&self, registers: &mut DebugRegisters, mut spec: WatchSpec) -> Result<Watched, u16> {
        // What the interpreter refuses the front decides about.
        let refused = |program: &Program| interpret::check(program).is_err();
        if spec.condition.as_ref().is_some_and(refused) {
            spec.condition = None;
        }
        let access = match spec.access {
            Access::Write => Slot::Write,
            Access::Read | Access::Any => Slot::ReadWrite,
        };
        let mut all = *registers;
        let mut slots = 0;
        for (address, length) in &spec.regions {
            let length = u64::from(*length);
            let added = all.add(*address, length, access);
            slots |= added.map_err(|_| spec.probe)?;
        }
        *registers = all;
        let same =
            |known: &&Watched| known.spec.probe == spec.probe && known.spec.regions == spec.regions;
        let known = self.watches.list.iter().find(same);
        let last = known.map_or_else(|| self.contents(&spec), |known| known.last.clone());
        Ok(Watched { spec, slots, last })
    }

    /// What is in memory at each of a watch's places; nothing where it cannot be read.
    fn contents(&self, spec: &WatchSpec) -> Vec<Vec<u8>> {
        let read = |(address, length): &(u64, u32)| {
            let mut bytes = vec![0; *length as usize];
            if self.memory.read(*address, &mut bytes).is_err() {
                return Vec::new();
            }
            self.sites.mask(*address, &mut bytes);
            bytes
        };
        spec.regions.iter().map(read).collect()
    }

    fn load_held(&mut self) -> io::Result<()> {
        let mut held = self.held().into_iter();
        held.try_for_each(|tid| self.load(tid))
    }

    /// What a thread's debug registers are to hold.
    fn wanted(&self, pid: i32) -> DebugRegisters {
        // A child that shares the memory for a while is another process.
        match pid == self.pid {
            true => self.watches.registers,
            false => DebugRegisters::default(),
        }
    }

    fn is_outdated(&self, tid: i32) -> bool {
        let thread = self.threads.get(&tid);
        thread.is_some_and(|thread| thread.debug != self.wanted(thread.pid))
    }

    /// True for a thread whose debug registers watch something.
    pub(super) fn is_watching(&self, tid: i32) -> bool {
        let thread = self.threads.get(&tid);
        thread.is_some_and(|thread| !thread.debug.is_empty())
    }

    /// Gives a thread that stands the debug registers that it is to have.
    fn load(&mut self, tid: i32) -> io::Result<()> {
        if !self.is_outdated(tid) {
            return Ok(());
        }
        let Some(thread) = self.threads.get(&tid) else {
            return Ok(());
        };
        let wanted = self.wanted(thread.pid);
        let loaded = load(tid, &wanted);
        if let Some(thread) = self.threads.get_mut(&tid) {
            // One that is refused is not tried again and again.
            thread.debug = wanted;
        }
        match loaded {
            // It has died, which the next wait tells.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            loaded => loaded,
        }
    }

    /// A thread stands: a chance to give it what it is to have.
    pub(super) fn load_watches(&mut self, tid: i32) {
        if self.is_outdated(tid) {
            // The first thread was given the same.
            let _ = self.load(tid);
            self.watches_changed();
        }
    }

    /// Answers a change when every thread has what it is to have.
    pub(super) fn watches_changed(&mut self) {
        let Some(number) = self.watches.changing else {
            return;
        };
        // One that waits for a child gets them when that wait is over, at the interrupt's stop.
        let never = |tid: i32| sys::is_zombie(tid) || self.waits_for_child(tid);
        let missing = |tid: &i32| self.is_outdated(*tid) && !never(*tid);
        if !self.threads.keys().any(missing) {
            self.watches.changing = None;
            self.front.reply(number, Answer::Unwatched(Vec::new()));
        }
    }

    /// The process is gone: a change that is under way will not be finished.
    pub(super) fn watches_ended(&mut self) {
        if let Some(number) = self.watches.changing.take() {
            let answer = Answer::Failed(Failure::NoTarget);
            self.front.reply(number, answer);
        }
    }

    /// Another program runs: the kernel has cleared the debug registers.
    pub(super) fn watches_forgotten(&mut self) {
        let changing = self.watches.changing.take();
        self.watches = Watches::default();
        if let Some(number) = changing {
            self.front.reply(number, Answer::Unwatched(Vec::new()));
        }
    }

    /// Nothing is watched any more; each thread must still be told.
    pub(super) fn watch_nothing(&mut self) {
        self.watches.list.clear();
        self.watches.registers = DebugRegisters::default();
    }

    /// True if a thread's SIGTRAP comes from the debug registers.
    pub(super) fn is_watch_trap(&self, stopped: &Stopped) -> bool {
        let watch = |info: libc::siginfo_t| info.si_code == TRAP_HWBKPT;
        self.watches.ever && sys::signal_info(stopped.tid()).is_ok_and(watch)
    }

    /// Traps of the debug registers may be on their way.
    pub(super) fn may_trigger(&self) -> bool {
        self.watches.ever
    }

    /// True if the debug registers say that a thread has touched what they watch.
    fn has_triggered(&self, tid: i32) -> bool {
        self.is_watching(tid)
            && sys::debug_register(tid, DEBUG_STATUS).is_ok_and(|status| debug_hits(status) != 0)
    }

    /// The same, for one that is left: the trap is dropped.
    pub(super) fn drop_watch_trap(&mut self, stopped: &Stopped) -> bool {
        let is = self.is_watch_trap(stopped);
        if is {
            self.block_trap_again(stopped);
        }
        is
    }

    /// What a thread has touched that was taken over an instruction by us, for a signal's sake.
    pub(super) fn touched_meanwhile(&mut self, tid: i32) -> bool {
        if !self.has_triggered(tid) {
            return false;
        }
        let status = sys::debug_register(tid, DEBUG_STATUS).unwrap_or(0);
        let _ = sys::set_debug_register(tid, DEBUG_STATUS, 0);
        let Ok(mut registers) = sys::registers(tid) else {
            return false;
        };
        let triggers = self.triggers(tid, &mut registers, debug_hits(status));
        let any = !triggers.is_empty();
        if any {
            self.tell_touched(tid, triggers);
        }
        any
    }

    fn tell_touched(&self, tid: i32, triggers: Vec<Trigger>) {
        let event = Event::Touched {
            target: self.id,
            tid: Tid(tid),
            triggers,
        };
        self.front.event(event, None);
    }

    /// A thread has touched what is watched.
    pub(super) fn triggered(&mut self, stopped: Stopped) {
        let tid = stopped.tid();
        let status = sys::debug_register(tid, DEBUG_STATUS).unwrap_or(0);
        let _ = sys::set_debug_register(tid, DEBUG_STATUS, 0);
        let Some(stopped) = self.repair_signal_state(stopped) else {
            return;
        };
        let Ok(registers) = stopped.registers() else {
            return;
        };
        let pass = self.leave_slot(&stopped, registers);
        let mut registers = stopped.registers().unwrap_or(registers);
        let triggers = self.triggers(tid, &mut registers, debug_hits(status));
        if triggers.is_empty() {
            return self.pass_on(stopped, 0, pass);
        }
        self.tell_touched(tid, triggers);
        self.tell_stopped(stopped, 0, pass, Reason::Watch);
    }

    /// What has happened to what the debug registers `hits` watch. Where they do not say (the thread was
    /// given others meanwhile), to all that has changed.
    fn triggers(&mut self, tid: i32, registers: &mut Registers, hits: u8) -> Vec<Trigger> {
        let mut triggers = Vec::new();
        // It is taken out while programs run.
        let mut list = std::mem::take(&mut self.watches.list);
        for watched in &mut list {
            if hits != 0 && watched.slots & hits == 0 {
                continue;
            }
            let now = self.contents(&watched.spec);
            let changed = now != watched.last;
            let before = std::mem::replace(&mut watched.last, now.clone());
            let tells = watched.tells(changed) && (hits != 0 || changed);
            let probe = watched.spec.probe;
            let on = self.counters.probe(probe).enabled.load(Ordering::Acquire) != 0;
            if !tells || !on {
                continue;
            }
            let condition = watched.spec.condition.as_ref();
            let decided = match condition.map(|it| self.decide(it, probe, tid, registers)) {
                // The front says what is wrong with it.
                None | Some(Outcome { fault: Some(_), .. }) => false,
                Some(outcome) if outcome.hit => true,
                Some(_) => continue,
            };
            triggers.push(Trigger {
                probe,
                before,
                now,
                decided,
            });
        }
        self.watches.list = list;
        triggers
    }

    /// The front has written memory: that is no change by the program.
    pub(super) fn watched_written(&mut self, address: u64, length: usize) {
        let end = address.saturating_add(length as u64);
        for at in 0..self.watches.list.len() {
            let spec = &self.watches.list[at].spec;
            let touches = |(start, length): &(u64, u32)| {
                *start < end && address < start.saturating_add(u64::from(*length))
            };
            if spec.regions.iter().any(touches) {
                self.watches.list[at].last = self.contents(&self.watches.list[at].spec);
            }
        }
    }
}

/// Writes a thread's debug registers; what they watched before is off while that happens.
fn load(tid: i32, registers: &DebugRegisters) -> io::Result<()> {
    sys::set_debug_register(tid, DEBUG_CONTROL, 0)?;
    if registers.is_empty() {
        return sys::set_debug_register(tid, DEBUG_STATUS, 0);
    }
    for (at, address) in registers.addresses().into_iter().enumerate() {
        sys::set_debug_register(tid, at, address)?;
    }
    sys::set_debug_register(tid, DEBUG_STATUS, 0)?;
    sys::set_debug_register(tid, DEBUG_CONTROL, registers.control())
}
