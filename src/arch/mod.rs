//! Everything that depends on the processor: registers, calling convention, decoding, relocation.
//!
//! A second architecture is a second folder beside `x86_64`; the rest of the crate uses only the
//! names that are re-exported here.

mod address;
mod x86_64;

pub use address::{FileAddress, LoadBias};
pub use x86_64::{Register, Registers};

pub use x86_64::{Call, Displaced, INSTRUCTION_MAX, Position, RelocateError, SLOT_MAX, Slot};

// TEMP until abi.rs comes
/// x
pub const SYSCALL_ARGUMENTS: [Register; 6] = [
    Register::Rdi,
    Register::Rsi,
    Register::Rdx,
    Register::R10,
    Register::R8,
    Register::R9,
];
/// x
pub fn find_syscall(code: &[u8]) -> Option<usize> {
    code.windows(2).position(|w| w == [0x0f, 0x05])
}
