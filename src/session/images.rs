//! The modules of a program or process as the session needs them: places, names, file contents.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::view::Names;
use crate::arch::{self, FileAddress, LoadBias};
use crate::error::{Error, fail};
use crate::lang;
use crate::symbols::{
    DebugDirectories, Loaded, Location, Modules, Named, Place, ResolveError, SymbolKind, parse_maps,
};

/// Why a probe has no place.
#[derive(Debug)]
pub enum Unresolved {
    /// Nothing that is loaded has it; something that is loaded later may.
    NotFound {
        /// gdb's text.
        message: String,
        /// What else there is to say.
        hint: Option<String>,
        /// The program imports it: a library that is loaded at its start will have it.
        imported: bool,
    },
    /// It can never be one.
    Bad(Error),
}

/// See the module.
#[derive(Debug, Default, Clone)]
pub struct Images {
    /// The modules, the program first.
    pub modules: Modules,
    /// The program's file.
    pub program: PathBuf,
    /// Load addresses in the order in which modules are shown.
    pub order: Vec<LoadBias>,
    /// The paths by which the dynamic linker knows its modules.
    pub names: HashMap<LoadBias, PathBuf>,
    /// The names of addresses that were asked for: each hit of a site asks for the same ones.
    asked: RefCell<HashMap<u64, Option<Named>>>,
}

/// How many names are kept.
const NAMES_KEPT: usize = 4096;

/// Nothing is loaded.
pub static NOTHING: NoImages = NoImages;

/// [`Names`] of nothing.
pub struct NoImages;

impl Images {
    /// The program's file, before there is a process.
    pub fn of_file(path: &Path, debug: &DebugDirectories) -> Result<Images, Error> {
        let modules = Modules::from_program(path, debug).map_err(|e| file_error(path, &e.cause))?;
        let program = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        Ok(Images {
            modules,
            program,
            ..Images::default()
        })
    }

    /// The modules of a running process. What `before` holds is not read again.
    pub fn of_process(
        pid: i32,
        read: &dyn Fn(u64, &mut [u8]) -> bool,
        before: Option<&Images>,
        debug: &DebugDirectories,
    ) -> Result<Images, Error> {
        let text = fs::read(format!("/proc/{pid}/maps"))
            .map_err(|e| Error::new(format!("Cannot read the mappings of process {pid}: {e}.")))?;
        let maps = parse_maps(&text);
        let none = Modules::default();
        let before_modules = before.map_or(&none, |b| &b.modules);
        let modules = Modules::of_process(pid, &maps, read, before_modules, debug);
        let program = super::process::executable(pid)
            .or_else(|| before.map(|b| b.program.clone()))
            .unwrap_or_default();
        Ok(Images {
            modules,
            program,
            ..Images::default()
        })
    }

    fn named<R>(&self, address: u64, f: impl FnOnce(&Named) -> R) -> Option<R> {
        let mut asked = self.asked.borrow_mut();
        if asked.len() >= NAMES_KEPT {
            asked.clear();
        }
        let named = asked
            .entry(address)
            .or_insert_with(|| self.modules.symbol_at(address));
        named.as_ref().map(f)
    }

    /// Every address that a location means: behind the prologue for a breakpoint on a function.
    pub fn locate(&self, spec: &str, behind_prologue: bool) -> Result<Vec<u64>, Unresolved> {
        let location = Location::parse(spec);
        let places = self.modules.resolve(&location).map_err(unresolved)?;
        let function = matches!(
            location,
            Location::Function { .. } | Location::Pattern { .. }
        );
        let mut addresses = Vec::with_capacity(places.len());
        for place in &places {
            let address = if function && behind_prologue {
                self.behind_prologue(place)
            } else if function {
                place.runtime
            } else {
                self.exact(place.runtime).map_err(Unresolved::Bad)?
            };
            addresses.push(address);
        }
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }

