//! An object file with its symbols, by itself: names to functions, addresses to names.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::debugfile::{DebugFile, Search, Wanted};
use super::demangle;
use super::elf::{Elf, ElfError, Image, Section};
use super::frames::Frames;
use super::pattern::Pattern;
use super::table::{Symbol, SymbolKind, SymbolTable};
use super::{ifunc, listing, load, plt};
use crate::arch::{FileAddress, is_padding};

/// A file that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct ModuleError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: ElfError,
}

/// A program or shared library.
#[derive(Debug)]
pub struct Module {
    path: PathBuf,
    image: Image,
    elf: Elf,
    table: SymbolTable,
    separate: Option<Separate>,
    warnings: Vec<String>,
    plt: Vec<(u64, u64)>,
    indirect: OnceLock<Vec<(u64, u64)>>,
    frames: OnceLock<Frames>,
    matched: Mutex<HashMap<String, Arc<[u32]>>>,
}

/// The separate debug file that a module's names come from.
#[derive(Debug)]
struct Separate {
    path: PathBuf,
    debug_info: bool,
}

/// What regular expressions matched is kept for so many of them: a library that is loaded asks again.
const PATTERNS_KEPT: usize = 64;
/// More than that between two functions is no padding, but code without frames.
const PADDING: u64 = 4096;

impl Module {
    /// Reads the file at `path`.
    pub fn open(path: &Path) -> Result<Module, ModuleError> {
        let cause = |cause| ModuleError {
            path: path.to_path_buf(),
            cause,
        };
        Image::open(path)
            .and_then(|image| Module::read(path.to_path_buf(), image))
            .map_err(cause)
    }

    /// Reads an open file, known to the user as `path`: a mapping of a deleted file.
    pub fn from_file(path: &Path, file: File) -> Result<Module, ModuleError> {
        Image::from_file(file)
            .and_then(|image| Module::read(path.to_path_buf(), image))
            .map_err(|cause| ModuleError {
                path: path.to_path_buf(),
                cause,
            })
    }

    /// Reads an image out of memory: the vDSO.
    pub fn from_memory(name: &Path, bytes: Vec<u8>) -> Result<Module, ModuleError> {
        Module::read(name.to_path_buf(), Image::Memory(Arc::from(bytes))).map_err(|cause| {
            ModuleError {
                path: name.to_path_buf(),
                cause,
            }
        })
    }

    fn read(path: PathBuf, image: Image) -> Result<Module, ElfError> {
        let elf = Elf::parse(&image)?;
        let table = load::load(&image, &elf)?;
        let plt = plt::ranges(&elf);
        Ok(Module {
            path,
            image,
            elf,
            table,
            separate: None,
            warnings: Vec::new(),
            plt,
            indirect: OnceLock::new(),
            frames: OnceLock::new(),
            matched: Mutex::default(),
        })
    }

    /// Looks for the separate debug file, as gdb where the module has no DWARF sections; where it has no
    /// `.symtab` either, the names are taken from there.
    pub fn with_debug_file(mut self, search: Search<'_>) -> Module {
        if self.has_debug_info() {
            return self;
        }
        let wanted = Wanted {
            path: &self.path,
            image: &self.image,
            elf: &self.elf,
        };
        let Some(file) = search.find(&wanted, &mut self.warnings) else {
            return self;
        };
        let DebugFile {
            path,
            debug_info,
            symbols,
        } = file;
        if let Some(symbols) = symbols {
            load::add_separate(&mut self.table, &self.elf, symbols);
        }
        self.separate = Some(Separate { path, debug_info });
        self
    }

    /// The separate debug file that belongs to it.
    pub fn debug_file(&self) -> Option<&Path> {
        self.separate.as_ref().map(|file| file.path.as_path())
    }

    /// Whether there are names beyond those that it exports, its own or those of its debug file.
    pub fn has_names(&self) -> bool {
        self.elf.has_symbols() || self.table.separate
    }

    /// Why debug files that were found are not used, a line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's headers.
    pub fn elf(&self) -> &Elf {
        &self.elf
    }

    /// The symbols.
    pub fn symbols(&self) -> &SymbolTable {
        &self.table
    }

    /// `.text`, which gdb's `info sharedlibrary` gives as From and To: start and end.
    pub fn text(&self) -> Option<(FileAddress, FileAddress)> {
        let section = self.elf.section(".text")?;
        Some((
            FileAddress(section.address),
            FileAddress(section.address.saturating_add(section.size)),
        ))
    }

    /// Whether the file or its separate debug file has DWARF sections; without them gdb marks it `(*)`.
    pub fn has_debug_info(&self) -> bool {
        self.elf.section(".debug_info").is_some()
            || self.separate.as_ref().is_some_and(|file| file.debug_info)
    }

    /// Whether a file address lies in a PLT stub.
    pub fn in_plt(&self, address: FileAddress) -> bool {
        self.plt
            .iter()
            .any(|(start, end)| (*start..*end).contains(&address.0))
    }

    /// The pointers that the resolvers of indirect functions fill, with the resolvers: file addresses.
    /// None where no symbol is a resolver: nobody asks what one chose whose name is not known.
    pub(super) fn indirect_pointers(&self) -> &[(u64, u64)] {
        self.indirect.get_or_init(|| {
            let mut symbols = self.table.all().iter();
            match symbols.any(|symbol| symbol.kind == SymbolKind::Ifunc) {
                true => ifunc::pointers(&self.image, &self.elf),
                false => Vec::new(),
            }
        })
    }

