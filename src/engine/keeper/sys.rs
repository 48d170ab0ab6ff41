//! The system calls of the keeper, as thin as they are.
//!
//! Signals are raw numbers throughout: nix's `Signal` has no realtime signals.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use crate::arch::Registers;

/// What `waitpid` said of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It ended with this code.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// It stands: the signal, and the ptrace event number (0 for none).
    Stopped {
        /// The raw signal number.
        signal: i32,
        /// `PTRACE_EVENT_*`.
        event: i32,
    },
    /// Anything else (continued).
    Other,
}

impl Status {
    /// Reads the status word (`waitpid(2)`, `ptrace(2)`).
    pub fn decode(status: i32) -> Status {
        if libc::WIFEXITED(status) {
            Status::Exited(libc::WEXITSTATUS(status))
        } else if libc::WIFSIGNALED(status) {
            Status::Killed(libc::WTERMSIG(status))
        } else if libc::WIFSTOPPED(status) {
            Status::Stopped {
                signal: libc::WSTOPSIG(status),
                event: status >> 16,
            }
        } else {
            Status::Other
        }
    }
}

/// `PTRACE_EVENT_STOP`: a group stop, an interrupt, or a new thread's first stop.
pub const EVENT_STOP: i32 = libc::PTRACE_EVENT_STOP;

/// `SI_KERNEL`: the `si_code` of an int3.
pub const SI_KERNEL: i32 = 0x80;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A ptrace request whose `addr` and `data` are plain numbers.
fn ptrace(request: libc::c_uint, tid: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: none of the requests made through this function writes through its arguments.
    check(unsafe { libc::ptrace(request, tid, address, data) }).map(drop)
}

/// `PTRACE_SEIZE` with the events that the keeper needs.
pub fn seize(tid: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACESYSGOOD;
    ptrace(libc::PTRACE_SEIZE, tid, 0, options as usize)
}

/// Lets a stopped thread run, delivering `signal` (0: none).
pub fn resume(tid: i32, signal: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Lets a stopped thread do one instruction, delivering `signal` (0: none).
pub fn step(tid: i32, signal: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_SINGLESTEP, tid, 0, signal as usize)
}

/// Lets a stopped thread run to the beginning or the end of its next system call,
/// delivering `signal` (0: none).
pub fn to_syscall(tid: i32, signal: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_SYSCALL, tid, 0, signal as usize)
}

/// Lets a thread in a group stop stay there, until something happens.
pub fn listen(tid: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Asks a thread to stop.
pub fn interrupt(tid: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Leaves a stopped thread, delivering `signal` (0: none).
pub fn detach(tid: i32, signal: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_DETACH, tid, 0, signal as usize)
}

/// The general registers of a stopped thread.
pub fn registers(tid: i32) -> io::Result<Registers> {
    let mut registers = Registers::default();
    let out: *mut Registers = &mut registers;
    // SAFETY: `Registers` has the size and layout of `user_regs_struct`, which is what is written.
    check(unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0, out) })?;
    Ok(registers)
}

/// Changes the general registers of a stopped thread.
pub fn set_registers(tid: i32, registers: &Registers) -> io::Result<()> {
    let from: *const Registers = registers;
    // SAFETY: the kernel reads one `user_regs_struct`, whose layout `Registers` has.
    check(unsafe { libc::ptrace(libc::PTRACE_SETREGS, tid, 0, from) }).map(drop)
}

/// The XSAVE area of a stopped thread (NT_X86_XSTATE).
pub fn xstate(tid: i32) -> io::Result<Vec<u8>> {
    const NT_X86_XSTATE: usize = 0x202;
    let mut bytes = vec![0_u8; 16 * 1024];
    let mut range = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let out: *mut libc::iovec = &mut range;
    // SAFETY: the kernel writes at most `iov_len` bytes and the length it wrote.
    check(unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, out) })?;
    bytes.truncate(range.iov_len);
    Ok(bytes)
}

/// The signal that a thread stopped with.
pub fn signal_info(tid: i32) -> io::Result<libc::siginfo_t> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel writes one `siginfo_t`; all-zero is a valid one before that.
    unsafe {
        check(libc::ptrace(
            libc::PTRACE_GETSIGINFO,
            tid,
            0,
            info.as_mut_ptr(),
        ))?;
        Ok(info.assume_init())
    }
}

/// Changes the signal that a stopped thread will get.
pub fn set_signal_info(tid: i32, info: &libc::siginfo_t) -> io::Result<()> {
    let from: *const libc::siginfo_t = info;
    // SAFETY: the kernel reads one `siginfo_t`.
    check(unsafe { libc::ptrace(libc::PTRACE_SETSIGINFO, tid, 0, from) }).map(drop)
}

