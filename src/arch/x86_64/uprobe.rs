//! What a kernel uprobe on an instruction costs: Linux emulates some and steps the others out of line.
//!
//! The lists are those of `arch/x86/kernel/uprobes.c` in Linux 6.18: `branch_setup_xol_ops` and
//! `push_setup_xol_ops` emulate, `is_prefix_bad`, `insn_masking_exception` and `good_insns_64` refuse.
//! Kernels before 6.17 step nops of several bytes, too.

use super::decode::instruction_length;

/// How the kernel passes an instruction that a uprobe stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UprobePrice {
    /// A nop of five bytes that becomes a call: no trap at all, some 0.4 µs.
    Optimised,
    /// A trap, and the kernel does what the instruction does: some 0.7 µs.
    Emulated,
    /// A trap, and a second one for the single step of a copy: some 10 µs.
    Stepped,
    /// No uprobe can stand there.
    Refused,
}

impl UprobePrice {
    /// One word, as lists show it.
    pub fn word(self) -> &'static str {
        match self {
            UprobePrice::Optimised => "optimised",
            UprobePrice::Emulated => "emulated",
            UprobePrice::Stepped => "stepped",
            UprobePrice::Refused => "refused",
        }
    }
}

/// `nopl 0(%rax,%rax)`, which `-fpatchable-function-entry` and probe macros write.
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];
/// A five-byte call may not cross a page: it is written in one go.
const PAGE: u64 = 4096;

/// What the kernel does with the instruction that begins `code`, which lies at the file address `address`.
pub fn uprobe_price(code: &[u8], address: u64) -> UprobePrice {
    let Some(length) = instruction_length(code) else {
        return UprobePrice::Refused;
    };
    let instruction = &code[..length];
    if instruction == NOP5 && PAGE - address % PAGE >= NOP5.len() as u64 {
        return UprobePrice::Optimised;
    }
    let legacy = |byte: &u8| {
        matches!(
            byte,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
        )
    };
    let count = instruction.iter().take_while(|byte| legacy(byte)).count();
    let (prefixes, rest) = instruction.split_at(count);
    let (rex, rest) = match rest {
        [rex @ 0x40..=0x4f, rest @ ..] => (Some(*rex), rest),
        rest => (None, rest),
    };
    let bad = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0xf0);
    if prefixes.iter().any(bad) || is_refused(rest) {
        return UprobePrice::Refused;
    }
    match rest {
        // `xchg %r8,%rax` is no nop.
        [0x90] if rex.is_none_or(|rex| rex & 1 == 0) => UprobePrice::Emulated,
        [0x0f, 0x1f, modrm, ..] if modrm & 0x38 == 0 => UprobePrice::Emulated,
        [0xeb | 0xe9 | 0xe8 | 0x70..=0x7f, ..] | [0x0f, 0x80..=0x8f, ..] => {
            match prefixes.contains(&0x66) {
                true => UprobePrice::Refused,
                false => UprobePrice::Emulated,
            }
        }
        [0x50..=0x57] if prefixes.is_empty() && rex.is_none_or(|rex| rex == 0x41) => {
            UprobePrice::Emulated
        }
        _ => UprobePrice::Stepped,
    }
}

/// By the opcode, behind legacy and REX prefixes.
fn is_refused(rest: &[u8]) -> bool {
    // Of what has a VEX or EVEX prefix the kernel looks up the opcode alone, as if it had none.
    let opcode = match rest {
        [0xc5, _, opcode, ..] | [0xc4, _, _, opcode, ..] | [0x62, _, _, _, opcode, ..] => *opcode,
        // `mov …,%ss` holds the trap of the step back.
        [0x8e, modrm, ..] if modrm & 0x38 == 0x10 => return true,
        [opcode, ..] => *opcode,
        [] => return true,
    };
    matches!(
        opcode,
        0x06 | 0x07 | 0x0e | 0x16 | 0x17 | 0x1e | 0x1f | 0x27 | 0x2f | 0x37 | 0x3f | 0x60..=0x62
            | 0x6c..=0x6f | 0x82 | 0x9a | 0xcc..=0xcf | 0xd4..=0xd6 | 0xe4..=0xe7 | 0xea
            | 0xec..=0xef | 0xf1 | 0xf4 | 0xfa | 0xfb
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn first_instructions_of_functions() {
        use UprobePrice::*;
        let cases: [(&[u8], UprobePrice); 24] = [
            (&[0x55], Emulated),                                       // push %rbp
            (&[0x41, 0x57], Emulated),                                 // push %r15
            (&[0x48, 0x55], Stepped),                                  // rex.W push
            (&[0xf3, 0x0f, 0x1e, 0xfa], Stepped),                      // endbr64
            (&[0x90], Emulated),                                       // nop
            (&[0x66, 0x90], Emulated),                                 // xchg %ax,%ax
            (&[0x49, 0x90], Stepped),                                  // xchg %rax,%r8
            (&[0x0f, 0x1f, 0x44, 0x00, 0x00], Optimised),              // nopl
            (&[0x0f, 0x1f, 0x40, 0x00], Emulated),                     // nopl
            (&[0xe9, 1, 0, 0, 0], Emulated),                           // jmp
            (&[0xe8, 1, 0, 0, 0], Emulated),                           // call
            (&[0x74, 0x02], Emulated),                                 // je
            (&[0x0f, 0x84, 1, 0, 0, 0], Emulated),                     // je
            (&[0xe3, 0x02], Stepped),                                  // jrcxz
            (&[0xff, 0x25, 1, 0, 0, 0], Stepped),                      // jmp *(%rip)
            (&[0xc3], Stepped),                                        // ret
            (&[0x48, 0x83, 0xec, 0x08], Stepped),                      // sub
            (&[0x0f, 0x05], Stepped),                                  // syscall
            (&[0xf0, 0x0f, 0xb1, 0x0f], Refused),                      // lock cmpxchg
            (&[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], Refused), // nopw %cs:
            (&[0xf4], Refused),                                        // hlt
            (&[0xc5, 0xf8, 0x77], Stepped),                            // vzeroupper
            (&[0xc5, 0xf9, 0x6f, 0x07], Refused),                      // vmovdqa
            (&[0x06], Refused),
        ];
        for (code, price) in cases {
            assert_eq!(uprobe_price(code, 0x1000), price, "{code:x?}");
        }
        assert_eq!(uprobe_price(&NOP5, 0x1ffc), Emulated);
        assert_eq!(uprobe_price(&[], 0), Refused);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(code in proptest::collection::vec(any::<u8>(), 0..20), address: u64) {
            uprobe_price(&code, address);
        }
    }
}
