//! Probes that the kernel keeps (uprobes) and programs that it runs (BPF), tried on ourselves.

use std::io;

use super::{Outcome, close, in_child};
use crate::symbols::parse_maps;

/// The type of the uprobe events, as `/sys/bus/event_source/devices/uprobe/type` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uprobe(pub u32);

/// The start of `struct perf_event_attr` (perf_event_open(2)), version 1.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    /// A uprobe's path.
    config1: u64,
    /// A uprobe's offset in the file.
    config2: u64,
}

/// The event begins disabled.
const DISABLED: u64 = 1;

/// The function of ours on which a uprobe is set; nothing calls it.
#[inline(never)]
extern "C" fn uprobed() -> u64 {
    std::hint::black_box(0x7472_6170)
}

/// Opens a uprobe on a function of our own file, for a child of ours only, and closes it again.
pub fn uprobe(event: Uprobe) -> Outcome {
    let address = std::hint::black_box(uprobed as extern "C" fn() -> u64) as usize as u64;
    let Some(offset) = file_offset(address) else {
        return Outcome::NotTried;
    };
    let path = c"/proc/self/exe";
    let outcomes = in_child::<1>(|teller| {
        teller.step(0, || {
            let attributes = EventAttributes {
                kind: event.0,
                size: size_of::<EventAttributes>() as u32,
                flags: DISABLED,
                config1: path.as_ptr() as u64,
                config2: offset,
                ..EventAttributes::default()
            };
            let (own, any_cpu, no_group, flags) = (0, -1, -1, 8_u64); // PERF_FLAG_FD_CLOEXEC
            let from: *const EventAttributes = &attributes;
            // SAFETY: the kernel reads the structure, whose size it holds, and the path.
            answer(unsafe {
                libc::syscall(
                    libc::SYS_perf_event_open,
                    from,
                    own,
                    any_cpu,
                    no_group,
                    flags,
                )
            })
        });
    });
    outcomes.map_or(Outcome::NotTried, |[outcome]| outcome)
}

/// The offset in our own file of the code at an address of ours.
fn file_offset(address: u64) -> Option<u64> {
    let maps = parse_maps(&std::fs::read("/proc/self/maps").ok()?);
    let map = maps
        .iter()
        .find(|map| (map.start..map.end).contains(&address))?;
    Some(map.offset + (address - map.start))
}

/// What is tried of BPF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bpf {
    /// A program of the kind that uprobes run (`BPF_PROG_TYPE_KPROBE`).
    Program,
    /// The same, allowed to sleep, which may read memory that is not resident.
    Sleepable,
    /// A ring buffer, by which records come out (`BPF_MAP_TYPE_RINGBUF`).
    Ring,
}

/// The start of `union bpf_attr` (bpf(2)) for `BPF_PROG_LOAD`.
#[repr(C)]
#[derive(Default)]
struct LoadAttributes {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// The start of `union bpf_attr` for `BPF_MAP_CREATE`.
#[repr(C)]
#[derive(Default)]
struct MapAttributes {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

const MAP_CREATE: i32 = 0;
const PROG_LOAD: i32 = 5;

/// Loads the smallest program (`return 0`) or makes the smallest ring, and gives it back at once.
pub fn bpf(what: Bpf) -> Outcome {
    let outcomes = in_child::<1>(|teller| {
        teller.step(0, || match what {
            Bpf::Program => load(0),
            Bpf::Sleepable => load(1 << 4), // BPF_F_SLEEPABLE
            Bpf::Ring => {
                let attributes = MapAttributes {
                    kind: 27,
                    max_entries: 4096,
                    ..MapAttributes::default()
                };
                command(MAP_CREATE, &attributes)
            }
        });
    });
    outcomes.map_or(Outcome::NotTried, |[outcome]| outcome)
}

fn load(flags: u32) -> io::Result<()> {
    // mov r0, 0; exit
    let instructions: [u64; 2] = [0xb7, 0x95];
    let license = c"GPL";
    let attributes = LoadAttributes {
        kind: 2,
        count: 2,
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        flags,
        ..LoadAttributes::default()
    };
    command(PROG_LOAD, &attributes)
}

/// `bpf(2)`. The attributes' own pointers must lead to what the command reads.
fn command<T>(command: i32, attributes: &T) -> io::Result<()> {
    let from: *const T = attributes;
    // SAFETY: the kernel reads the structure, whose size is given, and what it points to.
    answer(unsafe { libc::syscall(libc::SYS_bpf, command, from, size_of::<T>()) })
}

fn answer(descriptor: libc::c_long) -> io::Result<()> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    close(descriptor);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_function_is_found_in_our_file() {
        let address = uprobed as extern "C" fn() -> u64 as usize as u64;
        let offset = file_offset(address).unwrap() as usize;
        let file = std::fs::read("/proc/self/exe").unwrap();
        // SAFETY: the code of a function of ours, which is longer than that.
        let code = unsafe { std::slice::from_raw_parts(address as *const u8, 4) };
        assert_eq!(&file[offset..offset + 4], code);
    }
}
