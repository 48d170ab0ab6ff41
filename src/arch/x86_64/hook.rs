//! Jumps that other tools write over a function's first instructions.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// Where such a jump goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// To this address.
    To(u64),
    /// To an address in memory.
    Elsewhere,
}

/// The unconditional jump that `code` at `address` begins with, if it does: direct, through memory, or
/// through a register that is loaded with a constant in front of it.
pub fn hook(code: &[u8], address: u64) -> Option<Hook> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    decoder.decode_out(&mut instruction);
    if instruction.mnemonic() == Mnemonic::Endbr64 {
        decoder.decode_out(&mut instruction);
    }
    if let (Mnemonic::Mov, OpKind::Immediate64) = (instruction.mnemonic(), instruction.op1_kind()) {
        let (register, to) = (instruction.op0_register(), instruction.immediate64());
        decoder.decode_out(&mut instruction);
        let jumps = instruction.mnemonic() == Mnemonic::Jmp;
        return (jumps && instruction.op0_register() == register).then_some(Hook::To(to));
    }
    match (instruction.mnemonic(), instruction.op0_kind()) {
        (Mnemonic::Jmp, OpKind::NearBranch64) => Some(Hook::To(instruction.near_branch_target())),
        (Mnemonic::Jmp, OpKind::Memory) => Some(Hook::Elsewhere),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_of_hooks_are_told_from_code() {
        let cases: [(&[u8], Option<Hook>); 8] = [
            // jmp +0x10; jmp $+2; jmp *0(%rip)
            (&[0xe9, 0x10, 0, 0, 0], Some(Hook::To(0x1015))),
            (&[0xeb, 0], Some(Hook::To(0x1002))),
            (&[0xff, 0x25, 0, 0, 0, 0], Some(Hook::Elsewhere)),
            // endbr64; jmp +0
            (
                &[0xf3, 0x0f, 0x1e, 0xfa, 0xe9, 0, 0, 0, 0],
                Some(Hook::To(0x1009)),
            ),
            // movabs $0x1122, %rax; jmp *%rax, and to another register
            (
                &[0x48, 0xb8, 0x22, 0x11, 0, 0, 0, 0, 0, 0, 0xff, 0xe0],
                Some(Hook::To(0x1122)),
            ),
            (
                &[0x48, 0xb8, 0x22, 0x11, 0, 0, 0, 0, 0, 0, 0xff, 0xe1],
                None,
            ),
            (&[0x55, 0x48, 0x89, 0xe5], None),
            (&[], None),
        ];
        for (code, wanted) in cases {
            assert_eq!(hook(code, 0x1000), wanted, "{code:x?}");
        }
    }
}
