//! `set logging …`: what is printed goes to a file too, or only there.

use super::kind::{on_off, switch};
use crate::command::interpreter::{Call, Interpreter};
use crate::error::{Error, fail};
use crate::session::output::Log;

/// What `set logging` changes. It holds from the next time that logging is turned on.
#[derive(Debug, Clone)]
pub struct Logging {
    /// The log file.
    pub file: String,
    /// It begins anew each time.
    pub overwrite: bool,
    /// Output goes only there.
    pub redirect: bool,
    /// The same for debug output, of which there is none.
    pub debug_redirect: bool,
    /// The file that is written.
    on: Option<String>,
}

impl Default for Logging {
    fn default() -> Logging {
        Logging {
            file: "gdb.txt".into(),
            overwrite: false,
            redirect: false,
            debug_redirect: false,
            on: None,
        }
    }
}

/// `set logging` or `show logging`, by the word behind it.
pub fn set_enabled(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    match switch(call.arguments)? {
        true => begin(i, call.from_tty),
        false => end(i, call.from_tty),
    }
}

fn begin(i: &mut Interpreter, from_tty: bool) -> Result<(), Error> {
    if let Some(file) = &i.logging.on {
        let text = format!("Already logging to {file}.\n");
        i.print(&text);
        return Ok(());
    }
    let Logging {
        file,
        overwrite,
        redirect,
        debug_redirect,
        ..
    } = i.logging.clone();
    let log = Log::open(&file, overwrite, redirect).map_err(|e| {
        let why = crate::session::lifecycle::plain(&e);
        Error::new(format!("set logging: {why}."))
    })?;
    if from_tty {
        let verb = |only: bool| if only { "Redirecting" } else { "Copying" };
        i.print(&format!("{} output to {file}.\n", verb(redirect)));
        i.print(&format!(
            "{} debug output to {file}.\n",
            verb(debug_redirect)
        ));
    }
    i.session.output.set_log(Some(log));
    i.logging.on = Some(file);
    Ok(())
}

fn end(i: &mut Interpreter, from_tty: bool) -> Result<(), Error> {
    i.session.output.set_log(None);
    if let Some(file) = i.logging.on.take()
        && from_tty
    {
        i.print(&format!("Done logging to {file}.\n"));
    }
    Ok(())
}

fn old(i: &mut Interpreter, call: &Call<'_>, word: &str) -> Result<(), Error> {
    i.print(&format!(
        "Warning: 'set logging {word}', an alias for the command 'set logging enabled', is deprecated.\nUse 'set logging enabled {word}'.\n\n"
    ));
    match word {
        "on" => begin(i, call.from_tty),
        _ => end(i, call.from_tty),
    }
}

/// `set logging` or `show logging`, by the word behind it.
pub fn old_on(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    old(i, call, "on")
}

/// `set logging` or `show logging`, by the word behind it.
pub fn old_off(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    old(i, call, "off")
}

/// A change does not touch the file that is written.
fn warn(i: &mut Interpreter) {
    if let Some(file) = &i.logging.on {
        let text = format!(
            "warning: Currently logging to {file}.  Turn the logging off and on to make the new setting effective."
        );
        i.session.output.complain(&text);
    }
}

/// `set logging` or `show logging`, by the word behind it.
pub fn set_file(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        fail!("Argument required (filename to set it to.).");
    }
    i.logging.file = call.arguments.into();
    Ok(())
}

/// `set logging` or `show logging`, by the word behind it.
pub fn set_overwrite(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.logging.overwrite = switch(call.arguments)?;
    warn(i);
    Ok(())
}

/// `set logging` or `show logging`, by the word behind it.
pub fn set_redirect(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.logging.redirect = switch(call.arguments)?;
    warn(i);
    Ok(())
}

/// `set logging` or `show logging`, by the word behind it.
pub fn set_debug_redirect(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.logging.debug_redirect = switch(call.arguments)?;
    warn(i);
    Ok(())
}

fn say(i: &mut Interpreter, on: bool, yes: &str, no: &str) -> Result<(), Error> {
    let text = if on { yes } else { no };
    i.print(&format!("{}: {text}\n", on_off(on)));
    Ok(())
}

/// `set logging` or `show logging`, by the word behind it.
pub fn show_enabled(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    let on = i.logging.on.is_some();
    say(i, on, "Logging is enabled.", "Logging is disabled.")
}

/// `set logging` or `show logging`, by the word behind it.
pub fn show_file(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    let text = format!("The current logfile is \"{}\".\n", i.logging.file);
    i.print(&text);
    Ok(())
}

/// `set logging` or `show logging`, by the word behind it.
pub fn show_overwrite(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    let on = i.logging.overwrite;
    let (yes, no) = (
        "Logging overwrites the log file.",
        "Logging appends to the log file.",
    );
    say(i, on, yes, no)
}

/// `set logging` or `show logging`, by the word behind it.
pub fn show_redirect(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    let on = i.logging.redirect;
    let (yes, no) = (
        "Output will go only to the log file.",
        "Output will go to both the screen and the log file.",
    );
    say(i, on, yes, no)
}

/// `set logging` or `show logging`, by the word behind it.
pub fn show_debug_redirect(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    let on = i.logging.debug_redirect;
    let (yes, no) = (
        "Debug output will go only to the log file.",
        "Debug output will go to both the screen and the log file.",
    );
    say(i, on, yes, no)
}
