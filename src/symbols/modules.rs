//! The modules of one process, or of one program that does not run yet: addresses to names, names to places.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::elf::ElfError;
use super::location::Location;
use super::lookup;
use super::maps::{Backing, Mapping};
use super::module::{Module, ModuleError};
use super::nearest;
use super::table::{Symbol, SymbolKind};
use crate::arch::{FileAddress, LoadBias};

/// Reads the target's memory: fills the buffer from the run-time address, `false` if it cannot.
pub type ReadMemory<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// The page size of x86-64.
const PAGE: u64 = 4096;
/// The vDSO has a handful of pages.
const VDSO_LIMIT: u64 = 1 << 20;

/// A module where it is loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The file with its symbols; shared between processes and scans.
    pub module: Arc<Module>,
    /// What is added to its file addresses.
    pub bias: LoadBias,
    /// The path by which the process knows it.
    pub path: PathBuf,
    /// The program itself.
    pub main: bool,
    /// Device and inode of the mapping, `None` before the program runs and for the vDSO.
    identity: Option<((u32, u32), u64)>,
}

impl Loaded {
    /// The run-time addresses of `.text`, which gdb shows as From and To.
    pub fn text(&self) -> Option<(u64, u64)> {
        let (start, end) = self.module.text()?;
        Some((start.runtime(self.bias), end.runtime(self.bias)))
    }

    /// Whether a run-time address lies in one of the segments.
    pub fn contains(&self, address: u64) -> bool {
        let file = self.bias.file(address).0;
        self.module
            .elf()
            .segments
            .iter()
            .any(|segment| segment.contains(file))
    }

    /// The path's last part.
    pub fn name(&self) -> String {
        self.path.file_name().map_or_else(
            || self.path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        )
    }
}

/// A file that the process has mapped as code and that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Where its code begins.
    pub start: u64,
    /// Behind the end of its code.
    pub end: u64,
    /// The reason.
    pub error: ModuleError,
}

/// A function's entry, or an address in a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Index into [`Modules::loaded`].
    pub module: usize,
    /// The file address of the place.
    pub address: FileAddress,
    /// The run-time address; before the program runs, the file address.
    pub runtime: u64,
    /// The file address where its function starts and how many bytes it has; the place itself and 0 where no symbol covers it.
    pub function: (FileAddress, u64),
    /// The linker's name, empty where there is none.
    pub name: String,
    /// The demangled name, as gdb prints it in banners.
    pub display: String,
    /// What the symbol is. An [`SymbolKind::Ifunc`] place is the resolver, not the function.
    pub kind: SymbolKind,
}

/// A symbol for an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The run-time address; for thread-local data the offset in the thread's block.
    pub address: u64,
    /// Bytes; 0 if unknown.
    pub size: u64,
    /// What it is.
    pub kind: SymbolKind,
    /// Index into [`Modules::loaded`].
    pub module: usize,
}

/// The name that belongs to a run-time address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The linker's name, which `x/i` prints (gdb's `set print asm-demangle off`).
    pub name: String,
    /// The demangled name, which `print`, `info symbol` and banners print.
    pub display: String,
    /// Bytes from the symbol's address.
    pub offset: u64,
    /// Bytes of the symbol by the file; 0 if it does not say.
    pub size: u64,
    /// The section, `.text`.
    pub section: String,
    /// Index into [`Modules::loaded`].
    pub module: usize,
    /// What it is.
    pub kind: SymbolKind,
}

/// Why a location is nowhere. `Display` is gdb's text; [`ResolveError::hint`] says more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No symbol of that name.
    #[error("Function \"{name}\" not defined.")]
    NoFunction {
        /// The name as written.
        name: String,
        /// Names like it, the nearest first, at most five.
        nearest: Vec<String>,
    },
    /// The name belongs to something that is no code.
    #[error("Function \"{name}\" not defined.")]
    NotCode {
        /// The name as written.
        name: String,
    },
    /// A module imports it, and no loaded module defines it.
    #[error("Function \"{name}\" not defined.")]
    NotLoaded {
        /// The name as written.
        name: String,
    },
    /// No loaded module of that name.
    #[error("No shared library or program \"{name}\" is loaded.")]
    NoModule {
        /// The name as written.
        name: String,
        /// Loaded modules of a similar name.
        nearest: Vec<String>,
    },
    /// The module is loaded but its file cannot be read.
    #[error("{0}")]
    Module(ModuleError),
    /// The address is no code of the module.
    #[error("{address:#x} is no address of code in {module}.")]
    OutsideCode {
        /// The module's path.
        module: String,
        /// The address or offset as written.
        address: u64,
        /// Start and end of the module's executable parts, in the same unit.
        code: Vec<(u64, u64)>,
    },
    /// The address lies in a stub that leads to another module.
    #[error("{address:#x} is a stub of the procedure linkage table of {module}.")]
    InPlt {
        /// The module's path.
        module: String,
        /// The file address.
        address: u64,
        /// The function that the stub leads to.
        function: Option<String>,
    },
    /// A source line.
    #[error("No symbol table is loaded.  Use the \"file\" command.")]
    NoLines {
        /// The text as written.
        text: String,
    },
}

