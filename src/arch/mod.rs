//! Everything that depends on the processor: registers, calling convention, decoding, relocation.
//!
//! A second architecture is a second folder beside `x86_64`; the rest of the crate uses only the
//! names that are re-exported here.

mod address;
mod x86_64;

pub use address::{FileAddress, LoadBias};
pub use x86_64::{
    ARGUMENTS, Argument, Boundary, Call, Displaced, INSTRUCTION_MAX, INT3, Instruction,
    PROLOGUE_MAX, Position, RETURN_VALUE, Register, Registers, RelocateError, SLOT_MAX, SYSCALL,
    SYSCALL_ARGUMENTS, Slot, argument, boundary, disassemble, find_syscall, instruction_length,
    prologue,
};
