//! Fills a [`SymbolTable`] from an object file.

use std::collections::HashMap;

use object::LittleEndian as LE;
use object::elf::{self, Rela64, Sym64};

use super::elf::{Elf, ElfError, Image, Section, dynamic_entries, pod_slice};
use super::table::{Binding, NAME_LIMIT, Origin, Symbol, SymbolKind, SymbolTable, unversioned};

const SHT_SYMTAB: u32 = 2;
pub(super) const SHT_RELA: u32 = 4;
const SHT_DYNSYM: u32 = 11;
const SHT_NOBITS: u32 = 8;
const SHT_VERDEF: u32 = 0x6fff_fffd;
const SHT_VERNEED: u32 = 0x6fff_fffe;
const SHT_VERSYM: u32 = 0x6fff_ffff;

const STT_FUNC: u8 = 2;
const STT_SECTION: u8 = 3;
const STT_FILE: u8 = 4;
const STT_TLS: u8 = 6;
const STT_GNU_IFUNC: u8 = 10;

const SHN_ABS: u16 = 0xfff1;
const SHN_XINDEX: u16 = 0xffff;
/// `VERSYM_HIDDEN`: not the default version of its name.
const HIDDEN: u16 = 0x8000;

/// A table of symbols with its strings and versions, still as bytes.
#[derive(Debug)]
pub(super) struct RawTable {
    symbols: Vec<u8>,
    strings: Vec<u8>,
    /// `.gnu.version`, two bytes a symbol; empty where there is none.
    versions: Vec<u8>,
    origin: Origin,
    /// In a separate debug file: the module's section for each of that file's.
    pub(super) sections: Option<Vec<Option<u16>>>,
}

/// Reads all symbols of the file.
pub fn load(image: &Image, elf: &Elf) -> Result<SymbolTable, ElfError> {
    let mut table = SymbolTable::default();
    if let Some(raw) = read_static(image, elf)? {
        append(&mut table, elf, raw, &HashMap::new());
    }
    let dynamic = match read_table(image, elf, SHT_DYNSYM, Origin::Dynamic)? {
        None if elf.sections.is_empty() => read_dynamic(image, elf)?,
        raw => raw,
    };
    if let Some(raw) = dynamic {
        let versions = read_version_names(image, elf, &raw.strings)?;
        append(&mut table, elf, raw, &versions);
    }
    table.names.push(0);
    super::plt::name_stubs(image, elf, &mut table);
    table.symbols.shrink_to_fit();
    Ok(table)
}

/// The `.symtab` of a file.
pub(super) fn read_static(image: &Image, elf: &Elf) -> Result<Option<RawTable>, ElfError> {
    read_table(image, elf, SHT_SYMTAB, Origin::Static)
}

/// Adds the symbols of a separate debug file; those that the module exports are there already.
pub(super) fn add_separate(table: &mut SymbolTable, elf: &Elf, raw: RawTable) {
    append(table, elf, raw, &HashMap::new());
    table.names.push(0);
    table.symbols.shrink_to_fit();
    table.separate = true;
}

pub(super) fn read_section(
    image: &Image,
    section: &Section,
    what: &'static str,
) -> Result<Vec<u8>, ElfError> {
    match section.kind {
        SHT_NOBITS => Ok(Vec::new()),
        _ => image.read(section.offset, section.size, what),
    }
}

fn read_table(
    image: &Image,
    elf: &Elf,
    kind: u32,
    origin: Origin,
) -> Result<Option<RawTable>, ElfError> {
    let Some((index, section)) = elf
        .sections
        .iter()
        .enumerate()
        .find(|(_, section)| section.kind == kind)
    else {
        return Ok(None);
    };
    let symbols = read_section(image, section, "the symbol table")?;
    let strings = elf
        .sections
        .get(section.link as usize)
        .ok_or(ElfError::Corrupt("symbols without names"))?;
    let strings = read_section(image, strings, "the symbols' names")?;
    let versions = elf
        .sections
        .iter()
        .find(|other| other.kind == SHT_VERSYM && other.link as usize == index);
    let versions = match versions {
        Some(section) => read_section(image, section, "the symbols' versions")?,
        None => Vec::new(),
    };
    Ok(Some(RawTable {
        symbols,
        strings,
        versions,
        origin,
        sections: None,
    }))
}

