//! System calls of the program's that we have ended, and that it must not see ended.
//!
//! Some calls (`epoll_wait`, `semtimedop`, `recv` with a time-out; signal(7)) are not started again by the
//! kernel after a stop, but end with EINTR. They are begun anew here, with their whole time-out, where it
//! was us who made them end: by an interrupt, or because a thread that is traced is told of signals
//! that it ignores, which do not end a call otherwise.

use std::time::{Duration, Instant};

use super::signals::SignalState;
use super::stop::Stopped;
use super::target::Target;
use crate::arch::{Register, Registers, SYSCALL};

/// Signals that are ignored and come again and again would keep a call with a time-out from ending.
const AGAIN: Duration = Duration::from_secs(1);

/// A call that is begun anew again and again.
#[derive(Debug, Clone, Copy)]
pub struct Anew {
    /// Its instruction and its stack pointer.
    call: (u64, u64),
    since: Instant,
}

impl Target {
    /// A thread that was interrupted in a call, or entered one just then, begins it anew. Where a
    /// signal of the program's is on its way, EINTR is its due.
    pub(super) fn begin_call_again(&self, stopped: &Stopped) {
        if let Some(registers) = self.ended_call(stopped)
            && !SignalState::of(stopped.tid()).is_due()
        {
            let _ = stopped.set_registers(&registers);
        }
    }

    /// A thread goes on with a signal that the program does not take notice of (0: one that it is
    /// not given).
    pub(super) fn ignores(&mut self, stopped: &Stopped, signal: i32) {
        let tid = stopped.tid();
        let Some(registers) = self.ended_call(stopped) else {
            return;
        };
        let state = SignalState::of(tid);
        let noticed = signal > 0 && state.noticed() >> (signal - 1).min(63) & 1 != 0;
        if noticed || state.is_due() {
            return;
        }
        let call = (registers.pc(), registers.sp());
        let anew = self.threads.get_mut(&tid).map(|thread| &mut thread.anew);
        let Some(anew) = anew else {
            return;
        };
        let before = anew.filter(|before| before.call == call);
        let since = before.map_or_else(Instant::now, |before| before.since);
        *anew = (since.elapsed() < AGAIN).then_some(Anew { call, since });
        if anew.is_some() {
            let _ = stopped.set_registers(&registers);
        }
    }

    /// The registers with which a call that has ended with EINTR begins anew; `None` if there is none.
    fn ended_call(&self, stopped: &Stopped) -> Option<Registers> {
        let mut registers = stopped.registers().ok()?;
        let number = registers.get(Register::OrigRax);
        let interrupted = registers.get(Register::Rax) as i64 == -i64::from(libc::EINTR);
        if (number as i64) < 0 || !interrupted {
            return None;
        }
        let instruction = registers.pc().wrapping_sub(SYSCALL.len() as u64);
        let mut found = [0; SYSCALL.len()];
        self.memory.read(instruction, &mut found).ok()?;
        registers.set(Register::Rip, instruction);
        registers.set(Register::Rax, number);
        (found == SYSCALL).then_some(registers)
    }
}
