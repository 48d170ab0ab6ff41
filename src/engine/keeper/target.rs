//! One process that is traced.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::Front;
use super::children::{Sharer, Unborn};
use super::crash::{CrashPoint, Point};
use super::doorbell::Bell;
use super::entries::Entries;
use super::follow::Follow;
use super::hit::HitSpace;
use super::hosts::Hosts;
use super::memory::Memory;
use super::patience::Patience;
use super::signals::TrapAction;
use super::site::Sites;
use super::slots::SlotPages;
use super::stop::{Stop, Stopped};
use super::sys;
use super::thread::{Held, State, Thread};
use super::timer::Timer;
use super::watch::Watches;
use crate::arch::{Position, Register, Registers};
use crate::engine::protocol::{
    AddressSpaceId, Answer, Call, Calls, Children, Event, Failure, Reason, SignalPolicy, TargetId,
    Tid,
};
use crate::record::ring::Ring;
use crate::record::shared::Counters;

/// One target.
pub struct Target {
    pub(super) id: TargetId,
    pub(super) pid: i32,
    /// The image that it runs: another one after each `execve`.
    pub(super) space: AddressSpaceId,
    pub(super) common: Common,
    pub(super) front: Arc<Front>,
    pub(super) counters: Arc<Counters>,
    pub(super) ring: Rc<Ring>,
    pub(super) memory: Memory,
    pub(super) sites: Sites,
    pub(super) slots: SlotPages,
    pub(super) threads: HashMap<i32, Thread>,
    /// What was made, and whose first stop is still to come.
    pub(super) births: HashMap<i32, Unborn>,
    /// The processes that have this one's memory, and how they came to be.
    pub(super) sharers: HashMap<i32, Sharer>,
    /// Processes of their own that came of this one just now.
    pub(super) offspring: Vec<Target>,
    pub(super) children: Children,
    pub(super) signals: SignalPolicy,
    pub(super) watches: Watches,
    /// The system calls that stop a thread.
    pub(super) calls: Calls,
    /// What the program does with SIGTRAP, where an int3 may take that away: every hit that does
    /// puts it back.
    pub(super) trap_action: Option<TrapAction>,
    pub(super) work: HitSpace,
    /// For threads that are held for a time.
    pub(super) timer: Rc<Timer>,
    /// Calls that are under way, for `$_entry`.
    pub(super) entries: Entries,
    pub(super) follow: Rc<RefCell<Follow>>,
    pub(super) crash: CrashPoint,
    pub(super) patience: Patience,
    /// How many stops the front was told of.
    pub(super) stops: u64,
    /// The interrupt that is under way, by its request's number.
    pub(super) interrupting: Option<u32>,
    /// It ends with the front.
    pub(super) exit_kill: bool,
    /// Execs that pass before the program itself runs.
    pub(super) skip_execs: u32,
    /// It has had more than one thread, with the program that it runs.
    pub(super) threaded: bool,
    /// Its leader is traced, and tells of its end. Otherwise the last of its threads does.
    pub(super) leads: bool,
    ended: bool,
}

/// What a new target is made of.
pub struct Parts {
    /// The front's number for it.
    pub id: TargetId,
    /// What signals do.
    pub signals: SignalPolicy,
    /// What becomes of its children.
    pub children: Children,
    /// See there.
    pub common: Common,
}

/// What the processes of one tracing thread have in common.
#[derive(Clone)]
pub struct Common {
    /// The process that the thread began with.
    pub host: TargetId,
    /// Where it tells of the others.
    pub hosts: Arc<Hosts>,
    /// Where answers and events go.
    pub front: Arc<Front>,
    /// Shared with the front.
    pub counters: Arc<Counters>,
    /// Where records go.
    pub ring: Rc<Ring>,
    timer: Rc<Timer>,
    follow: Rc<RefCell<Follow>>,
    crash: CrashPoint,
}

impl Common {
    /// `bell` wakes the thread.
    pub fn new(
        host: TargetId,
        hosts: Arc<Hosts>,
        front: Arc<Front>,
        counters: Arc<Counters>,
        ring: Ring,
        bell: Arc<Bell>,
    ) -> Common {
        Common {
            host,
            hosts,
            front,
            counters,
            ring: Rc::new(ring),
            timer: Rc::new(Timer::new(bell)),
            follow: Rc::default(),
            crash: CrashPoint::from_environment(),
        }
    }
}