/// The dynamic symbols of a file whose section headers were cut away.
///
/// The table's length is nowhere: it ends where the strings begin, as all linkers lay it out, and
/// a symbol whose name lies outside of the strings ends it sooner.
fn read_dynamic(image: &Image, elf: &Elf) -> Result<Option<RawTable>, ElfError> {
    let Some((address, size)) = elf.dynamic else {
        return Ok(None);
    };
    let Some((offset, left)) = elf.offset_of(address) else {
        return Ok(None);
    };
    let bytes = image.read(offset, size.min(left).min(1 << 20), "the dynamic table")?;
    let entries: HashMap<u64, u64> = dynamic_entries(&bytes).collect();
    let (Some(&symbols), Some(&strings), Some(&size)) =
        (entries.get(&6), entries.get(&5), entries.get(&10))
    else {
        return Ok(None);
    };
    let Some((strings_offset, _)) = elf.offset_of(strings) else {
        return Ok(None);
    };
    let strings_bytes = image.read(strings_offset, size, "the symbols' names")?;
    let Some((symbols_offset, left)) = elf.offset_of(symbols) else {
        return Ok(None);
    };
    let length = strings.saturating_sub(symbols).min(left);
    let mut symbols = image.read(symbols_offset, length, "the symbol table")?;
    let good = pod_slice::<Sym64<LE>>(&symbols)
        .iter()
        .take_while(|symbol| (symbol.st_name.get(LE) as usize) < strings_bytes.len())
        .count();
    symbols.truncate(good * size_of::<Sym64<LE>>());
    Ok(Some(RawTable {
        symbols,
        strings: strings_bytes,
        versions: Vec::new(),
        origin: Origin::Dynamic,
        sections: None,
    }))
}

/// Version index -> name, from what the file defines and what it needs.
fn read_version_names(
    image: &Image,
    elf: &Elf,
    strings: &[u8],
) -> Result<HashMap<u16, String>, ElfError> {
    let mut names = HashMap::new();
    for section in &elf.sections {
        let bytes = match section.kind {
            SHT_VERDEF | SHT_VERNEED => read_section(image, section, "the version names")?,
            _ => continue,
        };
        match section.kind {
            SHT_VERDEF => read_definitions(&bytes, strings, &mut names),
            _ => read_needs(&bytes, strings, &mut names),
        }
    }
    Ok(names)
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(
        bytes.get(offset..offset.checked_add(2)?)?.try_into().ok()?,
    ))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        bytes.get(offset..offset.checked_add(4)?)?.try_into().ok()?,
    ))
}

fn string_at(strings: &[u8], offset: u32) -> String {
    let rest = strings.get(offset as usize..).unwrap_or_default();
    let rest = &rest[..rest.len().min(256)];
    String::from_utf8_lossy(&rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]).into_owned()
}

/// `Elf64_Verdef` (20 bytes) and its first `Elf64_Verdaux`. Offsets only grow, so the chain ends.
fn read_definitions(bytes: &[u8], strings: &[u8], names: &mut HashMap<u16, String>) {
    let mut at = 0usize;
    while let (Some(flags), Some(index), Some(aux), Some(next)) = (
        u16_at(bytes, at + 2),
        u16_at(bytes, at + 4),
        u32_at(bytes, at + 12),
        u32_at(bytes, at + 16),
    ) {
        // VER_FLG_BASE is the name of the file, not a version.
        let base = flags & 1 != 0;
        if let Some(name) = u32_at(bytes, at.saturating_add(aux as usize)).filter(|_| !base) {
            names.insert(index & !HIDDEN, string_at(strings, name));
        }
        if next == 0 {
            return;
        }
        at = at.saturating_add(next as usize);
    }
}

/// `Elf64_Verneed` (16 bytes), each with a chain of `Elf64_Vernaux` (16 bytes).
fn read_needs(bytes: &[u8], strings: &[u8], names: &mut HashMap<u16, String>) {
    let mut at = 0usize;
    // Chains may overlap in a hostile file: as many steps as records fit in the section.
    let mut steps = bytes.len() / 8;
    while let (Some(aux), Some(next)) = (u32_at(bytes, at + 8), u32_at(bytes, at + 12)) {
        let mut inner = at.saturating_add(aux as usize);
        while let (Some(index), Some(name), Some(following)) = (
            u16_at(bytes, inner.saturating_add(6)),
            u32_at(bytes, inner.saturating_add(8)),
            u32_at(bytes, inner.saturating_add(12)),
        ) {
            names.insert(index & !HIDDEN, string_at(strings, name));
            steps = steps.saturating_sub(1);
            if following == 0 || steps == 0 {
                break;
            }
            inner = inner.saturating_add(following as usize);
        }
        if next == 0 || steps == 0 {
            return;
        }
        at = at.saturating_add(next as usize);
    }
}

