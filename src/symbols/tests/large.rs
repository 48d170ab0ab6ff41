//! A library with half a million functions in each of its two tables: nothing may take seconds.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::symbols::catalog::{Catalog, Wanted};
use crate::symbols::module::Module;
use crate::symbols::{Location, Modules, Place, ResolveError};

const FUNCTIONS: usize = 500_000;
/// Where `.text` is loaded; each function is one byte of it.
const TEXT: u64 = 0x1000;

fn name(number: usize) -> String {
    let name = format!("name{number}x{}", "ab".repeat(number % 20));
    format!("_ZN5space5Class{}{name}Ei", name.len())
}

/// The bytes of a section header: name, type, flags, address, offset, size, link.
fn header(fields: [u64; 7], entry: u64) -> Vec<u8> {
    let [name, kind, flags, address, offset, size, link] = fields;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(name as u32).to_le_bytes());
    bytes.extend_from_slice(&(kind as u32).to_le_bytes());
    for field in [flags, address, offset, size] {
        bytes.extend_from_slice(&field.to_le_bytes());
    }
    bytes.extend_from_slice(&(link as u32).to_le_bytes());
    bytes.extend_from_slice(&0u32.to_le_bytes());
    bytes.extend_from_slice(&1u64.to_le_bytes());
    bytes.extend_from_slice(&entry.to_le_bytes());
    bytes
}

/// The ELF and program headers: one segment, loaded at [`TEXT`], that holds the functions.
fn headers(text: u64, sections: u64, count: u16) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend_from_slice(&[3, 0, 62, 0, 1, 0, 0, 0]);
    for field in [0, 64, sections] {
        bytes.extend_from_slice(&u64::to_le_bytes(field));
    }
    bytes.extend_from_slice(&[0; 4]);
    for field in [64, 56, 1, 64, count, count - 1] {
        bytes.extend_from_slice(&field.to_le_bytes());
    }
    bytes.extend_from_slice(&[1, 0, 0, 0, 5, 0, 0, 0]);
    let size = FUNCTIONS as u64;
    for field in [text, TEXT, TEXT, size, size, 0x1000] {
        bytes.extend_from_slice(&u64::to_le_bytes(field));
    }
    bytes
}

/// A shared library whose functions stand in `.symtab` and, in the other order, in `.dynsym`.
fn library() -> Vec<u8> {
    let mut strings = vec![0];
    let mut symbols = vec![[0u8; 24]];
    for number in 0..FUNCTIONS {
        let mut symbol = [0; 24];
        symbol[..4].copy_from_slice(&(strings.len() as u32).to_le_bytes());
        // STB_GLOBAL, STT_FUNC, in section 1.
        symbol[4..8].copy_from_slice(&[0x12, 0, 1, 0]);
        symbol[8..16].copy_from_slice(&(TEXT + number as u64).to_le_bytes());
        symbol[16..].copy_from_slice(&1u64.to_le_bytes());
        symbols.push(symbol);
        strings.extend_from_slice(name(number).as_bytes());
        strings.push(0);
    }
    let statics = symbols.concat();
    // Linkers sort by the hash of the name: nothing is near its neighbour.
    let mixed = (0..FUNCTIONS).map(|number| symbols[1 + number * 123_457 % FUNCTIONS]);
    let dynamics = [[0; 24]].into_iter().chain(mixed).collect::<Vec<_>>();
    let names = b"\0.text\0";
    let parts: [(u64, &[u8], u64, u64); 6] = [
        (1, &vec![0xc3; FUNCTIONS], 0, 0),
        (2, &statics, 3, 24),
        (3, &strings, 0, 0),
        (11, &dynamics.concat(), 5, 24),
        (3, &strings, 0, 0),
        (3, names, 0, 0),
    ];
    let mut bytes = vec![0; 0x1000];
    let mut table = vec![0; 64];
    for (kind, part, link, entry) in parts {
        let (name, flags, address) = if kind == 1 { (1, 6, TEXT) } else { (0, 0, 0) };
        let (offset, size) = (bytes.len() as u64, part.len() as u64);
        table.extend(header(
            [name, kind, flags, address, offset, size, link],
            entry,
        ));
        bytes.extend_from_slice(part);
    }
    let start = headers(0x1000, bytes.len() as u64, 7);
    bytes[..start.len()].copy_from_slice(&start);
    bytes.extend(table);
    bytes
}

#[test]
fn half_a_million_symbols() {
    let bytes = library();
    let started = Instant::now();
    let module = Module::from_memory(Path::new("large.so"), bytes).unwrap();
    let opened = started.elapsed();
    assert_eq!(module.symbols().all().len(), FUNCTIONS);
    let modules = Modules::from_module(Arc::new(module));
    let timed = |text: &str| -> (Result<Vec<Place>, ResolveError>, Duration) {
        let started = Instant::now();
        let result = modules.resolve(&Location::parse(text));
        (result, started.elapsed())
    };
    let (first, first_time) = timed("Class::name77xababababababababababababababababab");
    let (second, second_time) = timed("name123456xabababababababababababababababab(int)");
    let (missing, missing_time) = timed("name12x4");
    let at = Instant::now();
    let named = modules.symbol_at(TEXT + 77).unwrap();
    let at_time = at.elapsed();
    eprintln!(
        "{FUNCTIONS} symbols twice: open {opened:?}, first lookup {first_time:?}, second {second_time:?}, first address {at_time:?}, nearest {missing_time:?}"
    );
    assert_eq!(named.name, name(77));
    assert_eq!(first.unwrap()[0].runtime, TEXT + 77);
    assert_eq!(second.unwrap()[0].runtime, TEXT + 123_456);
    assert!(missing.unwrap_err().hint().is_some());
    // Some ten times what it takes on a slow machine without optimisation.
    assert!(opened < Duration::from_secs(10), "{opened:?}");
}

/// What Tab costs, once the names have been read in the background.
#[test]
fn completion_among_half_a_million() {
    let module = Module::from_memory(Path::new("large.so"), library()).unwrap();
    let modules = Modules::from_module(Arc::new(module));
    let catalog = Arc::new(Catalog::default());
    let started = Instant::now();
    catalog.set(&modules);
    let set = started.elapsed();
    let patience = Duration::from_secs(120);
    let all = catalog.beginning(Wanted::Functions, "", None, 200, patience);
    let read = started.elapsed();
    assert!(all.more && all.names.len() == 200);
    let mut slowest = Duration::ZERO;
    for (class, start) in [
        ("space::Class::", "name12"),
        ("Class::", "name49999"),
        ("", "name77"),
        ("Class::", ""),
    ] {
        let typed = format!("{class}{start}");
        let started = Instant::now();
        let found = catalog.beginning(Wanted::Functions, &typed, None, 200, patience);
        slowest = slowest.max(started.elapsed());
        let mut expected: Vec<String> = (0..FUNCTIONS)
            .map(|number| format!("{class}name{number}x{}(int)", "ab".repeat(number % 20)))
            .filter(|name| name.starts_with(&typed))
            .collect();
        expected.sort_unstable();
        assert_eq!(found.more, expected.len() > 200, "{typed}");
        assert_eq!(found.names.last(), expected.last());
        assert_eq!(found.names[..5], expected[..5]);
    }
    eprintln!(
        "{FUNCTIONS} symbols: begun in {set:?}, read in {read:?}, slowest completion {slowest:?}"
    );
}