impl Target {
    /// A target whose threads are seized already.
    pub fn new(parts: Parts, pid: i32, memory: Memory, threads: Vec<Thread>) -> Target {
        let common = parts.common.clone();
        let threaded = threads.len() > 1;
        let leads = threads.iter().any(|thread| thread.tid == pid);
        Target {
            common: parts.common,
            id: parts.id,
            pid,
            space: AddressSpaceId(0),
            front: common.front,
            counters: common.counters,
            ring: common.ring,
            memory,
            sites: Sites::default(),
            slots: SlotPages::default(),
            threads: threads
                .into_iter()
                .map(|thread| (thread.tid, thread))
                .collect(),
            births: HashMap::new(),
            sharers: HashMap::new(),
            offspring: Vec::new(),
            children: parts.children,
            signals: parts.signals,
            watches: Watches::default(),
            calls: Calls::default(),
            trap_action: None,
            work: HitSpace::default(),
            timer: common.timer,
            entries: Entries::default(),
            follow: common.follow,
            crash: common.crash,
            patience: Patience::default(),
            stops: 0,
            interrupting: None,
            exit_kill: false,
            skip_execs: 0,
            threaded,
            leads,
            ended: false,
        }
    }

    /// The process is traced no more, which the front is told.
    pub(super) fn ends_with(&mut self, event: Event) {
        self.ended = true;
        self.watches_ended();
        if let Some(number) = self.interrupting.take() {
            self.front.reply(number, Answer::Failed(Failure::NoTarget));
        }
        self.front.event(event, None);
    }

    /// True for a thread of it, and for one that is about to be.
    pub(super) fn knows(&self, tid: i32) -> bool {
        self.threads.contains_key(&tid) || self.births.contains_key(&tid)
    }

    /// True behind the end of the process; another one may have its memory still.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Something happened to a thread.
    pub(super) fn happened(&mut self, tid: i32, stop: Stop) {
        match stop {
            Stop::Exited(code) => self.gone(tid, Some(code), None),
            Stop::Killed(signal) => self.gone(tid, None, Some(signal)),
            Stop::Nothing => {}
            Stop::Signal(stopped, libc::SIGTRAP) => self.trap(stopped),
            Stop::Signal(stopped, signal) => self.signal(stopped, signal),
            Stop::Cloned(stopped, birth) => self.cloned(stopped, birth),
            Stop::Exec(stopped) => self.exec(stopped),
            Stop::Event(stopped) => self.go(stopped, 0),
            Stop::Syscall(stopped) => self.call(stopped),
            Stop::Group(stopped) | Stop::Interrupted(stopped)
                if !self.threads.contains_key(&tid) =>
            {
                self.meet(stopped);
            }
            Stop::Group(stopped) => self.stands(stopped, true),
            Stop::Interrupted(stopped) => self.stands(stopped, false),
        }
    }

    /// A SIGTRAP: one of our sites, or the program's own business.
    fn trap(&mut self, stopped: Stopped) {
        self.crash.pass(Point::Trapped);
        if self.is_watch_trap(&stopped) {
            return self.triggered(stopped);
        }
        let Ok(registers) = stopped.registers() else {
            return;
        };
        self.crash.pass(Point::Registers);
        let at = registers.pc().wrapping_sub(1);
        match self.sites.get(at).map(|site| site.armed) {
            Some(true) => self.hit(stopped, registers, at),
            // The site was taken out while the trap was on its way. If there is an int3 all the
            // same it is the program's own.
            Some(false) if self.is_site_trap(&stopped) && !self.memory.has_int3(at) => {
                self.back_to(stopped, registers, at);
            }
            _ => self.signal(stopped, libc::SIGTRAP),
        }
    }

    /// True if the SIGTRAP of a thread behind a site is the int3's. If the thread blocks SIGTRAP
    /// nothing else delivers one; one that was sent and waits takes the place of the int3's then.
    pub(super) fn is_site_trap(&self, stopped: &Stopped) -> bool {
        let thread = self.threads.get(&stopped.tid());
        thread.is_some_and(|thread| thread.trap_blocked.is_some()) || is_int3(stopped)
    }

