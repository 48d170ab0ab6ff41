//! Separate debug files: where the names of a module are once its `.symtab` was stripped.
//!
//! A module names its debug file in two ways, by its build id (`DIR/.build-id/xx/yyyy.debug`) and by its
//! section `.gnu_debuglink`, the name and the CRC-32 of a file beside it. Only names, sizes and kinds are
//! taken from it: its code sections are empty. Every file that is found but does not fit is told of.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::elf::{Elf, ElfError, Image, Section, open_file};
use super::load::{self, RawTable, read_section};

/// A file name and what stands behind it; no longer one can be opened.
const LINK_LIMIT: u64 = 4096;
/// A larger file is not read to the end for its check sum.
const CHECKED_LIMIT: u64 = 8 << 30;
/// The file is read in pieces of so many bytes.
const PIECE: u64 = 256 << 10;

/// Sections from here on have no number in a symbol (`SHN_LORESERVE`).
const NUMBERED: u16 = 0xff00;

/// The directories of `set debug-file-directory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugDirectories(String);

impl Default for DebugDirectories {
    fn default() -> DebugDirectories {
        DebugDirectories("/usr/lib/debug".into())
    }
}

impl DebugDirectories {
    /// Directories with colons between them. Nothing at all means the root, as in gdb.
    pub fn new(text: &str) -> DebugDirectories {
        DebugDirectories(text.into())
    }

    /// The text as it was given.
    pub fn text(&self) -> &str {
        &self.0
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split(':')
    }
}

/// Where debug files are looked for.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The global directories.
    pub directories: &'a DebugDirectories,
    /// The process that has mapped the module: its own root comes first.
    pub pid: Option<i32>,
}

/// A debug file that fits its module.
#[derive(Debug)]
pub struct DebugFile {
    /// Its path, in the process's own root.
    pub path: PathBuf,
    /// It has DWARF sections.
    pub debug_info: bool,
    /// Its `.symtab`.
    pub(super) symbols: Option<RawTable>,
}

/// What is searched for, and for which module.
pub(super) struct Wanted<'a> {
    /// The path by which the module is known.
    pub path: &'a Path,
    /// Its content.
    pub image: &'a Image,
    /// Its headers.
    pub elf: &'a Elf,
}

