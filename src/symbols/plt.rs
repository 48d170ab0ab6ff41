//! Names for the stubs of the procedure linkage table, by what they jump through.

use std::collections::HashMap;

use super::elf::{Elf, Image, Section};
use super::load::got_names;
use super::table::{Binding, Origin, Symbol, SymbolKind, SymbolTable};

/// Sections of stubs; none of them holds a function.
pub const SECTIONS: [&str; 5] = [".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt"];

/// A stub is 8 bytes (`.plt.got` of non-CET objects) or 16.
const STUB: usize = 16;

/// The file addresses of all stubs: `(start, end)`.
pub fn ranges(elf: &Elf) -> Vec<(u64, u64)> {
    elf.sections
        .iter()
        .filter(|section| SECTIONS.contains(&section.name.as_str()) && section.executable)
        .map(|section| {
            (
                section.address,
                section.address.saturating_add(section.size),
            )
        })
        .collect()
}

/// Adds `name@plt` for each stub and `name@got.plt` for each pointer that the lazy binder fills.
pub(super) fn name_stubs(image: &Image, elf: &Elf, table: &mut SymbolTable) {
    let stubs: Vec<(usize, &Section)> = elf
        .sections
        .iter()
        .enumerate()
        .filter(|(_, section)| SECTIONS.contains(&section.name.as_str()) && section.executable)
        .collect();
    if stubs.is_empty() {
        return;
    }
    let names = got_names(image, elf);
    let mut pointers = Vec::new();
    for (index, section) in stubs {
        let code = image
            .read(section.offset, section.size, "the PLT")
            .unwrap_or_default();
        let size = if section.name == ".plt.got" && !code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) {
            8
        } else {
            STUB
        };
        for (number, stub) in code.chunks(size).enumerate() {
            let address = section.address.wrapping_add((number * size) as u64);
            let Some(pointer) = jump_pointer(stub, address) else {
                continue;
            };
            let Some(name) = names.get(&pointer) else {
                continue;
            };
            add(
                table,
                [name.as_slice(), b"@plt"].concat(),
                address,
                size as u64,
                index,
                SymbolKind::Plt,
            );
            pointers.push(pointer);
        }
    }
    name_pointers(elf, table, &names, &pointers);
}

fn name_pointers(
    elf: &Elf,
    table: &mut SymbolTable,
    names: &HashMap<u64, Vec<u8>>,
    pointers: &[u64],
) {
    let wanted = if elf.section(".got.plt").is_some() {
        ".got.plt"
    } else {
        ".got"
    };
    for pointer in pointers {
        let Some((index, section)) = elf.section_at(*pointer) else {
            continue;
        };
        if let Some(name) = names.get(pointer).filter(|_| section.name == wanted) {
            add(
                table,
                [name.as_slice(), b"@got.plt"].concat(),
                *pointer,
                8,
                index,
                SymbolKind::Got,
            );
        }
    }
}

fn add(
    table: &mut SymbolTable,
    name: Vec<u8>,
    address: u64,
    size: u64,
    section: usize,
    kind: SymbolKind,
) {
    let (Ok(offset), Ok(section)) = (u32::try_from(table.names.len()), u16::try_from(section))
    else {
        return;
    };
    table.names.extend_from_slice(&name);
    table.names.push(0);
    table.symbols.push(Symbol {
        address,
        size,
        name: offset,
        version: 0,
        hidden_version: false,
        section,
        kind,
        binding: Binding::Local,
        origin: Origin::Synthetic,
        function: false,
    });
}

/// The address that `jmp *disp(%rip)` of a stub reads, behind `endbr64` and a `bnd` prefix or not.
fn jump_pointer(stub: &[u8], address: u64) -> Option<u64> {
    let mut at = 0;
    if stub.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) {
        at += 4;
    }
    if stub.get(at) == Some(&0xf2) {
        at += 1;
    }
    if stub.get(at..at + 2)? != [0xff, 0x25] {
        return None;
    }
    let displacement = i32::from_le_bytes(stub.get(at + 2..at + 6)?.try_into().ok()?);
    Some(
        address
            .wrapping_add(at as u64 + 6)
            .wrapping_add_signed(i64::from(displacement)),
    )
}
