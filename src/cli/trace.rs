//! `trapline trace`: every hit, one line, the target never stopped.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

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
        _ => return Err(format!("`{unit}' is no unit of time: use us, ms, s, m or h")),
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
            "-e", "f", "-e", "g if $rsi", "-p", "12", "--json", "--count", "3", "--duration",
            "1.5s", "--", "prog", "-x",
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