    /// The section that holds a file address.
    pub fn section_at(&self, address: FileAddress) -> Option<&Section> {
        self.elf.section_at(address.0).map(|(_, section)| section)
    }

    /// Up to `len` bytes of the file at a file address; fewer at the end of a segment's file part.
    pub fn bytes(&self, address: FileAddress, len: u64) -> Result<Vec<u8>, ElfError> {
        let what = "the code";
        let (offset, left) = self
            .elf
            .offset_of(address.0)
            .ok_or(ElfError::Truncated { what })?;
        self.image.read(offset, len.min(left), what)
    }

    /// The symbol that gdb names for a file address, and the offset in it.
    pub fn symbol_at(&self, address: FileAddress) -> Option<(&Symbol, u64)> {
        self.table.at(address.0, &self.elf)
    }

    /// The name of the method that a thunk is for, `None` for what is no thunk.
    pub fn thunk_method<'a>(&self, linkage_name: &'a str) -> Option<&'a str> {
        demangle::thunk_target(linkage_name.strip_prefix("_Z")?).map(|(_, method)| method)
    }

    /// Whether a symbol is a thunk that only passes the call on to its method.
    pub fn is_passing_thunk(&self, symbol: &Symbol) -> bool {
        let name = self.table.linkage_name(symbol);
        let Some(method) = self.thunk_method(&name) else {
            return false;
        };
        let size = self.extent(symbol).min(256);
        let Ok(code) = self.bytes(FileAddress(symbol.address), size) else {
            return false;
        };
        let method = format!("_Z{method}");
        let own = symbol.address..symbol.address.saturating_add(size);
        super::thunk::passes_on(&code, symbol.address, |target| {
            // By the names at the target first: to look for a name in a large table costs more.
            self.is_named_at(target, &method)
                || self.in_plt(FileAddress(target))
                // The method's own name was stripped or made local: any jump away must do.
                || !own.contains(&target)
                    && !self.find_linkage(&method).iter().any(|home| home.kind.is_code())
        })
    }

    /// Whether one of the symbols at exactly a file address has a linkage name.
    fn is_named_at(&self, address: u64, name: &str) -> bool {
        let all = self.table.all();
        let order = self.table.by_address();
        let start = order.partition_point(|&index| all[index as usize].address < address);
        let here = order[start..].iter().map(|&index| &all[index as usize]);
        here.take_while(|symbol| symbol.address == address)
            .any(|symbol| symbol.kind.is_code() && self.table.linkage_name(symbol) == name)
    }

    /// The bytes that a symbol covers: its size, or up to the next symbol or the end of the function by
    /// `.eh_frame`, whichever comes first.
    pub fn extent(&self, symbol: &Symbol) -> u64 {
        let extent = self.table.extent(symbol, &self.elf);
        if symbol.size != 0 || !symbol.kind.is_code() {
            return extent;
        }
        let frames = self.frames();
        let end = match frames.at(symbol.address) {
            Some(range) => Some(range.end),
            None => frames.next_start(symbol.address),
        };
        end.map_or(extent, |end| extent.min(end - symbol.address))
    }

    /// The functions by `.eh_frame`.
    pub fn frames(&self) -> &Frames {
        self.frames
            .get_or_init(|| Frames::read(&self.image, &self.elf))
    }

    /// The function that a file address is in: by `.eh_frame`, which knows stripped ones too, or by a symbol.
    pub fn function_range(&self, address: FileAddress) -> Option<Range<u64>> {
        if let Some(range) = self.frames().at(address.0) {
            return Some(range);
        }
        let (symbol, offset) = self.symbol_at(address)?;
        let extent = self.extent(symbol);
        (offset < extent).then(|| symbol.address..symbol.address.saturating_add(extent))
    }

    /// What lies between two functions, if the file address is in none and nothing but padding stands there.
    pub fn padding_around(&self, address: FileAddress) -> Option<Range<u64>> {
        let gap = self.frames().between(address.0)?;
        let named = self.symbol_at(address);
        if named.is_some_and(|(symbol, offset)| offset < self.extent(symbol)) {
            return None;
        }
        let length = gap.end - gap.start;
        let code = self
            .bytes(FileAddress(gap.start), length.min(PADDING))
            .ok()?;
        (length <= PADDING && is_padding(&code)).then_some(gap)
    }

    /// The functions in whose demangled names a regular expression matches, by their index in the table. PLT
    /// stubs, the cold parts of functions and thunks that only pass on are none. `compiled` gives the expression
    /// as a pattern, if what it matches is not known yet.
    pub fn matching<'p, E>(
        &self,
        regex: &str,
        compiled: impl FnOnce() -> Result<&'p Pattern, E>,
    ) -> Result<Arc<[u32]>, E> {
        let kept = || self.matched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().get(regex) {
            return Ok(Arc::clone(known));
        }
        let found: Arc<[u32]> = listing::matching(self, compiled()?).into();
        let mut kept = kept();
        if kept.len() >= PATTERNS_KEPT {
            kept.clear();
        }
        kept.insert(regex.to_string(), Arc::clone(&found));
        Ok(found)
    }

    /// Symbols of exactly this name: as the linker knows it, or with `@VERSION`.
    pub fn find_linkage(&self, name: &str) -> Vec<&Symbol> {
        super::lookup::linkage(&self.table, name)
    }

    /// Defined symbols that a typed name means: by linkage name, or demangled by gdb's wild matching.
    pub fn find(&self, name: &str, wanted: impl Fn(SymbolKind) -> bool) -> Vec<&Symbol> {
        super::lookup::find(&self.table, name, wanted)
    }
}
