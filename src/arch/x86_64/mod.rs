//! x86-64 under the System V ABI.

mod abi;
mod debug;
mod decode;
mod disassemble;
mod exits;
mod hook;
#[cfg(test)]
mod machine;
mod names;
mod prologue;
mod registers;
mod relocate;
mod syscalls;
mod uprobe;
mod vector;

pub use abi::{Argument, INT3, RETURN_VALUE, SYSCALL, SYSCALL_ARGUMENTS, argument, find_syscall};
pub use debug::{
    Access, DEBUG_CONTROL, DEBUG_SLOTS, DEBUG_STATUS, DebugRegisters, debug_hits, debug_slots_for,
};
pub use decode::{Boundary, boundary, is_padding};
pub use disassemble::disassemble;
pub use exits::{ExitKind, Target, exits, returns};
pub use hook::{Hook, hook};
pub use names::{
    EFLAGS, INFO_REGISTERS, MASK_REGISTERS, MXCSR, RegisterClass, register_name, register_names,
};
pub use prologue::prologue;
pub use registers::{Register, Registers};
pub use relocate::{Displaced, Position, SLOT_MAX, Slot};
pub use syscalls::{syscall_group, syscall_name, syscall_number};
pub use uprobe::{UprobePrice, uprobe_price};
pub use vector::vector_register;
