//! `catch` and `tcatch`.

use super::breakpoints::{add_event, split_condition};
use super::interpreter::{Action, Call, Interpreter};
use super::table::{Entry, Table};
use crate::arch::{syscall_group, syscall_number};
use crate::error::{Error, fail};
use crate::session::breakpoint::{Disposition, Event};
use crate::session::catching::{Catch, Caught, Library};
use crate::session::signals::{ONLY, Signals};
use crate::symbols::basic_regex;

macro_rules! kinds {
    ($prefix:literal, $disposition:expr) => {
        Table {
            prefix: $prefix,
            // Of what gdb catches and trapline does not: exceptions of Ada and C++.
            taken: &["a", "as", "h", "r", "th"],
            entries: &[
                Entry {
                    name: "exec",
                    aliases: &[],
                    help: "Stop when the program executes another one.\nUsage: catch exec [if CONDITION]",
                    action: |i, call| process(i, call, $disposition, Catch::Exec(None)),
                },
                Entry {
                    name: "fork",
                    aliases: &[],
                    help: "Stop when the program makes a process.\nUsage: catch fork [if CONDITION]",
                    action: |i, call| process(i, call, $disposition, Catch::Fork(None)),
                },
                Entry {
                    name: "load",
                    aliases: &[],
                    help: "Stop when the program loads a library.\nUsage: catch load [REGEX]",
                    action: |i, call| load(i, call, $disposition, Catch::Load),
                },
                Entry {
                    name: "signal",
                    aliases: &[],
                    help: "Stop when the program gets a signal, whatever `handle' says.\nUsage: catch signal [SIGNAL...|all]\nSIGNAL is a name or a number from 1 to 15. Without: all but SIGTRAP and SIGINT.",
                    action: |i, call| signal(i, call, $disposition),
                },
                Entry {
                    name: "syscall",
                    aliases: &[],
                    help: "Stop when the program makes a system call, and when that returns.\nUsage: catch syscall [NAME|NUMBER|group:GROUP|g:GROUP...]\nGROUP is descriptor, file, ipc, memory, network, process or signal. Without: any.",
                    action: |i, call| syscall(i, call, $disposition),
                },
                Entry {
                    name: "unload",
                    aliases: &[],
                    help: "Stop when the program unloads a library.\nUsage: catch unload [REGEX]",
                    action: |i, call| load(i, call, $disposition, Catch::Unload),
                },
                Entry {
                    name: "vfork",
                    aliases: &[],
                    help: "Stop when the program makes a process that has its memory for a while.\nUsage: catch vfork [if CONDITION]",
                    action: |i, call| process(i, call, $disposition, Catch::Vfork(None)),
                },
            ],
        }
    };
}

/// What stands behind `catch`.
pub static CATCH: Table<Action> = kinds!("catch ", Disposition::Keep);

/// What stands behind `tcatch`.
pub static TCATCH: Table<Action> = kinds!("tcatch ", Disposition::Delete);

/// `catch EVENT`
pub fn catch(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    of(i, &CATCH, call)
}

/// `tcatch EVENT`
pub fn tcatch(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    of(i, &TCATCH, call)
}

fn of(i: &mut Interpreter, table: &Table<Action>, call: &Call<'_>) -> Result<(), Error> {
    i.may_stop(call)?;
    if call.arguments.is_empty() {
        let text = format!("List of {}subcommands:\n\n{}\n", table.prefix, table.list());
        i.print(&text);
        return Ok(());
    }
    i.sub(table, call)
}

fn set(i: &mut Interpreter, catch: Catch, disposition: Disposition) -> Result<(), Error> {
    let shown = catch.row();
    add_event(i, Event::Catch(catch), shown, None, disposition)
}

/// `catch fork|vfork|exec [if CONDITION]`
fn process(
    i: &mut Interpreter,
    call: &Call<'_>,
    disposition: Disposition,
    catch: Catch,
) -> Result<(), Error> {
    let (rest, condition) = split_condition(call.arguments);
    if !rest.is_empty() || condition == Some("") {
        fail!("Junk at end of arguments.");
    }
    let shown = catch.row();
    add_event(i, Event::Catch(catch), shown, condition, disposition)
}

/// `catch signal [SIGNAL…|all]`
fn signal(i: &mut Interpreter, call: &Call<'_>, disposition: Disposition) -> Result<(), Error> {
    let words: Vec<&str> = call.arguments.split_ascii_whitespace().collect();
    let caught = match words.as_slice() {
        [] => Caught::Standard,
        ["all"] => Caught::All,
        words if words.contains(&"all") => fail!("'all' cannot be caught with other signals"),
        words => {
            let signals = &i.session.signals;
            let one = |word: &&str| {
                let row = &signals.rows()[signal_named(signals, word)?];
                Ok((row.name.to_string(), row.number))
            };
            Caught::Some(words.iter().map(one).collect::<Result<_, Error>>()?)
        }
    };
    set(i, Catch::Signal(caught), disposition)
}

fn signal_named(signals: &Signals, word: &str) -> Result<usize, Error> {
    if let Ok(number) = word.parse() {
        return Signals::numbered(number).ok_or_else(|| Error::new(ONLY));
    }
    match signals.named(word) {
        Some(place) => Ok(place),
        None => fail!("Unknown signal name '{word}'."),
    }
}

/// `catch syscall [NAME|NUMBER|group:GROUP…]`
fn syscall(i: &mut Interpreter, call: &Call<'_>, disposition: Disposition) -> Result<(), Error> {
    let mut numbers = Vec::new();
    for word in call.arguments.split_ascii_whitespace() {
        numbers.extend(calls_named(word)?);
    }
    set(i, Catch::Call(numbers), disposition)
}

fn calls_named(word: &str) -> Result<Vec<u64>, Error> {
    if let Ok(number) = word.parse::<i32>() {
        return match u64::try_from(number) {
            Ok(number) => Ok(vec![number]),
            Err(_) => fail!("Unknown syscall number '{number}'."),
        };
    }
    if let Some(group) = word.strip_prefix("group:").or(word.strip_prefix("g:")) {
        return syscall_group(group)
            .ok_or_else(|| Error::new(format!("Unknown syscall group '{group}'.")));
    }
    match syscall_number(word) {
        Some(number) => Ok(vec![number]),
        None => fail!("Unknown syscall name '{word}'."),
    }
}

/// `catch load [REGEX]`, `catch unload [REGEX]`
fn load(
    i: &mut Interpreter,
    call: &Call<'_>,
    disposition: Disposition,
    make: fn(Option<Library>) -> Catch,
) -> Result<(), Error> {
    let library = match call.arguments {
        "" => None,
        text => {
            let invalid = |why: String| Error::new(format!("Invalid regexp: {why}"));
            let regex = basic_regex(text).map_err(invalid)?;
            let regex = regex::Regex::new(&regex).map_err(|error| invalid(error.to_string()))?;
            let text = text.to_string();
            Some(Library { text, regex })
        }
    };
    set(i, make(library), disposition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_are_named_in_every_way() {
        let list = |word| calls_named(word).map_err(|error| error.message);
        assert_eq!(list("write"), Ok(vec![1]));
        assert_eq!(list("100000"), Ok(vec![100_000]));
        assert!(list("g:signal").unwrap().contains(&(libc::SYS_kill as u64)));
        for (word, message) in [
            ("-5", "Unknown syscall number '-5'."),
            ("3x", "Unknown syscall name '3x'."),
            ("w", "Unknown syscall name 'w'."),
            ("group:", "Unknown syscall group ''."),
        ] {
            assert_eq!(list(word), Err(message.into()), "{word}");
        }
    }
}
