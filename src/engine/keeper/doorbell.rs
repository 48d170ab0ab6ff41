//! How a thread that sits in `wait4` is woken: by a child that stops itself.
//!
//! A signal to the waiting thread can arrive just before it enters the call and is lost; a child
//! that stands is seen by the next wait however late that comes.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use super::sys;

/// The side of the thread that waits: it owns the child.
pub struct Doorbell {
    pid: i32,
}

/// The side that rings, from any thread.
#[derive(Debug)]
pub struct Bell {
    pipe: File,
}

impl Bell {
    /// Wakes the waiting thread. What it should look at must be in place before.
    pub fn ring(&self) {
        // A full pipe means that the child has rings to answer already.
        let _ = (&self.pipe).write(&[0]);
    }
}

/// A pipe: its ends for the child and for [`Bell`].
pub fn pipe() -> io::Result<(OwnedFd, Bell)> {
    use nix::fcntl::OFlag;
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    nix::fcntl::fcntl(&write, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((
        read,
        Bell {
            pipe: File::from(write),
        },
    ))
}

impl Doorbell {
    /// Starts the child; the calling thread becomes the one that is woken.
    pub fn start(read: OwnedFd) -> io::Result<Doorbell> {
        // SAFETY: the child calls nothing but async-signal-safe functions and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => child(read.as_raw_fd()),
            pid => Ok(Doorbell { pid }),
        }
    }

    /// The child's id, as `wait4` tells it.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Makes it ready for the next ring. What was asked is looked at after this.
    pub fn answer(&self) {
        let _ = sys::kill(self.pid, libc::SIGCONT);
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        let _ = sys::kill(self.pid, libc::SIGKILL);
        while let Ok(Some((_, sys::Status::Stopped { .. } | sys::Status::Other))) =
            sys::wait(self.pid, true)
        {}
    }
}

/// The child: one stop for each ring, until its parent thread is gone.
fn child(pipe: i32) -> ! {
    // SAFETY: plain system calls on numbers and on a buffer of the stated size.
    unsafe {
        // A process group whose last link to its session dies gets a SIGCONT if a member stands,
        // which takes back a stop that nobody has seen yet. That is what the front's death does
        // to the keeper's group, and just then a ring must not be lost: a session of its own.
        libc::setsid();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::dup2(pipe, 0);
        sys::close_from(1);
        let mut rings = [0_u8; 64];
        loop {
            match libc::read(0, rings.as_mut_ptr().cast(), rings.len()) {
                1.. => libc::kill(libc::getpid(), libc::SIGSTOP),
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => 0,
                _ => sys::exit_now(0),
            };
        }
    }
}