impl ResolveError {
    /// What else there is to say: the nearest names, the cure.
    pub fn hint(&self) -> Option<String> {
        match self {
            ResolveError::NoFunction { nearest, .. } | ResolveError::NoModule { nearest, .. } => {
                (!nearest.is_empty()).then(|| format!("The nearest: {}.", nearest.join(", ")))
            }
            ResolveError::NotCode { name } => {
                Some(format!("\"{name}\" is a variable, not a function."))
            }
            ResolveError::NotLoaded { name } => Some(format!(
                "\"{name}\" is imported from a shared library that is not loaded yet."
            )),
            ResolveError::OutsideCode { code, .. } => {
                let ranges: Vec<String> = code
                    .iter()
                    .map(|(start, end)| format!("{start:#x}-{end:#x}"))
                    .collect();
                (!ranges.is_empty()).then(|| format!("Its code is {}.", ranges.join(", ")))
            }
            ResolveError::InPlt { function, .. } => function
                .as_ref()
                .map(|function| format!("Use the function itself: {function}.")),
            ResolveError::NoLines { text } => Some(format!(
                "\"{text}\" is a source line, and line information is not read; use a function or *ADDRESS."
            )),
            ResolveError::Module(_) => None,
        }
    }
}

/// All modules of a process.
#[derive(Debug, Clone, Default)]
pub struct Modules {
    loaded: Vec<Loaded>,
    unreadable: Vec<Unreadable>,
}

impl Modules {
    /// A program that does not run yet: addresses are file addresses, as gdb shows them before `run`.
    pub fn from_program(path: &Path) -> Result<Modules, ModuleError> {
        Ok(Modules::from_module(Arc::new(Module::open(path)?)))
    }

    /// The same for a module that is read already.
    pub fn from_module(module: Arc<Module>) -> Modules {
        let path = module.path().to_path_buf();
        let main = Loaded {
            module,
            bias: LoadBias(0),
            path,
            main: true,
            identity: None,
        };
        Modules {
            loaded: vec![main],
            unreadable: Vec::new(),
        }
    }

    /// The modules in a running process, by its mappings. What `before` has read is not read again.
    ///
    /// A file that was replaced or deleted since it was loaded is read through
    /// `/proc/PID/map_files`; if that is not allowed it is listed in [`Modules::unreadable`].
    pub fn of_process(
        pid: i32,
        maps: &[Mapping],
        read: ReadMemory<'_>,
        before: &Modules,
    ) -> Modules {
        let mut modules = Modules::default();
        let program = std::fs::metadata(format!("/proc/{pid}/exe"))
            .ok()
            .map(|data| data.ino());
        for map in maps.iter().filter(|map| map.executable) {
            match &map.backing {
                Backing::File { path, deleted } => {
                    let main = program == Some(map.inode);
                    modules.take_file(pid, map, path, *deleted, main, read, before);
                }
                Backing::Special(name) if name == "[vdso]" => modules.take_vdso(map, read, before),
                _ => {}
            }
        }
        modules.loaded.sort_by_key(|loaded| !loaded.main);
        modules
    }

    #[allow(clippy::too_many_arguments)]
    fn take_file(
        &mut self,
        pid: i32,
        map: &Mapping,
        path: &Path,
        deleted: bool,
        main: bool,
        read: ReadMemory<'_>,
        before: &Modules,
    ) {
        let identity = Some((map.device, map.inode));
        let same = |loaded: &&Loaded| loaded.identity == identity && loaded.path == path;
        let known = self
            .loaded
            .iter()
            .find(same)
            .or_else(|| before.loaded.iter().find(same));
        let module = match known {
            Some(loaded) => Ok(Arc::clone(&loaded.module)),
            None if self.unreadable.iter().any(|other| other.error.path == path) => return,
            None => open_mapped(pid, map, path, deleted, read).map(Arc::new),
        };
        match module {
            Ok(module) => {
                let Some(bias) = bias(&module, map) else {
                    return;
                };
                if !self
                    .loaded
                    .iter()
                    .any(|loaded| loaded.identity == identity && loaded.bias == bias)
                {
                    self.loaded.push(Loaded {
                        module,
                        bias,
                        path: path.to_path_buf(),
                        main,
                        identity,
                    });
                }
            }
            Err(error) => self.unreadable.push(Unreadable {
                start: map.start,
                end: map.end,
                error,
            }),
        }
    }

