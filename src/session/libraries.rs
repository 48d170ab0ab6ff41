//! Libraries that come and go while a process runs.
//!
//! The dynamic linker keeps `struct r_debug` for debuggers (`<link.h>`) and calls an empty function
//! whenever it has changed something. A site of the front's own stands there: the thread waits
//! until the probes are in place, which is before a new library's constructors run. While the
//! linker is only about to change something, the site's program lets the thread by.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::images::Images;
use super::sites::INTERNAL;
use super::{Session, Target, process};
use crate::arch::{FileAddress, LoadBias};
use crate::engine::protocol::{SiteProbe, Then};
use crate::error::Error;
use crate::probe::program::{Op, Program, Unary, V, Width};
use crate::symbols::{Auxv, Loaded};

/// `r_map`, `r_brk`, `r_state` and, from version 2 on, `r_next` in `struct r_debug_extended`.
const R_MAP: u64 = 8;
const R_BRK: u64 = 16;
const R_STATE: u64 = 24;
const R_NEXT: u64 = 40;

/// `l_addr`, `l_name` and `l_next` in `struct link_map`.
const L_ADDR: u64 = 0;
const L_NAME: u64 = 8;
const L_NEXT: u64 = 24;

/// A list that does not end within so many entries is none.
const LIST_MAX: usize = 16 << 10;

/// glibc has 16 namespaces.
const NAMESPACES_MAX: usize = 64;

/// `DT_DEBUG` (`<elf.h>`): where the linker leaves the address of its `r_debug`.
const DT_DEBUG: u64 = 21;

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const RET: u8 = 0xc3;

/// So long a thread that has loaded something waits for a front that does not answer (it is
/// stopped, or nobody reads what it writes).
pub const PATIENCE_MS: u32 = 2000;

/// The front's own site in a target's dynamic linker.
#[derive(Debug, Clone)]
pub struct Watch {
    /// Where the linker tells of changes.
    pub address: u64,
    /// The instruction there is a `ret` that may be done for the thread.
    pub by_hand: bool,
    /// `struct r_debug`, if it is known where it is.
    debug: Option<u64>,
}

impl Watch {
    /// What the site runs: it stops the thread unless more changes are to come (`r_state` is not
    /// `RT_CONSISTENT`, which is 0).
    pub fn probe(&self) -> SiteProbe {
        let mut ops = Vec::new();
        if let Some(debug) = self.debug {
            ops = vec![
                Op::Const {
                    to: V(0),
                    value: debug + R_STATE,
                },
                Op::Load {
                    to: V(1),
                    address: V(0),
                    width: Width::W4,
                    signed: false,
                    keep: false,
                },
                Op::Unary {
                    to: V(1),
                    op: Unary::IsZero,
                    a: V(1),
                    width: Width::W4,
                    signed: false,
                },
                Op::JumpIfZero {
                    condition: V(1),
                    target: 5,
                },
            ];
        }
        ops.push(Op::Hit);
        SiteProbe {
            probe: INTERNAL,
            program: Program {
                ops,
                values: 2,
                ..Program::default()
            },
            then: Then::Stop,
        }
    }
}

/// Reads memory of a target.
type Read<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

fn word(read: Read<'_>, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    read(address, &mut bytes).then_some(u64::from_le_bytes(bytes))
}

/// Finds the linker's function for debuggers, and its `r_debug`. `None`: a program without one.
fn find(tid: i32, images: &Images, read: Read<'_>) -> Option<Watch> {
    let auxv = Auxv::parse(&fs::read(format!("/proc/{tid}/auxv")).ok()?);
    let base = auxv.interpreter.filter(|base| *base != 0)?;
    let linker = images
        .modules
        .loaded()
        .iter()
        .find(|l| l.bias.0 == base || l.contains(base))?;
    let symbol = |name: &str, code: bool| {
        let found = linker.module.find_linkage(name);
        let symbol = found.into_iter().find(|s| s.kind.is_code() == code)?;
        Some(FileAddress(symbol.address).runtime(linker.bias))
    };
    let debug = symbol("_r_debug", false).or_else(|| debug_of(images, read));
    let told = debug
        .and_then(|debug| word(read, debug + R_BRK))
        .filter(|address| images.modules.module_at(*address).is_some());
    let Some(address) = told.or_else(|| symbol("_dl_debug_state", true)) else {
        // A linker without it: the program's entry, where all that it needs is mapped.
        return Some(Watch {
            address: auxv.entry?,
            by_hand: false,
            debug: None,
        });
    };
    let code = images.code(address);
    let behind = code.strip_prefix(&ENDBR64);
    let returns = behind.unwrap_or(&code).first() == Some(&RET);
    let marked = if behind.is_some() { 4 } else { 0 };
    Some(Watch {
        address: if returns { address + marked } else { address },
        by_hand: returns,
        debug,
    })
}

