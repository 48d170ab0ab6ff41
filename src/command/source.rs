//! `source FILE`.

use std::path::Path;

use super::interpreter::{Call, Interpreter};
use crate::error::{Error, fail};

/// `source [-s] [-v] FILE`
pub fn source(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let mut file = call.arguments;
    let mut verbose = i.verbose;
    loop {
        if let Some(rest) = file.strip_prefix("-v ") {
            (verbose, file) = (true, rest.trim_start());
        } else if let Some(rest) = file.strip_prefix("-s ") {
            file = rest.trim_start();
        } else {
            break;
        }
    }
    if file.is_empty() {
        fail!("source command requires file name of file to source.");
    }
    let home = std::env::var("HOME").unwrap_or_default();
    let path = match file.strip_prefix("~/") {
        Some(rest) => format!("{home}/{rest}"),
        None => file.into(),
    };
    let path = Path::new(&path);
    if let Err(error) = std::fs::metadata(path) {
        let why = crate::session::lifecycle::plain(&error);
        // A script goes on without it.
        if call.from_tty {
            fail!("{file}: {why}.");
        }
        let text = format!("warning: {file}: {why}");
        i.session.output.complain(&text);
        return Ok(());
    }
    if path.extension().is_some_and(|e| e == "py" || e == "scm") {
        let text = format!(
            "warning: {}: {file} is no script of commands; left out.",
            call.at
        );
        i.session.output.complain(&text);
        return Ok(());
    }
    let before = std::mem::replace(&mut i.verbose, verbose);
    let result = i.source(path);
    i.verbose = before;
    result
}
