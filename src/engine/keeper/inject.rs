//! Having a thread of the target do a system call for us.

use std::io;

use super::signals::Quiet;
use super::slots::process_of;
use super::stop::{Stop, Stopped};
use super::sys;
use crate::arch::{Register, Registers, SYSCALL_ARGUMENTS};

/// So many signals may come in between before we give up.
const SIGNALS: usize = 128;

/// Makes a stopped thread do one system call, and gives what it returned. All registers are as
/// before afterwards, and a system call that the thread was interrupted in will start again. What
/// comes meanwhile comes again: signals are sent once more, and a stop of the process or of all its
/// threads stops this one as soon as it goes on. No single step is used: its trap would be forced on
/// the thread, which changes what the program does with SIGTRAP.
///
/// The thread is not given back when it died.
pub fn inject(
    stopped: Stopped,
    instruction: u64,
    number: u64,
    arguments: [u64; 6],
) -> (Option<Stopped>, io::Result<u64>) {
    let before = match stopped.registers() {
        Ok(registers) => registers,
        Err(error) => return (Some(stopped), Err(error)),
    };
    let mut call = before;
    call.set(Register::Rip, instruction);
    call.set(Register::Rax, number);
    // Otherwise the kernel would start an interrupted call again, with our number.
    call.set(Register::OrigRax, u64::MAX);
    for (register, value) in SYSCALL_ARGUMENTS.iter().zip(arguments) {
        call.set(*register, value);
    }
    if let Err(error) = stopped.set_registers(&call) {
        return (Some(stopped), Err(error));
    }
    let tid = stopped.tid();
    let mut late = Late::default();
    let quiet = Quiet::begin(tid);
    let (stopped, result) = run_call(stopped, &mut late);
    let stopped = stopped.and_then(|stopped| back(stopped, &before, &mut late));
    quiet.end(tid);
    late.again(tid);
    (stopped, result)
}

/// What came in between and was not for us.
#[derive(Default)]
struct Late {
    signals: Vec<libc::siginfo_t>,
    /// The thread was to stand.
    stop: bool,
}

impl Late {
    fn came(&mut self, stopped: &Stopped, signal: i32) {
        if signal != 0
            && let Ok(info) = sys::signal_info(stopped.tid())
        {
            self.signals.push(info);
        }
    }

    /// So much comes that there is no end of it.
    fn is_too_much(&self) -> bool {
        self.signals.len() > SIGNALS
    }

    fn again(self, tid: i32) {
        let pid = process_of(tid).unwrap_or(tid);
        for info in &self.signals {
            let _ = sys::send_again(pid, tid, info);
        }
        if self.stop {
            let _ = sys::interrupt(tid);
        }
    }
}

/// Runs to the beginning and then to the end of the call.
fn run_call(mut stopped: Stopped, late: &mut Late) -> (Option<Stopped>, io::Result<u64>) {
    let mut begun = false;
    let mut passed = 0;
    loop {
        let stop = match stopped.run_to_syscall(passed) {
            Ok(stop) => stop,
            Err(error) => return (None, Err(error)),
        };
        let boundary = matches!(stop, Stop::Syscall(_));
        late.stop |= matches!(stop, Stop::Group(_) | Stop::Interrupted(_));
        let Some((next, signal)) = stop.standing() else {
            return (None, Err(io::Error::from_raw_os_error(libc::ESRCH)));
        };
        stopped = next;
        if boundary && begun {
            let result = stopped.registers().map(|r| r.get(Register::Rax));
            return (Some(stopped), result);
        }
        begun |= boundary;
        // SIGSYS: a filter forbids the call.
        let refused = signal == libc::SIGSYS;
        // It cannot be blocked, nor sent again: a SIGCONT behind it would come before it.
        passed = if signal == libc::SIGSTOP { signal } else { 0 };
        late.stop |= passed != 0;
        if !refused && passed == 0 {
            late.came(&stopped, signal);
        }
        if refused || late.is_too_much() {
            return (
                Some(stopped),
                Err(io::Error::from_raw_os_error(libc::EPERM)),
            );
        }
    }
}

/// Puts the registers back. A call that was interrupted is started again only on the way out of
/// an interrupt, so there the thread is taken to one.
fn back(stopped: Stopped, before: &Registers, late: &mut Late) -> Option<Stopped> {
    // ESRCH: it was killed; the next wait tells.
    let _ = stopped.set_registers(before);
    if (before.get(Register::OrigRax) as i64) < 0 {
        return Some(stopped);
    }
    let mut stop = stopped.run_to_interrupt().ok()?;
    loop {
        // In a process that is stopped an interrupt is a group stop.
        late.stop |= matches!(stop, Stop::Group(_));
        if let Stop::Interrupted(stopped) | Stop::Group(stopped) = stop {
            let _ = stopped.set_registers(before);
            return Some(stopped);
        }
        let (stopped, signal) = stop.standing()?;
        late.came(&stopped, signal);
        if late.is_too_much() {
            return Some(stopped);
        }
        stop = stopped.run_to_interrupt().ok()?;
    }
}
