//! Names to places on real files and in running processes.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{build, no_debug_files};
use crate::arch::FileAddress;
use crate::symbols::{
    Auxv, Location, Modules, Place, ResolveError, SymbolKind, memory_of, parse_maps,
};

fn resolve(modules: &Modules, text: &str) -> Result<Vec<Place>, ResolveError> {
    modules.resolve(&Location::parse(text))
}

fn names<'a>(modules: &'a Modules, places: &[Place]) -> Vec<Cow<'a, str>> {
    places
        .iter()
        .map(|place| modules.linkage_name(place))
        .collect()
}

#[test]
fn thunks_that_bear_a_body_are_places() {
    let Some(program) = build("thunks.cpp", "thunks", &["-O2"]) else {
        return;
    };
    let modules = Modules::from_program(&program, &no_debug_files()).unwrap();
    let small = resolve(&modules, "App::small").unwrap();
    assert_eq!(
        names(&modules, &small).len(),
        2,
        "{:?}",
        names(&modules, &small)
    );
    assert!(names(&modules, &small).contains(&"_ZThn16_N3App5smallEi".into()));
    let large = resolve(&modules, "ns::App::large");
    assert!(large.is_err());
    assert_eq!(
        names(&modules, &resolve(&modules, "App::large").unwrap()),
        ["_ZN3App5largeEi"]
    );
    // A mangled name takes exactly that symbol, a thunk that only passes on too.
    assert_eq!(
        names(
            &modules,
            &resolve(&modules, "_ZThn16_N3App5largeEi").unwrap()
        ),
        ["_ZThn16_N3App5largeEi"]
    );
    assert_eq!(
        modules.display_name(&resolve(&modules, "_ZThn16_N3App5largeEi").unwrap()[0]),
        "non-virtual thunk to App::large(int)"
    );
}

#[test]
fn regular_expressions_mean_functions() {
    let Some(program) = build("thunks.cpp", "thunks-regex", &["-O2"]) else {
        return;
    };
    let modules = Modules::from_program(&program, &no_debug_files()).unwrap();
    // The thunk that bears the body is one, the thunk that passes on is none.
    let small = resolve(&modules, "/App::small/").unwrap();
    assert_eq!(
        names(&modules, &small).len(),
        2,
        "{:?}",
        names(&modules, &small)
    );
    assert_eq!(
        names(&modules, &resolve(&modules, "/App::large/").unwrap()),
        ["_ZN3App5largeEi"]
    );
    assert_eq!(
        names(
            &modules,
            &resolve(&modules, "thunks-regex:/^main$/").unwrap()
        ),
        ["main"]
    );
    let all = resolve(&modules, "/./").unwrap();
    assert!(all.len() > small.len());
    assert!(
        names(&modules, &all)
            .iter()
            .all(|name| !name.contains("@plt")),
        "{:?}",
        names(&modules, &all)
    );
    assert!(
        names(&modules, &all)
            .iter()
            .all(|name| !name.ends_with(".cold")),
        "{:?}",
        names(&modules, &all)
    );
    let mut places: Vec<_> = all.iter().map(|place| place.address).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), all.len());
    assert_eq!(
        resolve(&modules, "/no such function/")
            .unwrap_err()
            .to_string(),
        "Function \"/no such function/\" not defined."
    );
    assert!(matches!(
        resolve(&modules, "/(/"),
        Err(ResolveError::BadPattern { .. })
    ));
}

/// `.eh_frame` stays where the symbols are stripped, and bounds what has no size.
#[test]
fn functions_by_their_frames() {
    let Some(whole) = build("wait.c", "wait-whole", &["-O1"]) else {
        return;
    };
    let Some(stripped) = build("wait.c", "wait-stripped", &["-O1", "-s"]) else {
        return;
    };
    let whole = Modules::from_program(&whole, &no_debug_files()).unwrap();
    let place = &resolve(&whole, "waiting_function").unwrap()[0];
    let (start, size) = place.function;
    let modules = Modules::from_program(&stripped, &no_debug_files()).unwrap();
    assert!(resolve(&modules, "waiting_function").is_err());
    for inside in [0, size - 1] {
        let text = format!("wait-stripped+{:#x}", start.0 + inside);
        let found = &resolve(&modules, &text).unwrap()[0];
        assert_eq!(
            (found.function, &*modules.linkage_name(found)),
            ((start, size), "")
        );
    }
    let module = &whole.loaded()[0].module;
    let (symbol, _) = module.symbol_at(module.text().unwrap().0).unwrap();
    assert_eq!(module.symbols().linkage_name(symbol), "_start");
    // `_init` has no size, and no frame: the next section ends it.
    let init = module.find("_init", SymbolKind::is_code)[0];
    let section = module.section_at(FileAddress(init.address)).unwrap();
    assert_eq!(
        module.extent(init),
        section.address + section.size - init.address
    );
}

