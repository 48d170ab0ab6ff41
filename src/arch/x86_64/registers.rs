//! The general registers as ptrace hands them over.

use serde::{Deserialize, Serialize};

/// The registers of `struct user_regs_struct` (`<sys/user.h>`), in its order.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Register {
    R15,
    R14,
    R13,
    R12,
    Rbp,
    Rbx,
    R11,
    R10,
    R9,
    R8,
    Rax,
    Rcx,
    Rdx,
    Rsi,
    Rdi,
    OrigRax,
    Rip,
    Cs,
    Eflags,
    Rsp,
    Ss,
    FsBase,
    GsBase,
    Ds,
    Es,
    Fs,
    Gs,
}

/// The general registers of one stopped thread: the words of `struct user_regs_struct`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Registers(pub [u64; Registers::COUNT]);

impl Registers {
    /// How many words `struct user_regs_struct` has.
    pub const COUNT: usize = 27;

    /// The value of one register.
    pub fn get(&self, register: Register) -> u64 {
        self.0[register as usize]
    }

    /// Changes one register.
    pub fn set(&mut self, register: Register, value: u64) {
        self.0[register as usize] = value;
    }

    /// The address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.get(Register::Rip)
    }

    /// The stack pointer.
    pub fn sp(&self) -> u64 {
        self.get(Register::Rsp)
    }
}