/// The number that belongs to the thread's last ptrace event: the new child's id, or the old id
/// of a thread that has called `execve`.
pub fn event_message(tid: i32) -> io::Result<i32> {
    let mut message: libc::c_ulong = 0;
    let out: *mut libc::c_ulong = &mut message;
    // SAFETY: the kernel writes one `unsigned long`.
    check(unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, out) })?;
    Ok(message as i32)
}

/// The signal mask of a stopped thread, bit n-1 for signal n.
pub fn signal_mask(tid: i32) -> io::Result<u64> {
    let mut mask = 0_u64;
    let out: *mut u64 = &mut mask;
    // SAFETY: the kernel writes the 8 bytes that `addr` states.
    check(unsafe { libc::ptrace(libc::PTRACE_GETSIGMASK, tid, 8, out) })?;
    Ok(mask)
}

/// Changes the signal mask of a stopped thread.
pub fn set_signal_mask(tid: i32, mask: u64) -> io::Result<()> {
    let from: *const u64 = &mask;
    // SAFETY: the kernel reads the 8 bytes that `addr` states.
    check(unsafe { libc::ptrace(libc::PTRACE_SETSIGMASK, tid, 8, from) }).map(drop)
}

/// Writes one word with ptrace, which lets a stack grow where `process_vm_writev` does not.
pub fn poke(tid: i32, address: u64, word: u64) -> io::Result<()> {
    ptrace(libc::PTRACE_POKEDATA, tid, address as usize, word as usize)
}

/// Where in a system call a thread stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// At its beginning; its number.
    Entry(u64),
    /// At its end.
    Exit,
    /// Nowhere.
    Other,
}

/// What a thread's system call stop is for (`PTRACE_GET_SYSCALL_INFO`, ptrace(2)).
pub fn syscall_boundary(tid: i32) -> io::Result<Boundary> {
    const PTRACE_GET_SYSCALL_INFO: libc::c_uint = 0x420e;
    const ENTRY: u8 = 1;
    const EXIT: u8 = 2;
    /// Where the number is in `struct ptrace_syscall_info`.
    const NUMBER: usize = 24;
    let mut info = [0_u8; 88];
    let out: *mut u8 = info.as_mut_ptr();
    // SAFETY: the kernel writes at most as many bytes as `addr` states.
    check(unsafe { libc::ptrace(PTRACE_GET_SYSCALL_INFO, tid, info.len(), out) })?;
    let word = info.get(NUMBER..NUMBER + 8);
    let number = word.and_then(|word| word.try_into().ok());
    Ok(match info[0] {
        ENTRY => Boundary::Entry(number.map_or(u64::MAX, u64::from_ne_bytes)),
        EXIT => Boundary::Exit,
        _ => Boundary::Other,
    })
}

/// Where a debug register is in what `PTRACE_PEEKUSER` shows.
fn debug_offset(register: usize) -> usize {
    std::mem::offset_of!(libc::user, u_debugreg) + register * size_of::<u64>()
}

/// One debug register of a stopped thread.
pub fn debug_register(tid: i32, register: usize) -> io::Result<u64> {
    let mut word = 0_u64;
    let out: *mut u64 = &mut word;
    let offset = debug_offset(register);
    // SAFETY: the system call itself (unlike the C library's function) writes one word to `out`.
    check(unsafe { libc::syscall(libc::SYS_ptrace, libc::PTRACE_PEEKUSER, tid, offset, out) })?;
    Ok(word)
}

/// Changes one debug register of a stopped thread.
pub fn set_debug_register(tid: i32, register: usize, value: u64) -> io::Result<()> {
    ptrace(
        libc::PTRACE_POKEUSER,
        tid,
        debug_offset(register),
        value as usize,
    )
}

/// The address of a stopped thread's rseq area (`rseq(2)`); `None` if it registered none.
pub fn rseq_address(tid: i32) -> Option<u64> {
    #[repr(C)]
    #[derive(Default)]
    struct Configuration {
        pointer: u64,
        size: u32,
        signature: u32,
        flags: u32,
        pad: u32,
    }
    const PTRACE_GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;
    let mut configuration = Configuration::default();
    let out: *mut Configuration = &mut configuration;
    let size = size_of::<Configuration>();
    // SAFETY: the kernel writes at most `size` bytes.
    let result = unsafe { libc::ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, size, out) };
    (result > 0 && configuration.pointer != 0).then_some(configuration.pointer)
}

/// `/proc/TID/status`, empty for a thread that is gone. A thread's name is any bytes, and may be cut
/// inside of a character.
pub fn status_text(tid: i32) -> String {
    let bytes = std::fs::read(format!("/proc/{tid}/status")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The value of the field `name`, which ends in a colon, of such a text.
pub fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim())
}

/// One field of `/proc/TID/status`.
pub fn status(tid: i32, name: &str) -> Option<String> {
    field(&status_text(tid), name).map(String::from)
}

