//! The files of a process: which could be read, and what they tell of names.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Check, State};
use crate::symbols::{Loaded, Modules, parse_maps};

const AREA: &str = "target";

/// Adds the checks.
pub fn examine(pid: i32, checks: &mut Vec<Check>) {
    let maps = match std::fs::read(format!("/proc/{pid}/maps")) {
        Ok(text) => parse_maps(&text),
        Err(error) => {
            let seen = format!("/proc/{pid}/maps: {error}");
            checks.push(
                Check::new(AREA, "modules", State::Unknown, seen)
                    .cure("see the line about attaching"),
            );
            return;
        }
    };
    let memory = File::open(format!("/proc/{pid}/mem"));
    let read = |address: u64, buffer: &mut [u8]| {
        memory
            .as_ref()
            .is_ok_and(|memory| memory.read_exact_at(buffer, address).is_ok())
    };
    let modules = Modules::of_process(pid, &maps, &read, &Modules::default());
    checks.push(found(&modules));
    checks.push(names(&modules, pid));
}

fn found(modules: &Modules) -> Check {
    let libraries = modules.loaded().iter().filter(|module| !module.main);
    let libraries = libraries.filter(|module| module.name() != "[vdso]").count();
    let program = modules.loaded().iter().find(|module| module.main);
    let kind = match program.map(|program| program.module.elf()) {
        Some(elf) if elf.interpreter.is_none() && elf.relocatable => {
            "the program (static, position independent)"
        }
        Some(elf) if elf.interpreter.is_none() => "the program (static)",
        Some(_) => "the program",
        None => "not the program",
    };
    let seen = format!(
        "read: {kind}, {libraries} librar{}",
        if libraries == 1 { "y" } else { "ies" }
    );
    let failed: Vec<String> = modules
        .unreadable()
        .iter()
        .map(|module| module.error.to_string())
        .collect();
    if failed.is_empty() {
        return Check::new(AREA, "modules", State::Ok, seen);
    }
    let state = if program.is_some() {
        State::Part
    } else {
        State::No
    };
    Check::new(
        AREA,
        "modules",
        state,
        format!("{seen}; not read: {}", failed.join("; ")),
    )
    .cure("run as root (CAP_SYS_ADMIN reads what was replaced or deleted), or give the files back")
}

/// Where a module's names come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Debug information, here or in a separate file.
    Debug,
    /// Its own symbol table.
    Table,
    /// Only what it exports.
    Exports,
}

fn names(modules: &Modules, pid: i32) -> Check {
    let mut debug = 0;
    let mut table = 0;
    let mut poor = Vec::new();
    let mut separate = Vec::new();
    for loaded in modules.loaded() {
        let file = separate_file(loaded, pid);
        match source(loaded, file.is_some()) {
            Source::Debug => debug += 1,
            Source::Table => table += 1,
            Source::Exports => poor.push(loaded.name()),
        }
        separate.extend(file);
    }
    let mut seen =
        format!("{debug} modules with debug information, {table} with a symbol table only");
    if !separate.is_empty() {
        seen.push_str(&format!(", {} separate debug files found", separate.len()));
    }
    poor.retain(|name| name != "[vdso]");
    if poor.is_empty() {
        return Check::new(AREA, "names", State::Ok, seen);
    }
    let state = State::Part;
    Check::new(
        AREA,
        "names",
        state,
        format!("{seen}; exported names only: {}", poor.join(", ")),
    )
    .cure("install their debug packages (by build id under /usr/lib/debug), or use LIB+0xOFFSET")
}

fn source(loaded: &Loaded, separate: bool) -> Source {
    if separate || loaded.module.has_debug_info() {
        Source::Debug
    } else if loaded.module.elf().section(".symtab").is_some() {
        Source::Table
    } else {
        Source::Exports
    }
}

/// The module's separate debug file, by its build id, in the process's root or in ours.
fn separate_file(loaded: &Loaded, pid: i32) -> Option<PathBuf> {
    let relative = by_build_id(loaded.module.elf().build_id.as_deref()?)?;
    let roots = [PathBuf::from(format!("/proc/{pid}/root")), "/".into()];
    roots
        .iter()
        .map(|root| root.join(&relative))
        .find(|path| path.is_file())
}

fn by_build_id(id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(Path::new("usr/lib/debug/.build-id").join(format!("{first:02x}/{rest}.debug")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_a_path() {
        assert_eq!(
            by_build_id(&[0xab, 1, 0x2f]).unwrap(),
            Path::new("usr/lib/debug/.build-id/ab/012f.debug")
        );
        assert_eq!(by_build_id(&[1]), None);
        assert_eq!(by_build_id(&[]), None);
    }

    #[test]
    fn our_own_modules_are_found() {
        let mut checks = Vec::new();
        examine(std::process::id() as i32, &mut checks);
        assert_eq!(checks[0].name, "modules");
        assert!(checks[0].seen.contains("the program"), "{}", checks[0]);
        assert!(checks[1].seen.contains("with debug information"));
        checks.clear();
        examine(1 << 23, &mut checks);
        assert_eq!(checks[0].state, State::Unknown);
    }
}
