//! The symbols of one object file: `.symtab` and `.dynsym` merged, the PLT's stubs named.
//!
//! Nothing is demangled and no name is copied when a table is loaded: a symbol is 32 bytes that
//! point into the file's own string tables. Orders (by address, by name) are made when first asked.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::demangle;
use super::elf::Elf;

/// A longer name is cut; none of a compiler's comes near it.
pub const NAME_LIMIT: usize = 1 << 16;

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// `STT_FUNC` in code.
    Function,
    /// `STT_GNU_IFUNC`: the address is the resolver's, not the function's.
    Ifunc,
    /// `STT_NOTYPE` in code: assembly.
    Label,
    /// Data, wherever it lies.
    Data,
    /// The value is an offset in the thread's block.
    ThreadLocal,
    /// `SHN_ABS`: a number.
    Absolute,
    /// Defined in another module; never a location.
    Undefined,
    /// `name@plt`, a stub that jumps to another module; never a location.
    Plt,
    /// `name@got.plt`, the pointer that a stub jumps through.
    Got,
}

impl SymbolKind {
    /// Whether a breakpoint can stand on it.
    pub fn is_code(self) -> bool {
        matches!(
            self,
            SymbolKind::Function | SymbolKind::Ifunc | SymbolKind::Label
        )
    }

    /// Whether `nm` would list it among the data.
    pub fn is_data(self) -> bool {
        matches!(self, SymbolKind::Data | SymbolKind::ThreadLocal)
    }
}

/// `STB_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// Seen in its own file only.
    Local,
    /// Seen everywhere.
    Global,
    /// Seen everywhere, gives way to a global one.
    Weak,
}

/// The table that a symbol was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// `.symtab`.
    Static,
    /// `.dynsym`.
    Dynamic,
    /// Made from the PLT.
    Synthetic,
}

/// One symbol. `name` and `version` are read through the [`SymbolTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// `st_value`: a file address, or an offset for thread-local symbols.
    pub address: u64,
    /// `st_size`, bytes; see [`SymbolTable::extent`] for those that are 0.
    pub size: u64,
    pub(super) name: u32,
    pub(super) version: u16,
    pub(super) hidden_version: bool,
    /// `st_shndx`, index into [`Elf::sections`]; 0xffff where there is none.
    pub section: u16,
    /// What it stands for.
    pub kind: SymbolKind,
    /// Who sees it.
    pub binding: Binding,
    /// Where it was read.
    pub origin: Origin,
    /// The file calls it a function, even where it only imports it.
    pub function: bool,
}

/// All symbols of a module.
#[derive(Debug, Default)]
pub struct SymbolTable {
    pub(super) symbols: Vec<Symbol>,
    /// `.strtab`, then `.dynstr`, then the names made here; ends with a NUL.
    pub(super) names: Vec<u8>,
    /// Version names; [`Symbol::version`] counts from 1.
    pub(super) versions: Vec<String>,
    /// `.symtab` is that of a separate debug file.
    pub(super) separate: bool,
    by_address: OnceLock<Vec<u32>>,
    by_name: OnceLock<Vec<u32>>,
    by_hash: OnceLock<Vec<(u32, u32)>>,
    exact_lookups: AtomicU32,
}

/// A search through the names is quick, and an order by hashes quicker once there are many of them.
const SEARCHES: u32 = 16;

impl SymbolTable {
    /// Every symbol, in the order of the tables.
    pub fn all(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The bytes of the name as the file has it, at most [`NAME_LIMIT`].
    pub fn name_bytes(&self, symbol: &Symbol) -> &[u8] {
        self.name_at(symbol.name)
    }

    pub(super) fn name_at(&self, offset: u32) -> &[u8] {
        let rest = self.names.get(offset as usize..).unwrap_or_default();
        let rest = &rest[..rest.len().min(NAME_LIMIT)];
        &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]
    }

