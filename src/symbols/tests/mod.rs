//! Whole files: programs of `testapps/symbols`, the system's libraries, compared with gdb.

mod gdb;
mod hostile;
mod large;
mod places;

use std::path::{Path, PathBuf};
use std::process::Command;

use super::DebugDirectories;

/// Compiles a program of `testapps/symbols` beside the test binary. `None`, said aloud, without a compiler.
fn build(source: &str, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testapps/symbols")
        .join(source);
    let directory = std::env::current_exe()
        .ok()?
        .parent()?
        .parent()?
        .join("symbols-tests");
    std::fs::create_dir_all(&directory).ok()?;
    let program = directory.join(name);
    let compiler = if source.extension().is_some_and(|ending| ending == "c") {
        "gcc"
    } else {
        "g++"
    };
    // Tests run at once: each takes its own copy and moves it into place.
    let own = directory.join(format!("{name}.{:?}", std::thread::current().id()));
    match Command::new(compiler)
        .args(flags)
        .arg("-o")
        .arg(&own)
        .arg(&source)
        .status()
    {
        Ok(status) if status.success() => {
            std::fs::rename(&own, &program).ok()?;
            Some(program)
        }
        Ok(status) => panic!("{compiler} {}: {status}", source.display()),
        Err(error) => {
            eprintln!("skipped: no {compiler}: {error}");
            None
        }
    }
}

/// What is compared with [`gdb`].
fn no_debug_files() -> DebugDirectories {
    DebugDirectories::new("/nonexistent")
}

/// What gdb prints, separate debug files ignored. `None`, said aloud, without gdb.
fn gdb(program: &Path, commands: &[String]) -> Option<String> {
    gdb_with(program, commands, &no_debug_files())
}

/// The same with debug files from there.
fn gdb_with(program: &Path, commands: &[String], directories: &DebugDirectories) -> Option<String> {
    let script = program_script(commands)?;
    let mut gdb = Command::new("gdb");
    let set = format!("set debug-file-directory {}", directories.text());
    gdb.args(["-nx", "-q", "-batch", "-iex", &set, "-x"])
        .arg(&script);
    let out = gdb.arg(program).env_remove("DEBUGINFOD_URLS").output();
    let _ = std::fs::remove_file(&script);
    match out {
        Ok(out) => Some(String::from_utf8_lossy(&out.stdout).into_owned()),
        Err(error) => {
            eprintln!("skipped: no gdb: {error}");
            None
        }
    }
}

fn program_script(commands: &[String]) -> Option<PathBuf> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!(
        "trapline-symbols-{}-{number}.gdb",
        std::process::id()
    ));
    std::fs::write(&path, commands.join("\n") + "\n").ok()?;
    Some(path)
}
