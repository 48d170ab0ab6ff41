//! gdb's options: one or two dashes, the order of scripts and commands kept.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::error::Error;

/// What runs before the prompt, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// `-x FILE`
    File(OsString),
    /// `-ex COMMAND`
    Command(String),
}

/// The parsed options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `-ix` and `-iex`: before the program is loaded.
    pub early: Vec<Step>,
    /// `-x` and `-ex`.
    pub steps: Vec<Step>,
    /// The program.
    pub program: Option<OsString>,
    /// Its arguments (`--args`).
    pub arguments: Vec<OsString>,
    /// `-p`, or what follows the program.
    pub attach: Option<String>,
    /// What `-p` names need not run yet.
    pub wait: bool,
    /// No prompt, no questions, exit status from the last command.
    pub batch: bool,
    /// `-nx`: the start-up file is left out.
    pub no_init: bool,
    /// `-q`: no banner.
    pub quiet: bool,
    /// `--probes`: files of named probes.
    pub probes: Vec<OsString>,
    /// The program is looked at and not changed.
    pub read_only: bool,
    /// Print the version and leave.
    pub version: bool,
    /// Print help and leave.
    pub help: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Pid,
    Wait,
    Args,
    Command,
    Eval,
    EarlyCommand,
    EarlyEval,
    Batch,
    Ignored,
    NoInit,
    Quiet,
    Probes,
    ReadOnly,
    Version,
    Help,
}

const OPTIONS: &[(&str, Name)] = &[
    ("p", Name::Pid),
    ("pid", Name::Pid),
    ("wait", Name::Wait),
    ("args", Name::Args),
    ("x", Name::Command),
    ("command", Name::Command),
    ("ex", Name::Eval),
    ("eval-command", Name::Eval),
    ("ix", Name::EarlyCommand),
    ("init-command", Name::EarlyCommand),
    ("iex", Name::EarlyEval),
    ("init-eval-command", Name::EarlyEval),
    ("batch", Name::Batch),
    ("n", Name::NoInit),
    ("nx", Name::NoInit),
    ("nh", Name::NoInit),
    ("nw", Name::Ignored),
    ("q", Name::Quiet),
    ("quiet", Name::Quiet),
    ("silent", Name::Quiet),
    ("probes", Name::Probes),
    ("read-only", Name::ReadOnly),
    ("v", Name::Version),
    ("version", Name::Version),
    ("h", Name::Help),
    ("help", Name::Help),
];

/// What `--help` prints.
pub const HELP: &str = "\
Usage: trapline [OPTIONS] [PROGRAM [PID]]
       trapline [OPTIONS] --args PROGRAM [ARGUMENT...]
       trapline trace -e PROBE... [-x FILE] [-p TARGET]... [-- PROGRAM [ARGUMENT...]]
       trapline symbols FILE [PATTERN] | -p TARGET [[LIB:]PATTERN]
       trapline doctor [-p TARGET]

Stops at, reads and changes what a running program does, with gdb's commands.

Options, with one or two dashes, run in the order given:
  -p, --pid TARGET           Attach: a process id, a program's name, or /REGEX/ on its command line.
  --wait                     With -p: if there is no such process yet, wait until there is one.
  --args                     What follows is the program and its arguments.
  -x, --command FILE         Run the commands in FILE; - is the standard input.
  -ex, --eval-command CMD    Run one command.
  -ix, -iex                  The same, before the program is loaded.
  --probes FILE              A file of named probes (`info probes' tells which there are).
  --batch                    Leave when these have run; ask nothing.
  -q, --quiet                No banner.
  --read-only                Refuse what would change the program's memory or registers, or end a
                             process that was running. Breakpoints still put an int3 in its text
                             while they are set, and map a page of slots beside it.
  -nx, -nh, -n               Leave out the start-up file ~/.config/trapline/init.
  --version, --help

trapline trace --help tells how to print every hit of a function, one line each.
";

/// Parses what follows the program's own name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Options, Error> {
    let mut options = Options::default();
    let mut free: Vec<OsString> = Vec::new();
    let mut arguments = arguments.into_iter();
    let mut args = false;
    let mut only_free = false;
    while let Some(argument) = arguments.next() {
        let bytes = argument.as_bytes();
        if only_free || bytes.first() != Some(&b'-') || bytes == b"-" {
            free.push(argument);
            if args {
                // With --args the first free word is the program; the rest is its own.
                free.extend(arguments.by_ref());
            }
            continue;
        }
        if bytes == b"--" {
            only_free = true;
            continue;
        }
        let (name, inline) = split(bytes);
        let option = lookup(name)?;
        let wants_value = !matches!(
            option,
            Name::Args
                | Name::Batch
                | Name::Wait
                | Name::Ignored
                | Name::NoInit
                | Name::Quiet
                | Name::ReadOnly
                | Name::Version
                | Name::Help
        );
        let value = match (wants_value, inline) {
            (true, Some(value)) => Some(value),
            (true, None) => Some(arguments.next().ok_or_else(|| {
                usage(format!(
                    "option '{}' requires an argument",
                    argument.to_string_lossy()
                ))
            })?),
            (false, Some(_)) => {
                return Err(usage(format!(
                    "option '--{}' doesn't allow an argument",
                    String::from_utf8_lossy(name)
                )));
            }
            (false, None) => None,
        };
        let value = value.unwrap_or_default();
        match option {
            Name::Pid => options.attach = Some(text(value)?),
            Name::Wait => options.wait = true,
            Name::Args => args = true,
            Name::Command => options.steps.push(Step::File(value)),
            Name::Eval => options.steps.push(Step::Command(text(value)?)),
            Name::EarlyCommand => options.early.push(Step::File(value)),
            Name::EarlyEval => options.early.push(Step::Command(text(value)?)),
            Name::Batch => (options.batch, options.quiet) = (true, true),
            Name::Quiet => options.quiet = true,
            Name::Probes => options.probes.push(value),
            Name::ReadOnly => options.read_only = true,
            Name::Version => options.version = true,
            Name::Help => options.help = true,
            Name::NoInit => options.no_init = true,
            Name::Ignored => {}
        }
    }
    place_free(&mut options, free, args)?;
    Ok(options)
}

fn place_free(options: &mut Options, free: Vec<OsString>, args: bool) -> Result<(), Error> {
    let mut free = free.into_iter();
    options.program = free.next();
    if args {
        if options.program.is_none() {
            return Err(usage("`--args' specified but no program specified".into()));
        }
        options.arguments = free.collect();
        return Ok(());
    }
    if let Some(target) = free.next() {
        if options.attach.is_some() {
            return Err(usage("a process was named twice".into()));
        }
        options.attach = Some(text(target)?);
    }
    match free.next() {
        Some(extra) => Err(usage(format!(
            "excess argument '{}': a program's own arguments come behind --args",
            extra.to_string_lossy()
        ))),
        None => Ok(()),
    }
}

