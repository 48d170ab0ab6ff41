//! `rbreak`: a breakpoint on each function that a regular expression matches.

use super::breakpoints::set_at;
use super::interpreter::{Call, Interpreter};
use crate::error::{Error, fail};
use crate::symbols::basic_regex;

/// `rbreak [LIB:]REGEX`, in the syntax of grep that gdb's has. PLT stubs are no functions, and thunks that
/// only pass a call on are none either: the method that they lead to is.
pub fn rbreak(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (module, text) = match call.arguments.split_once(':') {
        Some((module, regex)) if !regex.starts_with(':') && !module.is_empty() => {
            (Some(module.trim()), regex.trim())
        }
        _ => (None, call.arguments),
    };
    let regex = basic_regex(text).map_err(|why| Error::new(format!("Invalid regexp: {why}")))?;
    let Some(images) = i.session.images() else {
        fail!("No symbol table is loaded.  Use the \"file\" command.");
    };
    let functions = images.functions(module, &regex)?;
    i.session.probes.begin_group();
    for (name, display) in functions {
        match set_at(i, &name, call.from_tty) {
            Ok(()) => i.print(&format!("<function, no debug info> {display};\n")),
            Err(error) => i.session.output.complain(&error.message),
        }
    }
    Ok(())
}