/// What `DT_DEBUG` of the program points to, once its linker has begun.
fn debug_of(images: &Images, read: Read<'_>) -> Option<u64> {
    let main = images.modules.loaded().iter().find(|l| l.main)?;
    let dynamic = main.module.elf().section(".dynamic")?;
    let start = FileAddress(dynamic.address).runtime(main.bias);
    (0..dynamic.size / 16).find_map(|entry| {
        let at = start + entry * 16;
        let tag = word(read, at)?;
        (tag == DT_DEBUG).then(|| word(read, at + 8))?
    })
}

/// The names by which the linker knows what it has mapped, in its order, all namespaces.
fn link_maps(debug: u64, read: Read<'_>) -> Vec<(LoadBias, PathBuf)> {
    let mut maps = Vec::new();
    let mut next = Some(debug);
    for _ in 0..NAMESPACES_MAX {
        let Some(debug) = next.filter(|debug| *debug != 0) else {
            break;
        };
        let version = word(read, debug).unwrap_or(0) as u32;
        let first = word(read, debug + R_MAP);
        link_map(first.unwrap_or(0), &mut maps, read);
        next = match version {
            2.. => word(read, debug + R_NEXT),
            _ => None,
        };
    }
    maps
}

fn link_map(first: u64, maps: &mut Vec<(LoadBias, PathBuf)>, read: Read<'_>) {
    let mut at = first;
    while at != 0 && maps.len() < LIST_MAX {
        let Some(bias) = word(read, at + L_ADDR) else {
            return;
        };
        let name = word(read, at + L_NAME).map(|name| string(name, read));
        let name = name.filter(|name| !name.is_empty()).unwrap_or_default();
        maps.push((LoadBias(bias), PathBuf::from(OsString::from_vec(name))));
        at = word(read, at + L_NEXT).unwrap_or(0);
    }
}

/// A string of the target's, at most a path long.
fn string(address: u64, read: Read<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    while text.len() < libc::PATH_MAX as usize {
        let at = address.wrapping_add(text.len() as u64);
        // Never beyond what is mapped for sure: a piece stays in its line of 64 bytes.
        let mut piece = vec![0; 64 - at as usize % 64];
        if !read(at, &mut piece) {
            break;
        }
        let end = piece.iter().position(|byte| *byte == 0);
        text.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
        if end.is_some() {
            break;
        }
    }
    text
}

/// The order in which modules are shown: what was there before keeps its place, as in gdb.
fn order(loaded: &[Loaded], maps: &[(LoadBias, PathBuf)], before: &[LoadBias]) -> Vec<LoadBias> {
    let there = |bias: &&LoadBias| loaded.iter().any(|l| l.bias == **bias);
    let mut order: Vec<LoadBias> = before.iter().filter(there).copied().collect();
    let mapped = maps.iter().map(|(bias, _)| bias).filter(there);
    for bias in mapped.chain(loaded.iter().map(|l| &l.bias)) {
        if !order.contains(bias) {
            order.push(*bias);
        }
    }
    order
}

impl Target {
    /// A thread by which `/proc` shows the process's mappings: a leader that has ended before its
    /// other threads shows none.
    fn shown_by(&self) -> i32 {
        if !process::has_ended(self.pid) {
            return self.pid;
        }
        let mut tids = self.threads.iter().map(|thread| thread.tid.0);
        tids.find(|tid| !process::has_ended(*tid))
            .unwrap_or(self.pid)
    }
}

impl Session {
    /// Reads which modules a target has now.
    pub(super) fn read_modules(&mut self, index: usize) -> Result<(), Error> {
        let target = &self.targets[index];
        let Some(keeper) = &self.keeper else {
            return Ok(());
        };
        let id = target.id;
        let before = if target.images.modules.loaded().is_empty() {
            self.program.as_ref()
        } else {
            Some(&target.images)
        };
        let read = |address: u64, buf: &mut [u8]| keeper.read(id, address, buf).is_ok();
        let debug = &self.settings.debug_directories;
        let mut images = Images::of_process(target.shown_by(), &read, before, debug)?;
        if images.modules.loaded().is_empty() {
            // Every thread has ended: nothing can be said of it any more.
            return Ok(());
        }
        let debug = target.watch.as_ref().and_then(|watch| watch.debug);
        let maps = debug.map_or_else(Vec::new, |debug| link_maps(debug, &read));
        images.order = order(images.modules.loaded(), &maps, &target.images.order);
        images.names = maps
            .into_iter()
            .filter(|(_, name)| name.is_absolute())
            .collect::<HashMap<_, _>>();
        let known: Vec<_> = target.images.modules.unreadable().to_vec();
        for unreadable in images.modules.unreadable() {
            if !known.contains(unreadable) {
                self.output
                    .complain(&format!("warning: {}", unreadable.error));
            }
        }
        let told = self.targets.iter().map(|target| &target.images);
        let told = told.chain(&self.program);
        let told: HashSet<&String> = told.flat_map(|told| told.modules.warnings()).collect();
        for line in images.modules.warnings() {
            if !told.contains(line) {
                self.output.complain(&format!("warning: {line}"));
            }
        }
        self.targets[index].images = images;
        Ok(())
    }