    fn take_vdso(&mut self, map: &Mapping, read: ReadMemory<'_>, before: &Modules) {
        let path = PathBuf::from("[vdso]");
        let known = before
            .loaded
            .iter()
            .find(|loaded| loaded.path == path)
            .map(|loaded| Arc::clone(&loaded.module));
        let module = known.or_else(|| {
            let mut bytes = vec![0; (map.end - map.start).min(VDSO_LIMIT) as usize];
            read(map.start, &mut bytes)
                .then(|| Module::from_memory(&path, bytes).ok().map(Arc::new))?
        });
        let Some(module) = module else { return };
        if let Some(bias) = bias(&module, map) {
            self.loaded.push(Loaded {
                module,
                bias,
                path,
                main: false,
                identity: None,
            });
        }
    }

    /// Every module, the program first.
    pub fn loaded(&self) -> &[Loaded] {
        &self.loaded
    }

    /// Mapped code whose file could not be read.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// The module that holds a run-time address.
    pub fn module_at(&self, address: u64) -> Option<usize> {
        self.loaded
            .iter()
            .position(|loaded| loaded.contains(address))
    }

    /// The name that gdb puts behind a run-time address, `<main+4>`: data without a size gives none.
    pub fn symbol_at(&self, address: u64) -> Option<Named> {
        self.info_symbol(address)
            .filter(|named| named.size != 0 || named.kind.is_code())
    }

    /// The name that `info symbol` prints for a run-time address.
    pub fn info_symbol(&self, address: u64) -> Option<Named> {
        let module = self.module_at(address)?;
        let loaded = &self.loaded[module];
        let file = loaded.bias.file(address);
        let (symbol, offset) = loaded.module.symbol_at(file)?;
        let table = loaded.module.symbols();
        Some(Named {
            name: table.linkage_name(symbol).into_owned(),
            display: table.display_name(symbol),
            offset,
            size: symbol.size,
            section: loaded
                .module
                .section_at(file)
                .map_or_else(String::new, |section| section.name.clone()),
            module,
            kind: symbol.kind,
        })
    }

    /// A symbol of an expression, data before functions of other modules in the order of loading.
    pub fn symbol(&self, name: &str) -> Option<Found> {
        let wanted =
            |kind: SymbolKind| kind.is_code() || kind.is_data() || kind == SymbolKind::Absolute;
        self.loaded.iter().enumerate().find_map(|(module, loaded)| {
            let found = loaded.module.find(name, wanted);
            // A global one before a file's own.
            let symbol = found
                .iter()
                .find(|symbol| symbol.binding != super::table::Binding::Local)
                .or(found.first())?;
            let address = match symbol.kind {
                SymbolKind::ThreadLocal | SymbolKind::Absolute => symbol.address,
                _ => FileAddress(symbol.address).runtime(loaded.bias),
            };
            Some(Found {
                address,
                size: symbol.size,
                kind: symbol.kind,
                module,
            })
        })
    }

    /// Every place that a location means.
    pub fn resolve(&self, location: &Location) -> Result<Vec<Place>, ResolveError> {
        match location {
            Location::Function { module, name } => self.resolve_function(module.as_deref(), name),
            Location::Address { module, address } => {
                let index = self.named(module)?[0];
                Ok(vec![self.place_at(
                    index,
                    FileAddress(*address),
                    *address,
                )?])
            }
            Location::Offset { module, offset } => {
                let index = self.named(module)?[0];
                let address = self.loaded[index].module.elf().address_of(*offset);
                let address = address.ok_or_else(|| self.outside(index, *offset))?;
                Ok(vec![self.place_at(index, FileAddress(address), *offset)?])
            }
            Location::Line { text } => Err(ResolveError::NoLines { text: text.clone() }),
        }
    }