/// True if a thread has ended and was not waited for yet (`/proc/TID/stat`, third field; the second
/// is its name, in parentheses).
pub fn is_zombie(tid: i32) -> bool {
    let stat = std::fs::read(format!("/proc/{tid}/stat")).unwrap_or_default();
    let name_ends = stat.iter().rposition(|byte| *byte == b')');
    let state = name_ends.and_then(|at| stat.get(at + 2));
    state.is_none_or(|state| matches!(state, b'Z' | b'X'))
}

/// Waits for any child of this thread.
pub fn wait_any(blocking: bool) -> io::Result<Option<(i32, Status)>> {
    wait(-1, blocking)
}

/// Waits for one child; `None` when it has nothing to say and `blocking` is false.
pub fn wait(tid: i32, blocking: bool) -> io::Result<Option<(i32, Status)>> {
    let mut status = 0;
    let mut flags = libc::__WALL | libc::__WNOTHREAD | libc::WUNTRACED;
    if !blocking {
        flags |= libc::WNOHANG;
    }
    loop {
        // SAFETY: the kernel writes one `int`.
        let child = unsafe { libc::waitpid(tid, &mut status, flags) };
        if child > 0 {
            return Ok(Some((child, Status::decode(status))));
        }
        if child == 0 {
            return Ok(None);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Sends a signal to one thread.
pub fn thread_kill(pid: i32, tid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) }).map(drop)
}

/// Sends a signal that was taken from a thread to it again, with all that it says where the kernel
/// lets another process do that (`rt_sigqueueinfo(2)`: not what `kill` and the kernel itself send).
pub fn send_again(pid: i32, tid: i32, info: &libc::siginfo_t) -> io::Result<()> {
    let signal = info.si_signo;
    let from: *const libc::siginfo_t = info;
    // SAFETY: the kernel reads one `siginfo_t`.
    match check(unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, from) }) {
        Ok(_) => Ok(()),
        Err(_) => thread_kill(pid, tid, signal),
    }
}

/// True for a thread that has not been waited for yet. A process is one, too.
pub fn exists(tid: i32) -> bool {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syscall(libc::SYS_tkill, tid, 0) }).is_ok()
}

/// Sends a signal to a process.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(libc::c_long::from(unsafe { libc::kill(pid, signal) })).map(drop)
}

/// True if both processes have one address space (`kcmp(2)`, KCMP_VM).
pub fn same_memory(a: i32, b: i32) -> bool {
    const KCMP_VM: i32 = 1;
    // SAFETY: no memory is involved.
    unsafe { libc::syscall(libc::SYS_kcmp, a, b, KCMP_VM, 0, 0) == 0 }
}

/// Runs this thread on one processor only, or on all again.
pub fn run_on(cpu: Option<u32>) {
    // SAFETY: a `cpu_set_t` is plain bits, and the kernel reads one.
    unsafe {
        let mut set: libc::cpu_set_t = MaybeUninit::zeroed().assume_init();
        match cpu {
            Some(cpu) => libc::CPU_SET(cpu as usize % libc::CPU_SETSIZE as usize, &mut set),
            None => (0..libc::CPU_SETSIZE as usize).for_each(|cpu| libc::CPU_SET(cpu, &mut set)),
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// One piece of `process_vm_readv`: where it is in the target, and how many bytes.
pub type Remote = libc::iovec;

/// A range of the target's memory.
pub fn remote(address: u64, length: usize) -> Remote {
    libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: length,
    }
}

/// Reads several ranges into `buf`, one behind the other; gives how many bytes came.
pub fn read_vectored(pid: i32, ranges: &[Remote], buf: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: buf.as_mut_ptr().cast(),
        iov_len: buf.len(),
    };
    // SAFETY: the kernel writes at most `buf.len()` bytes into `buf`; the remote addresses are
    // looked up in the other process.
    let read =
        unsafe { libc::process_vm_readv(pid, &local, 1, ranges.as_ptr(), ranges.len() as u64, 0) };
    check(read as libc::c_long).map(|bytes| bytes as usize)
}

/// Writes one range; gives how many bytes went.
pub fn write_vectored(pid: i32, address: u64, bytes: &[u8]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let target = remote(address, bytes.len());
    // SAFETY: the kernel only reads `bytes`.
    let wrote = unsafe { libc::process_vm_writev(pid, &local, 1, &target, 1, 0) };
    check(wrote as libc::c_long).map(|bytes| bytes as usize)
}

/// Ends the calling thread's part of a forked child, without running anything of the parent's.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` is async-signal-safe and does not return.
    unsafe { libc::_exit(code) }
}

/// The calling thread.
pub fn own_tid() -> i32 {
    // SAFETY: no memory is involved.
    unsafe { libc::gettid() }
}

/// Closes every descriptor from `first` on; only for a forked child.
pub fn close_from(first: RawFd) {
    // SAFETY: the child uses no descriptor from `first` on afterwards.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}
