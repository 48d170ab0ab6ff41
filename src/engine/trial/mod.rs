//! Whether the kernel lets us do what an engine needs, found out by doing it to a process of our
//! own, in a child: a filter that answers a call by killing its caller kills the child only.
//!
//! Nothing that is tried here touches another process or leaves anything behind.

mod kernel;
mod ptrace;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{IntoRawFd, OwnedFd};

use super::keeper::sys;

pub use kernel::{Bpf, Uprobe, bpf, uprobe};
pub use ptrace::{PtraceTrial, Step, may_attach, ptrace};

/// What became of one thing that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It worked.
    Done,
    /// The kernel said this (`errno`).
    Refused(i32),
    /// The trying process got this signal for it: SIGSYS from a seccomp filter.
    Killed(i32),
    /// It did not come to that: something before it failed.
    NotTried,
}

impl Outcome {
    /// Whether it worked.
    pub fn is_done(self) -> bool {
        self == Outcome::Done
    }
}

/// What a trial answers for each of its steps: 0 for success, an `errno`, or one of these.
const UNTRIED: i32 = -1;
const TRYING: i32 = -2;

/// No trial takes a noticeable time; one that hangs is ended by SIGALRM after this many seconds.
const PATIENCE: u32 = 10;

/// The child's side: each change is told at once, so that a step that kills is known.
struct Teller<const N: usize> {
    pipe: i32,
    results: [i32; N],
}

impl<const N: usize> Teller<N> {
    /// Does a step; whether it worked.
    fn step<T>(&mut self, step: usize, action: impl FnOnce() -> io::Result<T>) -> Option<T> {
        self.tell(step, TRYING);
        match action() {
            Ok(value) => {
                self.tell(step, 0);
                Some(value)
            }
            Err(error) => {
                self.tell(step, error.raw_os_error().unwrap_or(libc::EIO));
                None
            }
        }
    }

    fn tell(&mut self, step: usize, result: i32) {
        if let Some(place) = self.results.get_mut(step) {
            *place = result;
        }
        // SAFETY: the kernel reads the array, whose size is given.
        unsafe { libc::write(self.pipe, self.results.as_ptr().cast(), 4 * N) };
    }
}

/// Runs `trial` in a child and gives what became of each of its `N` steps.
fn in_child<const N: usize>(trial: impl FnOnce(&mut Teller<N>)) -> io::Result<[Outcome; N]> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let parent = std::process::id() as i32;
    // SAFETY: the child runs the trial, which makes system calls on its own memory, and exits
    // without running anything of the parent's.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            die_with(parent);
            // SAFETY: no memory is involved.
            unsafe { libc::alarm(PATIENCE) };
            let mut teller = Teller {
                pipe: write.into_raw_fd(),
                results: [UNTRIED; N],
            };
            trial(&mut teller);
            sys::exit_now(0)
        }
        child => {
            drop(write);
            Ok(collect(child, read))
        }
    }
}

/// Has the calling process, a child of `parent`, end with it.
fn die_with(parent: i32) {
    // SAFETY: no memory is involved.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            sys::exit_now(1);
        }
    }
}

fn collect<const N: usize>(child: i32, pipe: OwnedFd) -> [Outcome; N] {
    let mut pipe = File::from(pipe);
    let mut said = Vec::new();
    let _ = pipe.read_to_end(&mut said);
    let ended = sys::wait(child, true);
    let signal = match ended {
        Ok(Some((_, sys::Status::Killed(signal)))) => signal,
        _ => 0,
    };
    let last = said.chunks_exact(4 * N).next_back().unwrap_or_default();
    let mut results = [UNTRIED; N];
    for (result, bytes) in results.iter_mut().zip(last.chunks_exact(4)) {
        *result = bytes.try_into().map_or(UNTRIED, i32::from_ne_bytes);
    }
    results.map(|result| match result {
        0 => Outcome::Done,
        UNTRIED => Outcome::NotTried,
        TRYING => Outcome::Killed(signal),
        errno => Outcome::Refused(errno),
    })
}

/// Closes a descriptor that a trial got.
fn close(descriptor: libc::c_long) {
    // SAFETY: the kernel made the descriptor for us just now, and nothing else has it.
    unsafe { libc::close(descriptor as i32) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_says_and_how_it_dies_is_known() {
        let outcomes = in_child::<4>(|teller| {
            teller.step(0, || Ok(()));
            teller.step(1, || {
                Err::<(), _>(io::Error::from_raw_os_error(libc::EACCES))
            });
            teller.step(2, || sys::kill(std::process::id() as i32, libc::SIGSYS));
        });
        assert_eq!(
            outcomes.unwrap(),
            [
                Outcome::Done,
                Outcome::Refused(libc::EACCES),
                Outcome::Killed(libc::SIGSYS),
                Outcome::NotTried
            ]
        );
    }
}
