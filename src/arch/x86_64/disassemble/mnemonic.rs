//! The mnemonics that gdb spells in another way than the decoder's formatter.

use iced_x86::{EncodingKind, FlowControl, Instruction as Decoded, Mnemonic, OpKind};

use super::prefix;

/// gdb's spelling of the mnemonic `name`.
pub fn spelled(decoded: &Decoded, bytes: &[u8], name: String) -> String {
    match name.as_str() {
        // The width that 64-bit code has without saying so.
        "callq" | "jmpq" | "pushq" | "popq" | "retq" | "leaveq" | "enterq" | "pushfq" | "popfq" => {
            name[..name.len() - 1].to_owned()
        }
        "lcalll" => "lcall".to_owned(),
        "ljmpl" => "ljmp".to_owned(),
        "fneni" | "fndisi" => name + "(8087 only)",
        "fnsetpm" | "frstpm" => name + "(287 only)",
        "lretl" => "lret".to_owned(),
        "iretl" => "iret".to_owned(),
        _ if decoded.mnemonic() == Mnemonic::Reservednop => reserved_nop(decoded).to_owned(),
        // Newer than the EVEX form of the same name, which is therefore the one without a word.
        _ if decoded.encoding() == EncodingKind::VEX && came_with_evex(decoded.mnemonic()) => {
            format!("{{vex}} {name}")
        }
        _ if decoded.flow_control() == FlowControl::ConditionalBranch => name + hint(bytes),
        _ if decoded.mnemonic() == Mnemonic::Sal => name.replacen("sal", "shl", 1),
        _ => name,
    }
}

/// AVX-VNNI and AVX-IFMA.
fn came_with_evex(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Vpdpbusd
            | Mnemonic::Vpdpbusds
            | Mnemonic::Vpdpwssd
            | Mnemonic::Vpdpwssds
            | Mnemonic::Vpmadd52luq
            | Mnemonic::Vpmadd52huq
    )
}

/// Opcodes 0F 0D and 0F 18 to 0F 1F without another meaning.
fn reserved_nop(decoded: &Decoded) -> &'static str {
    if decoded.op0_kind() == OpKind::Register {
        return "nop";
    }
    match decoded.op1_register().size() {
        2 => "nopw",
        4 => "nopl",
        _ => "nopq",
    }
}

/// The form of an x87 mnemonic with an `fwait` in front; `None` if it has none.
pub fn waiting(name: &str) -> Option<&'static str> {
    Some(match name {
        "fnstcw" => "fstcw",
        "fnstsw" => "fstsw",
        "fnstenv" => "fstenv",
        "fnsave" => "fsave",
        "fninit" => "finit",
        "fnclex" => "fclex",
        _ => return None,
    })
}

/// Encodings of x87 instructions that only some processors take, and gdb does not.
pub fn is_bad_x87(opcode: &[u8]) -> bool {
    matches!(
        opcode,
        [0xd9, 0xd8..=0xdf, ..]
            | [0xdc, 0xd0..=0xdf, ..]
            | [0xdd, 0xc8..=0xcf, ..]
            | [0xde, 0xd0..=0xd7, ..]
            | [0xdf, 0xc8..=0xdf, ..]
    )
}

/// Branch hints.
fn hint(bytes: &[u8]) -> &'static str {
    let last = bytes[..prefix::count(bytes)]
        .iter()
        .rev()
        .find(|byte| matches!(byte, 0x2e | 0x3e));
    match last {
        Some(0x2e) => ",pn",
        Some(_) => ",pt",
        None => "",
    }
}

/// Shifts and rotates.
pub fn is_shift(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Rol
            | Mnemonic::Ror
            | Mnemonic::Rcl
            | Mnemonic::Rcr
            | Mnemonic::Shl
            | Mnemonic::Sal
            | Mnemonic::Shr
            | Mnemonic::Sar
    )
}

/// Instructions whose `%dx` is the number of a port.
pub fn is_port(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::In
            | Mnemonic::Out
            | Mnemonic::Insb
            | Mnemonic::Insw
            | Mnemonic::Insd
            | Mnemonic::Outsb
            | Mnemonic::Outsw
            | Mnemonic::Outsd
    )
}
