//! How a target begins: a program that is launched, or a process that is attached to.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

use super::crash::Point;
use super::memory::Memory;
use super::signals::SignalState;
use super::slots::process_of;
use super::stop::{Stop, Stopped};
use super::sys;
use super::target::{Parts, Target, failure};
use super::thread::Thread;
use crate::engine::protocol::{Call, Failure, Launch};

/// What a launched program gets that is the keeper's to know.
#[derive(Debug, Clone, Copy)]
pub struct Inheritance {
    /// The process group of the command that was typed: a launched program belongs to it, so
    /// that it may use the terminal.
    pub group: i32,
    /// The signals that were ignored when the keeper began.
    pub ignored: u64,
}

/// Attaches to all threads of a process. None of them is stopped.
pub fn attach(parts: Parts, pid: i32) -> Result<Target, Failure> {
    let mut threads = Vec::new();
    let seized = seize_all(pid, &mut threads);
    // An error leaves what was seized to the exit of this thread, which releases it.
    seized.map_err(|error| failure(Call::Seize, &error))?;
    // A leader that has ended before its other threads shows no memory.
    let leads = threads.iter().any(|thread| thread.tid == pid);
    let shown = match threads
        .iter()
        .find(|thread| leads || !sys::is_zombie(thread.tid))
    {
        Some(thread) => thread.tid,
        None => return Err(no_process()),
    };
    let memory = Memory::open(shown).map_err(|error| failure(Call::OpenMemory, &error))?;
    let mut target = Target::new(parts, pid, memory, threads);
    target.crash.pass(Point::Seized);
    target.learn_trap_action();
    target.crash.pass(Point::Attached);
    Ok(target)
}

/// Seizes thread after thread until the list of threads has no new one.
fn seize_all(pid: i32, threads: &mut Vec<Thread>) -> io::Result<()> {
    let mut known = BTreeSet::new();
    loop {
        let mut new = false;
        for tid in thread_ids(pid)? {
            if !known.insert(tid) {
                continue;
            }
            new = true;
            match sys::seize(tid) {
                Ok(()) => {}
                // A leader that has ended: its parent alone is told when the others have.
                Err(_) if tid == pid && sys::is_zombie(pid) => continue,
                // It ended between the listing and now.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) && tid != pid => continue,
                // A thread that a seized one made is seized already.
                Err(error)
                    if error.raw_os_error() == Some(libc::EPERM)
                        && !threads.is_empty()
                        && tracer_of(tid) == Some(std::process::id() as i32) => {}
                Err(error) => return Err(error),
            }
            let blocked = SignalState::of(tid).blocks_trap();
            threads.push(Thread::new(tid, pid, blocked));
        }
        if !new {
            return Ok(());
        }
    }
}

fn no_process() -> Failure {
    let call = Call::Seize;
    let errno = libc::ESRCH;
    Failure::System { call, errno }
}

fn tracer_of(tid: i32) -> Option<i32> {
    let tracer = sys::status(tid, "TracerPid:")?;
    // The tracing thread has a number of its own; what counts is its process.
    process_of(tracer.parse().ok()?)
}

/// The threads of a process, the leader first.
fn thread_ids(pid: i32) -> io::Result<Vec<i32>> {
    let mut tids: Vec<i32> = fs::read_dir(format!("/proc/{pid}/task"))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    tids.sort_unstable_by_key(|tid| (*tid != pid, *tid));
    Ok(tids)
}

/// Launches a program, and gives its one thread, which stands right behind the `execve`.
pub fn launch(
    parts: Parts,
    launch: &Launch,
    inheritance: Inheritance,
) -> Result<(Target, Stopped), Failure> {
    let strings = Strings::new(launch).ok_or(Failure::Malformed)?;
    let pipes = pipe().and_then(|go| Ok((go, pipe()?)));
    let ((go_read, go_write), (error_read, error_write)) =
        pipes.map_err(|error| failure(Call::Fork, &error))?;
    // SAFETY: the child calls only async-signal-safe functions and then executes or exits.
    let pid = match unsafe { libc::fork() } {
        -1 => return Err(failure(Call::Fork, &io::Error::last_os_error())),
        0 => child(&strings, launch, inheritance, &go_read, &error_write),
        pid => pid,
    };
    drop((go_read, error_write));
    let seized = sys::seize(pid).map_err(|error| failure(Call::Seize, &error));
    if let Err(failure) = seized {
        let _ = sys::kill(pid, libc::SIGKILL);
        let _ = sys::wait(pid, true);
        return Err(failure);
    }
    // A closed pipe tells the child to go as well.
    let _ = (&go_write).write_all(&[1]);
    drop(go_write);
    let stopped = wait_for_exec(pid, error_read)?;
    let memory = Memory::open(pid).map_err(|error| failure(Call::OpenMemory, &error))?;
    let thread = Thread::new(pid, pid, None);
    let mut target = Target::new(parts, pid, memory, vec![thread]);
    target.skip_execs = launch.skip_execs;
    Ok((target, stopped))
}