    /// Sends a thread on at `address`.
    pub(super) fn back_to(&mut self, stopped: Stopped, mut registers: Registers, address: u64) {
        registers.set(Register::Rip, address);
        // ESRCH: it was killed; the next wait tells.
        let _ = stopped.set_registers(&registers);
        self.go(stopped, 0);
    }

    /// Lets a thread run.
    pub(super) fn go(&mut self, stopped: Stopped, signal: i32) {
        // Any stop (of a system call, of a clone) takes the place of an interrupt that was on its way
        // (`a_storm_of_threads`).
        if self.interrupting.is_some() {
            let _ = sys::interrupt(stopped.tid());
        }
        self.handler_begins(&stopped, signal);
        if self.may_trigger() {
            self.load_watches(stopped.tid());
        }
        let calls = self.stops_at_calls(stopped.tid());
        if let Some(thread) = self.threads.get_mut(&stopped.tid()) {
            thread.state = State::Running;
            thread.sees_calls = thread.awaits_return() || calls;
        }
        match signal {
            libc::SIGTRAP => self.go_with_trap(stopped),
            _ => self.resume(stopped, signal),
        }
    }

    /// The last step of [`Target::go`]: up to the next system call, if the thread is to stop there.
    pub(super) fn resume(&self, stopped: Stopped, signal: i32) {
        let thread = self.threads.get(&stopped.tid());
        let _ = match thread.is_some_and(|thread| thread.sees_calls) {
            true => stopped.resume_to_syscall(signal),
            false => stopped.resume(signal),
        };
    }

    /// The threads that we hold.
    pub(super) fn held(&self) -> Vec<i32> {
        let held = self.threads.values().filter(|thread| thread.is_held());
        held.map(|thread| thread.tid).collect()
    }

    /// Holds a thread for the front.
    pub(super) fn hold(&mut self, stop: Stopped, signal: i32, pass: Option<u64>, group: bool) {
        self.hold_as(0, stop, signal, pass, group);
    }

    fn hold_as(&mut self, number: u64, stop: Stopped, signal: i32, pass: Option<u64>, group: bool) {
        self.load_watches(stop.tid());
        if let Some(thread) = self.threads.get_mut(&stop.tid()) {
            thread.state = State::Held(Held {
                stop,
                number,
                signal,
                arrived: 0,
                pass,
                group,
            });
        }
    }

    /// A signal that is not a hit.
    pub(super) fn signal(&mut self, stopped: Stopped, signal: i32) {
        let Ok(info) = sys::signal_info(stopped.tid()) else {
            return;
        };
        let Some(stopped) = self.out_of_slot(stopped, &info) else {
            return;
        };
        let tid = stopped.tid();
        if self.was_sent(tid, &info) {
            return self.go(stopped, signal);
        }
        let bit = 1_u64 << (signal - 1).clamp(0, 63);
        // An int3 has ended that the program ignores SIGTRAP: we ignore it for the program.
        let ignores = self.trap_action.is_some_and(|action| action.ignores());
        let ignored = signal == libc::SIGTRAP && info.si_code <= 0 && ignores;
        let passed = if ignored { 0 } else { self.passed(signal) };
        let touched = self.touched_meanwhile(tid);
        if self.signals.stop & bit == 0 && !touched {
            if self.signals.tell & bit != 0 {
                self.tell_signal(tid, signal);
            }
            self.ignores(&stopped, passed);
            return self.go(stopped, passed);
        }
        let reason = match touched {
            true => Reason::Watch,
            false => Reason::Signal {
                number: signal,
                code: info.si_code,
            },
        };
        self.tell_stopped(stopped, passed, None, reason);
        if !ignored {
            self.holds_signal(tid, signal);
        }
    }

    /// Holds a thread and tells the front why.
    pub(super) fn tell_stopped(
        &mut self,
        stopped: Stopped,
        signal: i32,
        pass: Option<u64>,
        reason: Reason,
    ) {
        let Ok(registers) = stopped.registers() else {
            return;
        };
        self.stops += 1;
        let number = self.stops;
        let event = Event::Stopped {
            target: self.id,
            tid: Tid(stopped.tid()),
            number,
            reason,
            registers: Box::new(registers),
            ring: self.ring.head(),
        };
        self.hold_as(number, stopped, signal, pass, false);
        let memory = matches!(reason, Reason::Exec { .. }).then(|| self.memory.file());
        self.front.event(event, memory);
        self.interrupt_finished();
    }

