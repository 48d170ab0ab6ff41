//! A stopped thread is a value: whoever holds it may look at the thread and change it, and gives
//! it up by letting the thread go. Each kind of stop is a case of [`Stop`].

use std::io;

use super::sys::{self, Status};
use crate::arch::Registers;
use crate::engine::protocol::Birth;

/// A thread in a ptrace stop.
#[derive(Debug)]
#[must_use = "a stopped thread stays stopped until it is resumed"]
pub struct Stopped {
    tid: i32,
}

impl Stopped {
    /// The thread's id.
    pub fn tid(&self) -> i32 {
        self.tid
    }

    /// Its general registers.
    pub fn registers(&self) -> io::Result<Registers> {
        sys::registers(self.tid)
    }

    /// Changes its general registers.
    pub fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        sys::set_registers(self.tid, registers)
    }

    /// Lets it run, with a signal (0: none); only a signal stop delivers one.
    pub fn resume(self, signal: i32) -> io::Result<()> {
        sys::resume(self.tid, signal)
    }

    /// Lets it run like [`Stopped::resume`], up to the beginning or the end of a system call.
    pub fn resume_to_syscall(self, signal: i32) -> io::Result<()> {
        sys::to_syscall(self.tid, signal)
    }

    /// Leaves it, with a signal (0: none).
    pub fn detach(self, signal: i32) -> io::Result<()> {
        sys::detach(self.tid, signal)
    }

    /// Lets it do one instruction and waits for what comes of that.
    pub fn step(self) -> io::Result<Stop> {
        self.step_with(0)
    }

    /// The same with a signal (0: none). One that has a handler stops at its first instruction.
    pub fn step_with(self, signal: i32) -> io::Result<Stop> {
        sys::step(self.tid, signal)?;
        self.next()
    }

    /// Lets it run without a signal until it stops.
    pub fn run(self) -> io::Result<Stop> {
        sys::resume(self.tid, 0)?;
        self.next()
    }

    /// Lets it run to the beginning or the end of a system call, with a signal (0: none).
    pub fn run_to_syscall(self, signal: i32) -> io::Result<Stop> {
        sys::to_syscall(self.tid, signal)?;
        self.next()
    }

    /// Lets it run until it stops for an interrupt, or for something that comes first.
    pub fn run_to_interrupt(self) -> io::Result<Stop> {
        sys::interrupt(self.tid)?;
        sys::resume(self.tid, 0)?;
        self.next()
    }

    fn next(self) -> io::Result<Stop> {
        loop {
            if let Some((tid, status)) = sys::wait(self.tid, false)? {
                return Ok(Stop::new(tid, status));
            }
            // A leader that was killed is not reported before its other threads were, and those
            // are not waited for here.
            if sys::is_zombie(self.tid) {
                return Ok(Stop::Nothing);
            }
            std::thread::yield_now();
        }
    }

    /// Keeps it in the group stop that it is in.
    pub fn listen(self) -> io::Result<()> {
        sys::listen(self.tid)
    }
}

/// What happened to a thread.
#[derive(Debug)]
pub enum Stop {
    /// A signal is about to be delivered; an int3 comes this way too.
    Signal(Stopped, i32),
    /// A system call begins or ends, which only [`Stopped::run_to_syscall`] and
    /// [`Stopped::resume_to_syscall`] ask for.
    Syscall(Stopped),
    /// The process was stopped by SIGSTOP and its kin.
    Group(Stopped),
    /// An interrupt that we asked for, or a new thread's first stop.
    Interrupted(Stopped),
    /// It made a thread or a process: `PTRACE_EVENT_CLONE`, `FORK` or `VFORK`.
    Cloned(Stopped, Birth),
    /// It runs another program now.
    Exec(Stopped),
    /// Another ptrace event.
    Event(Stopped),
    /// It ended with this code.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// Nothing that matters.
    Nothing,
}

impl Stop {
    /// The thread if it stands, and the signal that it would get (0: none).
    pub fn standing(self) -> Option<(Stopped, i32)> {
        match self {
            Stop::Signal(stopped, signal) => Some((stopped, signal)),
            Stop::Syscall(stopped)
            | Stop::Group(stopped)
            | Stop::Interrupted(stopped)
            | Stop::Cloned(stopped, _)
            | Stop::Exec(stopped)
            | Stop::Event(stopped) => Some((stopped, 0)),
            Stop::Exited(_) | Stop::Killed(_) | Stop::Nothing => None,
        }
    }

    /// Sorts what `wait4` said (`ptrace(2)`, "Stopped states", for seized threads).
    pub fn new(tid: i32, status: Status) -> Stop {
        let stopped = Stopped { tid };
        match status {
            Status::Exited(code) => Stop::Exited(code),
            Status::Killed(signal) => Stop::Killed(signal),
            Status::Other => Stop::Nothing,
            Status::Stopped { signal, event: 0 } if signal == libc::SIGTRAP | 0x80 => {
                Stop::Syscall(stopped)
            }
            Status::Stopped { signal, event: 0 } => Stop::Signal(stopped, signal),
            Status::Stopped { signal, event } => match event {
                sys::EVENT_STOP if signal == libc::SIGTRAP => Stop::Interrupted(stopped),
                sys::EVENT_STOP => Stop::Group(stopped),
                libc::PTRACE_EVENT_CLONE => Stop::Cloned(stopped, Birth::Clone),
                libc::PTRACE_EVENT_FORK => Stop::Cloned(stopped, Birth::Fork),
                libc::PTRACE_EVENT_VFORK => Stop::Cloned(stopped, Birth::Vfork),
                libc::PTRACE_EVENT_EXEC => Stop::Exec(stopped),
                _ => Stop::Event(stopped),
            },
        }
    }
}