/// Waits until the child has executed the program, or says why it could not.
fn wait_for_exec(pid: i32, mut errors: File) -> Result<Stopped, Failure> {
    loop {
        let stop = match sys::wait(pid, true) {
            Ok(Some((tid, status))) => Stop::new(tid, status),
            Ok(None) => continue,
            Err(error) => return Err(failure(Call::Exec, &error)),
        };
        match stop {
            Stop::Exec(stopped) => return Ok(stopped),
            Stop::Exited(_) | Stop::Killed(_) => {
                let mut errno = [0; 4];
                let errno = match errors.read_exact(&mut errno) {
                    Ok(()) => i32::from_ne_bytes(errno),
                    Err(_) => libc::ECHILD,
                };
                let call = Call::Exec;
                return Err(Failure::System { call, errno });
            }
            Stop::Signal(stopped, signal) => drop(stopped.resume(signal)),
            Stop::Group(stopped) => drop(stopped.listen()),
            Stop::Interrupted(stopped)
            | Stop::Cloned(stopped, _)
            | Stop::Syscall(stopped)
            | Stop::Event(stopped) => {
                drop(stopped.resume(0));
            }
            Stop::Nothing => {}
        }
    }
}

fn pipe() -> io::Result<(File, File)> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    Ok((File::from(read), File::from(write)))
}

/// What `execve` needs, made before the fork: the child may not allocate.
struct Strings {
    program: CString,
    _arguments: Vec<CString>,
    _environment: Vec<CString>,
    argument_pointers: Vec<*const libc::c_char>,
    environment_pointers: Vec<*const libc::c_char>,
}

impl Strings {
    fn new(launch: &Launch) -> Option<Strings> {
        let all = |strings: &[Vec<u8>]| -> Option<Vec<CString>> {
            strings
                .iter()
                .map(|s| CString::new(s.clone()).ok())
                .collect()
        };
        let pointers = |strings: &[CString]| {
            let pointers = strings.iter().map(|s| s.as_ptr());
            pointers.chain([std::ptr::null()]).collect::<Vec<_>>()
        };
        let arguments = all(&launch.arguments)?;
        let environment = all(&launch.environment)?;
        Some(Strings {
            program: CString::new(launch.program.clone()).ok()?,
            argument_pointers: pointers(&arguments),
            environment_pointers: pointers(&environment),
            _arguments: arguments,
            _environment: environment,
        })
    }
}

/// The forked child: waits until it is seized, then becomes the program.
fn child(
    strings: &Strings,
    launch: &Launch,
    inheritance: Inheritance,
    go: &File,
    errors: &File,
) -> ! {
    // SAFETY: only async-signal-safe calls, on memory that was made before the fork.
    unsafe {
        libc::setpgid(0, inheritance.group);
        for signal in 1..65 {
            let ignored = inheritance.ignored & (1 << (signal - 1)) != 0;
            // The Rust runtime ignores SIGPIPE for itself; a program expects the default.
            let keeps = ignored && signal != libc::SIGPIPE;
            libc::signal(signal, if keeps { libc::SIG_IGN } else { libc::SIG_DFL });
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        if !launch.randomize {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        }
        if launch.stdout_to_stderr {
            libc::dup2(2, 1);
        }
        let mut byte = 0_u8;
        let into: *mut u8 = &mut byte;
        while libc::read(go.as_raw_fd(), into.cast(), 1) == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        libc::execve(
            strings.program.as_ptr(),
            strings.argument_pointers.as_ptr(),
            strings.environment_pointers.as_ptr(),
        );
        let errno = *libc::__errno_location();
        let bytes = errno.to_ne_bytes();
        libc::write(errors.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
        sys::exit_now(127)
    }
}
