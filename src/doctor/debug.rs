//! The files of a process: which could be read, and what they tell of names.

use super::{Check, State};
use crate::symbols::{DebugDirectories, Loaded, Modules, memory_of, parse_maps};

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
    let modules = Modules::of_process(
        pid,
        &maps,
        &memory_of(pid),
        &Modules::default(),
        &DebugDirectories::default(),
    );
    checks.push(found(&modules));
    checks.push(names(&modules));
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

fn names(modules: &Modules) -> Check {
    let mut debug = 0;
    let mut table = 0;
    let mut poor = Vec::new();
    let mut separate = 0;
    for loaded in modules.loaded() {
        match source(loaded) {
            Source::Debug => debug += 1,
            Source::Table => table += 1,
            Source::Exports => poor.push(loaded.name()),
        }
        separate += usize::from(loaded.module.debug_file().is_some());
    }
    let mut seen =
        format!("{debug} modules with debug information, {table} with a symbol table only");
    if separate != 0 {
        seen.push_str(&format!(", {separate} separate debug files found"));
    }
    for line in modules.warnings() {
        seen.push_str(&format!("; {line}"));
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

fn source(loaded: &Loaded) -> Source {
    if loaded.module.has_debug_info() {
        Source::Debug
    } else if loaded.module.has_names() {
        Source::Table
    } else {
        Source::Exports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
