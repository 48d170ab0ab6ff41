//! The mnemonics that gdb spells in another way than the decoder's formatter.

use iced_x86::{Instruction as Decoded, Mnemonic};

use super::prefix;

/// gdb's spelling of the mnemonic `name`.
pub fn spelled(decoded: &Decoded, bytes: &[u8], name: String) -> String {
    match name.as_str() {
        // The width that 64-bit code has without saying so.
        "callq" | "jmpq" | "pushq" | "popq" | "retq" | "leaveq" | "enterq" | "pushfq" | "popfq" => {
            name[..name.len() - 1].to_owned()
        }
        "lretl" => "lret".to_owned(),
        "iretl" => "iret".to_owned(),
        _ if decoded.is_jcc_short_or_near() => name + hint(bytes),
        _ if decoded.mnemonic() == Mnemonic::Sal => name.replacen("sal", "shl", 1),
        _ => name,
    }
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
