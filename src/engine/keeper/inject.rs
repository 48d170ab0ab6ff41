//! Having a thread of the target do a system call for us.

use std::io;

use super::slots::process_of;
use super::stop::{Stop, Stopped};
use super::sys;
use crate::arch::{Register, Registers, SYSCALL_ARGUMENTS};

/// So many signals may come in between before we give up.
const SIGNALS: usize = 128;

/// Makes a stopped thread do one system call, and gives what it returned. All registers are as
/// before afterwards, and a system call that the thread was interrupted in will start again. A
/// signal that comes meanwhile is sent again. No single step is used: its trap would be forced on
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
    let mut late = Vec::new();
    let (stopped, result) = run_call(stopped, &mut late);
    let stopped = stopped.and_then(|stopped| back(stopped, &before, &mut late));
    for signal in late {
        let pid = process_of(tid).unwrap_or(tid);
        let _ = sys::thread_kill(pid, tid, signal);
    }
    (stopped, result)
}

/// Runs to the beginning and then to the end of the call.
fn run_call(mut stopped: Stopped, late: &mut Vec<i32>) -> (Option<Stopped>, io::Result<u64>) {
    let mut begun = false;
    loop {
        let stop = match stopped.run_to_syscall() {
            Ok(stop) => stop,
            Err(error) => return (None, Err(error)),
        };
        let boundary = matches!(stop, Stop::Syscall(_));
        let Some((next, signal)) = stop.standing() else {
            return (None, Err(io::Error::from_raw_os_error(libc::ESRCH)));
        };
        stopped = next;
        if boundary && begun {
            let result = stopped.registers().map(|r| r.get(Register::Rax));
            return (Some(stopped), result);
        }
        begun |= boundary;
        if signal != 0 {
            late.push(signal);
        }
        // SIGSYS: a filter forbids the call.
        if signal == libc::SIGSYS || late.len() > SIGNALS {
            return (
                Some(stopped),
                Err(io::Error::from_raw_os_error(libc::EPERM)),
            );
        }
    }
}

/// Puts the registers back. A call that was interrupted is started again only on the way out of
/// an interrupt, so there the thread is taken to one.
fn back(stopped: Stopped, before: &Registers, late: &mut Vec<i32>) -> Option<Stopped> {
    // ESRCH: it was killed; the next wait tells.
    let _ = stopped.set_registers(before);
    if (before.get(Register::OrigRax) as i64) < 0 {
        return Some(stopped);
    }
    let mut stop = stopped.run_to_interrupt().ok()?;
    loop {
        if let Stop::Interrupted(stopped) = stop {
            let _ = stopped.set_registers(before);
            return Some(stopped);
        }
        let (stopped, signal) = stop.standing()?;
        if signal != 0 {
            late.push(signal);
        }
        if late.len() > SIGNALS {
            return Some(stopped);
        }
        stop = stopped.run_to_interrupt().ok()?;
    }
}
