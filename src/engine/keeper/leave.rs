//! Leaving a target as it was found.
//!
//! The int3s go first; then only threads that run, or that stand with us, are looked at: their
//! queued traps are taken back and their rip taken out of slots. A thread that is blocked in a
//! system call is not touched: the exit of the tracing thread releases it without the call
//! noticing, where an interrupt would make it return EINTR. While that thread traces other processes
//! too, a thread in a call that is started again unseen is interrupted all the same, and any other
//! lingers: it stays traced, with nothing armed, until it stops for a reason of its own.

use std::fs;

use super::children::Unborn;
use super::crash::Point;
use super::memory::Memory;
use super::signals::{SignalState, TRAP_BIT, restarts_unseen};
use super::slots::process_of;
use super::stop::{Stop, Stopped};
use super::sys;
use super::target::Target;
use super::thread::State;
use super::tracer::Stops;
use crate::arch::Register;

impl Target {
    /// Puts everything back. Nothing is traced afterwards, except for blocked threads, which the
    /// exit of the calling thread releases.
    pub(super) fn leave(&mut self, stops: &mut Stops<'_>) {
        self.crash.pass(Point::Leaving);
        for address in self.sites.armed_addresses() {
            // Text that is gone has nothing to be put back.
            let _ = self.sites.take_out(&self.memory, address);
        }
        self.watch_nothing();
        self.crash.pass(Point::Disarmed);
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            // The debug registers of one that is blocked must be cleared as well.
            if self.moves(tid) && (runs(tid) || self.is_watching(tid)) {
                self.gather(tid, stops);
                self.crash.pass(Point::Gathered);
            }
        }
        // What came meanwhile: traps of threads that were blocked a moment ago, new threads.
        while let Ok(Some((tid, status))) = stops.next(self) {
            self.settle(tid, Stop::new(tid, status));
        }
        for child in self.births.keys().copied().collect::<Vec<_>>() {
            self.was_left(child);
            self.settle_birth(child, stops);
        }
        while let Some(child) = stops.child_of(self.pid) {
            self.settle(child.tid(), Stop::Interrupted(child));
        }
        self.crash.pass(Point::Settled);
        self.restore_trap_action(stops);
        self.release_held();
        self.crash.pass(Point::Left);
    }

    /// Leaves threads that are blocked in a call which nobody sees interrupted.
    pub(super) fn linger(&mut self, stops: &mut Stops<'_>) {
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            if restarts_unseen(tid) {
                self.gather(tid, stops);
            }
        }
        self.release_held();
    }

    /// True if threads of it are still to be left.
    pub(super) fn lingers(&self) -> bool {
        let alive = |tid: &i32| !sys::is_zombie(*tid);
        self.threads.keys().chain(self.births.keys()).any(alive)
    }

    /// A thread that lingered stirs.
    pub(super) fn leave_late(&mut self, tid: i32, stop: Stop) {
        self.settle(tid, stop);
        self.release_held();
    }

    /// True for a thread that we know and do not hold.
    fn moves(&self, tid: i32) -> bool {
        let thread = self.threads.get(&tid);
        thread.is_some_and(|thread| !thread.is_held())
    }

    /// Stops a thread and settles it. Whoever comes meanwhile is dealt with: a leader that was
    /// killed is not reported before its other threads were.
    fn gather(&mut self, tid: i32, stops: &mut Stops<'_>) {
        // ESRCH: it has died.
        let _ = sys::interrupt(tid);
        while self.moves(tid) {
            match stops.next(self) {
                Ok(Some((other, status))) => self.settle(other, Stop::new(other, status)),
                // A leader that ended before its other threads is not reported until they end.
                Ok(None) if sys::is_zombie(tid) => return,
                Ok(None) => std::thread::yield_now(),
                Err(_) => return,
            }
        }
    }

    /// Waits for the first stop of a child that its parent has told of: it may have a copy of the
    /// memory that was made when our int3s were in.
    fn settle_birth(&mut self, child: i32, stops: &mut Stops<'_>) {
        if let Some(stopped) = stops.met(child) {
            return self.settle(child, Stop::Interrupted(stopped));
        }
        loop {
            match sys::wait(child, false) {
                Ok(Some((tid, status))) => return self.settle(tid, Stop::new(tid, status)),
                Ok(None) if sys::is_zombie(child) => return,
                Ok(None) => std::thread::yield_now(),
                // It was dealt with already.
                Err(_) => return,
            }
        }
    }

    /// The thread that has made a process which needs nothing more is held like the others.
    fn was_left(&mut self, child: i32) {
        let unborn = self.births.remove(&child);
        if let Some(waits) = unborn.and_then(|unborn| unborn.waits) {
            self.hold(waits, 0, None, false);
        }
    }

    /// Deals with a stop of a thread that we leave: afterwards it stands where the program was.
    fn settle(&mut self, tid: i32, stop: Stop) {
        if let Stop::Cloned(stopped, birth) = &stop
            && let Ok(child) = sys::event_message(stopped.tid())
            && !self.threads.contains_key(&child)
            && sys::exists(child)
        {
            self.births.insert(child, Unborn::of(tid, *birth));
        }
        let (stopped, signal) = match stop {
            Stop::Exited(_) | Stop::Killed(_) => {
                self.threads.remove(&tid);
                self.was_left(tid);
                return;
            }
            Stop::Signal(stopped, libc::SIGTRAP)
                if self.drop_watch_trap(&stopped) || self.take_back(&stopped) =>
            {
                (stopped, 0)
            }
            Stop::Signal(stopped, signal) => {
                let stopped = match sys::signal_info(tid) {
                    Ok(info) => self.out_of_slot(stopped, &info),
                    Err(_) => Some(stopped),
                };
                let Some(stopped) = stopped else {
                    return;
                };
                (stopped, signal)
            }
            other => match other.standing() {
                Some((stopped, _)) if self.trap_is_queued(&stopped) => {
                    // The trap comes next, to the same thread.
                    let _ = stopped.resume(0);
                    return;
                }
                Some((stopped, _)) => {
                    self.begin_call_again(&stopped);
                    (stopped, 0)
                }
                None => return,
            },
        };
        if let Ok(registers) = stopped.registers() {
            self.leave_slot(&stopped, registers);
        }
        match self.threads.contains_key(&tid) {
            true => self.hold(stopped, signal, None, false),
            // A child that was made this moment, maybe with a copy of our int3s.
            false => {
                self.was_left(tid);
                if process_of(tid) != Some(self.pid)
                    && let Ok(memory) = Memory::open(tid)
                {
                    self.sites.clean(&memory);
                }
                drop(stopped.detach(signal));
            }
        }
    }

    fn release_held(&mut self) {
        for tid in self.held() {
            let Some(thread) = self.threads.get_mut(&tid) else {
                continue;
            };
            let state = std::mem::replace(&mut thread.state, State::Running);
            if let State::Held(held) = state
                && let Some((stopped, signal)) = self.take_queued_trap(held.stop, held.signal)
            {
                self.load_watches(tid);
                if let Ok(registers) = stopped.registers() {
                    self.leave_slot(&stopped, registers);
                }
                if signal == 0 {
                    self.begin_call_again(&stopped);
                }
                let delivered = self.deliver(&stopped, signal);
                let _ = stopped.detach(delivered);
                self.crash.pass(Point::Released);
            }
            self.threads.remove(&tid);
        }
    }

    /// Makes SIGTRAP ignored or handled again, if it was when we came and our int3s ended that.
    fn restore_trap_action(&mut self, stops: &mut Stops<'_>) {
        let Some(action) = self.trap_action else {
            return;
        };
        let state = SignalState::of(self.pid);
        let kept = match action.ignores() {
            true => state.ignored,
            false => state.caught,
        };
        if kept & TRAP_BIT != 0 {
            return;
        }
        if self.held().is_empty()
            && let Some(tid) = self
                .threads
                .keys()
                .copied()
                .find(|tid| restarts_unseen(*tid))
        {
            self.gather(tid, stops);
        }
        let held = self.threads.values_mut().find(|thread| thread.is_held());
        let state = held.map(|thread| std::mem::replace(&mut thread.state, State::Running));
        if let Some(State::Held(held)) = state {
            let (stopped, _) = self.set_trap_action(held.stop, action);
            if let Some(stopped) = stopped {
                self.hold(stopped, held.signal, held.pass, held.group);
            }
        }
    }

    /// Moves a thread back in front of the instruction whose int3 it ran into.
    fn take_back(&mut self, stopped: &Stopped) -> bool {
        let Ok(mut registers) = stopped.registers() else {
            return false;
        };
        let at = registers.pc().wrapping_sub(1);
        if self.sites.get(at).is_none() || !self.is_site_trap(stopped) {
            return false;
        }
        registers.set(Register::Rip, at);
        self.block_trap_again(stopped);
        stopped.set_registers(&registers).is_ok()
    }

    /// A thread that was made to stand when it had just run into an int3 has the trap still to come.
    /// `None`: it is gone.
    fn take_queued_trap(&mut self, stopped: Stopped, signal: i32) -> Option<(Stopped, i32)> {
        let mut standing = (stopped, signal);
        while self.trap_is_queued(&standing.0) {
            standing = match standing.0.run().ok()? {
                Stop::Signal(stopped, libc::SIGTRAP)
                    if self.drop_watch_trap(&stopped) || self.take_back(&stopped) =>
                {
                    (stopped, 0)
                }
                other => other.standing()?,
            };
        }
        Some(standing)
    }

    /// True if an int3's SIGTRAP waits behind the stop that we see, or that of the debug registers,
    /// which may watch something else by now.
    fn trap_is_queued(&self, stopped: &Stopped) -> bool {
        let behind_site = stopped
            .registers()
            .is_ok_and(|registers| self.sites.get(registers.pc().wrapping_sub(1)).is_some());
        let queued = || {
            let state = SignalState::of(stopped.tid());
            state.pending & !state.blocked & TRAP_BIT != 0
        };
        (behind_site || self.may_trigger()) && queued()
    }
}

/// True unless the thread is blocked in a system call (`/proc/PID/syscall`, proc(5)).
fn runs(tid: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{tid}/syscall")).unwrap_or_default();
    text.starts_with("running") || text.starts_with("-1") || text.is_empty()
}
