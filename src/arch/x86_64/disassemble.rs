//! One instruction as text: what gdb 13 prints behind `ADDRESS <NAME+OFFSET>:` and a tab.
//!
//! The decoder's formatter names mnemonics and registers; the layout, the prefixes, the memory
//! operands and what gdb spells in its own way are done here. A test compares it with gdb over
//! real libraries.

use iced_x86::{
    ConstantOffsets, Decoder, DecoderError, DecoderOptions, EncodingKind, FormatMnemonicOptions,
    Formatter, GasFormatter, Instruction as Decoded, Mnemonic, OpKind, Register as Iced,
};

use super::relocate::INSTRUCTION_MAX;

mod mnemonic;
mod prefix;

/// gdb takes a `lock` in front of anything for an instruction, and knows MPX.
const OPTIONS: u32 = DecoderOptions::MPX | DecoderOptions::NO_INVALID_CHECK;

/// One disassembled instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// How many bytes it takes; 1 for bytes that are no instruction.
    pub length: usize,
    /// Its text in AT&T syntax, symbols and the `# 0x…` comment included.
    pub text: String,
}

/// The text of the instruction at `address`, which begins `bytes`. `symbol` gives what stands in
/// `<…>` behind an address. `None` if `bytes` ends inside the instruction.
pub fn disassemble(
    bytes: &[u8],
    address: u64,
    symbol: &dyn Fn(u64) -> Option<String>,
) -> Option<Instruction> {
    let bytes = &bytes[..bytes.len().min(INSTRUCTION_MAX)];
    if let Some(lone) = prefix::alone(bytes) {
        return Some(lone);
    }
    let (waits, bytes, address) = match bytes {
        [prefix::FWAIT, 0xd8..=0xdf, ..] => (true, &bytes[1..], address.wrapping_add(1)),
        _ => (false, bytes, address),
    };
    let mut decoder = Decoder::with_ip(64, bytes, address, OPTIONS);
    let decoded = decoder.decode();
    if decoded.is_invalid() {
        if let Some(instruction) = partial(bytes, address, symbol) {
            return Some(instruction);
        }
        if decoder.last_error() == DecoderError::NoMoreBytes && bytes.len() < INSTRUCTION_MAX {
            return None;
        }
        return Some(prefix::bad(bytes));
    }
    if mnemonic::is_bad_x87(&bytes[prefix::count(bytes)..]) {
        return Some(prefix::bad(bytes));
    }
    let bytes = &bytes[..decoded.len()];
    let mut writer = Writer {
        decoded: &decoded,
        bytes,
        offsets: decoder.get_constant_offsets(&decoded),
        symbol,
        formatter: formatter(),
        waits,
    };
    Some(Instruction {
        length: usize::from(waits) + decoded.len(),
        text: writer.text(),
    })
}

/// Opcodes whose ModRM byte asks for what does not exist: gdb shows a mark in its place, and the
/// rest as usual. The text is made from a neighbour that exists.
fn partial(
    bytes: &[u8],
    address: u64,
    symbol: &dyn Fn(u64) -> Option<String>,
) -> Option<Instruction> {
    let at = prefix::count(bytes) + 1;
    let modrm = *bytes.get(at)?;
    let valid = match (bytes[at - 1], modrm >> 3 & 7, modrm >> 6) {
        (0x8c | 0x8e, 6 | 7, _) => "%es",
        (0xd9, 1, 0..=2) => "flds",
        (0xdb, 4 | 6, 0..=2) => "fildl",
        (0xdd, 5, 0..=2) => "fldl",
        _ => return None,
    };
    let mut neighbour = bytes.to_vec();
    neighbour[at] &= !0x38;
    let mut instruction = disassemble(&neighbour, address, symbol)?;
    let text = &mut instruction.text;
    match valid {
        // `mov %es,…` or `mov …,%es`, where a general register may begin in the same way.
        "%es" => {
            let at = if bytes[at - 1] == 0x8c {
                text.find(valid)
            } else {
                text.rfind(valid)
            };
            let at = at?;
            text.replace_range(at..at + valid.len(), "%?");
        }
        // A mnemonic is padded where no prefix stands before it.
        _ if text.starts_with(valid) => {
            *text = format!("{:6} {}", "(bad)", text[valid.len()..].trim_start());
        }
        _ => *text = text.replacen(valid, "(bad)", 1),
    }
    Some(instruction)
}

fn formatter() -> GasFormatter {
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_show_branch_size(false);
    formatter
}

struct Writer<'a> {
    decoded: &'a Decoded,
    bytes: &'a [u8],
    offsets: ConstantOffsets,
    symbol: &'a dyn Fn(u64) -> Option<String>,
    formatter: GasFormatter,
    /// An `fwait` stands in front.
    waits: bool,
}