    /// The functions that a regular expression matches, each address once: the linker's name and the
    /// demangled one.
    pub fn functions(
        &self,
        module: Option<&str>,
        regex: &str,
    ) -> Result<Vec<(String, String)>, Error> {
        match self.modules.matching(module, regex) {
            Ok(list) => Ok(list),
            // Nothing matches, or the library is not there: nothing is set, as in gdb.
            Err(ResolveError::NoFunction { .. } | ResolveError::NoModule { .. }) => Ok(Vec::new()),
            Err(error) => Err(Error::new(error.to_string())),
        }
    }

    fn behind_prologue(&self, place: &Place) -> u64 {
        let loaded = &self.modules.loaded()[place.module];
        let size = place.function.1.clamp(1, PROLOGUE_MAX);
        match loaded.module.bytes(place.address, size) {
            Ok(code) => place.runtime + arch::prologue(&code) as u64,
            Err(_) => place.runtime,
        }
    }

    /// An exact address, refused where no instruction begins.
    pub fn exact(&self, address: u64) -> Result<u64, Error> {
        let Some(index) = self.modules.module_at(address) else {
            return self.outside(address);
        };
        let loaded = &self.modules.loaded()[index];
        let file = loaded.bias.file(address);
        if !loaded.module.elf().is_code(file.0) {
            let what = self
                .symbol_at(address)
                .map_or_else(|| "data".into(), |(name, _)| format!("<{name}>"));
            fail!(
                "Cannot insert breakpoint at {address:#x}: {what} in {} is not code.",
                loaded.path.display()
            );
        }
        if let Some(gap) = loaded.module.padding_around(file) {
            let name = loaded.name();
            fail!(
                "{} is padding between two functions: one ends at {name}+{:#x}, the next begins at {name}+{:#x}.",
                self.place_name(address),
                gap.start,
                gap.end
            );
        }
        let Some((start, code)) = self.function_around(loaded, file) else {
            return Ok(address);
        };
        let Some(arch::Boundary::Inside { before, after }) = arch::boundary(&code, start.0, file.0)
        else {
            return Ok(address);
        };
        let name = |file: u64| {
            let address = FileAddress(file).runtime(loaded.bias);
            let symbol = symbolic(self.symbol_at(address));
            format!("{address:#x}{symbol}")
        };
        let mut text = format!(
            "{} is inside an instruction: instructions begin at {} and {}.",
            name(file.0),
            name(before),
            name(after)
        );
        if self.symbol_at(address).is_none() {
            let (name, end) = (loaded.name(), start.0 + code.len() as u64);
            text.push_str(&format!(
                " That is {name}+{before:#x} and {name}+{after:#x}, in the function {name}+{:#x} to {name}+{end:#x}.",
                start.0
            ));
        }
        fail!("{text}")
    }

    fn outside(&self, address: u64) -> Result<u64, Error> {
        let Some(main) = self.modules.loaded().first() else {
            return Ok(address);
        };
        let file_address = FileAddress(address);
        if main.bias.0 != 0 && main.module.elf().is_code(address) {
            let runtime = file_address.runtime(main.bias);
            fail!(
                "{address:#x} is an address of the file {}, which is loaded elsewhere: there it is {runtime:#x}{}.",
                main.path.display(),
                symbolic(self.symbol_at(runtime))
            );
        }
        fail!("Cannot insert breakpoint at {address:#x}: no program or library has code there.")
    }

    /// The start and the code of the function around a file address.
    fn function_around(
        &self,
        loaded: &Loaded,
        file: FileAddress,
    ) -> Option<(FileAddress, Vec<u8>)> {
        // Behind a function's end there may be anything.
        let range = loaded.module.function_range(file)?;
        let start = FileAddress(range.start);
        let length = (range.end - range.start).min(FUNCTION_MAX);
        Some((start, loaded.module.bytes(start, length).ok()?))
    }

