//! The same question to gdb and to us.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{build, gdb, gdb_with, no_debug_files};
use crate::symbols::{DebugDirectories, Location, Modules};

/// Addresses all over the file's sections, some at the starts and ends of symbols.
fn addresses(modules: &Modules, step: u64) -> Vec<u64> {
    let module = &modules.loaded()[0].module;
    let mut addresses = BTreeSet::new();
    for section in &module.elf().sections {
        if section.allocated && !section.thread_local && section.address != 0 {
            addresses.extend(
                (0..section.size)
                    .step_by(step as usize)
                    .map(|offset| section.address + offset),
            );
        }
    }
    for symbol in module
        .symbols()
        .all()
        .iter()
        .step_by((step as usize / 16).max(1))
    {
        if symbol.kind.is_code() || symbol.kind == crate::symbols::SymbolKind::Data {
            addresses.extend([
                symbol.address,
                symbol.address + 1,
                symbol.address + symbol.size,
            ]);
            addresses.extend(symbol.address.checked_sub(1));
        }
    }
    addresses
        .into_iter()
        .filter(|address| *address > 0x100)
        .collect()
}

/// Compares `info symbol` and `print/a` for many addresses; gives how many differ of how many.
fn compare_addresses(
    file: &Path,
    step: u64,
    directories: &DebugDirectories,
) -> Option<(usize, usize)> {
    let modules = Modules::from_program(file, directories).ok()?;
    let addresses = addresses(&modules, step);
    let commands: Vec<String> = addresses
        .iter()
        .flat_map(|address| {
            [
                "echo \\n#A#".into(),
                format!("info symbol {address:#x}"),
                "echo #B#".into(),
                format!("output/a {address:#x}"),
            ]
        })
        .collect();
    let text = gdb_with(file, &commands, directories)?;
    let blocks: Vec<&str> = text.split("\n#A#").skip(1).collect();
    assert_eq!(blocks.len(), addresses.len(), "{}", file.display());
    // gdb counts a debug file as another file, and names the one that is meant.
    let of = format!(" of {}", file.display());
    // Its `output` goes by DWARF then, where `f.cold` is a negative offset from `f`.
    let dwarf = modules.loaded()[0].module.debug_file().is_some();
    let mut wrong = 0;
    for (address, block) in addresses.iter().zip(blocks) {
        let (info, output) = block.split_once("#B#").unwrap_or((block, ""));
        let (want_info, want_name) = ours(&modules, *address);
        let output = output.trim();
        let info = info.trim().trim_end_matches(&of);
        if info != want_info || !dwarf && output != want_name {
            wrong += 1;
            if wrong <= 12 {
                eprintln!(
                    "{address:#x}\n  gdb  {} | {output}\n  ours {want_info} | {want_name}",
                    info
                );
            }
        }
    }
    eprintln!(
        "{}: {wrong} of {} addresses differ",
        file.display(),
        addresses.len()
    );
    Some((wrong, addresses.len()))
}

fn ours(modules: &Modules, address: u64) -> (String, String) {
    let Some(named) = modules.info_symbol(address) else {
        return (
            format!("No symbol matches {address:#x}."),
            format!("{address:#x}"),
        );
    };
    let plus = |text: &str| match named.offset {
        0 => text.to_string(),
        offset => format!("{text} + {offset}"),
    };
    let offset = if named.offset == 0 {
        String::new()
    } else {
        format!("+{}", named.offset)
    };
    (
        format!("{} in section {}", plus(&named.display), named.section),
        match modules.symbol_at(address) {
            Some(named) => format!("{address:#x} <{}{offset}>", named.name),
            None => format!("{address:#x}"),
        },
    )
}

#[test]
fn addresses_of_a_program() {
    for (name, flags) in [
        ("names-O0", ["-O0", "-fcf-protection=none"]),
        ("names-O2", ["-O2", "-fcf-protection=full"]),
    ] {
        let Some(program) = build("names.cpp", &format!("{name}-addresses"), &flags) else {
            return;
        };
        let Some((wrong, all)) = compare_addresses(&program, 3, &no_debug_files()) else {
            return;
        };
        assert!(wrong * 100 <= all, "{wrong} of {all}");
    }
}

/// The test itself, without its debug information, which we do not read.
fn rust_program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let program = std::env::temp_dir().join(format!("trapline-{}-rust", std::process::id()));
    let stripped = Command::new("strip")
        .args(["--strip-debug", "-o"])
        .args([&program, &own])
        .status();
    if stripped.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    eprintln!("skipped: no strip");
    None
}

