//! `trapline doctor`: what this machine allows, and the cure.

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

use crate::doctor::{self, Check};
use crate::error::Error;
use crate::session::search;

/// Says what this machine allows a tracer, one line each, and the cure for what it does not.
///
/// Everything is looked up or tried on a process of trapline's own; nothing is changed. The first
/// word of a line is ok, part (with a restriction), no, or ? (it could not be found out). The exit
/// status is 0 if trapline can trace here (with -p: that process), else 1.
#[derive(Debug, Parser)]
#[command(name = "trapline doctor", no_binary_name = true)]
pub struct Options {
    /// Look at a running process too: its id, its program's name, or /REGEX/ on its command line.
    #[arg(short = 'p', long = "pid", value_name = "TARGET")]
    pub target: Option<String>,

    /// One JSON object a line (schema/doctor-v1.json), the verdict last.
    #[arg(long)]
    pub json: bool,
}

/// Runs `trapline doctor`; `arguments` is what follows that word.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Result<u8, Error> {
    let options: Options = match super::read(arguments) {
        Ok(options) => options,
        Err(status) => return Ok(status),
    };
    let pid = options.target.as_deref().map(search::find).transpose()?;
    let report = doctor::run(pid);
    let mut lines: Vec<String> = report
        .checks
        .iter()
        .map(|check| match options.json {
            true => Check::json(check),
            false => check.to_string(),
        })
        .collect();
    lines.extend(options.json.then(|| report.json_verdict()));
    lines.push(String::new());
    // A reader that has seen enough is no error.
    let _ = std::io::stdout().write_all(lines.join("\n").as_bytes());
    Ok(u8::from(!report.works))
}
