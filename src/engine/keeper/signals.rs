//! Signals and sites: what a handler sees, and what an int3 does to a thread's signal state.

use std::fs;

use super::inject::inject;
use super::slots::filtered;
use super::stop::{Stop, Stopped};
use super::sys;
use super::target::Target;
use super::thread::{Thread, TrapBlocked};
use crate::arch::{Position, Register};
use crate::engine::protocol::{Event, Tid};

/// SIGTRAP as a bit of a signal set.
pub const TRAP_BIT: u64 = 1 << (libc::SIGTRAP - 1);

/// The signals that the C library keeps for itself.
const LIBRARY: u64 = 1 << 31 | 1 << 32;

/// What a program cannot block: SIGKILL and SIGSTOP, and by way of the library its own signals.
pub const UNBLOCKABLE: u64 = LIBRARY | 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);

/// Where the interrupted rsp, and rip behind it, are above the stack pointer of `rt_sigreturn`:
/// `struct ucontext` of x86-64 begins there, whose registers begin at 40 with r8.
const SIGNAL_FRAME_RSP: u64 = 40 + 15 * 8;

/// What `/proc/PID/status` says of a thread's signals; bit n-1 is signal n.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SignalState {
    /// `SigPnd`: pending for this thread.
    pub pending: u64,
    /// `ShdPnd`: pending for the process.
    pub shared: u64,
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
        let status = sys::status_text(tid);
        let set = |name: &str| {
            let value = sys::field(&status, name);
            value
                .and_then(|hex| u64::from_str_radix(hex, 16).ok())
                .unwrap_or(0)
        };
        SignalState {
            pending: set("SigPnd:"),
            shared: set("ShdPnd:"),
            blocked: set("SigBlk:"),
            ignored: set("SigIgn:"),
            caught: set("SigCgt:"),
        }
    }
}

impl SignalState {
    /// True if a signal that the program notices will be delivered as soon as the thread runs.
    pub fn is_due(&self) -> bool {
        (self.pending | self.shared) & !self.blocked & self.noticed() != 0
    }

    /// The signals that are neither ignored nor of those that nobody notices who has no handler for
    /// them (signal(7), "Ign" and "Cont").
    pub fn noticed(&self) -> u64 {
        let unnoticed = [libc::SIGCHLD, libc::SIGURG, libc::SIGWINCH, libc::SIGCONT];
        let unnoticed = unnoticed.iter().fold(0, |set, it| set | 1_u64 << (it - 1));
        !self.ignored & (self.caught | !unnoticed)
    }

