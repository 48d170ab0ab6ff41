//! x86-64 under the System V ABI.

mod disassemble;
mod registers;
mod relocate;

pub use disassemble::{Instruction, disassemble};
pub use registers::{Register, Registers};
pub use relocate::{Call, Displaced, INSTRUCTION_MAX, Position, RelocateError, SLOT_MAX, Slot};
