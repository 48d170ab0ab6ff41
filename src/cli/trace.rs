//! `trapline trace`: every hit, one line, the target never stopped.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use std::time::Instant;

use clap::Parser;

use super::signals;
use crate::command::{Interpreter, NAMES};
use crate::error::{Error, fail};
use crate::lang::script::Position;
use crate::record::{Summary, clock, json};
use crate::repl::input::Piped;
use crate::session::events::Wake;
use crate::session::output::Output;
use crate::session::replay::Show;
use crate::session::{Session, process, settings};

/// Prints every hit of the given probes, one line each, without stopping the program.
///
/// Hits go to standard output; the banner, warnings and the summary to standard error.
#[derive(Debug, Parser)]
#[command(name = "trapline trace", no_binary_name = true)]
pub struct Options {
    /// What to trace: LOCATION [if EXPRESSION] [{ COMMAND; ... }]. Without a body the arguments
    /// are printed. Use single quotes: the shell eats $rsi otherwise.
    #[arg(short = 'e', long = "probe", value_name = "PROBE")]
    pub probes: Vec<String>,

    /// A file of commands, with `trace PROBE` or `break` and `commands`.
    #[arg(short = 'x', long = "command", value_name = "FILE")]
    pub scripts: Vec<PathBuf>,

    /// A running process: its id, its program's name, or /REGEX/ on its command line.
    #[arg(short = 'p', long = "pid", value_name = "TARGET")]
    pub targets: Vec<String>,

    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,

    /// Leave after this many hits.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Leave after this time: 10s, 500ms, 2m, 1h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,

    /// The program to launch, behind `--`, and its arguments.
    #[arg(last = true, value_name = "PROGRAM ARGUMENT")]
    pub command: Vec<OsString>,
}

/// Runs `trapline trace`; `arguments` is what follows that word.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Result<u8, Error> {
    let options = match Options::try_parse_from(arguments) {
        Ok(options) => options,
        Err(error) => {
            // clap knows which of its texts are help and which are complaints.
            let _ = error.print();
            return Ok(error.exit_code() as u8);
        }
    };
    check(&options)?;
    signals::listen()?;
    let mut session = Session::new(Output::standard(), &NAMES);
    session.show = if options.json { Show::Json } else { Show::Line };
    session.stdout_to_stderr = options.json;
    let mut interpreter = Interpreter::new(session, Box::new(Piped), true);
    let begun = Instant::now();
    let result = trace(&mut interpreter, &options);
    let left = leave(&mut interpreter);
    let mut status = result?;
    left?;
    interpreter.session.output.flush();
    let summary = interpreter.session.summary(begun.elapsed());
    let missing = interpreter.session.unresolved();
    if options.json && !interpreter.session.output.is_closed() {
        for line in last_lines(&summary, &missing) {
            interpreter.session.output.print(&format!("{line}\n"));
        }
        interpreter.session.output.flush();
    }
    for line in crate::session::replay::summary_lines(&summary) {
        eprintln!("{line}");
    }
    for text in &missing {
        eprintln!("{text}");
    }
    if !missing.is_empty() {
        status = 1;
    }
    Ok(status)
}

/// How a stream of JSON lines ends: what was never found, what was lost, and the summary.
fn last_lines(summary: &Summary, missing: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = missing.iter().map(|text| json::warning(text)).collect();
    let drops = summary.probes.iter().map(|probe| probe.drops).sum();
    if drops > 0 {
        lines.push(json::drops(clock::monotonic_ns(), clock::wall_ns(), drops));
    }
    lines.push(json::summary(summary));
    lines
}

/// What can be said before anything is touched.
fn check(options: &Options) -> Result<(), Error> {
    let usage = |text: &str| {
        Err(Error::usage(format!(
            "trapline trace: {text}\nUse `trapline trace --help' for its options."
        )))
    };
    if options.probes.is_empty() && options.scripts.is_empty() {
        return usage("no probe: give one with -e 'LOCATION', or a script with -x FILE");
    }
    if options.targets.is_empty() && options.command.is_empty() {
        return usage("no program: give a running one with -p TARGET, or one to launch behind --");
    }
    for probe in &options.probes {
        let at = position("-e", 1);
        crate::lang::braces::parse_probe(probe, &at, &crate::command::NAMES)
            .map_err(|e| Error::usage(format!("trapline trace: -e '{probe}': {}", e.message)))?;
    }
    Ok(())
}

