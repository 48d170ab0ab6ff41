//! Instruction lengths and boundaries.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

/// Where an address lies in the instructions around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// An instruction begins there.
    Start,
    /// It is inside an instruction.
    Inside {
        /// The address where that instruction begins.
        before: u64,
        /// The address where the next one begins.
        after: u64,
    },
}

/// The length in bytes of the instruction that begins `bytes`; `None` if there is no whole, valid
/// one.
pub fn instruction_length(bytes: &[u8]) -> Option<usize> {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction.len())
}

/// Decodes the function whose `code` begins at `start` up to `address`. `None`: `address` is not in
/// `code`, or something that is no instruction stands before it (data, code that jumps into the
/// middle of its own instructions), so that nothing can be said.
pub fn boundary(code: &[u8], start: u64, address: u64) -> Option<Boundary> {
    let offset = usize::try_from(address.checked_sub(start)?).ok()?;
    if offset >= code.len() {
        return None;
    }
    let mut at = 0;
    while at < offset {
        let next = at + instruction_length(&code[at..])?;
        if next > offset {
            return Some(Boundary::Inside {
                before: start.wrapping_add(at as u64),
                after: start.wrapping_add(next as u64),
            });
        }
        at = next;
    }
    Some(Boundary::Start)
}

/// Whether the bytes are what linkers and assemblers put between functions: nops, int3s, zeros.
pub fn is_padding(code: &[u8]) -> bool {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    while decoder.can_decode() {
        let rest = &code[decoder.position()..];
        if rest.iter().all(|byte| *byte == 0) {
            return true;
        }
        let instruction = decoder.decode();
        // `xchg %ax,%ax` decodes as a nop, too.
        if !matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // push %rbp; mov %rsp,%rbp; nopw 0(%rax,%rax,1); ret
    const CODE: [u8; 14] = [
        0x55, 0x48, 0x89, 0xe5, 0x66, 0x2e, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x90, 0xc3, 0x06,
    ];

    #[test]
    fn every_address_of_a_function_is_at_or_inside_an_instruction() {
        let starts = [0, 1, 4, 11, 12, 13];
        for offset in 0..14u64 {
            let found = boundary(&CODE, 0x1000, 0x1000 + offset);
            if starts.contains(&offset) {
                assert_eq!(found, Some(Boundary::Start), "{offset}");
            } else {
                let before = starts.iter().rfind(|start| **start < offset).unwrap();
                let after = starts.iter().find(|start| **start > offset).unwrap();
                assert_eq!(
                    found,
                    Some(Boundary::Inside {
                        before: 0x1000 + before,
                        after: 0x1000 + after
                    }),
                    "{offset}"
                );
            }
        }
    }

    #[test]
    fn padding() {
        assert!(is_padding(&[
            0x90, 0x66, 0x90, 0xcc, 0x0f, 0x1f, 0x00, 0, 0, 0
        ]));
        assert!(is_padding(&[]));
        assert!(!is_padding(&[0x90, 0xc3]));
        assert!(!is_padding(&[0x66]));
    }

    #[test]
    fn nothing_is_said_about_what_cannot_be_decoded() {
        assert_eq!(boundary(&CODE, 0x1000, 0xfff), None);
        assert_eq!(boundary(&CODE, 0x1000, 0x100e), None);
        assert_eq!(boundary(&[0x06, 0x90, 0x90], 0, 2), None);
        assert_eq!(instruction_length(&[0xe8, 0]), None);
        assert_eq!(instruction_length(&[0xc3]), Some(1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(
            code in proptest::collection::vec(any::<u8>(), 0..40),
            start: u64,
            offset in 0u64..50,
        ) {
            let _ = boundary(&code, start, start.wrapping_add(offset));
        }
    }
}