fn append(table: &mut SymbolTable, elf: &Elf, raw: RawTable, versions: &HashMap<u16, String>) {
    let known = Known::of(table);
    let mut numbers: HashMap<u16, u16> = HashMap::new();
    let symbols = pod_slice::<Sym64<LE>>(&raw.symbols);
    // Of a second table little is left.
    let room = if table.symbols.is_empty() {
        symbols.len()
    } else {
        0
    };
    let mut taken = Vec::with_capacity(room);
    for (index, symbol) in symbols.iter().enumerate().skip(1) {
        let Some(mut symbol) = take(elf, symbol, &raw) else {
            continue;
        };
        if known.holds(table, &symbol, &raw.strings) {
            continue;
        }
        let version = u16_at(&raw.versions, index * 2).unwrap_or(0);
        if let Some(name) = versions.get(&(version & !HIDDEN)) {
            symbol.version = *numbers.entry(version & !HIDDEN).or_insert_with(|| {
                table.versions.push(name.clone());
                u16::try_from(table.versions.len()).unwrap_or(0)
            });
            symbol.hidden_version = version & HIDDEN != 0;
        }
        taken.push(symbol);
    }
    add_names(table, raw.strings, &mut taken);
    if table.symbols.is_empty() {
        table.symbols = taken;
    } else {
        table.symbols.append(&mut taken);
    }
}

/// Moves the names of one string table into the module's.
fn add_names(table: &mut SymbolTable, strings: Vec<u8>, taken: &mut Vec<Symbol>) {
    if table.names.is_empty() {
        table.names = strings;
        // The first byte of a string table is NUL; make it so, that every name has one before it.
        match table.names.first_mut() {
            Some(first) => *first = 0,
            None => table.names.push(0),
        }
        return;
    }
    table.names.push(0);
    // Few are left of a table that repeats the other: then only their names are taken.
    let mut few = Vec::new();
    for symbol in taken.iter() {
        few.extend_from_slice(string_bytes(&strings, symbol.name));
        few.push(0);
        if few.len() >= strings.len() {
            break;
        }
    }
    let base = table.names.len() as u32;
    if few.len() >= strings.len() {
        table.names.extend_from_slice(&strings);
        taken.retain_mut(|symbol| match base.checked_add(symbol.name) {
            Some(name) => {
                symbol.name = name;
                true
            }
            None => false,
        });
        return;
    }
    let mut at = base;
    for symbol in taken.iter_mut() {
        let length = string_bytes(&strings, symbol.name).len() as u32;
        symbol.name = at;
        at += length + 1;
    }
    table.names.extend_from_slice(&few);
}

/// The symbols of the first table by address: the second table is mostly a part of it.
///
/// A hash table of chains, in six bytes a symbol or so: half a million look-ups in a sorted list
/// miss the processor's caches a dozen times each, and fresh memory is not free either.
struct Known {
    /// The last symbol of each hash, counted from 1.
    heads: Vec<u32>,
    /// The one before each symbol, of the same hash.
    before: Vec<u32>,
    shift: u32,
}

impl Known {
    fn of(table: &SymbolTable) -> Known {
        let count = table.symbols.len();
        let slots = count.next_power_of_two().max(2);
        let mut known = Known {
            heads: vec![0; slots],
            before: vec![0; count],
            shift: 64 - slots.trailing_zeros(),
        };
        for (index, symbol) in table.symbols.iter().enumerate() {
            if symbol.binding != Binding::Local {
                let slot = known.slot(symbol.address);
                known.before[index] = std::mem::replace(&mut known.heads[slot], index as u32 + 1);
            }
        }
        known
    }

