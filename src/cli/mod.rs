//! The command line: which front runs, with what.

mod doctor;
mod gdb;
mod prompt;
mod signals;
mod symbols;
mod targets;
mod trace;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::engine::keeper;
use crate::error::{Error, Kind};
use crate::session::Session;

/// Runs the command that the process's arguments name; returns its exit status.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.next().is_some_and(|name| name == keeper::NAME) {
        return keeper::main();
    }
    let mut arguments = arguments.peekable();
    let result = match arguments.peek().and_then(|first| first.to_str()) {
        Some("trace") => trace::main(arguments.skip(1)),
        Some("doctor") => doctor::main(arguments.skip(1)),
        Some("symbols") => symbols::main(arguments.skip(1)),
        _ => gdb::parse(arguments).and_then(prompt::main),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(status(&error))
        }
    }
}

/// Reads a command's options. `Err`: help or a complaint was printed, and this is the exit status.
fn read<O: clap::Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<O, u8> {
    O::try_parse_from(arguments).map_err(|error| {
        // clap knows which of its texts are help and which are complaints.
        let _ = error.print();
        error.exit_code() as u8
    })
}

/// Reads the user's files of named probes: those of the configuration directory, where one that is
/// wrong is complained about, and those that were asked for, where one that is wrong is an error.
fn named_probes(
    session: &mut Session,
    files: impl IntoIterator<Item: AsRef<Path>>,
) -> Result<(), Error> {
    for error in session.named.add_configured() {
        session.output.complain(&format!("warning: {error}"));
    }
    for file in files {
        let wrong = |error: Error| Error::usage(format!("--probes: {error}"));
        session.named.add_file(file.as_ref()).map_err(wrong)?;
    }
    Ok(())
}

/// A fault in how a command was typed.
fn usage(command: &str, text: &str) -> Error {
    Error::usage(format!(
        "trapline {command}: {text}\nUse `trapline {command} --help' for its options."
    ))
}

/// 1 for what failed, 2 for wrong usage.
fn status(error: &Error) -> u8 {
    match error.kind {
        Kind::Failure => 1,
        Kind::Usage => 2,
    }
}