    /// Puts a site where the dynamic linker tells of what it maps: probes in libraries are found
    /// again there, before their constructors run.
    pub(super) fn watch_libraries(&mut self, index: usize) -> Result<(), Error> {
        let target = &self.targets[index];
        let Some(keeper) = &self.keeper else {
            return Ok(());
        };
        let id = target.id;
        let read = |address: u64, buf: &mut [u8]| keeper.read(id, address, buf).is_ok();
        let watch = find(target.shown_by(), &target.images, &read);
        let Some(watch) = watch else {
            return Ok(());
        };
        self.targets[index].watch = Some(watch.clone());
        self.sync_watch_counter()?;
        if let Some(text) = self.arm_watch(index, watch.address)? {
            self.output.complain(&format!(
                "warning: What is loaded later will not be noticed.\n{text}"
            ));
        }
        // What was loaded until now is there to be found; all that comes later stops at the site.
        self.read_modules(index)
    }

    /// The dynamic linker has mapped or unmapped something.
    pub(super) fn libraries_changed(&mut self, index: usize) -> Result<(), Error> {
        let present = |images: &Images| -> BTreeMap<u64, PathBuf> {
            let loaded = images.modules.loaded().iter();
            loaded.map(|l| (l.bias.0, l.path.clone())).collect()
        };
        let before = present(&self.targets[index].images);
        let names = self.targets[index].images.names.clone();
        self.read_modules(index)?;
        let after = present(&self.targets[index].images);
        if before == after {
            return Ok(());
        }
        self.note_loads(index, &before, &after, &names);
        for (bias, path) in before {
            if after.get(&bias) != Some(&path) {
                let name = names.get(&LoadBias(bias)).unwrap_or(&path);
                self.tell_unloaded(index, name);
            }
        }
        self.relocate_in(index);
        Ok(())
    }

    /// gdb's words for breakpoints that went away with a library.
    fn tell_unloaded(&mut self, index: usize, name: &std::path::Path) {
        let images = &self.targets[index].images;
        let unloaded = |address: u64| images.modules.module_at(address).is_none();
        let any = self.probes.iter().any(|probe| {
            let mut locations = probe.locations.iter();
            locations.any(|location| unloaded(location.address))
        });
        if any && !self.show.never_stops() {
            self.output.complain(&format!(
                "warning: Temporarily disabling breakpoints for unloaded shared library \"{}\"",
                name.display()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that begins at 0x1000.
    fn memory(bytes: &[u8]) -> impl Fn(u64, &mut [u8]) -> bool {
        let bytes = bytes.to_vec();
        move |address, buf| {
            let Some(at) = address.checked_sub(0x1000) else {
                return false;
            };
            let piece = bytes.get(at as usize..at as usize + buf.len());
            piece.is_some_and(|piece| {
                buf.copy_from_slice(piece);
                true
            })
        }
    }

    fn words(words: &[u64]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(0x400, 0);
        bytes[0x200..0x206].copy_from_slice(b"/a.so\0");
        bytes[0x240..0x246].copy_from_slice(b"/b.so\0");
        bytes
    }

    #[test]
    fn all_namespaces_are_read() {
        // r_debug at 0x1000, its second one at 0x1030, link maps at 0x1060 and 0x1080.
        let bytes = words(&[
            2, 0x1060, 0, 0, 0, 0x1030, 1, 0x1080, 0, 0, 0, 0x1000, 0x7000, 0x1200, 0, 0x1080,
            0x8000, 0x1240, 0, 0,
        ]);
        let read = memory(&bytes);
        let maps = link_maps(0x1000, &read);
        let expected = [
            (LoadBias(0x7000), PathBuf::from("/a.so")),
            (LoadBias(0x8000), "/b.so".into()),
            (LoadBias(0x8000), "/b.so".into()),
        ];
        assert_eq!(maps, expected);
    }

    #[test]
    fn lists_that_never_end_do() {
        // Both lists go in circles.
        let bytes = words(&[2, 0x1030, 0, 0, 0, 0x1000, 0x7000, 0x1200, 0, 0x1030]);
        let read = memory(&bytes);
        assert!(link_maps(0x1000, &read).len() <= LIST_MAX);
        // And nothing is readable.
        assert!(link_maps(0x9000, &read).is_empty());
    }
}
