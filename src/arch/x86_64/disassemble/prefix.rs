//! The prefixes that gdb shows as words: those that the instruction makes no use of, and those that
//! are not part of a mnemonic.

use iced_x86::{Code, Decoder, FlowControl, Instruction as Decoded, Mnemonic, OpKind, Register};

use super::{Instruction, OPTIONS};

/// The words in front of the mnemonic, each with a space behind it, in the order of the bytes.
pub fn prefixes(decoded: &Decoded, bytes: &[u8]) -> String {
    let mut text = String::new();
    for (i, byte) in bytes.iter().enumerate() {
        if !is_legacy(*byte) {
            if is_rex(*byte) && !opcode_is_vector(bytes, i) && rex_is_unused(decoded, bytes, i) {
                text.push_str(rex_word(*byte));
                text.push(' ');
            }
            break;
        }
        if let Some(word) = legacy_word(decoded, bytes, i) {
            text.push_str(word);
            text.push(' ');
        }
    }
    text
}

/// `fwait` counts as a prefix of the x87 instruction behind it.
pub const FWAIT: u8 = 0x9b;

/// A REX prefix that another prefix follows is no part of an instruction: gdb shows it, with what
/// stands before it, on a line of its own.
pub fn alone(bytes: &[u8]) -> Option<Instruction> {
    let rex = legacy_count(bytes);
    let next = *bytes.get(rex + 1)?;
    if !is_rex(*bytes.get(rex)?) || !(is_rex(next) || is_legacy(next) || next == FWAIT) {
        return None;
    }
    Some(Instruction {
        length: rex + 1,
        text: plain_words(&bytes[..=rex]).join(" "),
    })
}

/// Bytes that are no instruction: the prefixes and the first byte of the opcode.
pub fn bad(bytes: &[u8]) -> Instruction {
    let length = count(bytes);
    // gdb forgets the prefixes once it has taken the bytes for VEX.
    let vector = match bytes[length..] {
        [0xc5, ..] => true,
        [0xc4, map, ..] => matches!(map & 0x1f, 1..=3),
        _ => false,
    };
    let mut words = if vector {
        Vec::new()
    } else {
        plain_words(&bytes[..length])
    };
    words.push("(bad)");
    Instruction {
        length: (length + 1).min(bytes.len()),
        text: words.join(" "),
    }
}

fn plain_words(prefixes: &[u8]) -> Vec<&'static str> {
    prefixes
        .iter()
        .map(|byte| match byte {
            0xf0 => "lock",
            0xf2 => "repnz",
            0xf3 => "repz",
            0x66 => "data16",
            0x67 => "addr32",
            0x2e => "cs",
            0x3e => "ds",
            0x26 => "es",
            0x36 => "ss",
            0x64 => "fs",
            0x65 => "gs",
            rex => rex_word(*rex),
        })
        .collect()
}

/// How many prefixes there are, REX included.
pub fn count(bytes: &[u8]) -> usize {
    let legacy = legacy_count(bytes);
    legacy + usize::from(bytes.get(legacy).is_some_and(|byte| is_rex(*byte)))
}

/// How many legacy prefixes there are.
fn legacy_count(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_legacy(**byte)).count()
}

fn is_legacy(byte: u8) -> bool {
    matches!(
        byte,
        0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
    )
}

fn is_rex(byte: u8) -> bool {
    matches!(byte, 0x40..=0x4f)
}

fn opcode_is_vector(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at), Some(0xc4 | 0xc5 | 0x62))
}

fn legacy_word(decoded: &Decoded, bytes: &[u8], at: usize) -> Option<&'static str> {
    let byte = bytes[at];
    let repeated = bytes[at + 1..legacy_count(bytes)].contains(&byte);
    match byte {
        0xf0 => Some("lock"),
        0xf3 => (decoded.has_rep_prefix() || unused(decoded, bytes, at, repeated))
            .then(|| repeat_word(decoded)),
        0xf2 => (decoded.has_repne_prefix() || unused(decoded, bytes, at, repeated)).then(|| {
            if is_near_branch(decoded) {
                "bnd"
            } else if elides_lock(decoded) {
                "xacquire"
            } else {
                "repnz"
            }
        }),
        0x66 => unused(decoded, bytes, at, repeated).then_some("data16"),
        0x67 => unused(decoded, bytes, at, repeated).then_some("addr32"),
        0x64 => unused(decoded, bytes, at, repeated).then_some("fs"),
        0x65 => unused(decoded, bytes, at, repeated).then_some("gs"),
        0x3e if is_indirect(decoded) => Some("notrack"),
        0x2e | 0x3e if is_conditional(decoded) && !repeated => None,
        0x2e | 0x36 | 0x3e | 0x26 if has_string_source(decoded) => None,
        0x2e => Some("cs"),
        0x3e => Some("ds"),
        0x26 => Some("es"),
        _ => Some("ss"),
    }
}

