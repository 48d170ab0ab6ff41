//! The command line: which front runs, with what.

mod gdb;
mod trace;

use std::process::ExitCode;

/// Runs the command that the process's arguments name; returns its exit status.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
