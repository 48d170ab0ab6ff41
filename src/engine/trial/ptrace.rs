//! Attaching, tried on a child of our own; and whether another process would let us.

use std::io;

use super::{Outcome, Teller, die_with, in_child};
use crate::engine::keeper::memory::Memory;
use crate::engine::keeper::sys;

/// What the ptrace engine does to a target, in the order in which it is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A page that may be executed: slots live in one.
    ExecutablePage,
    /// The process to try it on.
    Fork,
    /// `PTRACE_SEIZE`.
    Seize,
    /// `PTRACE_INTERRUPT`, and the stop that follows.
    Stop,
    /// `PTRACE_GETREGS`.
    Registers,
    /// `process_vm_readv`, the cheap way to read.
    ReadVectored,
    /// `/proc/PID/mem`, opened for reading and writing.
    OpenMemory,
    /// A write to memory that the process itself may not write, as its text is.
    WriteText,
}

/// The outcome of every [`Step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtraceTrial([Outcome; 8]);

impl PtraceTrial {
    /// What became of a step.
    pub fn of(&self, step: Step) -> Outcome {
        self.0[step as usize]
    }

    /// The step that keeps every target from being traced, and what became of it: the first that
    /// is needed and was refused, or any that gets its caller killed, as it would the engine.
    pub fn failure(&self) -> Option<(Step, Outcome)> {
        use Step::*;
        let all = [
            ExecutablePage,
            Fork,
            Seize,
            Stop,
            Registers,
            ReadVectored,
            OpenMemory,
            WriteText,
        ];
        let needed = |step: &Step| !matches!(step, ExecutablePage | ReadVectored);
        let with = |step: Step| (step, self.of(step));
        let killed = |(_, outcome): &(Step, Outcome)| matches!(outcome, Outcome::Killed(_));
        all.into_iter().map(with).find(killed).or_else(|| {
            all.into_iter()
                .filter(needed)
                .map(with)
                .find(|(_, outcome)| !outcome.is_done())
        })
    }

    /// The same with given outcomes.
    #[cfg(test)]
    pub fn with(outcomes: [Outcome; 8]) -> PtraceTrial {
        PtraceTrial(outcomes)
    }
}

const PAGE: usize = 4096;

/// Seizes, stops, reads and writes a child of a child.
pub fn ptrace() -> PtraceTrial {
    match in_child(attach_to_child) {
        Ok(outcomes) => PtraceTrial(outcomes),
        Err(error) => {
            let mut outcomes = [Outcome::NotTried; 8];
            outcomes[Step::Fork as usize] =
                Outcome::Refused(error.raw_os_error().unwrap_or(libc::EIO));
            PtraceTrial(outcomes)
        }
    }
}

fn attach_to_child(teller: &mut Teller<8>) {
    // What the kernel refuses to map executable is mapped without, for the steps behind it.
    let page = teller
        .step(Step::ExecutablePage as usize, || {
            map(libc::PROT_READ | libc::PROT_EXEC)
        })
        .or_else(|| map(libc::PROT_READ).ok());
    let Some(child) = teller.step(Step::Fork as usize, sleeper) else {
        return;
    };
    on_child(teller, child, page);
    let _ = sys::kill(child, libc::SIGKILL);
    while let Ok(Some((_, sys::Status::Stopped { .. } | sys::Status::Other))) =
        sys::wait(child, true)
    {}
}

fn on_child(teller: &mut Teller<8>, child: i32, page: Option<u64>) -> Option<()> {
    teller.step(Step::Seize as usize, || sys::seize(child))?;
    teller.step(Step::Stop as usize, || {
        sys::interrupt(child)?;
        match sys::wait(child, true)? {
            Some((_, sys::Status::Stopped { .. })) => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    })?;
    teller.step(Step::Registers as usize, || sys::registers(child))?;
    let page = page?;
    let mut byte = [0xff];
    teller.step(Step::ReadVectored as usize, || {
        sys::read_vectored(child, &[sys::remote(page, 1)], &mut byte)
    });
    let memory = teller.step(Step::OpenMemory as usize, || Memory::open(child))?;
    teller.step(Step::WriteText as usize, || {
        let fault = |_| io::Error::from_raw_os_error(libc::EFAULT);
        memory.write_text(page, &[0xcc]).map_err(fault)?;
        memory.read(page, &mut byte).map_err(fault)?;
        match byte {
            [0xcc] => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        }
    })
}

/// A private page of our own.
fn map(protection: i32) -> io::Result<u64> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at a place that the kernel chooses.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(page as u64)
    }
}

/// A child that does nothing until it is killed.
fn sleeper() -> io::Result<i32> {
    let parent = std::process::id() as i32;
    // SAFETY: the child makes nothing but system calls.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            die_with(parent);
            loop {
                // SAFETY: no memory is involved.
                unsafe { libc::pause() };
            }
        }
        child => Ok(child),
    }
}

/// Whether the kernel would let us attach to a thread, asked without attaching: the read of
/// another process's memory is checked by the same rule (ptrace(2), "Ptrace access mode checking",
/// PTRACE_MODE_ATTACH_REALCREDS), and address 0 is never there.
pub fn may_attach(tid: i32) -> Outcome {
    let asked = in_child::<1>(|teller| {
        teller.step(0, || {
            let mut byte = [0];
            match sys::read_vectored(tid, &[sys::remote(0, 1)], &mut byte) {
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(()),
                other => other.map(drop),
            }
        });
    });
    match asked {
        // Without that call, opening the memory is checked by nearly the same rule.
        Ok([Outcome::Refused(libc::ENOSYS) | Outcome::Killed(_)]) => match Memory::open(tid) {
            Ok(_) => Outcome::Done,
            Err(error) => Outcome::Refused(error.raw_os_error().unwrap_or(libc::EIO)),
        },
        Ok([outcome]) => outcome,
        Err(error) => Outcome::Refused(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_of_ours_can_be_traced_or_the_step_is_named() {
        let trial = ptrace();
        // Where tests run in a sandbox without ptrace the outcome says so; nothing hangs.
        if trial.of(Step::Seize).is_done() {
            assert_eq!(trial.failure(), None, "{trial:?}");
        } else {
            assert_eq!(trial.failure().map(|(step, _)| step), Some(Step::Seize));
        }
    }

    #[test]
    fn a_process_that_is_not_there_is_not_permitted_but_absent() {
        // Beyond the largest process number there can be (proc_sys_kernel(5), pid_max).
        assert_eq!(may_attach(1 << 23), Outcome::Refused(libc::ESRCH));
    }
}