fn repeat_word(decoded: &Decoded) -> &'static str {
    let scans = matches!(
        decoded.code(),
        Code::Cmpsb_m8_m8
            | Code::Cmpsw_m16_m16
            | Code::Cmpsd_m32_m32
            | Code::Cmpsq_m64_m64
            | Code::Scasb_AL_m8
            | Code::Scasw_AX_m16
            | Code::Scasd_EAX_m32
            | Code::Scasq_RAX_m64
    );
    if decoded.is_string_instruction() && !scans {
        "rep"
    } else if elides_lock(decoded) || is_store(decoded) {
        "xrelease"
    } else {
        "repz"
    }
}

fn elides_lock(decoded: &Decoded) -> bool {
    decoded.has_lock_prefix() && decoded.op0_kind() == OpKind::Memory
}

/// `mov` to memory, which ends an elided lock without a `lock` prefix.
fn is_store(decoded: &Decoded) -> bool {
    matches!(
        decoded.code(),
        Code::Mov_rm8_r8
            | Code::Mov_rm16_r16
            | Code::Mov_rm32_r32
            | Code::Mov_rm64_r64
            | Code::Mov_rm8_imm8
            | Code::Mov_rm16_imm16
            | Code::Mov_rm32_imm32
            | Code::Mov_rm64_imm32
    ) && decoded.op0_kind() == OpKind::Memory
}

fn is_near_branch(decoded: &Decoded) -> bool {
    matches!(
        decoded.flow_control(),
        FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Call
            | FlowControl::IndirectCall
    ) || decoded.is_jcc_short_or_near()
        || decoded.mnemonic() == Mnemonic::Ret
}

fn is_indirect(decoded: &Decoded) -> bool {
    decoded.is_jmp_near_indirect() || decoded.is_call_near_indirect()
}

/// The source of a string instruction takes a segment prefix, although only fs and gs count.
fn has_string_source(decoded: &Decoded) -> bool {
    decoded
        .op_kinds()
        .any(|kind| matches!(kind, OpKind::MemorySegRSI | OpKind::MemorySegESI))
}

fn is_conditional(decoded: &Decoded) -> bool {
    decoded.flow_control() == FlowControl::ConditionalBranch
}

/// True if the same instruction results without the prefix byte at `at`; of repeated ones only the
/// last can be of use.
fn unused(decoded: &Decoded, bytes: &[u8], at: usize, repeated: bool) -> bool {
    if repeated {
        return true;
    }
    let byte = bytes[at];
    let end = legacy_count(bytes);
    let without: Vec<u8> = bytes
        .iter()
        .enumerate()
        .filter(|(i, other)| *i >= end || **other != byte)
        .map(|(_, other)| *other)
        .collect();
    same(decoded, &without)
}

fn rex_is_unused(decoded: &Decoded, bytes: &[u8], at: usize) -> bool {
    let rex = bytes[at];
    if rex == 0x40 {
        let mut without = bytes.to_vec();
        without.remove(at);
        return same(decoded, &without);
    }
    // A memory operand always looks at REX.B, although a RIP-relative one ignores it.
    let has_memory = decoded.op_kinds().any(|kind| kind == OpKind::Memory);
    let bits: &[u8] = if has_memory {
        &[8, 4, 2]
    } else {
        &[8, 4, 2, 1]
    };
    bits.iter().any(|bit| {
        let mut without = bytes.to_vec();
        without[at] ^= bit;
        rex & bit != 0 && same(decoded, &without)
    })
}

fn same(decoded: &Decoded, bytes: &[u8]) -> bool {
    let other = Decoder::with_ip(64, bytes, decoded.ip(), OPTIONS).decode();
    essence(decoded) == essence(&other)
}

/// What a prefix could have changed; addresses relative to the end are left out.
#[derive(PartialEq, Eq)]
struct Essence {
    code: Code,
    kinds: [Option<OpKind>; 5],
    registers: [Register; 5],
    memory: Option<[Register; 3]>,
}

fn essence(decoded: &Decoded) -> Essence {
    let mut essence = Essence {
        code: decoded.code(),
        kinds: [None; 5],
        registers: [Register::None; 5],
        memory: None,
    };
    for (i, kind) in decoded.op_kinds().take(5).enumerate() {
        essence.kinds[i] = Some(kind);
        match kind {
            OpKind::Register => essence.registers[i] = decoded.op_register(i as u32),
            OpKind::Memory | OpKind::MemorySegRSI | OpKind::MemorySegESI => {
                essence.memory = Some([
                    decoded.memory_base(),
                    decoded.memory_index(),
                    decoded.memory_segment(),
                ]);
            }
            _ => {}
        }
    }
    essence
}

fn rex_word(rex: u8) -> &'static str {
    [
        "rex", "rex.B", "rex.X", "rex.XB", "rex.R", "rex.RB", "rex.RX", "rex.RXB", "rex.W",
        "rex.WB", "rex.WX", "rex.WXB", "rex.WR", "rex.WRB", "rex.WRX", "rex.WRXB",
    ][usize::from(rex & 15)]
}
