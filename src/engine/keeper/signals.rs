//! Signals and sites: what a handler sees, and what an int3 does to a thread's signal state.

use std::fs;

use super::stop::{Stop, Stopped};
use super::sys;
use super::target::Target;
use crate::arch::{Position, Register};
use crate::engine::protocol::{Event, Tid};

/// SIGTRAP as a bit of a signal set.
pub const TRAP_BIT: u64 = 1 << (libc::SIGTRAP - 1);

/// What `/proc/PID/status` says of a thread's signals; bit n-1 is signal n.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SignalState {
    /// `SigPnd`: pending for this thread.
    pub pending: u64,
    /// `SigBlk`: blocked by this thread.
    pub blocked: u64,
    /// `SigIgn`: ignored by the process.
    pub ignored: u64,
    /// `SigCgt`: handled by the process.
    pub caught: u64,
}

impl SignalState {
    /// Reads it; all empty for a thread that is gone.
    pub fn of(tid: i32) -> SignalState {
        let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
        let set = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            value
                .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
                .unwrap_or(0)
        };
        SignalState {
            pending: set("SigPnd:"),
            blocked: set("SigBlk:"),
            ignored: set("SigIgn:"),
            caught: set("SigCgt:"),
        }
    }
}

/// Changes the address that a fault's information names (`si_addr`).
pub fn set_address(info: &mut libc::siginfo_t, address: u64) {
    // SAFETY: the union behind the three leading ints (padded to 16 bytes) of a fault's
    // information begins with `si_addr` (`<asm-generic/siginfo.h>`), and any bits are valid there.
    unsafe {
        let start: *mut libc::siginfo_t = info;
        start.cast::<u64>().add(2).write_unaligned(address);
    }
}

/// True for a signal that the thread's own instruction raised.
fn synchronous(info: &libc::siginfo_t) -> bool {
    let fault = matches!(
        info.si_signo,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGTRAP
    );
    fault && info.si_code > 0
}

impl Target {
    /// Takes a thread that is about to get a signal out of its slot, so that handlers, `longjmp`
    /// and unwinding see the program's addresses. An instruction that has not run yet is done
    /// first where that is possible; otherwise the pass is marked as counted and the thread comes
    /// by again. `None`: the thread is gone.
    pub(super) fn out_of_slot(
        &mut self,
        stopped: Stopped,
        info: &libc::siginfo_t,
    ) -> Option<Stopped> {
        let Ok(registers) = stopped.registers() else {
            return Some(stopped);
        };
        let Some((site, offset)) = self.sites.in_slot(registers.pc()) else {
            return Some(stopped);
        };
        let at = site.address;
        let slot_start = registers.pc() - offset;
        let position = site
            .slot
            .as_ref()
            .and_then(|slot| slot.code.position(offset));
        let steps = !site.displaced.is_syscall();
        if position == Some(Position::NotExecuted) && !synchronous(info) && steps {
            return self.finish_instruction(stopped, info);
        }
        let again = restarts(&registers);
        let pass = self.leave_slot(&stopped, registers);
        if let Some(thread) = self.threads.get_mut(&stopped.tid())
            && (pass.is_some() || again)
        {
            thread.mark(at, registers.sp());
        }
        // Faults that name their own instruction name the program's.
        let own = matches!(info.si_signo, libc::SIGILL | libc::SIGFPE | libc::SIGTRAP);
        if own && synchronous(info) {
            let mut info = *info;
            // SAFETY: the information is a fault's, which has an address.
            if unsafe { info.si_addr() } as u64 == slot_start {
                set_address(&mut info, at);
                let _ = sys::set_signal_info(stopped.tid(), &info);
            }
        }
        Some(stopped)
    }

    /// Steps over the instruction in the slot, then has the signal delivered behind it.
    fn finish_instruction(&mut self, stopped: Stopped, info: &libc::siginfo_t) -> Option<Stopped> {
        let tid = stopped.tid();
        let stop = stopped.step().ok()?;
        let (stopped, other) = match stop {
            Stop::Signal(stopped, libc::SIGTRAP) => (stopped, 0),
            Stop::Signal(stopped, signal) => (stopped, signal),
            Stop::Group(stopped) | Stop::Interrupted(stopped) | Stop::Event(stopped) => {
                (stopped, 0)
            }
            Stop::Cloned(stopped) | Stop::Exec(stopped) => (stopped, 0),
            Stop::Exited(code) => {
                self.gone(tid, Some(code), None);
                return None;
            }
            Stop::Killed(signal) => {
                self.gone(tid, None, Some(signal));
                return None;
            }
            Stop::Nothing => return None,
        };
        if other != 0 {
            // A second signal came first; that one is sent again.
            let _ = sys::thread_kill(self.pid, tid, other);
        }
        if let Ok(registers) = stopped.registers()
            && let Some((site, _)) = self.sites.in_slot(registers.pc())
        {
            let at = site.address;
            if self.leave_slot(&stopped, registers).is_some()
                && let Some(thread) = self.threads.get_mut(&tid)
            {
                thread.mark(at, registers.sp());
            }
        }
        let _ = sys::set_signal_info(tid, info);
        Some(stopped)
    }

    /// Undoes what the int3 did to SIGTRAP: the kernel forces the signal, and so unblocks it and
    /// takes an "ignore" away. `None`: the thread is gone.
    pub(super) fn repair_signal_state(&mut self, stopped: Stopped) -> Option<Stopped> {
        let tid = stopped.tid();
        let blocked = self
            .threads
            .get(&tid)
            .is_some_and(|thread| thread.trap_blocked);
        if blocked && let Ok(mask) = sys::signal_mask(tid) {
            let _ = sys::set_signal_mask(tid, mask | TRAP_BIT);
        }
        if !self.trap_ignored {
            return Some(stopped);
        }
        let (stopped, repaired) = self.ignore_trap(stopped);
        if !repaired && stopped.is_some() {
            let target = self.id;
            let tid = Tid(tid);
            self.front
                .event(Event::SignalStateChanged { target, tid }, None);
        }
        stopped
    }

    /// Has the thread do `rt_sigaction(SIGTRAP, SIG_IGN)`; the structure lies below its stack
    /// pointer and its red zone for that moment.
    fn ignore_trap(&mut self, stopped: Stopped) -> (Option<Stopped>, bool) {
        let Ok(registers) = stopped.registers() else {
            return (Some(stopped), false);
        };
        let Some(instruction) = self.slots.instruction(self.pid, &self.memory) else {
            return (Some(stopped), false);
        };
        const ACTION: usize = 32;
        let scratch = (registers.get(Register::Rsp) - 512) & !15;
        let mut before = [0; ACTION];
        let mut action = [0; ACTION];
        action[..8].copy_from_slice(&(libc::SIG_IGN as u64).to_le_bytes());
        if self.memory.read(scratch, &mut before).is_err()
            || self.memory.write(scratch, &action).is_err()
        {
            return (Some(stopped), false);
        }
        let call = [libc::SIGTRAP as u64, scratch, 0, 8, 0, 0];
        let number = libc::SYS_rt_sigaction as u64;
        let (stopped, result) = super::slots::inject(stopped, instruction, number, call);
        let _ = self.memory.write(scratch, &before);
        (stopped, result.is_ok_and(|answer| answer == 0))
    }
}

/// True if the kernel will go back to the `syscall` instruction (`ERESTART*`, `<linux/errno.h>`).
fn restarts(registers: &crate::arch::Registers) -> bool {
    let answer = registers.get(Register::Rax) as i64;
    let in_call = registers.get(Register::OrigRax) as i64 >= 0;
    in_call && (-516..=-512).contains(&answer)
}
