//! A child process that runs single instructions for the tests.

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

/// `<linux/elf.h>`.
const NT_X86_XSTATE: libc::c_int = 0x202;

/// How long the shared mapping is.
const SIZE: usize = 0x10000;
/// Offsets in the shared mapping: the original, its slot, data, the stack, a place to jump to.
pub const AT: usize = 0x1000;
pub const SLOT: usize = 0x3000;
pub const FAR: usize = 0x5000;
pub const DATA: usize = 0x8000;
pub const STACK: usize = 0xc000;

/// A child that only exists to be run, and the memory it shares with the test.
pub struct Machine {
    pub child: Pid,
    pub base: *mut u8,
    pub start: libc::user_regs_struct,
    pub start_vectors: Vec<u8>,
}

impl Machine {
    pub fn new() -> Machine {
        // SAFETY: a new anonymous mapping.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SIZE,
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        // SAFETY: the child calls only ptrace, raise and _exit, which are safe after a fork.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => unsafe {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                libc::raise(libc::SIGSTOP);
                libc::_exit(1);
            },
            ForkResult::Parent { child } => {
                waitpid(child, None).unwrap();
                ptrace::setoptions(child, ptrace::Options::PTRACE_O_EXITKILL).unwrap();
                Machine {
                    child,
                    base: base.cast(),
                    start: ptrace::getregs(child).unwrap(),
                    start_vectors: vectors(child),
                }
            }
        }
    }

    pub fn address(&self, offset: usize) -> u64 {
        self.base as u64 + offset as u64
    }

    pub fn memory(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is SIZE long and the child is stopped whenever this is called.
        unsafe { std::slice::from_raw_parts_mut(self.base, SIZE) }
    }

    /// Memory as every run finds it: int3 all over the code, a pattern in the data.
    pub fn reset(&mut self, original: &[u8], slot: &[u8]) {
        let far = self.address(FAR);
        let data = self.address(DATA);
        let memory = self.memory();
        memory[..DATA].fill(0xcc);
        for (i, byte) in memory[DATA..].iter_mut().enumerate() {
            *byte = (i * 7 + 3) as u8;
        }
        memory[AT..AT + original.len()].copy_from_slice(original);
        memory[SLOT..SLOT + slot.len()].copy_from_slice(slot);
        // What a return, an indirect jump and a `pop` find.
        memory[STACK..STACK + 8].copy_from_slice(&far.to_le_bytes());
        memory[DATA..DATA + 8].copy_from_slice(&far.to_le_bytes());
        memory[DATA + 8..DATA + 16].copy_from_slice(&data.to_le_bytes());
    }

    pub fn registers(&self, case: &Case) -> libc::user_regs_struct {
        let mut r = self.start;
        r.orig_rax = u64::MAX;
        r.rax = 0x1111_2222_3333_4444;
        r.rbx = 0x5555_6666_7777_8888;
        r.rcx = 3;
        r.rdx = 0x0102_0304_0506_0708;
        r.rsi = self.address(DATA + 0x100);
        r.rdi = self.address(DATA + 0x200);
        r.rbp = self.address(STACK + 0x100);
        r.rsp = self.address(STACK);
        r.r8 = self.address(FAR);
        r.r9 = 0x99;
        r.r10 = 0x1010;
        r.r11 = 0x1111;
        r.r12 = 0x1212;
        r.r13 = 0x1313;
        r.r14 = 0x1414;
        r.r15 = 0x1515;
        r.eflags = 0x202 | case.flags;
        if let Some(rcx) = case.rcx {
            r.rcx = rcx;
        }
        if let Some(rax) = case.rax {
            r.rax = rax;
        }
        r
    }

    /// Runs from `offset` to the next int3. The stop's signal tells a trap from a fault.
    pub fn run(&mut self, offset: usize, case: &Case) -> Outcome {
        let mut registers = self.registers(case);
        registers.rip = self.address(offset);
        ptrace::setregs(self.child, registers).unwrap();
        set_vectors(self.child, &self.start_vectors);
        ptrace::cont(self.child, None).unwrap();
        let signal = match waitpid(self.child, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::Stopped(_, signal) => signal,
            other => panic!("{}: {other:?}", case.name),
        };
        let registers = ptrace::getregs(self.child).unwrap();
        Outcome {
            signal,
            registers,
            vectors: vectors(self.child),
            memory: self.memory()[DATA..].to_vec(),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(self.child, Signal::SIGKILL);
        let _ = waitpid(self.child, Some(WaitPidFlag::__WALL));
        // SAFETY: the mapping made in `new`.
        unsafe { libc::munmap(self.base.cast(), SIZE) };
    }
}

fn vectors(child: Pid) -> Vec<u8> {
    let mut buffer = vec![0u8; 1 << 14];
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: `part` describes `buffer`.
    let result = unsafe {
        libc::ptrace(
            libc::PTRACE_GETREGSET,
            child.as_raw(),
            NT_X86_XSTATE,
            &mut part,
        )
    };
    assert_eq!(result, 0);
    buffer.truncate(part.iov_len);
    // The address of the last x87 instruction is allowed to be the slot's.
    buffer[8..16].fill(0);
    buffer
}

fn set_vectors(child: Pid, start: &[u8]) {
    let mut state = start.to_vec();
    for (i, byte) in state[160..160 + 256].iter_mut().enumerate() {
        *byte = (i * 5 + 1) as u8;
    }
    // x87, SSE and AVX in use, the upper halves of ymm zero.
    state[512] |= 7;
    state[576..576 + 256].fill(0);
    let mut part = libc::iovec {
        iov_base: state.as_mut_ptr().cast(),
        iov_len: state.len(),
    };
    // SAFETY: `part` describes `state`.
    let result = unsafe {
        libc::ptrace(
            libc::PTRACE_SETREGSET,
            child.as_raw(),
            NT_X86_XSTATE,
            &mut part,
        )
    };
    assert_eq!(result, 0);
}

#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub signal: Signal,
    pub registers: libc::user_regs_struct,
    pub vectors: Vec<u8>,
    pub memory: Vec<u8>,
}

pub struct Case {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub flags: u64,
    pub rcx: Option<u64>,
    pub rax: Option<u64>,
}