    /// What a thread blocks beside SIGTRAP if it blocks that for itself. A mask with the C library's own signals
    /// in it, which no program can block, is that of a thread which is just being made: the
    /// program's mask follows.
    pub fn blocks_trap(&self) -> TrapBlocked {
        let blocks = self.blocked & TRAP_BIT != 0 && self.blocked & LIBRARY != LIBRARY;
        blocks.then_some(self.blocked & !TRAP_BIT)
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

/// The signals that an instruction raises in its own thread.
const FAULTS: [i32; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
];

/// True for a signal that the thread's own instruction raised.
fn synchronous(info: &libc::siginfo_t) -> bool {
    FAULTS.contains(&info.si_signo) && info.si_code > 0
}

/// A stopped thread that gets no signals for the moment, but for those that its own instructions raise.
pub struct Quiet {
    mask: Option<u64>,
}

impl Quiet {
    /// Blocks what can be blocked without a change to what faults do.
    pub fn begin(tid: i32) -> Quiet {
        let own = FAULTS
            .iter()
            .fold(0, |set, signal| set | 1_u64 << (signal - 1));
        let mask = sys::signal_mask(tid).ok();
        if let Some(mask) = mask {
            let _ = sys::set_signal_mask(tid, !own | mask & own);
        }
        Quiet { mask }
    }

    /// Gives the thread its mask again.
    pub fn end(self, tid: i32) {
        if let Some(mask) = self.mask {
            let _ = sys::set_signal_mask(tid, mask);
        }
    }
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
        // A SIGCONT that comes during the step would be forgotten: the kernel takes it that the stop is
        // decided upon anew at the step's own trap (JOBCTL_STOP_DEQUEUED).
        let stops = matches!(
            info.si_signo,
            libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU
        );
        let steps = !site.displaced.is_syscall() && !site.displaced.moves_flags() && !stops;
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

    /// A thread goes on with a signal. If the signal's handler is to come back to a site whose pass
    /// is counted, its return must be seen: a `longjmp` out of it makes the next pass another one.
    pub(super) fn handler_begins(&mut self, stopped: &Stopped, signal: i32) {
        let tid = stopped.tid();
        let marked = |thread: &&mut Thread| signal != 0 && !thread.counted.is_empty();
        if let Some(thread) = self.threads.get_mut(&tid).filter(marked)
            && SignalState::of(tid).caught >> (signal - 1).clamp(0, 63) & 1 != 0
            && let Ok(registers) = stopped.registers()
        {
            thread.handler_begins(registers.pc(), registers.sp());
        }
    }

    /// A thread goes on with a SIGTRAP of its own. While its handler for that runs, SIGTRAP would be
    /// blocked, and the first hit there would cost the program its handler: at the handler's first
    /// instruction, where a step with a signal stops, it is unblocked.
    pub(super) fn go_with_trap(&mut self, stopped: Stopped) {
        let tid = stopped.tid();
        if SignalState::of(tid).caught & TRAP_BIT == 0 {
            return self.resume(stopped, libc::SIGTRAP);
        }
        match stopped.step_with(libc::SIGTRAP) {
            Ok(Stop::Signal(stopped, libc::SIGTRAP)) => {
                if let Ok(mask) = sys::signal_mask(tid) {
                    let _ = sys::set_signal_mask(tid, mask & !TRAP_BIT);
                }
                self.go(stopped, 0);
            }
            Ok(other) => self.happened(tid, other),
            // ESRCH: it was killed; the next wait tells.
            Err(_) => {}
        }
    }

    /// A thread that is watched for a handler's return begins or ends a system call.
    pub(super) fn call(&mut self, stopped: Stopped) {
        if let (Some(thread), Ok(registers)) =
            (self.threads.get_mut(&stopped.tid()), stopped.registers())
        {
            thread.calls();
            let mut back = [0; 16];
            let at = registers.sp().wrapping_add(SIGNAL_FRAME_RSP);
            if registers.get(Register::OrigRax) == libc::SYS_rt_sigreturn as u64
                && self.memory.read(at, &mut back).is_ok()
            {
                let [sp, site] = [0, 8].map(|at| {
                    let word = back.get(at..at + 8).and_then(|word| word.try_into().ok());
                    word.map_or(0, u64::from_le_bytes)
                });
                thread.handler_returns(site, sp);
            }
        }
        if let Some(stopped) = self.call_stops(stopped) {
            self.go(stopped, 0);
        }
    }

    /// Steps over the instruction in the slot, then has the signal delivered behind it.
    fn finish_instruction(&mut self, stopped: Stopped, info: &libc::siginfo_t) -> Option<Stopped> {
        let tid = stopped.tid();
        // Signals of which many wait would change their order if one was taken and sent again.
        let quiet = Quiet::begin(tid);
        let mut stop = stopped.step().ok()?;
        let mut to_stand = false;
        let (stopped, other) = loop {
            stop = match stop {
                Stop::Exited(code) => {
                    self.gone(tid, Some(code), None);
                    return None;
                }
                Stop::Killed(signal) => {
                    self.gone(tid, None, Some(signal));
                    return None;
                }
                // It cannot be blocked, nor sent again: a SIGCONT behind it would come before it.
                Stop::Signal(stopped, libc::SIGSTOP) => {
                    to_stand = true;
                    stopped.step_with(libc::SIGSTOP).ok()?
                }
                Stop::Signal(stopped, _) => {
                    let own = sys::signal_info(tid).ok();
                    break (stopped, own.filter(|own| !synchronous(own)));
                }
                // The process is stopped, or all threads are to stand: that comes before the
                // instruction has run, or before the step's trap, which waits.
                other => {
                    to_stand = true;
                    other.standing()?.0.step().ok()?
                }
            };
        };
        quiet.end(tid);
        if to_stand {
            let _ = sys::interrupt(tid);
        }
        // What the instruction raised (the step's trap, a fault) it will raise again if it is due;
        // another signal came first, and is sent again.
        if let Some(other) = other {
            let thread = self.threads.get(&tid);
            let pid = thread.map_or(self.pid, |thread| thread.pid);
            let _ = sys::send_again(pid, tid, &other);
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
        // The step's trap was forced on the thread like an int3's.
        let stopped = self.repair_signal_state(stopped)?;
        let _ = sys::set_signal_info(tid, info);
        Some(stopped)
    }

    /// Undoes what the int3 did to SIGTRAP: the kernel forces the signal, and for that unblocks it
    /// and, where it was blocked or ignored, makes its action the default. `None`: the thread is
    /// gone.
    ///
    /// A handler is put back at once. "Ignore" is not, while int3s are in: making a signal ignored
    /// throws away what is queued, in every thread, and a thread whose int3 was thrown away runs on
    /// in the middle of an instruction. Until we leave, [`Target::signal`] ignores for the program.
    pub(super) fn repair_signal_state(&mut self, stopped: Stopped) -> Option<Stopped> {
        let tid = stopped.tid();
        // What it stopped with is asked before other calls are made in it.
        self.block_trap_again(&stopped);
        let handler = self.trap_action.filter(|action| !action.ignores());
        // Threads that are not known to block SIGTRAP may have done so as well.
        let lost = handler.filter(|_| SignalState::of(tid).caught & TRAP_BIT == 0);
        let Some(action) = lost else {
            return Some(stopped);
        };
        let (stopped, repaired) = self.set_trap_action(stopped, action);
        if !repaired {
            let (target, tid) = (self.id, Tid(tid));
            let event = Event::SignalStateChanged { target, tid };
            self.front.event(event, None);
        }
        stopped
    }

    /// Blocks SIGTRAP again for a thread that does, and whose int3 has ended that. A SIGTRAP that
    /// was sent to the thread and waited took the int3's place: it is sent again, to wait on.
    pub(super) fn block_trap_again(&mut self, stopped: &Stopped) {
        let tid = stopped.tid();
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        if !thread.mask_matters() {
            return;
        }
        let Ok(mask) = sys::signal_mask(tid) else {
            return;
        };
        if !thread.blocked_trap(mask) {
            return;
        }
        let _ = sys::set_signal_mask(tid, mask | TRAP_BIT);
        let sent = |info: libc::siginfo_t| info.si_signo == libc::SIGTRAP && info.si_code <= 0;
        if sys::signal_info(tid).is_ok_and(sent) {
            let _ = sys::thread_kill(thread.pid, tid, libc::SIGTRAP);
        }
    }

    /// Finds out, at the attach, what has to be put back after hits. Nothing, for nearly all
    /// programs; a handler's address is asked of the program itself, by a thread whose system call
    /// goes on as if nothing had been.
    pub(super) fn learn_trap_action(&mut self) {
        let state = SignalState::of(self.pid);
        if state.ignored & TRAP_BIT != 0 {
            self.trap_action = Some(TrapAction::IGNORE);
            return;
        }
        if state.caught & TRAP_BIT == 0 {
            return;
        }
        let tids: Vec<i32> = self.threads.keys().copied().collect();
        let Some(tid) = tids.into_iter().find(|tid| restarts_unseen(*tid)) else {
            let target = self.id;
            let tid = Tid(self.pid);
            let event = Event::SignalStateChanged { target, tid };
            return self.front.event(event, None);
        };
        if sys::interrupt(tid).is_err() {
            return;
        }
        let Ok(Some((tid, status))) = sys::wait(tid, true) else {
            return;
        };
        match Stop::new(tid, status) {
            Stop::Interrupted(stopped) => {
                let (stopped, action) = self.get_trap_action(stopped);
                self.trap_action = action.filter(|action| !action.is_for_once());
                if let Some(stopped) = stopped {
                    self.go(stopped, 0);
                }
            }
            other => self.happened(tid, other),
        }
    }

    pub(super) fn set_trap_action(
        &mut self,
        stopped: Stopped,
        action: TrapAction,
    ) -> (Option<Stopped>, bool) {
        let (stopped, done) = self.trap_action_call(stopped, |scratch| [scratch, 0], action);
        (stopped, done.is_some())
    }

    fn get_trap_action(&mut self, stopped: Stopped) -> (Option<Stopped>, Option<TrapAction>) {
        self.trap_action_call(stopped, |scratch| [0, scratch], TrapAction::IGNORE)
    }

    /// Has a thread do `rt_sigaction(SIGTRAP, …)`; the structure lies below its stack pointer and
    /// its red zone for that moment. Gives what the structure holds afterwards.
    fn trap_action_call(
        &mut self,
        stopped: Stopped,
        new_and_old: impl FnOnce(u64) -> [u64; 2],
        action: TrapAction,
    ) -> (Option<Stopped>, Option<TrapAction>) {
        // A filter may punish a call that the program itself would not make.
        if filtered(stopped.tid()) {
            return (Some(stopped), None);
        }
        let Ok(registers) = stopped.registers() else {
            return (Some(stopped), None);
        };
        let Some(instruction) = self.slots.instruction(stopped.tid(), &self.memory) else {
            return (Some(stopped), None);
        };
        let scratch = registers.sp().wrapping_sub(512) & !15;
        let mut before = [0; TrapAction::SIZE];
        if self.memory.read(scratch, &mut before).is_err()
            || self.memory.write(scratch, &action.0).is_err()
        {
            return (Some(stopped), None);
        }
        let [new, old] = new_and_old(scratch);
        let call = [libc::SIGTRAP as u64, new, old, 8, 0, 0];
        let number = libc::SYS_rt_sigaction as u64;
        let (stopped, result) = inject(stopped, instruction, number, call);
        let mut action = TrapAction::IGNORE;
        let read = self.memory.read(scratch, &mut action.0);
        let _ = self.memory.write(scratch, &before);
        let done = read.is_ok() && result.is_ok_and(|answer| answer == 0);
        (stopped, done.then_some(action))
    }
}

/// What a program does with SIGTRAP: the kernel's `struct sigaction` of x86-64 (handler, flags,
/// restorer, mask).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrapAction([u8; TrapAction::SIZE]);

impl TrapAction {
    const SIZE: usize = 32;

    /// SIG_IGN.
    const IGNORE: TrapAction = {
        let mut bytes = [0; TrapAction::SIZE];
        bytes[0] = libc::SIG_IGN as u8;
        TrapAction(bytes)
    };

    /// True for a handler that is gone when it has run once (SA_RESETHAND).
    fn is_for_once(self) -> bool {
        let flags = self.0[8..12]
            .iter()
            .rev()
            .fold(0, |n, byte| n << 8 | i32::from(*byte));
        flags & libc::SA_RESETHAND != 0
    }

    /// True for SIG_IGN.
    pub fn ignores(self) -> bool {
        self.0[..8] == TrapAction::IGNORE.0[..8]
    }
}

/// True for a thread whose system call the kernel starts again after an interrupt, unnoticed by
/// the program (signal(7), "Interruption of system calls": what needs no time-out of its own), or
/// that is in none.
pub fn restarts_unseen(tid: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{tid}/syscall")).unwrap_or_default();
    let Some(number) = text.split_ascii_whitespace().next() else {
        return false;
    };
    if number == "running" || number == "-1" {
        return true;
    }
    [
        libc::SYS_futex,
        libc::SYS_read,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
        libc::SYS_poll,
        libc::SYS_wait4,
    ]
    .iter()
    .any(|call| number.parse() == Ok(*call))
}

/// True if the kernel will go back to the `syscall` instruction (`ERESTART*`, `<linux/errno.h>`).
fn restarts(registers: &crate::arch::Registers) -> bool {
    let answer = registers.get(Register::Rax) as i64;
    let in_call = registers.get(Register::OrigRax) as i64 >= 0;
    in_call && (-516..=-512).contains(&answer)
}