    /// What a place is called: `f`, `f+4`, in stripped code `libx.so+0x1a30`, outside of all modules nothing.
    pub fn place_name(&self, address: u64) -> String {
        match self.symbol_at(address) {
            Some((name, 0)) => return name,
            Some((name, offset)) => return format!("{name}+{offset}"),
            None => {}
        }
        let Some(index) = self.modules.module_at(address) else {
            return String::new();
        };
        let loaded = &self.modules.loaded()[index];
        format!("{}+{:#x}", loaded.name(), loaded.bias.file(address).0)
    }

    /// What the file holds at a run-time address: up to 16 bytes.
    pub fn code(&self, address: u64) -> Vec<u8> {
        let Some(index) = self.modules.module_at(address) else {
            return Vec::new();
        };
        let loaded = &self.modules.loaded()[index];
        loaded
            .module
            .bytes(loaded.bias.file(address), 16)
            .unwrap_or_default()
    }

    /// The shared library that holds an address; not the program.
    pub fn library_at(&self, address: u64) -> Option<String> {
        let loaded = &self.modules.loaded()[self.modules.module_at(address)?];
        let library = !loaded.main && loaded.path.is_absolute();
        library.then(|| self.path_of(loaded).display().to_string())
    }

    /// The path by which the process's linker knows a module.
    fn path_of<'a>(&'a self, loaded: &'a Loaded) -> &'a Path {
        self.names
            .get(&loaded.bias)
            .map_or(&loaded.path, PathBuf::as_path)
    }

    /// What `info symbol` says about an address.
    pub fn describe(&self, address: u64, running: bool) -> Option<String> {
        let named = self.modules.symbol_at(address)?;
        let loaded = &self.modules.loaded()[named.module];
        let offset = match named.offset {
            0 => String::new(),
            n => format!(" + {n}"),
        };
        // gdb names the file where there are several, and a debug file is one.
        let of = if running {
            format!(" of {}", loaded.path.display())
        } else if loaded.module.debug_file().is_some() {
            format!(" of {}", absolute(&loaded.path).display())
        } else {
            String::new()
        };
        Some(format!(
            "{}{offset} in section {}{of}\n",
            named.display, named.section
        ))
    }

    /// What `info sharedlibrary` prints; `pattern` is looked for in the paths.
    pub fn libraries(&self, pattern: &str) -> String {
        let mut rows: Vec<_> = self
            .modules
            .loaded()
            .iter()
            .filter(|l| !l.main && l.path.is_absolute())
            .collect();
        // What is no pattern is text, as in gdb.
        let fits =
            regex::Regex::new(pattern).or_else(|_| regex::Regex::new(&regex::escape(pattern)));
        if let Ok(fits) = fits {
            rows.retain(|loaded| fits.is_match(&self.path_of(loaded).to_string_lossy()));
        }
        let place = |loaded: &&Loaded| self.order.iter().position(|bias| *bias == loaded.bias);
        rows.sort_by_key(|loaded| place(loaded).unwrap_or(usize::MAX));
        if rows.is_empty() {
            return match pattern {
                "" => "No shared libraries loaded at this time.\n".into(),
                _ => "No shared libraries matched.\n".into(),
            };
        }
        let mut out = String::from(
            "From                To                  Syms Read   Shared Object Library\n",
        );
        let mut starred = false;
        for loaded in rows {
            let (from, to) = loaded.text().unwrap_or_default();
            let read = if loaded.module.has_debug_info() {
                "Yes"
            } else {
                starred = true;
                "Yes (*)"
            };
            out.push_str(&format!(
                "{from:#018x}  {to:#018x}  {read:<11} {}\n",
                self.path_of(loaded).display()
            ));
        }
        if starred {
            out.push_str("(*): Shared library is missing debugging information.\n");
        }
        out
    }
}

/// Prologues are short; gdb looks no further either.
const PROLOGUE_MAX: u64 = 64;