    /// The name by which the linker knows it, without a version: what an exact lookup compares.
    pub fn linkage_name(&self, symbol: &Symbol) -> Cow<'_, str> {
        String::from_utf8_lossy(unversioned(self.name_bytes(symbol), symbol.origin))
    }

    /// The name demangled, as gdb prints it in `info symbol`, `print` and the banners of stops.
    pub fn display_name(&self, symbol: &Symbol) -> String {
        let name = self.linkage_name(symbol);
        // `@plt` and `@got.plt` stay behind the demangled name.
        let (base, suffix) = match name.find('@') {
            Some(at) => name.split_at(at),
            None => (&*name, ""),
        };
        match demangle::demangle(base) {
            Some(text) => text + suffix,
            None if name.contains('.') => bracketed(&name),
            None => name.into_owned(),
        }
    }

    /// The version (`GLIBC_2.14`) and whether it is the default one (`@@`).
    pub fn version<'a>(&'a self, symbol: &Symbol) -> Option<(Cow<'a, str>, bool)> {
        if let Some(name) = symbol
            .version
            .checked_sub(1)
            .and_then(|index| self.versions.get(usize::from(index)))
        {
            return Some((Cow::Borrowed(name), !symbol.hidden_version));
        }
        let name = self.name_bytes(symbol);
        let version = &name[unversioned(name, symbol.origin).len()..];
        let version = version.strip_prefix(b"@")?;
        Some(match version.strip_prefix(b"@") {
            Some(version) => (String::from_utf8_lossy(version), true),
            None => (String::from_utf8_lossy(version), false),
        })
    }

    /// The bytes that a symbol covers: its size, or up to the next symbol or the end of its section.
    pub fn extent(&self, symbol: &Symbol, elf: &Elf) -> u64 {
        if symbol.size != 0 || !(symbol.kind.is_code() || symbol.kind == SymbolKind::Data) {
            return symbol.size;
        }
        let order = self.by_address();
        let after =
            order.partition_point(|&index| self.symbols[index as usize].address <= symbol.address);
        let next = order
            .get(after)
            .map_or(u64::MAX, |&index| self.symbols[index as usize].address);
        let end = match elf.section_at(symbol.address) {
            Some((_, section)) => section.address.saturating_add(section.size),
            None => elf
                .segments
                .iter()
                .find(|segment| segment.contains(symbol.address))
                .map_or(symbol.address, |segment| {
                    segment.address.saturating_add(segment.memory_size)
                }),
        };
        next.min(end).saturating_sub(symbol.address)
    }

    /// Symbols with an address in memory, by address; equal addresses in gdb's order.
    ///
    /// gdb takes the last of equal addresses, and sorts those by name; what the module itself has goes before
    /// what its debug file adds.
    pub fn by_address(&self) -> &[u32] {
        self.by_address.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.symbols.len() as u32)
                .filter(|&index| {
                    let kind = self.symbols[index as usize].kind;
                    !matches!(
                        kind,
                        SymbolKind::Undefined | SymbolKind::ThreadLocal | SymbolKind::Absolute
                    )
                })
                .collect();
            order.sort_unstable_by_key(|&index| self.symbols[index as usize].address);
            for equal in order.chunk_by_mut(|a, b| {
                self.symbols[*a as usize].address == self.symbols[*b as usize].address
            }) {
                if equal.len() > 1 {
                    equal.sort_by_key(|&index| {
                        let symbol = &self.symbols[index as usize];
                        let own = self.separate && symbol.origin != Origin::Static;
                        (own, self.name_at(symbol.name))
                    });
                }
            }
            order
        })
    }

    /// All symbols by the place of their names in [`SymbolTable::names`].
    pub(super) fn by_name(&self) -> &[u32] {
        self.by_name.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.symbols.len() as u32).collect();
            order.sort_unstable_by_key(|&index| (self.symbols[index as usize].name, index));
            order
        })
    }

    /// Symbols that may have a linkage name, once many names were asked for; `None` before.
    pub(super) fn named_like(&self, base: &[u8]) -> Option<impl Iterator<Item = &Symbol>> {
        if self.exact_lookups.fetch_add(1, Ordering::Relaxed) < SEARCHES {
            return None;
        }
        let order = self.by_hash.get_or_init(|| {
            let hash = |(index, symbol): (usize, &Symbol)| {
                let name = unversioned(self.name_bytes(symbol), symbol.origin);
                (hash(name), index as u32)
            };
            let mut order: Vec<_> = self.symbols.iter().enumerate().map(hash).collect();
            order.sort_unstable();
            order
        });
        let wanted = hash(base);
        let start = order.partition_point(|(hash, _)| *hash < wanted);
        let here = order[start..].iter();
        Some(
            here.take_while(move |(hash, _)| *hash == wanted)
                .map(|(_, index)| &self.symbols[*index as usize]),
        )
    }

    /// The symbol that gdb names for a file address, and the offset in it.
    ///
    /// Among symbols of the address's section: the last one at or below it; one without a size
    /// gives way to one with a size that covers the address; behind the end of a sized symbol
    /// there is none, unless one without a size lies between.
    pub fn at(&self, address: u64, elf: &Elf) -> Option<(&Symbol, u64)> {
        let section = match elf.section_at(address) {
            Some((index, _)) => Some(index),
            // gdb knows no address outside of sections; without section headers segments must do.
            None if elf.sections.is_empty() => None,
            None => return None,
        };
        let order = self.by_address();
        let end = order.partition_point(|&index| self.symbols[index as usize].address <= address);
        let eligible =
            |symbol: &Symbol| section.is_none_or(|section| usize::from(symbol.section) == section);
        let mut below = order[..end]
            .iter()
            .rev()
            .map(|&index| &self.symbols[index as usize])
            .filter(|s| eligible(s));
        let mut first_unsized: Option<&Symbol> = None;
        let mut chosen = below.next();
        while let Some(symbol) = chosen {
            if symbol.size == 0 && first_unsized.is_none() {
                first_unsized = Some(symbol);
                chosen = below.next();
                continue;
            }
            if symbol.size != 0 && !covers(symbol, address) {
                let mut look_ahead = below.clone();
                if let Some(before) = look_ahead.next().filter(|before| covers(before, address)) {
                    chosen = Some(before);
                }
            }
            break;
        }
        let symbol = match (chosen, first_unsized) {
            (None, unsized_one) => unsized_one?,
            (Some(symbol), Some(unsized_one)) if symbol.size == 0 || !covers(symbol, address) => {
                unsized_one
            }
            (Some(symbol), None) if symbol.size != 0 && !covers(symbol, address) => return None,
            (Some(symbol), _) => symbol,
        };
        Some((symbol, address - symbol.address))
    }
}

/// What gdb makes of a dot in a C name, which it takes for Ada's: `main.cold` is `main[cold]`,
/// `completed.0` is `completed`.
fn bracketed(name: &str) -> String {
    let ada = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b'@')
    };
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.bytes().all(ada) {
        return name.to_string();
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = name
        .rsplit_once('.')
        .filter(|(_, tail)| digits(tail))
        .map_or(name, |(head, _)| head);
    match name.split_once('.') {
        Some((head, tail)) if !tail.contains('.') => format!("{head}[{tail}]"),
        _ => name.to_string(),
    }
}

fn hash(name: &[u8]) -> u32 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    hasher.write(name);
    hasher.finish() as u32
}

fn covers(symbol: &Symbol, address: u64) -> bool {
    address >= symbol.address && address - symbol.address < symbol.size
}

/// The name without `@VERSION`, `@@VERSION`. `@plt` and `@got.plt` are names of their own.
pub fn unversioned(name: &[u8], origin: Origin) -> &[u8] {
    match memchr::memchr(b'@', name) {
        Some(at) if at > 0 && origin != Origin::Synthetic => &name[..at],
        _ => name,
    }
}