    /// A thread stands because we asked it to, or because its process was stopped.
    pub(super) fn stands(&mut self, stopped: Stopped, group: bool) {
        self.load_watches(stopped.tid());
        let Ok(registers) = stopped.registers() else {
            return;
        };
        let pass = self.leave_slot(&stopped, registers);
        if self.interrupting.is_some() {
            self.hold(stopped, 0, pass, group);
            return self.interrupt_finished();
        }
        if group {
            self.mark_counted(stopped.tid(), pass, registers.sp());
            return self.listen(stopped);
        }
        // Behind a stop of the process the program expects EINTR.
        let thread = self.threads.get(&stopped.tid());
        if thread.is_some_and(|thread| matches!(thread.state, State::Running)) {
            self.begin_call_again(&stopped);
        }
        self.pass_on(stopped, 0, pass);
    }

    /// Leaves a thread in its process's group stop.
    pub(super) fn listen(&mut self, stopped: Stopped) {
        if let Some(thread) = self.threads.get_mut(&stopped.tid()) {
            thread.state = State::Listening;
        }
        let _ = stopped.listen();
    }

    pub(super) fn mark_counted(&mut self, tid: i32, site: Option<u64>, sp: u64) {
        if let (Some(site), Some(thread)) = (site, self.threads.get_mut(&tid)) {
            thread.mark(site, sp);
        }
    }

    /// Puts rip back to the program if it is in a slot; gives the site that is still to be passed.
    pub(super) fn leave_slot(
        &mut self,
        stopped: &Stopped,
        mut registers: Registers,
    ) -> Option<u64> {
        let (site, offset) = self.sites.in_slot(registers.pc())?;
        let slot = site.slot.as_ref()?;
        let (address, pass) = match slot.code.position(offset)? {
            Position::NotExecuted => (site.address, Some(site.address)),
            Position::Done(next) => (next, None),
        };
        if let Some((register, value)) = slot.code.repair(offset) {
            registers.set(register, value);
        }
        registers.set(Register::Rip, address);
        let _ = stopped.set_registers(&registers);
        pass
    }

    /// Lets a thread go on; one that stands on a site it was counted at goes through the slot.
    pub(super) fn pass_on(&mut self, stopped: Stopped, signal: i32, pass: Option<u64>) {
        if let (Some(site), Ok(registers)) = (pass, stopped.registers())
            && registers.pc() == site
            && self.sites.get(site).is_some_and(|site| site.armed)
        {
            if signal == 0 {
                return self.pass(stopped, registers, site);
            }
            // The handler sees the program's address; the site is passed when it returns.
            self.mark_counted(stopped.tid(), Some(site), registers.sp());
        }
        self.go(stopped, signal);
    }

    /// A thread, or the whole process, has ended.
    pub(super) fn gone(&mut self, tid: i32, code: Option<i32>, signal: Option<i32>) {
        let known = self.threads.remove(&tid);
        if let Some(unborn) = self.births.remove(&tid) {
            self.was_met(tid, unborn);
        }
        if self.sharers.remove(&tid).is_some() {
            let (target, child) = (self.id, tid);
            let event = Event::SharerExited {
                target,
                child,
                code,
                signal,
            };
            self.front.event(event, None);
        }
        self.entries.thread_ended(tid, &self.counters);
        let target = self.id;
        let own = |thread: &Thread| thread.pid == self.pid;
        let last = !self.leads && known.as_ref().is_some_and(own);
        if tid == self.pid || last && !self.threads.values().any(own) {
            let ring = self.ring.head();
            let event = Event::Exited {
                target,
                code,
                signal,
                ring,
            };
            return self.ends_with(event);
        }
        if known.is_some() {
            self.front.event(
                Event::ThreadExited {
                    target,
                    tid: Tid(tid),
                },
                None,
            );
        }
        self.watches_changed();
        self.interrupt_finished();
    }
}

/// True if the SIGTRAP that a thread stopped with is an int3's.
pub(super) fn is_int3(stopped: &Stopped) -> bool {
    sys::signal_info(stopped.tid()).is_ok_and(|info| info.si_code == sys::SI_KERNEL)
}

/// A failed system call, as the front is told.
pub(super) fn failure(call: Call, error: &std::io::Error) -> Failure {
    Failure::System {
        call,
        errno: error.raw_os_error().unwrap_or(0),
    }
}