impl Writer<'_> {
    fn text(&mut self) -> String {
        let mut name = String::new();
        self.formatter.format_mnemonic_options(
            self.decoded,
            &mut name,
            FormatMnemonicOptions::NO_PREFIXES,
        );
        let name = mnemonic::spelled(self.decoded, self.bytes, name);
        let operands = self.operands();
        let mut text = String::new();
        let name = match mnemonic::waiting(&name) {
            Some(waiting) if self.waits => waiting.to_owned(),
            _ => name,
        };
        text.push_str(&prefix::prefixes(self.decoded, self.bytes));
        text.push_str(&name);
        if !operands.is_empty() {
            while text.len() < 6 {
                text.push(' ');
            }
            text.push(' ');
            text.push_str(&operands.join(","));
        }
        if self.decoded.is_ip_rel_memory_operand() {
            let target = self.decoded.next_ip().wrapping_add(self.relative());
            text.push_str("        # ");
            text.push_str(&self.address(target));
        }
        text
    }

    fn operands(&mut self) -> Vec<String> {
        if let Some(operands) = self.implied() {
            return operands;
        }
        let count = self.formatter.operand_count(self.decoded);
        (0..count)
            .filter_map(|operand| self.operand(operand))
            .collect()
    }

    /// Operands of instructions whose operands the formatter leaves out or adds.
    fn implied(&mut self) -> Option<Vec<String>> {
        let decoded = self.decoded;
        match decoded.mnemonic() {
            Mnemonic::Fxch
            | Mnemonic::Fucom
            | Mnemonic::Fucomp
            | Mnemonic::Fcom
            | Mnemonic::Fcomp
                if decoded.op0_kind() == OpKind::Register =>
            {
                Some(vec![self.register(decoded.op1_register())])
            }
            Mnemonic::Faddp
            | Mnemonic::Fmulp
            | Mnemonic::Fsubp
            | Mnemonic::Fsubrp
            | Mnemonic::Fdivp
            | Mnemonic::Fdivrp => {
                let to = self.register(decoded.op0_register());
                Some(vec!["%st".to_owned(), to])
            }
            Mnemonic::Imul
                if decoded.op_count() == 3 && decoded.op0_register() == decoded.op1_register() =>
            {
                let immediate = self.operand(0)?;
                let register = self.register(decoded.op0_register());
                Some(vec![immediate, register.clone(), register])
            }
            Mnemonic::Reservednop => Some(vec![self.operand(1)?]),
            Mnemonic::Xlatb => Some(vec![
                self.string(source_segment(decoded), decoded.memory_base()),
            ]),
            mnemonic if mnemonic::is_shift(mnemonic) && shifts_by_one(decoded, self.bytes) => {
                Some(vec![self.operand(1)?])
            }
            _ => None,
        }
    }

    fn operand(&mut self, operand: u32) -> Option<String> {
        let decoded = self.decoded;
        let index = self
            .formatter
            .get_instruction_operand(decoded, operand)
            .ok()
            .flatten();
        match index.map(|index| decoded.op_kind(index)) {
            Some(OpKind::Memory) => Some(self.memory(index == Some(0))),
            Some(OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64) => {
                Some(self.address(decoded.near_branch_target()))
            }
            Some(OpKind::MemorySegRSI) => Some(self.string(source_segment(decoded), Iced::RSI)),
            Some(OpKind::MemorySegESI) => Some(self.string(source_segment(decoded), Iced::ESI)),
            Some(OpKind::MemorySegRDI) => Some(self.string(source_segment(decoded), Iced::RDI)),
            Some(OpKind::MemorySegEDI) => Some(self.string(source_segment(decoded), Iced::EDI)),
            Some(OpKind::MemoryESRDI) => Some(self.string(Iced::ES, Iced::RDI)),
            Some(OpKind::MemoryESEDI) => Some(self.string(Iced::ES, Iced::EDI)),
            Some(OpKind::Register)
                if mnemonic::is_port(decoded.mnemonic())
                    && index.map(|index| decoded.op_register(index)) == Some(Iced::DX) =>
            {
                Some("(%dx)".to_owned())
            }
            _ => {
                let mut text = String::new();
                self.formatter
                    .format_operand(decoded, &mut text, operand)
                    .ok()?;
                // gdb's name of the debug registers.
                Some(text.replace("%dr", "%db"))
            }
        }
    }

    /// `%ds:(%rsi)`: the implied operands of string instructions show their segment.
    fn string(&mut self, segment: Iced, base: Iced) -> String {
        format!("{}:({})", self.register(segment), self.register(base))
    }

    /// With its `%`.
    fn register(&mut self, register: Iced) -> String {
        self.formatter.format_register(register).to_owned()
    }

    /// `0x401126 <main>`.
    fn address(&self, address: u64) -> String {
        match (self.symbol)(address) {
            Some(name) => format!("{address:#x} <{name}>"),
            None => format!("{address:#x}"),
        }
    }

    /// A displacement is shown when it is encoded, be it zero.
    fn memory(&mut self, destination: bool) -> String {
        let decoded = self.decoded;
        let mut text = String::new();
        if is_indirect_branch(decoded) {
            text.push('*');
        }
        if matches!(decoded.segment_prefix(), Iced::FS | Iced::GS) {
            text.push_str(&self.register(decoded.segment_prefix()));
            text.push(':');
        }
        let base = decoded.memory_base();
        let index = decoded.memory_index();
        let displacement = decoded.memory_displacement64();
        let lone_scale = self.scale_without_index();
        if base == Iced::None && index == Iced::None && lone_scale.is_none() {
            text.push_str(&format!("{displacement:#x}"));
        } else {
            text.push_str(&self.displacement(base, displacement));
            text.push('(');
            if base != Iced::None {
                text.push_str(&self.register(base));
            }
            if index != Iced::None {
                let index = self.register(index);
                text.push_str(&format!(",{index},{}", decoded.memory_index_scale()));
            } else if let Some(scale) = lone_scale {
                let zero = if base.is_gpr32() { "eiz" } else { "riz" };
                text.push_str(&format!(",%{zero},{scale}"));
            }
            text.push(')');
        }
        self.decorations(&mut text, destination);
        text
    }

    /// The scale of a SIB byte that names no index; gdb writes the missing register as `%riz`
    /// where there is no other reason for a SIB byte.
    fn scale_without_index(&self) -> Option<u8> {
        let without_modrm =
            self.decoded.memory_displ_size() == 8 && self.offsets.displacement_size() == 8;
        if self.decoded.memory_index() != Iced::None || without_modrm {
            return None;
        }
        let modrm = self.modrm_offset();
        let (modrm, sib) = (*self.bytes.get(modrm)?, *self.bytes.get(modrm + 1)?);
        if modrm & 7 != 4 || modrm >> 6 == 3 {
            return None;
        }
        let has_base = self.decoded.memory_base() != Iced::None;
        (sib >> 6 != 0 || (has_base && sib & 7 != 4)).then_some(1 << (sib >> 6))
    }

    fn modrm_offset(&self) -> usize {
        let start = prefix::count(self.bytes);
        start
            + match &self.bytes[start..] {
                [0xc5, ..] => 3,
                [0xc4 | 0x8f, ..] if self.decoded.encoding() != EncodingKind::Legacy => 4,
                [0x62, ..] => 5,
                [0x0f, 0x38 | 0x3a, ..] => 3,
                [0x0f, ..] => 2,
                _ => 1,
            }
    }

    /// The displacement of a RIP-relative operand. gdb does not cut the address that it shows to
    /// 32 bits for `%eip`.
    fn relative(&self) -> u64 {
        let distance = self
            .decoded
            .ip_rel_memory_address()
            .wrapping_sub(self.decoded.next_ip());
        distance as u32 as i32 as u64
    }

    fn displacement(&self, base: Iced, displacement: u64) -> String {
        let relative = match base {
            Iced::RIP | Iced::EIP => self.relative(),
            _ => displacement,
        };
        if self.offsets.displacement_size() == 0 {
            return String::new();
        }
        // A 32-bit address counts 32-bit displacements.
        let relative = if base.is_gpr32() || self.decoded.memory_index().is_gpr32() {
            relative as u32 as i32 as i64
        } else {
            relative as i64
        };
        if relative < 0 {
            format!("-{:#x}", relative.unsigned_abs())
        } else {
            format!("{relative:#x}")
        }
    }

    /// EVEX: `{1to8}`, `{%k1}`, `{z}`.
    fn decorations(&mut self, text: &mut String, destination: bool) {
        let decoded = self.decoded;
        if decoded.is_broadcast() {
            let info = decoded.memory_size();
            let elements = info.size() / info.element_size().max(1);
            text.push_str(&format!("{{1to{elements}}}"));
        }
        if destination && decoded.has_op_mask() {
            text.push_str(&format!("{{{}}}", self.register(decoded.op_mask())));
            if decoded.zeroing_masking() {
                text.push_str("{z}");
            }
        }
    }
}

/// Only fs and gs count as segments of the source of a string instruction.
fn source_segment(decoded: &Decoded) -> Iced {
    match decoded.memory_segment() {
        segment @ (Iced::FS | Iced::GS) => segment,
        _ => Iced::DS,
    }
}

/// Opcodes D0 and D1, where gdb shows no count.
fn shifts_by_one(decoded: &Decoded, bytes: &[u8]) -> bool {
    decoded.op_count() == 2 && matches!(bytes.get(prefix::count(bytes)), Some(0xd0 | 0xd1))
}

fn is_indirect_branch(decoded: &Decoded) -> bool {
    decoded.is_jmp_near_indirect()
        || decoded.is_jmp_far_indirect()
        || decoded.is_call_near_indirect()
        || decoded.is_call_far_indirect()
}

#[cfg(test)]
#[path = "disassemble_tests.rs"]
mod tests;
