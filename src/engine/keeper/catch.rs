//! System calls that stop a thread, at their beginning and at their end.

use super::stop::Stopped;
use super::sys::{self, Boundary};
use super::target::Target;
use crate::arch::Register;
use crate::engine::protocol::{Calls, Reason};

impl Target {
    /// Stops threads at these, and at no others.
    pub(super) fn set_calls(&mut self, calls: Calls) {
        self.calls = calls;
        for thread in self.threads.values() {
            // One that runs was let go for something else.
            if !thread.is_held() && self.is_blind(thread.tid) {
                // ESRCH: it has died, and its end is on the way.
                let _ = sys::interrupt(thread.tid);
            }
        }
    }

    /// Whether a thread must be let go so that it stops at system calls.
    pub(super) fn stops_at_calls(&self, tid: i32) -> bool {
        // A child that shares the memory for a while is another process.
        let own = |pid: i32| pid == self.pid;
        !self.calls.is_none() && self.threads.get(&tid).is_some_and(|thread| own(thread.pid))
    }

    /// True for a thread that was let go without that, and must be again.
    pub(super) fn is_blind(&self, tid: i32) -> bool {
        let thread = self.threads.get(&tid);
        self.stops_at_calls(tid) && thread.is_some_and(|thread| !thread.sees_calls)
    }

    /// A thread is at the beginning or the end of a system call; it is given back if nobody is to be
    /// told.
    pub(super) fn call_stops(&mut self, stopped: Stopped) -> Option<Stopped> {
        let tid = stopped.tid();
        let Ok(boundary) = sys::syscall_boundary(tid) else {
            return Some(stopped);
        };
        let thread = self.threads.get_mut(&tid)?;
        let (number, begins) = match boundary {
            Boundary::Entry(number) => {
                thread.in_call = Some(number);
                (number, true)
            }
            // Some calls (`rt_sigreturn`) have forgotten their number by then.
            Boundary::Exit => match thread.in_call.take() {
                Some(number) => (number, false),
                None => {
                    let registers = stopped.registers().ok();
                    let number = registers.map(|registers| registers.get(Register::OrigRax));
                    (number.unwrap_or(u64::MAX), false)
                }
            },
            Boundary::Other => return Some(stopped),
        };
        if !self.stops_at_calls(tid) || !self.calls.has(number) {
            return Some(stopped);
        }
        self.tell_stopped(stopped, 0, None, Reason::Call { number, begins });
        None
    }
}