#[test]
fn addresses_of_a_rust_program() {
    let Some(program) = rust_program() else {
        return;
    };
    let compared = compare_addresses(&program, 4093, &no_debug_files());
    std::fs::remove_file(&program).unwrap();
    let Some((wrong, all)) = compared else { return };
    assert!(wrong * 100 <= all, "{wrong} of {all}");
}

#[test]
fn addresses_of_libraries() {
    for library in [
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/lib/x86_64-linux-gnu/libc.so.6",
    ] {
        if !Path::new(library).exists() {
            eprintln!("skipped: no {library}");
            continue;
        }
        let Some((wrong, all)) = compare_addresses(Path::new(library), 509, &no_debug_files())
        else {
            return;
        };
        assert!(wrong * 100 <= all * 3, "{library}: {wrong} of {all}");
    }
}

/// Names to break at; in gdb some fail that we accept, named in `more`.
const NAMES: [&str; 29] = [
    "func",
    "method",
    "n",
    "C::n",
    "ns::C::n",
    "inner::method",
    "tf",
    "tf<int>",
    "tf<int>(int)",
    "operator()",
    "C::operator()",
    "operator==",
    "C::operator bool",
    "operator bool",
    "C::C",
    "ns::C::C()",
    "C",
    "anon",
    "(anonymous namespace)::anon",
    "C::~C",
    "main::{lambda(int)#1}::operator()",
    "_ZN2ns1C1nEi",
    "func(int)",
    "plain",
    "gl",
    "_init",
    "tm",
    "main",
    "plainc",
];

/// The function addresses that gdb breaks in, thunks that only pass on left out.
fn gdb_places(program: &Path, modules: &Modules, name: &str) -> Option<BTreeSet<u64>> {
    // A name that gdb does not know ends the script.
    let text = gdb(
        program,
        &[
            "set breakpoint pending off".into(),
            format!("break {name}"),
            "info breakpoints".into(),
        ],
    )?;
    let mut places = BTreeSet::new();
    for line in text.lines() {
        let Some(address) = line
            .split_whitespace()
            .find_map(|word| u64::from_str_radix(word.strip_prefix("0x0000")?, 16).ok())
        else {
            continue;
        };
        let module = &modules.loaded()[0].module;
        let (symbol, _) = module.symbol_at(crate::arch::FileAddress(address))?;
        if !module.is_passing_thunk(symbol) {
            places.insert(symbol.address);
        }
    }
    Some(places)
}

/// The C library's local functions and implementations of indirect ones, where its debug file is installed.
#[test]
fn addresses_of_a_library_with_a_debug_file() {
    let library = Path::new("/usr/lib/x86_64-linux-gnu/libc.so.6");
    let directories = DebugDirectories::default();
    let modules = Modules::from_program(library, &directories);
    let file = modules.ok().and_then(|modules| {
        let module = &modules.loaded()[0].module;
        module.debug_file().map(Path::to_path_buf)
    });
    if file.is_none() {
        eprintln!("skipped: no debug file of {}", library.display());
        return;
    }
    let Some((wrong, all)) = compare_addresses(library, 509, &directories) else {
        return;
    };
    assert!(wrong * 100 <= all, "{wrong} of {all}");
}

#[test]
fn names_as_gdb_finds_them() {
    for flags in ["-O0", "-O2"] {
        let Some(program) = build(
            "names.cpp",
            &format!("names{flags}"),
            &[flags, "-fno-inline"],
        ) else {
            return;
        };
        let modules = Modules::from_program(&program, &no_debug_files()).unwrap();
        for name in NAMES {
            let Some(wanted) = gdb_places(&program, &modules, name) else {
                return;
            };
            let got: BTreeSet<u64> = match modules.resolve(&Location::parse(name)) {
                Ok(places) => places.iter().map(|place| place.address.0).collect(),
                Err(_) => BTreeSet::new(),
            };
            // gdb takes thunks by the short form of a name but not by its full one: a body's copy is a place for us by both.
            let extra = got.difference(&wanted).all(|address| {
                let (symbol, _) = modules.loaded()[0]
                    .module
                    .symbol_at(crate::arch::FileAddress(*address))
                    .unwrap();
                modules.loaded()[0]
                    .module
                    .symbols()
                    .display_name(symbol)
                    .contains("thunk to ")
            });
            assert!(
                wanted.is_subset(&got) && extra,
                "{flags} {name}: gdb {wanted:x?}, ours {got:x?}"
            );
        }
    }
}
