//! Where slots are: executable pages of ours near each module.
//!
//! The page is mapped by the thread that first hits a site there: it stands in user mode behind
//! the int3, so that no system call of the program is interrupted by ours. A target under a
//! seccomp filter is not made to do system calls that its filter may punish; there the unused end
//! of the module's own last text page serves.

use std::fs;
use std::io;

use super::inject::inject;
use super::memory::Memory;
use super::stop::Stopped;
use super::sys;
use crate::arch::{SLOT_MAX, find_syscall};

/// Bytes from one slot to the next.
const STRIDE: u64 = 32;
const _: () = assert!(SLOT_MAX as u64 <= STRIDE);

/// A page of slots.
const PAGE: u64 = 4096;

/// A jump reaches this far, with room for the page itself and the largest displacement of an
/// operand that the slot must still reach.
const REACH: u64 = 0x7000_0000;

/// The slot pages of one address space.
#[derive(Default, Clone)]
pub struct SlotPages {
    pages: Vec<Page>,
    /// A `syscall` instruction of the target.
    syscall: Option<u64>,
}

#[derive(Clone)]
struct Page {
    next: u64,
    end: u64,
}

impl SlotPages {
    /// Forgets the pages that a forked child's copy of the memory does not have: they were made since.
    pub fn fit(&mut self, memory: &Memory) {
        let mut byte = [0];
        let there = |page: &Page| memory.read(page.end - 1, &mut byte).is_ok();
        self.pages.retain(there);
    }

    /// A free place within reach of `site`, on a page that exists already.
    pub fn take(&mut self, site: u64) -> Option<u64> {
        let page = self
            .pages
            .iter_mut()
            .find(|page| page.next.abs_diff(site) < REACH && page.next + STRIDE <= page.end)?;
        let place = page.next;
        page.next += STRIDE;
        Some(place)
    }

    /// Makes a page near `site`. `stopped` must stand in user mode. What is asked of the kernel is
    /// asked of this thread: a filter may be one thread's own, and a leader that has ended before
    /// its other threads shows no mappings.
    pub fn add(
        &mut self,
        memory: &Memory,
        stopped: Stopped,
        site: u64,
    ) -> (Option<Stopped>, io::Result<()>) {
        let tid = stopped.tid();
        if filtered(tid) {
            return (Some(stopped), self.add_gap(tid, memory, site));
        }
        let (address, instruction) = match self.prepare(tid, memory, site) {
            Ok(found) => found,
            Err(error) => return (Some(stopped), Err(error)),
        };
        let call = [
            address,
            PAGE,
            (libc::PROT_READ | libc::PROT_EXEC) as u64,
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE) as u64,
            u64::MAX,
            0,
        ];
        let (stopped, result) = inject(stopped, instruction, libc::SYS_mmap as u64, call);
        let result = match result {
            Ok(mapped) if mapped == address => {
                self.pages.push(Page {
                    next: address,
                    end: address + PAGE,
                });
                Ok(())
            }
            Ok(answer) => Err(io::Error::from_raw_os_error(
                (answer as i64).wrapping_neg() as i32
            )),
            Err(error) => Err(error),
        };
        match (stopped, result) {
            (Some(stopped), Err(_)) => (Some(stopped), self.add_gap(tid, memory, site)),
            other => other,
        }
    }

    fn prepare(&mut self, tid: i32, memory: &Memory, site: u64) -> io::Result<(u64, u64)> {
        let maps = mappings(tid)?;
        let address = free_page(&maps, site)
            .ok_or_else(|| io::Error::other("no free page within reach of the site's module"))?;
        let instruction = self
            .instruction(tid, memory)
            .ok_or_else(|| io::Error::other("the target has no syscall instruction"))?;
        Ok((address, instruction))
    }

    /// The address of a `syscall` instruction in the target.
    pub fn instruction(&mut self, tid: i32, memory: &Memory) -> Option<u64> {
        if self.syscall.is_none() {
            self.syscall = find_instruction(&mappings(tid).ok()?, memory);
        }
        self.syscall
    }

    /// Uses what is behind the end of the module's text, in its last page.
    fn add_gap(&mut self, tid: i32, memory: &Memory, site: u64) -> io::Result<()> {
        let maps = mappings(tid)?;
        let text = maps
            .iter()
            .find(|map| map.executable && (map.start..map.end).contains(&site))
            .ok_or_else(|| io::Error::other("the site is in no executable mapping"))?;
        let mut tail = vec![0; PAGE as usize];
        let start = text.end - PAGE;
        memory
            .read(start, &mut tail)
            .map_err(|at| io::Error::other(format!("{at:#x} is unreadable")))?;
        let used = tail
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |at| at + 1);
        let next = (start + used as u64).next_multiple_of(STRIDE) + STRIDE;
        if next + STRIDE > text.end {
            return Err(io::Error::other("no room behind the module's text"));
        }
        self.pages.push(Page {
            next,
            end: text.end,
        });
        Ok(())
    }
}

/// True if the thread has a seccomp filter (`/proc/TID/status`, "Seccomp").
pub fn filtered(tid: i32) -> bool {
    sys::status(tid, "Seccomp:").is_some_and(|mode| mode != "0")
}

/// One line of `/proc/TID/maps`.
pub(super) struct Mapped {
    /// Its first address.
    pub start: u64,
    /// The first one behind it.
    pub end: u64,
    executable: bool,
    vdso: bool,
    /// The first thread's stack.
    pub stack: bool,
}

fn mappings(tid: i32) -> io::Result<Vec<Mapped>> {
    let bytes = fs::read(format!("/proc/{tid}/maps"))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(mapping).collect())
}

pub(super) fn mapping(line: &str) -> Option<Mapped> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    Some(Mapped {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        executable: permissions.as_bytes().get(2) == Some(&b'x'),
        vdso: line.ends_with("[vdso]"),
        stack: line.ends_with("[stack]"),
    })
}

/// The free page nearest to `site`.
fn free_page(maps: &[Mapped], site: u64) -> Option<u64> {
    let lowest = fs::read_to_string("/proc/sys/vm/mmap_min_addr")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(65536_u64);
    let mut best: Option<u64> = None;
    let mut free_from = lowest.next_multiple_of(PAGE);
    let end = maps.iter().map(|map| (map.start, map.end));
    for (start, next) in end.chain([(0x7fff_ffff_f000, u64::MAX)]) {
        if start >= free_from.saturating_add(3 * PAGE) {
            // One page stays free on either side: what grows there keeps its room.
            for candidate in [free_from + PAGE, start - 2 * PAGE] {
                if best.is_none_or(|best| candidate.abs_diff(site) < best.abs_diff(site)) {
                    best = Some(candidate);
                }
            }
        }
        free_from = free_from.max(next);
    }
    best.filter(|page| page.abs_diff(site) < REACH)
}

/// A `syscall` instruction, in the vDSO if there is one, else in any executable mapping.
fn find_instruction(maps: &[Mapped], memory: &Memory) -> Option<u64> {
    let vdso = maps.iter().filter(|map| map.vdso);
    let others = maps.iter().filter(|map| map.executable && !map.vdso);
    vdso.chain(others).find_map(|map| {
        let length = (map.end - map.start).min(4 << 20) as usize;
        let mut text = vec![0; length];
        memory.read(map.start, &mut text).ok()?;
        find_syscall(&text).map(|at| map.start + at as u64)
    })
}

/// The process that a thread belongs to (`/proc/TID/status`, "Tgid").
pub fn process_of(tid: i32) -> Option<i32> {
    sys::status(tid, "Tgid:")?.parse().ok()
}
