//! The calling conventions of the System V ABI (psABI x86-64, 3.2.3) and of the Linux kernel
//! (psABI appendix A.2.1).

use super::registers::Register;

/// The breakpoint instruction.
pub const INT3: u8 = 0xcc;

/// The instruction that enters the kernel.
pub const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Where an integer or pointer argument is at a function's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// In a register.
    Register(Register),
    /// Eight bytes in memory, this many bytes above rsp at the entry (the return address is at 0).
    Stack(u64),
}

/// The registers of the first integer or pointer arguments.
pub const ARGUMENTS: [Register; 6] = [
    Register::Rdi,
    Register::Rsi,
    Register::Rdx,
    Register::Rcx,
    Register::R8,
    Register::R9,
];

/// Where an integer or pointer is returned.
pub const RETURN_VALUE: Register = Register::Rax;

/// The registers of a system call's arguments; its number is in rax, its result too.
pub const SYSCALL_ARGUMENTS: [Register; 6] = [
    Register::Rdi,
    Register::Rsi,
    Register::Rdx,
    Register::R10,
    Register::R8,
    Register::R9,
];

/// Where argument number `number` is, counted from 1; `None` for 0.
pub fn argument(number: u32) -> Option<Argument> {
    let index = number.checked_sub(1)? as usize;
    Some(match ARGUMENTS.get(index) {
        Some(register) => Argument::Register(*register),
        None => Argument::Stack(8 * (index - ARGUMENTS.len() + 1) as u64),
    })
}

/// The offset of the first `syscall` instruction's bytes in `code`, wherever they stand: the
/// kernel is entered from them although the program's own instructions may begin elsewhere.
pub fn find_syscall(code: &[u8]) -> Option<usize> {
    code.windows(2).position(|bytes| bytes == SYSCALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seventh_argument_is_above_the_return_address() {
        assert_eq!(argument(0), None);
        assert_eq!(argument(1), Some(Argument::Register(Register::Rdi)));
        assert_eq!(argument(6), Some(Argument::Register(Register::R9)));
        assert_eq!(argument(7), Some(Argument::Stack(8)));
        assert_eq!(argument(8), Some(Argument::Stack(16)));
    }

    #[test]
    fn a_syscall_is_found_by_its_bytes() {
        assert_eq!(find_syscall(&[0x90, 0x0f, 0x05, 0xc3]), Some(1));
        assert_eq!(find_syscall(&[0x0f]), None);
        assert_eq!(find_syscall(&[]), None);
    }
}
