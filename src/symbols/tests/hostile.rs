//! Files that lie: one clear error or a smaller table, never a panic, never much memory or time.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::build;
use crate::arch::FileAddress;
use crate::symbols::elf::ElfError;
use crate::symbols::module::Module;
use crate::symbols::{Location, Modules, Pattern, SymbolKind, listing};

/// Everything that reads a file, done to it.
fn exercise(bytes: Vec<u8>) -> Result<(), String> {
    let module =
        Module::from_memory(Path::new("hostile"), bytes).map_err(|error| error.to_string())?;
    let _ = (module.text(), module.has_debug_info());
    let addresses: Vec<u64> = module
        .symbols()
        .all()
        .iter()
        .take(300)
        .map(|symbol| symbol.address)
        .collect();
    for symbol in module.symbols().all().iter().take(300) {
        let _ = module.symbols().display_name(symbol);
        let _ = module.symbols().version(symbol);
        let _ = module.extent(symbol);
        let _ = module.is_passing_thunk(symbol);
    }
    for address in addresses.into_iter().chain([0, 1, u64::MAX, 0x1000]) {
        let _ = module.symbol_at(FileAddress(address));
        let _ = module.bytes(FileAddress(address), 64);
        let _ = module.in_plt(FileAddress(address));
        let _ = module.function_range(FileAddress(address));
        let _ = module.padding_around(FileAddress(address));
    }
    listing::list(&module, &Pattern::all(), &mut |_| ControlFlow::Continue(()));
    let _ = module.find("n", SymbolKind::is_code);
    let modules = Modules::from_module(std::sync::Arc::new(module));
    for text in [
        "main",
        "mian",
        "ns::C::n",
        "hostile+0x1000",
        "hostile:0x1000",
        "operator()",
        "puts@GLIBC_2.2.5",
        "/^n/",
        "hostile:/(/",
    ] {
        if let Err(error) = modules.resolve(&Location::parse(text)) {
            let _ = (error.to_string(), error.hint());
        }
    }
    Ok(())
}

fn sample() -> Option<Vec<u8>> {
    let program = build("names.cpp", "names-hostile", &["-O2", "-g0"])?;
    std::fs::read(program).ok()
}

/// Positions where a lie matters: the headers, the section headers, the symbol tables.
fn interesting(bytes: &[u8]) -> Vec<usize> {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let mut positions: Vec<usize> = (0..64 + 14 * 56).collect();
    let sections = number(40);
    positions.extend(sections..bytes.len());
    for header in (sections..bytes.len().saturating_sub(63)).step_by(64) {
        let kind = u32::from_le_bytes(bytes[header + 4..header + 8].try_into().unwrap());
        let flags = number(header + 8);
        // Symbols, strings, relocations, notes, versions; and `.eh_frame`, read-only data that is loaded.
        if [2, 3, 4, 6, 7, 11, 0x6fff_fffe, 0x6fff_ffff].contains(&kind) || (kind, flags) == (1, 2)
        {
            let start = number(header + 24);
            positions.extend(start..(start + number(header + 32)).min(bytes.len()));
        }
    }
    positions
}