/// A symbol without a size names what lies behind it, but where that is another function it is another.
#[test]
fn functions_behind_a_symbol_without_a_size() {
    let Some(program) = build("unsized.S", "unsized", &[]) else {
        return;
    };
    let modules = Modules::from_program(&program, &no_debug_files()).unwrap();
    let start = resolve(&modules, "unsized_one").unwrap()[0].address.0;
    for inside in [2, 3] {
        let place = &resolve(&modules, &format!("unsized+{:#x}", start + inside)).unwrap()[0];
        assert_eq!(place.function, (FileAddress(start + 2), 3), "{inside}");
        assert_eq!(modules.linkage_name(place), "", "{inside}");
    }
    let own = &resolve(&modules, &format!("unsized+{:#x}", start + 1)).unwrap()[0];
    assert_eq!(own.function, (FileAddress(start), 2));
    assert_eq!(modules.linkage_name(own), "unsized_one");
    // What is left there can be told.
    let images = crate::session::images::Images::of_file(&program, &no_debug_files()).unwrap();
    let ways = images.ways_out(start + 2).unwrap();
    let at: Vec<u64> = ways.iter().map(|way| way.address).collect();
    assert_eq!(at, [start + 4]);
}

#[test]
fn errors_name_the_cure() {
    let Some(program) = build("names.cpp", "names-errors", &["-O1"]) else {
        return;
    };
    let modules = Modules::from_program(&program, &no_debug_files()).unwrap();
    let error = resolve(&modules, "mian").unwrap_err();
    assert_eq!(error.to_string(), "Function \"mian\" not defined.");
    assert!(error.hint().unwrap().contains("main"), "{:?}", error.hint());
    assert!(
        resolve(&modules, "inner::metod")
            .unwrap_err()
            .hint()
            .unwrap()
            .contains("ns::inner::method")
    );
    assert_eq!(
        resolve(&modules, "printf").unwrap_err(),
        ResolveError::NotLoaded {
            name: "printf".into()
        }
    );
    assert_eq!(
        resolve(&modules, "gl").unwrap_err(),
        ResolveError::NotCode {
            name: "gl".into(),
            indirect: None
        }
    );
    assert!(matches!(
        resolve(&modules, "libnone.so:f"),
        Err(ResolveError::NoModule { .. })
    ));
    assert!(matches!(
        resolve(&modules, "names.cpp:3"),
        Err(ResolveError::NoLines { .. })
    ));
    let module = &modules.loaded()[0].module;
    let (start, _) = module.text().unwrap();
    assert!(resolve(&modules, &format!("names-errors+{start:#x}")).is_ok());
    assert!(matches!(
        resolve(&modules, "names-errors+0x10"),
        Err(ResolveError::OutsideCode { .. })
    ));
    let plt = module.elf().section(".plt").unwrap().address + 16;
    assert!(matches!(
        resolve(&modules, &format!("names-errors+{plt:#x}")),
        Err(ResolveError::InPlt { .. })
    ));
}

/// A child that is killed whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(program: &Path) -> Running {
    let child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(child);
    // Until the loader is done, which the program says by sleeping in `read`.
    let until = Instant::now() + Duration::from_secs(20);
    let call = format!("/proc/{}/syscall", running.0.id());
    while Instant::now() < until
        && !std::fs::read_to_string(&call).is_ok_and(|text| text.starts_with("0 0x0 "))
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    running
}

fn scan(running: &Running, before: &Modules) -> Modules {
    let pid = running.0.id() as i32;
    let maps = parse_maps(&std::fs::read(format!("/proc/{pid}/maps")).unwrap());
    Modules::of_process(pid, &maps, &memory_of(pid), before, &no_debug_files())
}

