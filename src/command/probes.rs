//! `info probes`: the named probes and where they are.

use std::fmt::Write as _;

use super::interpreter::{Call, Interpreter};
use crate::error::{Error, fail};
use crate::probe::named::Named;
use crate::session::Session;
use crate::session::images::Unresolved;

/// `info probes [NAME…]`; a name's first part means all of its kind.
pub fn info(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let wanted: Vec<&str> = call.arguments.split_ascii_whitespace().collect();
    let text = list(&mut i.session, &wanted)?;
    i.print(&text);
    Ok(())
}

/// The text of `info probes` and `trapline trace --list-probes`.
pub(crate) fn list(session: &mut Session, wanted: &[&str]) -> Result<String, Error> {
    let all: Vec<_> = session.named.iter().cloned().collect();
    let fits = |named: &Named, word: &str| {
        let word = word.trim_end_matches(':');
        named.name == word || named.name.split(':').next() == Some(word)
    };
    if let Some(word) = wanted
        .iter()
        .find(|word| !all.iter().any(|named| fits(named, word)))
    {
        let names: Vec<&str> = all.iter().map(|named| named.name.as_str()).collect();
        fail!(
            "There is no named probe \"{word}\"; there are {}.",
            names.join(", ")
        );
    }
    let mut out = String::new();
    for named in &all {
        if wanted.is_empty() || wanted.iter().any(|word| fits(named, word)) {
            describe(session, named, &mut out);
        }
    }
    Ok(out)
}

/// A line for the probe, and below it a line for each place, or why there is none.
fn describe(session: &mut Session, named: &Named, out: &mut String) {
    let of = match named.builtin {
        true => String::new(),
        false => format!(" ({})", named.at),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{} -- {}{of}", named.name, named.about);
    if session.images().is_none() {
        let titles: Vec<&str> = named.versions.iter().map(|v| v.title.as_str()).collect();
        let _ = writeln!(out, "    known: {}", titles.join("; "));
        return;
    }
    let target = session.current;
    match session.locate_named(target, named, false) {
        Ok(locations) => {
            for location in locations {
                let symbol = location.symbol.unwrap_or_else(|| "??".into());
                let pieces = location.pieces.as_deref();
                let version = pieces.map_or("", |pieces| pieces.version.as_str());
                let _ = writeln!(
                    out,
                    "    at {:#x} <{symbol}>, {version}, engine ptrace",
                    location.address
                );
            }
        }
        Err(Unresolved::NotFound { message, .. }) => {
            let own = format!("{} has no place ", named.name);
            let why = message.strip_prefix(&own).unwrap_or(&message);
            let _ = writeln!(out, "    nowhere {why}");
        }
        Err(Unresolved::Bad(error)) => {
            let _ = writeln!(out, "    {error}");
        }
    }
}
