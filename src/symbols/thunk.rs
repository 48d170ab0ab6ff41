//! C++ thunks: which only pass a call on, and which bear a copy of the method's body.
//!
//! gcc at -O1 and above copies a small body into `_ZThn…`: calls through the second base class
//! then never reach the method itself. A thunk that passes on reaches it, and would count twice.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

/// The longest adjustment: `endbr64`, three for a virtual base, three for the result's.
const LONGEST: usize = 12;

/// Whether the thunk's code passes the call on to the method at `target`.
///
/// `code` begins at the file address `address`; `is_target` says whether an address is the
/// method's entry or a stub that leads there.
pub fn passes_on(code: &[u8], address: u64, is_target: impl Fn(u64) -> bool) -> bool {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    for _ in 0..LONGEST {
        if !decoder.can_decode() {
            return false;
        }
        decoder.decode_out(&mut instruction);
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch => return is_target(instruction.near_branch_target()),
            // Through the GOT (-fno-plt): the pointer's symbol is not looked up, an adjustment was all there was.
            FlowControl::IndirectBranch => {
                return instruction.is_ip_rel_memory_operand()
                    || instruction.op0_kind() == OpKind::Register;
            }
            // A covariant thunk calls the method and adjusts what it returns.
            FlowControl::Call => return is_target(instruction.near_branch_target()),
            FlowControl::Next if adjusts(&instruction) => {}
            _ => return false,
        }
    }
    false
}

/// An instruction that only moves `this`, or makes room for a covariant thunk's call.
fn adjusts(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Endbr64 | Mnemonic::Nop | Mnemonic::Push => true,
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Lea | Mnemonic::Mov | Mnemonic::Movsxd => {
            instruction.op0_kind() == OpKind::Register
                && instruction.code() != Code::INVALID
                && matches!(
                    instruction.op0_register(),
                    Register::RDI
                        | Register::RAX
                        | Register::R10
                        | Register::R11
                        | Register::RSP
                        | Register::RBP
                )
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_code() {
        // sub $0x10,%rdi; jmp +0
        let passing = [0x48, 0x83, 0xef, 0x10, 0xeb, 0x00];
        assert!(passes_on(&passing, 0x1000, |target| target == 0x1006));
        assert!(!passes_on(&passing, 0x1000, |target| target == 0x2000));
        // mov -8(%rdi),%eax; ret
        let body = [0x8b, 0x47, 0xf8, 0xc3];
        assert!(!passes_on(&body, 0x1000, |_| true));
        // mov (%rdi),%r10; add -24(%r10),%rdi; jmp +0
        let virtual_base = [0x4c, 0x8b, 0x17, 0x49, 0x03, 0x7a, 0xe8, 0xeb, 0x00];
        assert!(passes_on(&virtual_base, 0x1000, |target| target == 0x1009));
        assert!(!passes_on(&[], 0, |_| true));
    }
}
