//! Files that lie: one clear error or a smaller table, never a panic, never much memory or time.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::build;
use crate::arch::FileAddress;
use crate::hostile::{hostile, lines};
use crate::symbols::debugfile::Search;
use crate::symbols::elf::ElfError;
use crate::symbols::module::Module;
use crate::symbols::{DebugDirectories, Location, Modules, Pattern, SymbolKind, listing};

/// Everything that reads a file, done to it.
fn exercise(bytes: Vec<u8>) -> Result<(), String> {
    let module =
        Module::from_memory(Path::new("hostile"), bytes).map_err(|error| error.to_string())?;
    use_all(module);
    Ok(())
}

fn use_all(module: Module) {
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

fn programs() -> Vec<Vec<u8>> {
    let system = [
        "/bin/true",
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/x86_64-linux-gnu/libdl.so.2",
    ];
    let read = |path: &&str| std::fs::read(path).ok();
    sample()
        .into_iter()
        .chain(system.iter().filter_map(read))
        .collect()
}

hostile!(
    fuzz_programs,
    programs(),
    { focus: interesting, cases: 60 },
    |input| {
        if let Err(text) = exercise(input.to_vec()) {
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
);

/// The names of a program's symbols.
fn mangled() -> Vec<Vec<u8>> {
    let Some(bytes) = sample() else {
        return Vec::new();
    };
    let module = Module::from_memory(Path::new("names"), bytes).unwrap();
    let names = module.symbols().all().iter().filter_map(|symbol| {
        let name = module.symbols().linkage_name(symbol);
        crate::symbols::demangle::is_mangled(name.as_bytes()).then(|| name.as_bytes().to_vec())
    });
    let rust = [
        "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
        "_RNvCs15kBYyAo9fc_7mycrate7example",
    ];
    names
        .chain(rust.map(|name| name.as_bytes().to_vec()))
        .collect()
}

/// Debug files, in the place where one of our program is looked for.
fn debug_files() -> Vec<Vec<u8>> {
    Split::new("fuzz-corpus").map_or_else(Vec::new, |split| vec![split.debug.clone()])
}

hostile!(
    fuzz_debug_files,
    debug_files(),
    { focus: interesting, cases: 40 },
    |input| {
        thread_local! {
            static SPLIT: Option<(Split, PathBuf)> = Split::new("fuzz").map(|split| {
                std::fs::remove_file(split.directory.join("x.debug")).unwrap();
                let path = split.by_build_id();
                (split, path)
            });
        }
        SPLIT.with(|split| {
            let Some((split, path)) = split else { return };
            std::fs::write(path, input).unwrap();
            let module = split.open();
            let one_line = |line: &String| !line.contains(char::is_control);
            assert!(module.warnings().iter().all(one_line), "{:?}", module.warnings());
            use_all(module);
        });
    }
);

hostile!(
    fuzz_demangler,
    mangled(),
    {
        words: &[
            "_Z", "N", "E", "I", "S_", "S0_", "T_", "T0_", "St", "Ss", "K", "P", "R", "O", "F", "v", "i", "c", "3foo",
            "C1", "D2", "L", "Lb1", "Dp", "DpT_", "_ZThn8_", "sr", "cl", "X", "_R", "Nv", "Cs", "17h", "J", "clE",
        ],
        cases: 600,
    },
    |input| {
        use crate::symbols::demangle::{demangle, demangle_for_lookup, thunk_target};
        let name = String::from_utf8_lossy(input);
        let _ = (demangle(&name), demangle_for_lookup(&name), thunk_target(&name));
    }
);

hostile!(
    fuzz_maps,
    vec![std::fs::read("/proc/self/maps").unwrap(), std::fs::read("/proc/self/auxv").unwrap()],
    { words: &["0-0 r-xp 0 0:0 0 ", "ffffffffffffffff-0 rwxp 0 0:0 1 /x (deleted)", "[vdso]", "\\012", "\n"] },
    |input| {
        for map in crate::symbols::parse_maps(input) {
            assert!(map.start < map.end, "{map:?}");
        }
        let _ = crate::symbols::auxv::Auxv::parse(input);
    }
);

hostile!(
    fuzz_locations,
    lines(&["tests/corpus/hostile/locations.txt"]),
    {
        words: &[
            "main", "ns::C::n", "ns::", "::", "operator()", "operator<<", "operator ", "(", ")", "int", "const&", "<", ">",
            ",", "/", "/^n/", "hostile:", "hostile`", "+0x1000", ":0x1000", "*", "~", "%return", "`", "@GLIBC_2.2.5",
            "(anonymous namespace)", "[abi:cxx11]", "names.cpp:10", "12", ".*", "(?i)", "[a-z]", "{3,}", "\\",
        ],
        cases: 200,
    },
    |input| {
        static MODULES: std::sync::OnceLock<Option<Modules>> = std::sync::OnceLock::new();
        let modules = MODULES.get_or_init(|| {
            let module = Module::from_memory(Path::new("hostile"), sample()?).unwrap();
            Some(Modules::from_module(std::sync::Arc::new(module)))
        });
        let text = String::from_utf8_lossy(input);
        let location = Location::parse(&text);
        let _ = Pattern::parse(&text);
        if let Some(Err(error)) = modules.as_ref().map(|modules| modules.resolve(&location)) {
            let _ = (error.to_string(), error.hint());
        }
    }
);

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

/// A stripped program with a debug file: by link beside it, or by build id.
struct Split {
    directory: PathBuf,
    program: PathBuf,
    whole: Vec<u8>,
    debug: Vec<u8>,
}

impl Drop for Split {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Split {
    fn new(name: &str) -> Option<Split> {
        let whole = build("names.cpp", "names-hostile", &["-O2", "-g0"])?;
        let directory =
            std::env::temp_dir().join(format!("trapline-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut split = Split {
            program: directory.join("program"),
            directory,
            whole: Vec::new(),
            debug: Vec::new(),
        };
        let objcopy = |arguments: [&str; 3]| {
            let mut command = std::process::Command::new("objcopy");
            let status = command
                .current_dir(&split.directory)
                .args(arguments)
                .status();
            status.is_ok_and(|status| status.success()).then_some(())
        };
        let whole = whole.to_str()?;
        objcopy(["--only-keep-debug", whole, "x.debug"])?;
        objcopy(["--strip-all", whole, "program"])?;
        objcopy(["--add-gnu-debuglink=x.debug", "program", "program"])?;
        split.whole = std::fs::read(&split.program).ok()?;
        split.debug = std::fs::read(split.directory.join("x.debug")).ok()?;
        Some(split)
    }

    fn open(&self) -> Module {
        let directories = DebugDirectories::new(&self.directory.display().to_string());
        let search = Search {
            directories: &directories,
            pid: None,
        };
        Module::open(&self.program).unwrap().with_debug_file(search)
    }

    fn by_build_id(&self) -> PathBuf {
        let module = Module::open(&self.program).unwrap();
        let id = module.elf().build_id.clone().unwrap();
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let directory = self.directory.join(".build-id").join(&id[..2]);
        std::fs::create_dir_all(&directory).unwrap();
        directory.join(format!("{}.debug", &id[2..]))
    }
}

/// Without a check sum the debug file may hold anything.
#[test]
fn mutated_debug_files() {
    let Some(split) = Split::new("mutated-debug") else {
        return;
    };
    let path = split.by_build_id();
    std::fs::remove_file(split.directory.join("x.debug")).unwrap();
    std::fs::write(&path, &split.debug).unwrap();
    let whole = split.open();
    assert_eq!(whole.debug_file(), Some(path.as_path()));
    assert!(!whole.find_linkage("main").is_empty());
    let positions = interesting(&split.debug);
    let change = (
        0..positions.len(),
        prop_oneof![Just(0u8), Just(0xff), Just(0x7f), Just(0x80), any::<u8>()],
    );
    proptest!(ProptestConfig::with_cases(200), |(changes in prop::collection::vec(change, 1..12))| {
        let mut bytes = split.debug.clone();
        for (position, value) in changes {
            bytes[positions[position]] = value;
        }
        std::fs::write(&path, bytes).unwrap();
        let started = Instant::now();
        let module = split.open();
        prop_assert!(module.debug_file().is_some() || module.warnings().len() == 1);
        use_all(module);
        prop_assert!(started.elapsed() < Duration::from_secs(5));
    });
    for length in (0..200).chain((200..split.debug.len()).step_by(997)) {
        std::fs::write(&path, &split.debug[..length]).unwrap();
        let module = split.open();
        assert_eq!((module.debug_file(), module.warnings().len()), (None, 1));
    }
    // More sections than a symbol can number.
    let mut bytes = split.debug.clone();
    let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    bytes[60..62].fill(0);
    bytes[sections + 32..sections + 40].copy_from_slice(&70_000u64.to_le_bytes());
    bytes.resize(sections + 70_000 * 64, 0);
    std::fs::write(&path, bytes).unwrap();
    use_all(split.open());
}

#[test]
fn links_that_lie() {
    let Some(split) = Split::new("links") else {
        return;
    };
    assert!(split.open().debug_file().is_some());
    let at = memchr::memmem::find(&split.whole, b"x.debug\0").unwrap();
    let cases: [(&[u8; 8], &str); 5] = [
        (b"../debug", "no name"),
        (b"../x.dbg", "no name"),
        (b"/etc/x\0\0", "no file's name"),
        (b"..\0debug", "no file's name"),
        (b"\0\0\0\0\0\0\0\0", "no file's name"),
    ];
    for (name, text) in cases {
        let mut bytes = split.whole.clone();
        bytes[at..at + 8].copy_from_slice(name);
        if text == "no name" {
            // No NUL in the check sum either.
            bytes[at + 8..at + 12].fill(0xff);
        }
        std::fs::write(&split.program, bytes).unwrap();
        let module = split.open();
        assert_eq!(module.debug_file(), None);
        let [line] = module.warnings() else {
            panic!("{:?}", module.warnings());
        };
        assert!(line.contains(text), "{line}");
    }
    // The section lies behind the end of the file, or is the whole address space.
    let module = Module::open(&split.program).unwrap();
    let sections = u64::from_le_bytes(split.whole[40..48].try_into().unwrap()) as usize;
    let index = module.elf().sections.iter();
    let index = index.take_while(|section| section.name != ".gnu_debuglink");
    let header = sections + 64 * index.count();
    for (field, value) in [(24, u64::MAX), (24, 1 << 40), (32, u64::MAX), (32, 0)] {
        let mut bytes = split.whole.clone();
        bytes[header + field..header + field + 8].copy_from_slice(&value.to_le_bytes());
        std::fs::write(&split.program, bytes).unwrap();
        let module = split.open();
        assert_eq!((module.debug_file(), module.warnings().len()), (None, 1));
    }
}

/// What a link names may be no file, without an end, or the program itself.
#[test]
fn debug_files_that_are_none() {
    let Some(split) = Split::new("none") else {
        return;
    };
    let path = split.directory.join("x.debug");
    let started = Instant::now();
    std::fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let none = |wanted: &[&str]| {
        let module = split.open();
        assert_eq!(module.debug_file(), None);
        assert_eq!(module.warnings().len(), wanted.len());
        for (line, text) in module.warnings().iter().zip(wanted) {
            assert!(line.contains(text), "{line}");
        }
    };
    none(&[]);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&split.program, &path).unwrap();
    none(&[]);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    none(&[]);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &split.debug).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path);
    file.unwrap().set_len(1 << 41).unwrap();
    none(&["too large for a check sum"]);
    assert!(started.elapsed() < Duration::from_secs(5));
}