/// The name without dashes, and the value behind `=`.
fn split(argument: &[u8]) -> (&[u8], Option<OsString>) {
    let name = argument.strip_prefix(b"--").unwrap_or(&argument[1..]);
    match name.iter().position(|b| *b == b'=') {
        Some(at) => (&name[..at], Some(OsString::from_vec(name[at + 1..].into()))),
        None => (name, None),
    }
}

fn lookup(name: &[u8]) -> Result<Name, Error> {
    if let Some((_, option)) = OPTIONS.iter().find(|(n, _)| n.as_bytes() == name) {
        return Ok(*option);
    }
    let mut fits = OPTIONS
        .iter()
        .filter(|(n, _)| name.len() > 1 && n.as_bytes().starts_with(name))
        .map(|(_, option)| *option);
    let shown = OsStr::from_bytes(name).to_string_lossy();
    match fits.next() {
        None => Err(usage(format!("unrecognized option '--{shown}'"))),
        Some(option) if fits.all(|other| other == option) => Ok(option),
        Some(_) => Err(usage(format!("option '--{shown}' is ambiguous"))),
    }
}

fn text(value: OsString) -> Result<String, Error> {
    value
        .into_string()
        .map_err(|value| usage(format!("'{}' is not UTF-8", value.to_string_lossy())))
}

fn usage(message: String) -> Error {
    Error::usage(format!(
        "trapline: {message}\nUse `trapline --help' for a complete list of options."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &[&str]) -> Result<Options, String> {
        parse(line.iter().map(OsString::from)).map_err(|e| e.message)
    }

    #[test]
    fn order_is_kept_and_dashes_do_not_matter() {
        let options = of(&[
            "-ex",
            "a",
            "--command=f",
            "-eval-command",
            "b",
            "--batch",
            "-nx",
            "prog",
            "12",
        ])
        .unwrap();
        assert_eq!(
            options.steps,
            [
                Step::Command("a".into()),
                Step::File("f".into()),
                Step::Command("b".into())
            ]
        );
        assert!(options.batch && options.quiet);
        assert_eq!(options.program, Some("prog".into()));
        assert_eq!(options.attach.as_deref(), Some("12"));
    }

    #[test]
    fn args_take_everything_behind_the_program() {
        let options = of(&["--args", "-q", "prog", "-x", "--", "1"]).unwrap();
        assert!(options.quiet);
        assert_eq!(options.program, Some("prog".into()));
        assert_eq!(options.arguments, ["-x", "--", "1"]);
    }

    #[test]
    fn wrong_usage_is_told() {
        let hint = "\nUse `trapline --help' for a complete list of options.";
        for (line, message) in [
            (&["--foo"][..], "unrecognized option '--foo'"),
            (&["-x"], "option '-x' requires an argument"),
            (&["--batch=1"], "option '--batch' doesn't allow an argument"),
            (&["--args"], "`--args' specified but no program specified"),
            (
                &["a", "1", "b"],
                "excess argument 'b': a program's own arguments come behind --args",
            ),
        ] {
            assert_eq!(
                of(line),
                Err(format!("trapline: {message}{hint}")),
                "{line:?}"
            );
        }
    }

    #[test]
    fn a_unique_beginning_is_enough() {
        assert_eq!(
            of(&["--eval", "p 1"]).unwrap().steps,
            [Step::Command("p 1".into())]
        );
        assert!(of(&["--ver"]).unwrap().version);
    }
}
