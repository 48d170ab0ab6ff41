//! `delay`: a thread is held for a time, and nobody waits for it. Signals for it wait with it.

use std::time::{Duration, Instant};

use super::stop::Stopped;
use super::target::Target;
use super::thread::State;
use crate::arch::Registers;

impl Target {
    /// Holds a thread that has hit the site at `at`.
    pub(super) fn delay(&mut self, stopped: Stopped, registers: Registers, at: u64, ns: u64) {
        let _ = stopped.set_registers(&registers);
        let tid = stopped.tid();
        let pass = (registers.pc() == at).then_some(at);
        let until = Instant::now().checked_add(Duration::from_nanos(ns));
        let rings = until.is_some_and(|until| self.timer.ring_at(until));
        self.hold(stopped, 0, pass, false);
        match self.threads.get_mut(&tid) {
            Some(thread) if rings => thread.until = until,
            // No time that can be waited for: it goes on at once.
            _ => self.let_held_go(tid),
        }
        self.interrupt_finished();
    }

    /// Lets the threads go on whose time is over.
    pub(super) fn end_delays(&mut self) {
        let now = Instant::now();
        let over: Vec<i32> = self
            .threads
            .values()
            .filter(|thread| thread.until.is_some_and(|until| until <= now))
            .map(|thread| thread.tid)
            .collect();
        for tid in over {
            self.let_held_go(tid);
        }
    }

    /// Every thread is to stand: those that are held for a time are held like the others.
    pub(super) fn forget_delays(&mut self) {
        for thread in self.threads.values_mut() {
            thread.until = None;
        }
    }

    fn let_held_go(&mut self, tid: i32) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        thread.until = None;
        match std::mem::replace(&mut thread.state, State::Running) {
            State::Held(held) => self.pass_on(held.stop, held.signal, held.pass),
            other => thread.state = other,
        }
    }
}
