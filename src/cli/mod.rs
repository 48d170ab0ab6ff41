//! The command line: which front runs, with what.

mod doctor;
mod gdb;
mod prompt;
mod signals;
mod symbols;
mod targets;
mod trace;

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

/// 1 for what failed, 2 for wrong usage.
fn status(error: &Error) -> u8 {
    match error.kind {
        Kind::Failure => 1,
        Kind::Usage => 2,
    }
}