    fn slot(&self, address: u64) -> usize {
        // Fibonacci hashing: neighbours come to lie apart.
        (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    fn holds(&self, table: &SymbolTable, symbol: &Symbol, strings: &[u8]) -> bool {
        let mut at = self.heads[self.slot(symbol.address)];
        let mut name = None;
        // Undefined symbols all have the address 0, and a hostile file may put every symbol there: then doubles stay.
        for _ in 0..256 {
            let Some(index) = at.checked_sub(1).map(|index| index as usize) else {
                return false;
            };
            let other = &table.symbols[index];
            if other.address == symbol.address && other.kind == symbol.kind {
                let name = name.get_or_insert_with(|| {
                    unversioned(string_bytes(strings, symbol.name), symbol.origin)
                });
                if is_named(table, other, name) {
                    return true;
                }
            }
            at = self.before[index];
        }
        false
    }
}

/// Whether that is the symbol's name, a version behind it or not.
fn is_named(table: &SymbolTable, symbol: &Symbol, name: &[u8]) -> bool {
    let own = table.names.get(symbol.name as usize..).unwrap_or_default();
    own.strip_prefix(name)
        .is_some_and(|rest| matches!(rest.first(), None | Some(0 | b'@')))
}

/// The string at an offset of a string table, at most [`NAME_LIMIT`].
fn string_bytes(strings: &[u8], offset: u32) -> &[u8] {
    let rest = strings.get(offset as usize..).unwrap_or_default();
    let rest = &rest[..rest.len().min(NAME_LIMIT)];
    &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]
}

/// A symbol worth having; its name is still an offset in its own string table.
fn take(elf: &Elf, symbol: &Sym64<LE>, raw: &RawTable) -> Option<Symbol> {
    let name = symbol.st_name.get(LE);
    let first = *raw.strings.get(name as usize)?;
    let kind = symbol.st_info.0 & 0xf;
    if first == 0 || kind == STT_SECTION || kind == STT_FILE {
        return None;
    }
    let binding = match symbol.st_info.0 >> 4 {
        0 => Binding::Local,
        2 => Binding::Weak,
        _ => Binding::Global,
    };
    // Assemblers' own labels.
    if raw.strings[name as usize..].starts_with(b".L") {
        return None;
    }
    let address = symbol.st_value.get(LE);
    let mut section = symbol.st_shndx.get(LE).0;
    if section == SHN_XINDEX {
        section = elf
            .section_at(address)
            .and_then(|(index, _)| u16::try_from(index).ok())
            .unwrap_or(SHN_XINDEX);
    } else if let Some(sections) = &raw.sections {
        // The module itself says what it imports, and what lies in a section that it does not have is not in it.
        if let Some(same) = sections.get(usize::from(section)) {
            section = (*same).filter(|_| section != 0)?;
        }
    }
    let code = match elf.sections.get(usize::from(section)) {
        Some(section) => section.executable && elf.in_executable_segment(address),
        None => elf.sections.is_empty() && elf.is_code(address),
    };
    let function = matches!(kind, STT_FUNC | STT_GNU_IFUNC);
    let kind = match kind {
        _ if section == 0 => SymbolKind::Undefined,
        STT_TLS => SymbolKind::ThreadLocal,
        _ if section == SHN_ABS => SymbolKind::Absolute,
        STT_GNU_IFUNC if code => SymbolKind::Ifunc,
        STT_FUNC if code => SymbolKind::Function,
        0 if code => SymbolKind::Label,
        _ => SymbolKind::Data,
    };
    Some(Symbol {
        address,
        size: symbol.st_size.get(LE),
        name,
        version: 0,
        hidden_version: false,
        section,
        kind,
        binding,
        origin: raw.origin,
        function,
    })
}

/// The relocations that fill the pointers which PLT stubs jump through: address -> symbol's name.
pub(super) fn got_names(image: &Image, elf: &Elf) -> HashMap<u64, Vec<u8>> {
    let mut names = HashMap::new();
    for section in elf
        .sections
        .iter()
        .filter(|section| section.kind == SHT_RELA && section.allocated)
    {
        let Some(symbols) = elf.sections.get(section.link as usize) else {
            continue;
        };
        let Some(strings) = elf.sections.get(symbols.link as usize) else {
            continue;
        };
        let read =
            |section: &Section| read_section(image, section, "the relocations").unwrap_or_default();
        let (relocations, symbols, strings) = (read(section), read(symbols), read(strings));
        let symbols = pod_slice::<Sym64<LE>>(&symbols);
        for relocation in pod_slice::<Rela64<LE>>(&relocations) {
            let info = relocation.r_info.get(LE);
            let (symbol, kind) = ((info >> 32) as usize, elf::RelocationType(info as u32));
            let name = match kind {
                elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT => {
                    let Some(symbol) = symbols.get(symbol) else {
                        continue;
                    };
                    string_at(&strings, symbol.st_name.get(LE)).into_bytes()
                }
                // gdb's name for a stub of an ifunc of the file itself.
                elf::R_X86_64_IRELATIVE => {
                    format!("*ABS*+{:#x}", relocation.r_addend.get(LE)).into_bytes()
                }
                _ => continue,
            };
            names.insert(relocation.r_offset.get(LE), name);
        }
    }
    names
}
