//! The registers by gdb's names, `$al` to `$rip`, and what gdb 13 takes each for.
//!
//! gdb does not know every name of the processor's manual: the low bytes are `r8l`, not `r8b`, and
//! there is no `$eip`, `$ip` or `$flags`. `$sp` is the whole stack pointer.

use super::registers::Register;

/// What gdb takes a register for: it decides how a value is printed and computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegisterClass {
    /// `int8_t`
    Int8,
    /// `int16_t`
    Int16,
    /// `int32_t`
    Int32,
    /// `int64_t`
    Int64,
    /// `long`
    Long,
    /// `void *`
    DataPointer,
    /// `void (*)()`
    CodePointer,
    /// `i386_eflags`, 4 bytes: see [`EFLAGS`].
    Flags,
}

/// A name and the part of a general register it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterName {
    /// Without the `$`.
    pub name: &'static str,
    /// The whole register.
    pub register: Register,
    /// Which byte of it comes first (1 for `ah` and its kin, else 0).
    pub offset: u8,
    /// gdb's type.
    pub class: RegisterClass,
}

/// The general register of that name, without the `$`.
///
/// `fp` stands for rbp here; gdb computes it from the frame (it differs before the function's
/// `mov %rsp,%rbp`).
pub fn register_name(name: &str) -> Option<&'static RegisterName> {
    NAMES.iter().find(|entry| entry.name == name)
}

/// The names of the general registers and their parts.
pub fn register_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|entry| entry.name)
}

/// What `info registers` lists first, in its order. On a processor with AVX-512 `k0` to `k7`
/// ([`MASK_REGISTERS`]) follow.
pub const INFO_REGISTERS: [&str; 24] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "eflags", "cs", "ss", "ds", "es", "fs", "gs",
];

/// The mask registers of AVX-512.
pub const MASK_REGISTERS: [&str; 8] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"];

/// The bits of eflags by gdb's names. Bit 1 is always set and has none.
pub const EFLAGS: [(u8, &str); 17] = [
    (0, "CF"),
    (1, ""),
    (2, "PF"),
    (4, "AF"),
    (6, "ZF"),
    (7, "SF"),
    (8, "TF"),
    (9, "IF"),
    (10, "DF"),
    (11, "OF"),
    (14, "NT"),
    (16, "RF"),
    (17, "VM"),
    (18, "AC"),
    (19, "VIF"),
    (20, "VIP"),
    (21, "ID"),
];

/// The bits of mxcsr by gdb's names.
pub const MXCSR: [(u8, &str); 14] = [
    (0, "IE"),
    (1, "DE"),
    (2, "ZE"),
    (3, "OE"),
    (4, "UE"),
    (5, "PE"),
    (6, "DAZ"),
    (7, "IM"),
    (8, "DM"),
    (9, "ZM"),
    (10, "OM"),
    (11, "UM"),
    (12, "PM"),
    (15, "FZ"),
];

macro_rules! names {
    ($($class:ident $offset:literal: $($name:literal $register:ident),* ;)*) => {
        &[$($(RegisterName {
            name: $name,
            register: Register::$register,
            offset: $offset,
            class: RegisterClass::$class,
        }),*),*]
    };
}

const NAMES: &[RegisterName] = names! {
    Int64 0: "rax" Rax, "rbx" Rbx, "rcx" Rcx, "rdx" Rdx, "rsi" Rsi, "rdi" Rdi;
    DataPointer 0: "rbp" Rbp, "rsp" Rsp;
    Int64 0: "r8" R8, "r9" R9, "r10" R10, "r11" R11, "r12" R12, "r13" R13, "r14" R14, "r15" R15;
    CodePointer 0: "rip" Rip;
    Flags 0: "eflags" Eflags;
    Int32 0: "cs" Cs, "ss" Ss, "ds" Ds, "es" Es, "fs" Fs, "gs" Gs;
    Long 0: "fs_base" FsBase, "gs_base" GsBase, "orig_rax" OrigRax;
    Int8 0: "al" Rax, "bl" Rbx, "cl" Rcx, "dl" Rdx, "sil" Rsi, "dil" Rdi, "bpl" Rbp, "spl" Rsp,
        "r8l" R8, "r9l" R9, "r10l" R10, "r11l" R11, "r12l" R12, "r13l" R13, "r14l" R14,
        "r15l" R15;
    Int8 1: "ah" Rax, "bh" Rbx, "ch" Rcx, "dh" Rdx;
    Int16 0: "ax" Rax, "bx" Rbx, "cx" Rcx, "dx" Rdx, "si" Rsi, "di" Rdi, "bp" Rbp,
        "r8w" R8, "r9w" R9, "r10w" R10, "r11w" R11, "r12w" R12, "r13w" R13, "r14w" R14,
        "r15w" R15;
    Int32 0: "eax" Rax, "ebx" Rbx, "ecx" Rcx, "edx" Rdx, "esi" Rsi, "edi" Rdi, "ebp" Rbp,
        "esp" Rsp, "r8d" R8, "r9d" R9, "r10d" R10, "r11d" R11, "r12d" R12, "r13d" R13,
        "r14d" R14, "r15d" R15;
    CodePointer 0: "pc" Rip;
    DataPointer 0: "sp" Rsp, "fp" Rbp;
    Flags 0: "ps" Eflags;
};

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