impl Search<'_> {
    /// The first debug file that fits; `refused` gets a line for each that does not.
    pub(super) fn find(&self, module: &Wanted<'_>, refused: &mut Vec<String>) -> Option<DebugFile> {
        for path in self.by_build_id(module) {
            let Some(image) = self.open(&path, module) else {
                continue;
            };
            match take(module, &path, &image) {
                Ok(file) => return Some(file),
                Err(line) => refuse(refused, line),
            }
        }
        let (name, sum) = match link(module) {
            Ok(link) => link?,
            Err(error) => {
                let path = module.path.display();
                refuse(
                    refused,
                    format!("the .gnu_debuglink of \"{path}\" is not used: {error}"),
                );
                return None;
            }
        };
        for path in self.by_link(module, &name) {
            let Some(image) = self.open(&path, module) else {
                continue;
            };
            let checked = check_sum(module, &path, &image, sum);
            match checked.and_then(|()| take(module, &path, &image)) {
                Ok(file) => return Some(file),
                Err(line) => refuse(refused, line),
            }
        }
        None
    }

    fn by_build_id(&self, module: &Wanted<'_>) -> Vec<PathBuf> {
        let id = module.elf.build_id.as_deref().unwrap_or_default();
        let Some((first, rest)) = id.split_first().filter(|(_, rest)| !rest.is_empty()) else {
            return Vec::new();
        };
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        let directories = self.directories.iter();
        directories
            .map(|directory| format!("{directory}/.build-id/{first:02x}/{rest}.debug").into())
            .collect()
    }

    fn by_link(&self, module: &Wanted<'_>, name: &str) -> Vec<PathBuf> {
        let absolute = std::path::absolute(module.path).unwrap_or_else(|_| module.path.into());
        let mut homes = vec![absolute.clone()];
        // The file may have been named by a symbolic link; what a process has mapped never is.
        if self.pid.is_none() {
            homes.extend(std::fs::canonicalize(&absolute).ok());
        }
        let mut paths = Vec::new();
        for home in homes.iter().filter_map(|file| file.parent()) {
            let inside = home.strip_prefix("/").unwrap_or(home);
            let beside = [home.join(name), home.join(".debug").join(name)];
            let directories = self.directories.iter();
            let global = directories.map(|directory| {
                let root = if directory.is_empty() { "/" } else { directory };
                Path::new(root).join(inside).join(name)
            });
            for path in beside.into_iter().chain(global) {
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths
    }

    /// Opens a file in the process's own root or, if it is not there, in ours. The module itself is no debug file.
    fn open(&self, path: &Path, module: &Wanted<'_>) -> Option<Image> {
        let inside = self.pid.zip(path.strip_prefix("/").ok());
        let inside = inside.map(|(pid, rest)| Path::new(&format!("/proc/{pid}/root")).join(rest));
        let image = inside
            .as_deref()
            .into_iter()
            .chain([path])
            .find_map(|path| Image::from_file(open_file(path).ok()?).ok())?;
        (image.identity() != module.image.identity()).then_some(image)
    }
}

/// The same file is found in two ways, and told of once.
fn refuse(refused: &mut Vec<String>, line: String) {
    if !refused.contains(&line) {
        refused.push(line);
    }
}

/// What `.gnu_debuglink` says: a name, NUL, up to three bytes so that four follow at a multiple of four, the sum.
fn link(module: &Wanted<'_>) -> Result<Option<(String, u32)>, ElfError> {
    const CORRUPT: ElfError = ElfError::Corrupt("no name and check sum");
    let Some(section) = module.elf.section(".gnu_debuglink") else {
        return Ok(None);
    };
    if section.size > LINK_LIMIT {
        return Err(ElfError::TooLarge {
            what: "the link",
            size: section.size,
        });
    }
    let bytes = read_section(module.image, section, "the link")?;
    let end = memchr::memchr(0, &bytes).ok_or(CORRUPT)?;
    let name = std::str::from_utf8(&bytes[..end]).map_err(|_| CORRUPT)?;
    let sum = (end + 1).next_multiple_of(4);
    let sum = bytes.get(sum..sum + 4).ok_or(CORRUPT)?;
    let sum = sum.try_into().map(u32::from_le_bytes);
    // It is the name of a file beside the module and never a way out of its directory.
    if matches!(name, "" | "." | "..") || name.contains('/') {
        return Err(ElfError::Corrupt("no file's name"));
    }
    Ok(Some((name.into(), sum.map_err(|_| CORRUPT)?)))
}

fn check_sum(module: &Wanted<'_>, path: &Path, image: &Image, wanted: u32) -> Result<(), String> {
    if image.len() > CHECKED_LIMIT {
        return Err(format!(
            "File \"{}\" of {} bytes is too large for a check sum, file skipped",
            path.display(),
            image.len()
        ));
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut at = 0;
    while at < image.len() {
        let length = PIECE.min(image.len() - at);
        let piece = image.read(at, length, "its content");
        hasher.update(&piece.map_err(|error| unusable(path, &error))?);
        at += length;
    }
    if hasher.finalize() == wanted {
        return Ok(());
    }
    Err(format!(
        "the debug information found in \"{}\" does not match \"{}\" (CRC mismatch).",
        path.display(),
        module.path.display()
    ))
}

/// Reads a debug file if it has the module's build id, or says why it is not used.
fn take(module: &Wanted<'_>, path: &Path, image: &Image) -> Result<DebugFile, String> {
    let failed = |error: ElfError| unusable(path, &error);
    let elf = Elf::of_debug_file(image).map_err(failed)?;
    let named = path.display();
    match (&elf.build_id, &module.elf.build_id) {
        (None, Some(_)) => return Err(format!("File \"{named}\" has no build-id, file skipped")),
        (own, wanted) if own != wanted => {
            return Err(format!(
                "File \"{named}\" has a different build-id, file skipped"
            ));
        }
        _ => {}
    }
    let mut symbols = None;
    if !module.elf.has_symbols() {
        symbols = load::read_static(image, &elf).map_err(failed)?;
    }
    if let Some(symbols) = &mut symbols {
        symbols.sections = Some(same_sections(&elf.sections, &module.elf.sections));
    }
    Ok(DebugFile {
        path: path.into(),
        debug_info: elf.section(".debug_info").is_some(),
        symbols,
    })
}

fn unusable(path: &Path, error: &ElfError) -> String {
    format!("File \"{}\": {error}, file skipped", path.display())
}

/// For each section of the debug file the module's of the same name and address; tools that split files
/// may number them anew. A file whose section headers were cut away has none: then it is what it is.
fn same_sections(debug: &[Section], module: &[Section]) -> Vec<Option<u16>> {
    let known: HashMap<(&str, u64), u16> = (0..NUMBERED)
        .zip(module)
        .filter(|(_, section)| section.allocated)
        .map(|(index, section)| ((section.name.as_str(), section.address), index))
        .collect();
    (0..NUMBERED)
        .zip(debug)
        .map(|(index, section)| match module.is_empty() {
            true => section.allocated.then_some(index),
            false => known
                .get(&(section.name.as_str(), section.address))
                .copied(),
        })
        .collect()
}
