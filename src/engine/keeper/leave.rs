//! Leaving a target as it was found.
//!
//! The int3s go first; then only threads that run, or that stand with us, are looked at: their
//! queued traps are taken back and their rip taken out of slots. A thread that is blocked in a
//! system call is not touched: the exit of the tracing thread releases it without the call
//! noticing, where an interrupt would make it return EINTR.

use std::fs;

use super::signals::{SignalState, TRAP_BIT};
use super::stop::{Stop, Stopped};
use super::sys;
use super::target::{Target, is_int3};
use super::thread::State;
use crate::arch::Register;

impl Target {
    /// Puts everything back. Nothing is traced afterwards, except for blocked threads, which the
    /// exit of the calling thread releases.
    pub(super) fn leave(&mut self) {
        for address in self.sites.armed_addresses() {
            // Text that is gone has nothing to be put back.
            let _ = self.sites.take_out(&self.memory, address);
        }
        self.release_held();
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            if runs(tid) {
                // ESRCH: it has died.
                let _ = sys::interrupt(tid);
                // Whoever comes is dealt with: a leader that was killed is not reported before
                // its other threads were.
                while self.threads.contains_key(&tid) {
                    let Ok(Some((other, status))) = sys::wait_any(true) else {
                        break;
                    };
                    self.release(other, Stop::new(other, status));
                }
            }
        }
        // What came meanwhile: traps of threads that were blocked a moment ago, new threads.
        while let Ok(Some((tid, status))) = sys::wait_any(false) {
            self.release(tid, Stop::new(tid, status));
        }
        self.end();
    }

    fn release_held(&mut self) {
        let held: Vec<i32> = self
            .threads
            .values()
            .filter(|thread| matches!(thread.state, State::Held(_)))
            .map(|thread| thread.tid)
            .collect();
        for tid in held {
            let thread = self.threads.remove(&tid);
            if let Some(State::Held(held)) = thread.map(|thread| thread.state) {
                self.let_go_for_good(held.stop, held.signal);
            }
        }
    }

    /// Deals with one more stop of a thread that we leave.
    fn release(&mut self, tid: i32, stop: Stop) {
        match stop {
            Stop::Exited(_) | Stop::Killed(_) => {
                self.threads.remove(&tid);
            }
            Stop::Nothing => {}
            Stop::Signal(stopped, libc::SIGTRAP) if self.take_back(&stopped) => {
                self.let_go_for_good(stopped, 0);
            }
            Stop::Signal(stopped, signal) => {
                let info = sys::signal_info(tid);
                let stopped = match info {
                    Ok(info) => self.out_of_slot(stopped, &info),
                    Err(_) => Some(stopped),
                };
                if let Some(stopped) = stopped {
                    self.let_go_for_good(stopped, signal);
                }
            }
            Stop::Group(stopped)
            | Stop::Interrupted(stopped)
            | Stop::Cloned(stopped)
            | Stop::Exec(stopped)
            | Stop::Event(stopped) => {
                if self.trap_is_queued(&stopped) {
                    // The trap comes next, to the same thread.
                    let _ = stopped.resume(0);
                    return;
                }
                self.let_go_for_good(stopped, 0);
            }
        }
    }

    /// Moves a thread back in front of the instruction whose int3 it ran into.
    fn take_back(&mut self, stopped: &Stopped) -> bool {
        let Ok(mut registers) = stopped.registers() else {
            return false;
        };
        let at = registers.pc().wrapping_sub(1);
        if self.sites.get(at).is_none() || !is_int3(stopped) {
            return false;
        }
        registers.set(Register::Rip, at);
        let blocked = self
            .threads
            .get(&stopped.tid())
            .is_some_and(|thread| thread.trap_blocked);
        if blocked && let Ok(mask) = sys::signal_mask(stopped.tid()) {
            let _ = sys::set_signal_mask(stopped.tid(), mask | TRAP_BIT);
        }
        stopped.set_registers(&registers).is_ok()
    }

    /// True if an int3's SIGTRAP waits behind the stop that we see.
    fn trap_is_queued(&self, stopped: &Stopped) -> bool {
        let behind_site = stopped
            .registers()
            .is_ok_and(|registers| self.sites.get(registers.pc().wrapping_sub(1)).is_some());
        behind_site && SignalState::of(stopped.tid()).pending & TRAP_BIT != 0
    }

    fn let_go_for_good(&mut self, stopped: Stopped, signal: i32) {
        if let Ok(registers) = stopped.registers() {
            self.leave_slot(&stopped, registers);
        }
        self.threads.remove(&stopped.tid());
        let _ = stopped.detach(signal);
    }
}

/// True unless the thread is blocked in a system call (`/proc/PID/syscall`, proc(5)).
fn runs(tid: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{tid}/syscall")).unwrap_or_default();
    text.starts_with("running") || text.starts_with("-1") || text.is_empty()
}
