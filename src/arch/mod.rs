//! Everything that depends on the processor: registers, calling convention, decoding, relocation.
//!
//! A second architecture is a second folder beside `x86_64`; the rest of the crate uses only the
//! names that are re-exported here.

mod address;
mod x86_64;

pub use address::{FileAddress, LoadBias};
/// Memory that the processor watches.
pub use x86_64::{
    Access, DEBUG_CONTROL, DEBUG_SLOTS, DEBUG_STATUS, DebugRegisters, debug_hits, debug_slots_for,
};
/// The calling conventions, of functions and of the kernel.
pub use x86_64::{
    Argument, INT3, RETURN_VALUE, SYSCALL, SYSCALL_ARGUMENTS, argument, find_syscall,
};
/// Instruction boundaries, prologues and text.
pub use x86_64::{Boundary, boundary, disassemble, is_padding, prologue};
/// A site's first instruction, out of line.
pub use x86_64::{Displaced, Position, SLOT_MAX, Slot};
/// The registers by gdb's names.
pub use x86_64::{
    EFLAGS, INFO_REGISTERS, MASK_REGISTERS, MXCSR, RegisterClass, register_name, register_names,
    vector_register,
};
/// The ways out of a function.
pub use x86_64::{Hook, hook};

pub use x86_64::{ExitKind, Target, exits, returns};
/// The general registers as ptrace has them.
pub use x86_64::{Register, Registers};
/// What a kernel uprobe costs on an instruction.
pub use x86_64::{UprobePrice, uprobe_price};
/// The system calls by name.
pub use x86_64::{syscall_group, syscall_name, syscall_number};
