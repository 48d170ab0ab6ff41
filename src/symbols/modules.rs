//! The modules of one process, or of one program that does not run yet: where they are, addresses to names.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::debugfile::{DebugDirectories, Search};
use super::elf::{ElfError, open_file};
use super::ifunc;
use super::maps::{Backing, Mapping};
use super::module::{Module, ModuleError};
use super::place::{Found, Named};
use super::table::{Binding, SymbolKind};
use crate::arch::{FileAddress, LoadBias};

/// Reads the target's memory: fills the buffer from the run-time address, `false` if it cannot.
pub type ReadMemory<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// Reads the memory of a process that is only looked at; nothing where that is not allowed.
pub fn memory_of(pid: i32) -> impl Fn(u64, &mut [u8]) -> bool {
    let memory = File::open(format!("/proc/{pid}/mem"));
    move |address: u64, buffer: &mut [u8]| {
        let memory = memory.as_ref();
        memory.is_ok_and(|memory| memory.read_exact_at(buffer, address).is_ok())
    }
}

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
    /// Resolvers of indirect functions, and what their pointers held at the time of the scan.
    pub(super) chosen: HashMap<u64, u64>,
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

/// What a scan of a process goes by.
struct Scan<'a> {
    pid: i32,
    read: ReadMemory<'a>,
    before: &'a Modules,
    directories: &'a DebugDirectories,
}

/// All modules of a process.
#[derive(Debug, Clone, Default)]
pub struct Modules {
    pub(super) loaded: Vec<Loaded>,
    pub(super) unreadable: Vec<Unreadable>,
}

impl Modules {
    /// A program that does not run yet: addresses are file addresses, as gdb shows them before `run`.
    pub fn from_program(
        path: &Path,
        directories: &DebugDirectories,
    ) -> Result<Modules, ModuleError> {
        let search = Search {
            directories,
            pid: None,
        };
        let module = Module::open(path)?.with_debug_file(search);
        Ok(Modules::from_module(Arc::new(module)))
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
            chosen: HashMap::new(),
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
        directories: &DebugDirectories,
    ) -> Modules {
        let scan = Scan {
            pid,
            read,
            before,
            directories,
        };
        let mut modules = Modules::default();
        let program = std::fs::metadata(format!("/proc/{pid}/exe"))
            .ok()
            .map(|data| data.ino());
        for map in maps.iter().filter(|map| map.executable) {
            match &map.backing {
                Backing::File { path, deleted } => {
                    let main = program == Some(map.inode);
                    modules.take_file(&scan, map, path, *deleted, main);
                }
                Backing::Special(name) if name == "[vdso]" => modules.take_vdso(&scan, map),
                _ => {}
            }
        }
        for loaded in &mut modules.loaded {
            loaded.chosen = ifunc::chosen(&loaded.module, loaded.bias, read);
        }
        modules.loaded.sort_by_key(|loaded| !loaded.main);
        modules
    }

    fn take_file(
        &mut self,
        scan: &Scan<'_>,
        map: &Mapping,
        path: &Path,
        deleted: bool,
        main: bool,
    ) {
        let identity = Some((map.device, map.inode));
        let same = |loaded: &&Loaded| loaded.identity == identity && loaded.path == path;
        let known = self
            .loaded
            .iter()
            .find(same)
            .or_else(|| scan.before.loaded.iter().find(same));
        let module = match known {
            Some(loaded) => Ok(Arc::clone(&loaded.module)),
            None if self.unreadable.iter().any(|other| other.error.path == path) => return,
            None => open_mapped(scan, map, path, deleted).map(Arc::new),
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
                        chosen: HashMap::new(),
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

    fn take_vdso(&mut self, scan: &Scan<'_>, map: &Mapping) {
        let path = PathBuf::from("[vdso]");
        let known = scan
            .before
            .loaded
            .iter()
            .find(|loaded| loaded.path == path)
            .map(|loaded| Arc::clone(&loaded.module));
        let module = known.or_else(|| {
            let mut bytes = vec![0; (map.end - map.start).min(VDSO_LIMIT) as usize];
            (scan.read)(map.start, &mut bytes)
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
                chosen: HashMap::new(),
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

    /// Why debug files that were found are not used, a line each.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        self.loaded
            .iter()
            .flat_map(|loaded| loaded.module.warnings())
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
                .find(|symbol| symbol.binding != Binding::Local)
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
    scan: &Scan<'_>,
    map: &Mapping,
    path: &Path,
    deleted: bool,
) -> Result<Module, ModuleError> {
    let pid = scan.pid;
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
        let opened = open_file(&candidate).and_then(|file| {
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
            Ok(module) if same_build(&module, map, scan.read) => {
                return Ok(module.with_debug_file(Search {
                    directories: scan.directories,
                    pid: Some(pid),
                }));
            }
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