#[test]
fn mutated_bytes() {
    let Some(bytes) = sample() else { return };
    let positions = interesting(&bytes);
    let change = (
        0..positions.len(),
        prop_oneof![Just(0u8), Just(0xff), Just(0x7f), Just(0x80), any::<u8>()],
    );
    proptest!(ProptestConfig::with_cases(600), |(changes in prop::collection::vec(change, 1..12))| {
        let mut bytes = bytes.clone();
        for (position, value) in changes {
            bytes[positions[position]] = value;
        }
        let started = Instant::now();
        let _ = exercise(bytes);
        prop_assert!(started.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn huge_numbers() {
    let Some(bytes) = sample() else { return };
    let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let fields = (0..64)
        .step_by(8)
        .chain((64..64 + 13 * 56).step_by(8))
        .chain((sections..bytes.len() - 7).step_by(8));
    for field in fields {
        for value in [u64::MAX, 1 << 63, 1 << 40, 0x7fff_ffff_ffff_f000] {
            let mut bytes = bytes.clone();
            bytes[field..field + 8].copy_from_slice(&value.to_le_bytes());
            let _ = exercise(bytes);
        }
    }
}

/// Without section headers the frames are found through the program header, which may lie too.
#[test]
fn frames_without_sections() {
    let Some(mut bytes) = sample() else { return };
    bytes[40..48].fill(0);
    bytes[58..64].fill(0);
    let module = Module::from_memory(Path::new("hostile"), bytes.clone()).unwrap();
    let (start, _) = Module::open(&build("names.cpp", "names-hostile", &["-O2", "-g0"]).unwrap())
        .unwrap()
        .text()
        .unwrap();
    assert!(module.function_range(FileAddress(start.0 + 1)).is_some());
    let (header, _) = module.elf().frame_header.unwrap();
    let (offset, _) = module.elf().offset_of(header).unwrap();
    for at in offset as usize..offset as usize + 8 {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            let _ = exercise(bytes);
        }
    }
}

#[test]
fn truncated() {
    let Some(bytes) = sample() else { return };
    for length in (0..200).chain((200..bytes.len()).step_by(331)) {
        // The section headers lie at the end: no prefix is whole.
        assert!(exercise(bytes[..length].to_vec()).is_err(), "{length}");
    }
    assert_eq!(exercise(bytes), Ok(()));
}

fn temporary(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("trapline-{}-{name}", std::process::id()));
    std::fs::File::create(&path)
        .and_then(|mut file| file.write_all(bytes))
        .unwrap();
    path
}

#[test]
fn refused_with_what_it_is() {
    let mut header = vec![0u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[18] = 62;
    header[16] = 2;
    let changed = |at: usize, value: u8| {
        let mut header = header.clone();
        header[at] = value;
        header
    };
    let cases = [
        (b"#!/bin/sh\n".to_vec(), "not an ELF file"),
        (Vec::new(), "not an ELF file"),
        (changed(4, 1), "a 32-bit ELF file"),
        (changed(18, 183), "an ELF file for AArch64"),
        (changed(18, 77), "an ELF file for machine number 77"),
        (changed(16, 1), "a relocatable object file"),
        (changed(16, 4), "a core file"),
        (header[..30].to_vec(), "cut off"),
    ];
    for (bytes, text) in cases {
        let path = temporary("refused", &bytes);
        let error = Module::open(&path).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert!(
            error.to_string().starts_with(&path.display().to_string()),
            "{error}"
        );
        std::fs::remove_file(&path).unwrap();
    }
    assert_eq!(
        Module::open(Path::new("/no/such")).unwrap_err().to_string(),
        "/no/such: No such file or directory"
    );
    assert!(
        Module::open(Path::new("/"))
            .unwrap_err()
            .to_string()
            .contains("Is a directory")
    );
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let fifo = std::env::temp_dir().join(format!("trapline-{}-fifo", std::process::id()));
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let started = Instant::now();
    for (path, text) in [
        (fifo.as_path(), "not a regular file"),
        (Path::new("/dev/zero"), "not a regular file"),
        (Path::new("/dev/tty"), ""),
        (Path::new("/proc/self/maps"), "not an ELF file"),
        (Path::new("/tmp"), "Is a directory"),
    ] {
        let error = Module::open(path).unwrap_err().to_string();
        assert!(error.ends_with(text) && !error.contains('\n'), "{error}");
    }
    std::fs::remove_file(&fifo).unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_sparse_file_takes_no_memory() {
    let Some(mut bytes) = sample() else { return };
    let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    for header in (sections..bytes.len() - 63).step_by(64) {
        if bytes[header + 4] == 2 {
            bytes[header + 32..header + 40].copy_from_slice(&(1u64 << 40).to_le_bytes());
        }
    }
    let path = temporary("sparse", &bytes);
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 41)
        .unwrap();
    let error = Module::open(&path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(error.cause, ElfError::TooLarge { .. }), "{error}");
}