#[test]
fn a_running_process() {
    for flags in [&["-O1", "-pie"][..], &["-O1", "-no-pie"]] {
        let Some(program) = build("wait.c", &format!("wait{}", flags[1]), flags) else {
            return;
        };
        let running = run(&program);
        let modules = scan(&running, &Modules::default());
        assert!(
            modules.unreadable().is_empty(),
            "{:?}",
            modules.unreadable()
        );
        assert!(modules.loaded()[0].main);
        let auxv = Auxv::parse(&std::fs::read(format!("/proc/{}/auxv", running.0.id())).unwrap());
        let start = modules.symbol("_start").unwrap().address;
        assert_eq!(auxv.entry, Some(start));
        let puts = resolve(&modules, "libc.so.6:puts").unwrap();
        for name in ["libc.so:puts", "libc:puts", "libc`puts"] {
            assert_eq!(resolve(&modules, name).unwrap(), puts, "{name}");
        }
        assert_eq!(
            modules.symbol_at(puts[0].runtime).map(|named| named.offset),
            Some(0)
        );
        assert_eq!(
            modules.symbol("shared_number").map(|found| found.kind),
            Some(SymbolKind::Data)
        );
        let vdso = modules
            .loaded()
            .iter()
            .find(|loaded| loaded.path == Path::new("[vdso]"));
        assert_eq!(vdso.is_some(), auxv.vdso.is_some());
        if vdso.is_some() {
            assert!(
                !resolve(&modules, "__vdso_clock_gettime")
                    .unwrap()
                    .is_empty()
            );
        }
        // A second scan reads no file again.
        let again = scan(&running, &modules);
        assert!(std::sync::Arc::ptr_eq(
            &again.loaded()[0].module,
            &modules.loaded()[0].module
        ));
    }
}

#[test]
fn a_program_deleted_or_replaced_since() {
    let Some(original) = build("wait.c", "wait-deleted", &["-O1"]) else {
        return;
    };
    let Some(other) = build("thunks.cpp", "thunks-replacing", &["-O2"]) else {
        return;
    };
    let copy: PathBuf =
        original.with_file_name(format!("wait line\n(deleted) {}", std::process::id()));
    for replace in [false, true] {
        std::fs::copy(&original, &copy).unwrap();
        let running = run(&copy);
        std::fs::remove_file(&copy).unwrap();
        if replace {
            std::fs::copy(&other, &copy).unwrap();
        }
        let maps = parse_maps(&std::fs::read(format!("/proc/{}/maps", running.0.id())).unwrap());
        assert!(maps.iter().any(
            |map| matches!(&map.backing, crate::symbols::maps::Backing::File { path, deleted: true } if *path == copy)
        ));
        let modules = scan(&running, &Modules::default());
        assert!(
            resolve(&modules, "waiting_function").is_ok(),
            "{:?}",
            modules.unreadable()
        );
        let _ = std::fs::remove_file(&copy);
    }
}

#[test]
fn large_libraries_quickly() {
    let library = Path::new("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
    if !library.exists() {
        eprintln!("skipped: no {}", library.display());
        return;
    }
    let started = Instant::now();
    let modules = Modules::from_program(library, &no_debug_files()).unwrap();
    let opened = started.elapsed();
    let places = resolve(&modules, "std::ios_base::Init::Init").unwrap();
    let first = started.elapsed() - opened;
    assert_eq!(places.len(), 1);
    let nearest = Instant::now();
    let error = resolve(&modules, "ios_base::Init::Inid").unwrap_err();
    eprintln!(
        "{}: {} symbols, open {opened:?}, first lookup {first:?}, nearest {:?} ({:?})",
        library.display(),
        modules.loaded()[0].module.symbols().all().len(),
        nearest.elapsed(),
        error.hint(),
    );
}

/// gdb breaks where the calls of an indirect function come, once the process has chosen.
#[test]
fn indirect_functions_are_their_implementations() {
    let Some(program) = build("wait.c", "wait-indirect", &["-O1"]) else {
        return;
    };
    let running = run(&program);
    let modules = scan(&running, &Modules::default());
    let Some(libc) = modules
        .loaded()
        .iter()
        .position(|loaded| loaded.name().starts_with("libc.so"))
    else {
        return;
    };
    let module = &modules.loaded()[libc].module;
    let resolvers: Vec<u64> = module
        .find("strlen", SymbolKind::is_code)
        .iter()
        .filter(|symbol| symbol.kind == SymbolKind::Ifunc)
        .map(|symbol| symbol.address)
        .collect();
    if resolvers.is_empty() {
        eprintln!("skipped: strlen is no indirect function here");
        return;
    }
    let chosen = resolve(&modules, "libc.so.6:strlen").unwrap();
    assert_eq!(chosen.len(), 1, "{chosen:?}");
    assert!(!resolvers.contains(&chosen[0].address.0), "{chosen:?}");
    assert_eq!(chosen[0].kind, SymbolKind::Function);
    // Without a process: all that there is to choose from.
    let file = Modules::from_module(std::sync::Arc::clone(module));
    let choices = resolve(&file, "strlen").unwrap();
    assert!(choices.len() > 1, "{choices:?}");
    let all = choices.iter().map(|place| place.address);
    let all: Vec<_> = all.collect();
    assert!(all.contains(&chosen[0].address), "{choices:?}");
    assert!(resolvers.iter().all(|r| !all.iter().any(|a| a.0 == *r)));
}
