//! The prompt and `--batch`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::gdb::{HELP, Options, Step};
use super::signals;
use crate::command::running;
use crate::command::{Interpreter, Names};
use crate::error::{Error, fail};
use crate::repl;
use crate::repl::input::{Input, Piped};
use crate::session::output::Output;
use crate::session::{Session, events, search, settings};

/// Runs the options and then the prompt; gives the exit status.
pub fn main(options: Options) -> Result<u8, Error> {
    if options.version {
        println!(concat!("trapline ", env!("CARGO_PKG_VERSION")));
        return Ok(0);
    }
    if options.help {
        print!("{HELP}");
        return Ok(0);
    }
    signals::listen()?;
    let on_terminal = std::io::stdin().is_terminal() && !options.batch;
    let terminal: Box<dyn Input> = match on_terminal {
        _ if options.batch => Box::new(Piped),
        true if is_dumb() => repl::open(repl::Kind::Dumb)?,
        true => repl::open(repl::Kind::Terminal)?,
        false => repl::open(repl::Kind::Pipe)?,
    };
    let names = Names::default();
    let mut session = Session::new(Output::standard(), Rc::new(names.clone()));
    session.unattended = options.batch;
    session.read_only = options.read_only;
    super::named_probes(&mut session, &options.probes)?;
    let mut interpreter = Interpreter::new(session, names, terminal, options.batch);
    if !options.quiet && on_terminal {
        interpreter.print(concat!(
            "trapline ",
            env!("CARGO_PKG_VERSION"),
            "\nType \"help\" for help.\n"
        ));
    }
    if let Some(file) = init_file().filter(|file| !options.no_init && file.exists())
        && let Err(error) = interpreter.source(&file)
    {
        interpreter.session.output.complain(&error.message);
    }
    let mut failed = steps(&mut interpreter, &options.early);
    failed |= begin(&mut interpreter, &options);
    if let Some(last) = options
        .steps
        .last()
        .map(|_| steps(&mut interpreter, &options.steps))
    {
        failed = last;
    }
    if !options.batch {
        repl::run(&mut interpreter);
    }
    end(&mut interpreter, options.batch && failed)
}

/// What a user wants at the start of each session: `$XDG_CONFIG_HOME/trapline/init` (XDG base
/// directory specification). gdb's own start-up files are not read unless they are named.
fn init_file() -> Option<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))?;
    Some(config.join("trapline/init"))
}

/// Nothing but text can be written to the terminal, or nothing is known about it.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Leaves the targets; gives the exit status.
fn end(interpreter: &mut Interpreter, failed: bool) -> Result<u8, Error> {
    running::leave(interpreter)?;
    Ok(interpreter.quit.unwrap_or(u8::from(failed)))
}

/// Loads the program and attaches, as far as the options say. What fails is said and the rest
/// goes on, as in gdb.
fn begin(interpreter: &mut Interpreter, options: &Options) -> bool {
    let mut failed = false;
    let mut note = |interpreter: &mut Interpreter, result: Result<(), Error>| {
        if let Err(error) = result {
            interpreter.session.output.complain(&error.message);
            failed = true;
        }
    };
    if let Some(program) = &options.program {
        let result = program_path(program)
            .and_then(|path| running::load(interpreter, Path::new(&path), !options.batch));
        note(interpreter, result);
    }
    if !options.arguments.is_empty() {
        let words: Vec<_> = options
            .arguments
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        interpreter.session.settings.arguments =
            settings::quote(words.iter().map(|word| word.as_ref()));
    }
    if let Some(target) = &options.attach {
        let result = match options.wait {
            true => wait_for(target),
            false => search::find(target).map(Some),
        };
        let result = result.and_then(|pid| match pid {
            Some(pid) => running::attach_to(interpreter, pid, !options.batch),
            None => fail!("Quit"),
        });
        note(interpreter, result);
    }
    failed
}

/// The process that is meant, or the first one that comes; `None` after Ctrl-C.
fn wait_for(target: &str) -> Result<Option<i32>, Error> {
    eprintln!("Waiting for a process named {target}; Ctrl-C ends that.");
    search::wait_for(target, || events::interrupted() || events::must_end())
}

/// A program is looked for as a shell does where the name has no slash and no such file is here.
pub(super) fn program_path(name: &OsString) -> Result<OsString, Error> {
    let path = Path::new(name);
    if path.is_dir() {
        fail!("{}: Is a directory.", path.display());
    }
    if path.exists() || path.components().count() > 1 {
        return Ok(name.clone());
    }
    let found = std::env::var_os("PATH").and_then(|dirs| {
        std::env::split_paths(&dirs)
            .map(|dir| dir.join(name))
            .find(|candidate| candidate.is_file())
    });
    Ok(found.map_or_else(|| name.clone(), Into::into))
}

/// Runs scripts and commands in order; whether the last one failed.
fn steps(interpreter: &mut Interpreter, steps: &[Step]) -> bool {
    let mut failed = false;
    for step in steps {
        if interpreter.quit.is_some() {
            break;
        }
        let result = match step {
            // As gdb: a warning, and no failure.
            Step::File(path) if path != "-" && !Path::new(path).exists() => {
                let text = format!("warning: {}: No such file or directory", path.display());
                interpreter.session.output.complain(&text);
                Ok(())
            }
            Step::File(path) => interpreter.source(Path::new(path)),
            Step::Command(text) => interpreter.command(text),
        };
        failed = result.is_err();
        if let Err(error) = result
            && !error.message.is_empty()
        {
            interpreter.session.output.complain(&error.message);
        }
        interpreter.session.output.flush();
    }
    failed
}