/// Functions larger than this are not decoded to check one address.
const FUNCTION_MAX: u64 = 1 << 20;

/// ` <f+4>` behind an address.
fn symbolic(symbol: Option<(String, u64)>) -> String {
    match symbol {
        Some((name, 0)) => format!(" <{name}>"),
        Some((name, offset)) => format!(" <{name}+{offset}>"),
        None => String::new(),
    }
}

fn unresolved(error: ResolveError) -> Unresolved {
    let hint = error.hint();
    match &error {
        ResolveError::NoFunction { .. }
        | ResolveError::NotLoaded { .. }
        | ResolveError::NotCode { .. }
        | ResolveError::NoModule { .. }
        | ResolveError::NoLines { .. } => Unresolved::NotFound {
            message: error.to_string(),
            hint,
            imported: matches!(error, ResolveError::NotLoaded { .. }),
        },
        ResolveError::Module(_)
        | ResolveError::BadPattern { .. }
        | ResolveError::OutsideCode { .. }
        | ResolveError::InPlt { .. } => Unresolved::Bad(Error::new(match hint {
            Some(hint) => format!("{error}\n{hint}"),
            None => error.to_string(),
        })),
    }
}

fn file_error(path: &Path, cause: &crate::symbols::ElfError) -> Error {
    use crate::symbols::ElfError;
    match cause {
        ElfError::Io(text) => Error::new(format!("{}: {text}.", path.display())),
        ElfError::NotElf => Error::new(format!(
            "\"{}\": not in executable format: file format not recognized",
            absolute(path).display()
        )),
        other => Error::new(format!("\"{}\": {other}", absolute(path).display())),
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

impl Names for Images {
    fn symbol(&self, name: &str) -> Option<lang::Symbol> {
        let found = self.modules.symbol(name)?;
        Some(lang::Symbol {
            address: found.address,
            size: found.size,
            kind: kind(found.kind),
        })
    }

    fn symbol_at(&self, address: u64) -> Option<(String, u64)> {
        self.named(address, |named| (named.display.clone(), named.offset))
    }

    fn linkage_symbol_at(&self, address: u64) -> Option<(String, u64)> {
        self.named(address, |named| (named.name.clone(), named.offset))
    }

    fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), u64> {
        let mut done = 0;
        while done < buf.len() {
            let at = address.wrapping_add(done as u64);
            let index = self.modules.module_at(at).ok_or(at)?;
            let loaded = &self.modules.loaded()[index];
            let piece = loaded
                .module
                .bytes(loaded.bias.file(at), (buf.len() - done) as u64)
                .map_err(|_| at)?;
            if piece.is_empty() {
                return Err(at);
            }
            let length = piece.len().min(buf.len() - done);
            buf[done..done + length].copy_from_slice(&piece[..length]);
            done += length;
        }
        Ok(())
    }

    fn debug_info(&self) -> bool {
        let mut loaded = self.modules.loaded().iter();
        loaded.any(|loaded| loaded.module.has_debug_info())
    }
}

fn kind(kind: SymbolKind) -> lang::SymbolKind {
    match kind {
        SymbolKind::Ifunc => lang::SymbolKind::Ifunc,
        SymbolKind::ThreadLocal => lang::SymbolKind::Tls,
        SymbolKind::Absolute => lang::SymbolKind::Absolute,
        kind if kind.is_code() => lang::SymbolKind::Text,
        _ => lang::SymbolKind::Data,
    }
}

impl Names for NoImages {
    fn symbol(&self, _: &str) -> Option<lang::Symbol> {
        None
    }
    fn symbol_at(&self, _: u64) -> Option<(String, u64)> {
        None
    }
    fn linkage_symbol_at(&self, _: u64) -> Option<(String, u64)> {
        None
    }
    fn read(&self, address: u64, _: &mut [u8]) -> Result<(), u64> {
        Err(address)
    }
    fn debug_info(&self) -> bool {
        false
    }
}