    fn resolve_function(
        &self,
        module: Option<&str>,
        name: &str,
    ) -> Result<Vec<Place>, ResolveError> {
        let among = match module {
            Some(module) => self.named(module)?,
            None => (0..self.loaded.len()).collect(),
        };
        let mut places = Vec::new();
        for &index in &among {
            self.places_in(index, name, &mut places);
        }
        if places.is_empty() {
            Err(self.no_function(&among, name))
        } else {
            Ok(places)
        }
    }

    fn places_in(&self, index: usize, name: &str, places: &mut Vec<Place>) {
        let loaded = &self.loaded[index];
        let module = &loaded.module;
        let table = module.symbols();
        for symbol in module.find(name, SymbolKind::is_code) {
            let address = FileAddress(symbol.address);
            let linkage = table.linkage_name(symbol);
            let exactly = linkage == name;
            if module.in_plt(address)
                || !exactly && (lookup::is_cold(&linkage) || module.is_passing_thunk(symbol))
            {
                continue;
            }
            if places
                .iter()
                .any(|place| place.module == index && place.address == address)
            {
                continue;
            }
            places.push(self.place(index, symbol, address));
        }
    }

    fn place(&self, index: usize, symbol: &Symbol, address: FileAddress) -> Place {
        let loaded = &self.loaded[index];
        let table = loaded.module.symbols();
        Place {
            module: index,
            address,
            runtime: address.runtime(loaded.bias),
            function: (
                FileAddress(symbol.address),
                table.extent(symbol, loaded.module.elf()),
            ),
            name: table.linkage_name(symbol).into_owned(),
            display: table.display_name(symbol),
            kind: symbol.kind,
        }
    }

    /// The place of a run-time address: for `*EXPR`. `None` outside of every module's code.
    pub fn place_of(&self, address: u64) -> Option<Place> {
        let index = self.module_at(address)?;
        let file = self.loaded[index].bias.file(address);
        self.place_at(index, file, address).ok()
    }

    fn place_at(
        &self,
        index: usize,
        address: FileAddress,
        written: u64,
    ) -> Result<Place, ResolveError> {
        let loaded = &self.loaded[index];
        let module = &loaded.module;
        if !module.elf().is_code(address.0) {
            return Err(self.outside(index, written));
        }
        if module.in_plt(address) {
            let function = module
                .symbol_at(address)
                .map(|(symbol, _)| module.symbols().display_name(symbol));
            let function = function.and_then(|name| name.strip_suffix("@plt").map(str::to_string));
            return Err(ResolveError::InPlt {
                module: loaded.path.display().to_string(),
                address: address.0,
                function,
            });
        }
        Ok(match module.symbol_at(address) {
            Some((symbol, _)) => self.place(index, symbol, address),
            None => Place {
                module: index,
                address,
                runtime: address.runtime(loaded.bias),
                function: (address, 0),
                name: String::new(),
                display: String::new(),
                kind: SymbolKind::Label,
            },
        })
    }

    fn outside(&self, index: usize, written: u64) -> ResolveError {
        let loaded = &self.loaded[index];
        let segments = &loaded.module.elf().segments;
        let code = segments.iter().filter(|segment| segment.executable);
        ResolveError::OutsideCode {
            module: loaded.path.display().to_string(),
            address: written,
            code: code
                .map(|segment| {
                    (
                        segment.address,
                        segment.address.saturating_add(segment.memory_size),
                    )
                })
                .collect(),
        }
    }

    /// The modules that a written name means: the whole path, the file's name, or that without a
    /// version or without `.so`. At least one.
    fn named(&self, name: &str) -> Result<Vec<usize>, ResolveError> {
        for fits in [same_path, same_file, same_library, same_stem] {
            let found: Vec<usize> = (0..self.loaded.len())
                .filter(|&index| fits(&self.loaded[index].path, name))
                .collect();
            if !found.is_empty() {
                return Ok(found);
            }
        }
        for unreadable in &self.unreadable {
            let path = &unreadable.error.path;
            if [same_path, same_file, same_library, same_stem]
                .iter()
                .any(|fits| fits(path, name))
            {
                return Err(ResolveError::Module(unreadable.error.clone()));
            }
        }
        let names: Vec<String> = self.loaded.iter().map(Loaded::name).collect();
        let nearest = nearest::nearest(name, names.iter().map(String::as_str));
        Err(ResolveError::NoModule {
            name: name.to_string(),
            nearest,
        })
    }