fn position(name: &str, line: u32) -> Position {
    Position {
        file: name.into(),
        line,
    }
}

/// Starts everything and shows hits until the end.
fn trace(interpreter: &mut Interpreter, options: &Options) -> Result<u8, Error> {
    for target in &options.targets {
        let pid = process::find(target)?;
        interpreter.session.attach(pid)?;
    }
    if let Some((program, arguments)) = options.command.split_first() {
        if !options.targets.is_empty() {
            fail!("trapline trace: attach with -p or launch behind --, not both.");
        }
        let path = super::prompt::program_path(program)?;
        interpreter.session.load(std::path::Path::new(&path))?;
        let words: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
        interpreter.session.settings.arguments = settings::quote(words.iter().map(|w| w.as_ref()));
        interpreter.session.settings.disable_randomization = false;
        interpreter.session.launch()?;
        if options.json {
            eprintln!("The program's standard output goes to standard error.");
        }
    }
    for script in &options.scripts {
        interpreter.source(script)?;
    }
    for (index, probe) in options.probes.iter().enumerate() {
        interpreter.trace_probe(probe, &position("-e", index as u32 + 1))?;
    }
    follow(interpreter, options)
}

fn follow(interpreter: &mut Interpreter, options: &Options) -> Result<u8, Error> {
    let until = options.duration.map(|d| Instant::now() + d);
    interpreter.session.limit = options.count;
    interpreter.session.resume(None)?;
    banner(interpreter);
    loop {
        match interpreter.session.wait(until)? {
            Wake::Ended | Wake::Interrupted => return Ok(0),
            Wake::Ask {
                tid,
                number,
                bodies,
            } => interpreter.asked(tid, number, &bodies)?,
            Wake::Stopped(_) => {
                // A `break` without `continue` in a script: this front never stops anything.
                interpreter.session.resume(None)?;
            }
        }
    }
}

/// What is traced, on standard error.
fn banner(interpreter: &mut Interpreter) {
    let session = &interpreter.session;
    for target in &session.targets {
        eprintln!(
            "trapline: tracing process {} ({})",
            target.pid,
            target.program.display()
        );
    }
    for probe in session.probes.iter() {
        let places = match probe.locations.as_slice() {
            [] => "(nowhere yet: it may be in a library that is loaded later)".to_string(),
            many => {
                let list: Vec<_> = many.iter().map(|l| format!("{:#x}", l.address)).collect();
                format!("at {}", list.join(", "))
            }
        };
        eprintln!("  probe {}: {} {places}", probe.number, probe.spec);
        for remark in crate::session::returns::remarks(&probe.locations) {
            eprintln!("    {remark}");
        }
    }
}

/// Lets every target go; a launched one runs on to its end by itself.
fn leave(interpreter: &mut Interpreter) -> Result<(), Error> {
    while !interpreter.session.targets.is_empty() {
        let before = interpreter.session.targets.len();
        interpreter.session.detach(0)?;
        if interpreter.session.targets.len() == before {
            break;
        }
    }
    Ok(())
}

/// Reads `10s`, `500ms`, `2m`, `1h`, `100us`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "" => return Err("a unit is missing: 10s, 500ms, 2m, 1h".into()),
        _ => {
            return Err(format!(
                "`{unit}' is no unit of time: use us, ms, s, m or h"
            ));
        }
    };
    let value: f64 = number
        .parse()
        .map_err(|_| format!("`{number}' is not a number"))?;
    Duration::try_from_secs_f64(value * seconds).map_err(|_| format!("`{text}' is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = Options::try_parse_from([
            "-e",
            "f",
            "-e",
            "g if $rsi",
            "-p",
            "12",
            "--json",
            "--count",
            "3",
            "--duration",
            "1.5s",
            "--",
            "prog",
            "-x",
        ])
        .unwrap();
        assert_eq!(options.probes, ["f", "g if $rsi"]);
        assert_eq!(options.targets, ["12"]);
        assert_eq!(options.duration, Some(Duration::from_millis(1500)));
        assert_eq!(options.command, ["prog", "-x"]);
        assert!(Options::try_parse_from(["--count", "0"]).is_err());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("10").is_err());
        assert!(duration("1e400s").is_err());
        assert!(duration("x").is_err());
    }
}
