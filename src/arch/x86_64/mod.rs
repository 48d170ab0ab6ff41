//! x86-64 under the System V ABI.

mod abi;
mod decode;
mod disassemble;
#[cfg(test)]
mod machine;
mod names;
mod prologue;
mod registers;
mod relocate;
mod vector;

pub use abi::{
    ARGUMENTS, Argument, INT3, RETURN_VALUE, SYSCALL, SYSCALL_ARGUMENTS, argument, find_syscall,
};
pub use decode::{Boundary, boundary, instruction_length};
pub use disassemble::{Instruction, disassemble};
pub use names::{EFLAGS, INFO_REGISTERS, MASK_REGISTERS, MXCSR, RegisterClass, register_name};
pub use prologue::{PROLOGUE_MAX, prologue};
pub use registers::{Register, Registers};
pub use relocate::{Call, Displaced, INSTRUCTION_MAX, Position, RelocateError, SLOT_MAX, Slot};
pub use vector::vector_register;