    fn no_function(&self, among: &[usize], name: &str) -> ResolveError {
        let name = name.to_string();
        let mut kinds = Vec::new();
        for &index in among {
            let found = self.loaded[index].module.find(&name, |_| true);
            kinds.extend(found.iter().map(|symbol| symbol.kind));
        }
        if kinds.contains(&SymbolKind::Undefined) {
            return ResolveError::NotLoaded { name };
        }
        if kinds
            .iter()
            .any(|kind| kind.is_data() || *kind == SymbolKind::Absolute)
        {
            return ResolveError::NotCode { name };
        }
        let tables = among
            .iter()
            .map(|&index| self.loaded[index].module.symbols());
        let nearest = nearest::functions(&name, tables);
        ResolveError::NoFunction { name, nearest }
    }
}

fn same_path(path: &Path, name: &str) -> bool {
    path == Path::new(name)
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("")
}

fn same_file(path: &Path, name: &str) -> bool {
    file_name(path) == name
}

/// `libc.so` for `libc.so.6`, and for `libc-2.31.so`.
fn same_library(path: &Path, name: &str) -> bool {
    let own = file_name(path);
    let Some(end) = own.find(".so") else {
        return false;
    };
    let unversioned = &own[..end];
    let stem = unversioned
        .rsplit_once('-')
        .filter(|(_, v)| v.starts_with(|c: char| c.is_ascii_digit()))
        .map(|(stem, _)| stem);
    name.strip_suffix(".so")
        .is_some_and(|name| name == unversioned || Some(name) == stem)
        || own
            .strip_prefix(name)
            .is_some_and(|rest| name.contains(".so") && rest.starts_with('.'))
}

/// `libc` for `libc.so.6`.
fn same_stem(path: &Path, name: &str) -> bool {
    !name.is_empty() && same_library(path, &format!("{name}.so"))
}

/// What is added to the file's addresses so that the mapping's offset lies at its start.
fn bias(module: &Module, map: &Mapping) -> Option<LoadBias> {
    let segment = module
        .elf()
        .segments
        .iter()
        .filter(|segment| segment.executable)
        .find(|segment| {
            let start = segment.offset & !(PAGE - 1);
            let end = segment
                .offset
                .saturating_add(segment.file_size)
                .checked_next_multiple_of(PAGE)
                .unwrap_or(u64::MAX);
            (start..end).contains(&map.offset)
        })?;
    let address =
        (segment.address & !(PAGE - 1)).wrapping_add(map.offset - (segment.offset & !(PAGE - 1)));
    Some(LoadBias(map.start.wrapping_sub(address)))
}

/// Opens the very file that is mapped.
fn open_mapped(
    pid: i32,
    map: &Mapping,
    path: &Path,
    deleted: bool,
    read: ReadMemory<'_>,
) -> Result<Module, ModuleError> {
    let inside_root =
        PathBuf::from(format!("/proc/{pid}/root")).join(path.strip_prefix("/").unwrap_or(path));
    let mapped = PathBuf::from(format!(
        "/proc/{pid}/map_files/{:x}-{:x}",
        map.start, map.end
    ));
    let program = PathBuf::from(format!("/proc/{pid}/exe"));
    let mut first_error = None;
    let candidates = if deleted {
        vec![mapped, program]
    } else {
        vec![inside_root, mapped, program]
    };
    for candidate in candidates {
        let opened = File::open(&candidate).and_then(|file| {
            // Inode numbers agree on every file system; device numbers do not on btrfs and overlays.
            let same = file.metadata()?.ino() == map.inode;
            if same {
                Ok(file)
            } else {
                Err(std::io::Error::other("replaced"))
            }
        });
        let Ok(file) = opened else { continue };
        match Module::from_file(path, file) {
            Ok(module) if same_build(&module, map, read) => return Ok(module),
            Ok(_) => {}
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or_else(|| ModuleError {
        path: path.to_path_buf(),
        cause: ElfError::Io(
            "the file was replaced or deleted after it was loaded, and reading the loaded one needs CAP_SYS_ADMIN".into(),
        ),
    }))
}

/// Whether the build id in memory is the file's. Without one to compare it is taken to be.
fn same_build(module: &Module, map: &Mapping, read: ReadMemory<'_>) -> bool {
    let Some(bias) = bias(module, map) else {
        return true;
    };
    let (Some(id), Some(section)) = (
        &module.elf().build_id,
        module.elf().section(".note.gnu.build-id"),
    ) else {
        return true;
    };
    let mut bytes = vec![0; section.size.min(PAGE) as usize];
    if !read(FileAddress(section.address).runtime(bias), &mut bytes) {
        return true;
    }
    super::elf::find_build_id(&bytes).is_none_or(|loaded| &loaded == id)
}
