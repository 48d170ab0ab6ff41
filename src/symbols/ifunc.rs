//! Indirect functions (`STT_GNU_IFUNC`): the symbol is a resolver that the dynamic linker calls once,
//! to choose among implementations; callers never come to the symbol's own address.
//!
//! What was chosen stands in the pointer of the module's own `R_X86_64_IRELATIVE` relocation, once
//! the module is relocated. Before that, and for modules that do not call the function themselves,
//! the resolver's code tells what it can choose: the addresses that it loads.

use std::collections::HashMap;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use object::LittleEndian as LE;
use object::elf::{self, Rela64};

use super::elf::{Elf, Image, pod_slice};
use super::load::{SHT_RELA, read_section};
use super::module::Module;
use super::modules::ReadMemory;
use super::table::Symbol;
use crate::arch::{FileAddress, LoadBias};

/// Resolvers are short; gcc's for `target_clones` are the longest.
const RESOLVER_MAX: u64 = 4096;
/// Pointers of one module that are read at once lie in one table.
const TABLE_MAX: u64 = 1 << 16;

/// The pointers that are filled by calling a resolver: their file addresses with the resolver's.
pub fn pointers(image: &Image, elf: &Elf) -> Vec<(u64, u64)> {
    let sections = elf.sections.iter();
    let mut pointers = Vec::new();
    for section in sections.filter(|section| section.kind == SHT_RELA && section.allocated) {
        let bytes = read_section(image, section, "the relocations").unwrap_or_default();
        for relocation in pod_slice::<Rela64<LE>>(&bytes) {
            let kind = elf::RelocationType(relocation.r_info.get(LE) as u32);
            if kind == elf::R_X86_64_IRELATIVE {
                let resolver = relocation.r_addend.get(LE) as u64;
                pointers.push((relocation.r_offset.get(LE), resolver));
            }
        }
    }
    pointers.sort_unstable();
    pointers
}

/// Resolver (a file address) -> what the pointers of a process hold now: an implementation's
/// run-time address, or anything if the module is not relocated yet.
pub fn chosen(module: &Module, bias: LoadBias, read: ReadMemory<'_>) -> HashMap<u64, u64> {
    let pointers = module.indirect_pointers();
    let (Some((first, _)), Some((last, _))) = (pointers.first(), pointers.last()) else {
        return HashMap::new();
    };
    let mut table = Vec::new();
    let length = (last - first).saturating_add(8);
    if length <= TABLE_MAX {
        table = vec![0; length as usize];
        if !read(FileAddress(*first).runtime(bias), &mut table) {
            table.clear();
        }
    }
    let value = |pointer: u64| {
        let at = (pointer - first) as usize;
        if let Some(bytes) = table.get(at..at.saturating_add(8)) {
            return bytes.try_into().ok().map(u64::from_le_bytes);
        }
        let mut bytes = [0; 8];
        read(FileAddress(pointer).runtime(bias), &mut bytes).then(|| u64::from_le_bytes(bytes))
    };
    let values = pointers.iter();
    values
        .filter_map(|(pointer, resolver)| Some((*resolver, value(*pointer)?)))
        .collect()
}

/// What a resolver can choose, by its code: each address of code that it loads into a register.
pub fn choices(module: &Module, resolver: &Symbol) -> Vec<FileAddress> {
    let elf = module.elf();
    let size = module.extent(resolver).min(RESOLVER_MAX);
    let start = resolver.address;
    let Ok(code) = module.bytes(FileAddress(start), size) else {
        return Vec::new();
    };
    let own = start..start.saturating_add(size);
    let mut choices = Vec::new();
    for instruction in Decoder::with_ip(64, &code, start, DecoderOptions::NONE).iter() {
        let Some(target) = loaded_address(&instruction, elf) else {
            continue;
        };
        let address = FileAddress(target);
        if elf.is_code(target)
            && !own.contains(&target)
            && !module.in_plt(address)
            && !choices.contains(&address)
        {
            choices.push(address);
        }
    }
    choices
}

fn loaded_address(instruction: &Instruction, elf: &Elf) -> Option<u64> {
    match instruction.mnemonic() {
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
            Some(instruction.ip_rel_memory_address())
        }
        // A program that is loaded where it was linked.
        Mnemonic::Mov
            if !elf.relocatable
                && instruction.op0_kind() == OpKind::Register
                && matches!(
                    instruction.op1_kind(),
                    OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
                ) =>
        {
            Some(instruction.immediate(1))
        }
        _ => None,
    }
}
