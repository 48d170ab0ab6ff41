//! `delete`, `clear`, `enable`, `disable`, `condition`, `ignore`: what changes breakpoints by their
//! numbers.

use super::breakpoints::{check_condition, check_condition_of_event, ignore_text};
use super::interpreter::{Call, Interpreter};
use super::table::split;
use crate::error::{Error, fail};
use crate::lang;
use crate::session::breakpoint::{Disposition, Origin};
use crate::session::images::Unresolved;
use crate::session::numbers::{Choice, choices, numbers};

impl Interpreter {
    /// The value of a convenience variable in a list of numbers; 0 if it has none, which is said.
    fn listed(&mut self, name: &str) -> u64 {
        let value = self.session.with_view(|view, _| {
            let value = lang::Scope::variable(view, name)?;
            value.ty().is_integral().then(|| value.as_u64(view).ok())?
        });
        value.unwrap_or_else(|| {
            self.print("Convenience variable must have integer value.\n");
            0
        })
    }

    /// The numbers of a list; what is none is told. `what` is what they count.
    pub fn numbers(&mut self, text: &str, what: &str) -> Result<Vec<u32>, Error> {
        let list = numbers(text, &mut |name| self.listed(name))?;
        let mut found = Vec::new();
        for number in list {
            match number {
                Some(number) => found.push(number),
                None => {
                    let text = format!("warning: bad {what} number at or near '0'");
                    self.session.output.complain(&text);
                }
            }
        }
        Ok(found)
    }

    /// Those of the breakpoints in a list that exist; the others are told.
    pub fn existing(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        let mut list = self.numbers(text, "breakpoint")?;
        list.retain(|number| {
            let exists = self.session.probes.get(*number).is_some();
            if !exists {
                self.print(&format!("No breakpoint number {number}.\n"));
            }
            exists
        });
        Ok(list)
    }
}

/// `text` without the word `breakpoints` in front, which may be shortened.
fn without_word(text: &str) -> &str {
    let (first, rest) = split(text);
    if !first.is_empty() && "breakpoints".starts_with(first) {
        rest
    } else {
        text
    }
}

/// `delete [breakpoints] [N…]`, `delete display [N…]`
pub fn delete(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (word, rest) = split(call.arguments);
    if word.len() > 1 && "display".starts_with(word) {
        return super::display::delete(i, rest, call.from_tty);
    }
    let arguments = without_word(call.arguments);
    if !arguments.is_empty() {
        for number in i.existing(arguments)? {
            i.session.delete(number);
        }
        return Ok(());
    }
    if i.session.probes.is_empty() || call.from_tty && !i.query("Delete all breakpoints? ")? {
        return Ok(());
    }
    let all: Vec<u32> = i.session.probes.iter().map(|p| p.number).collect();
    for number in all {
        i.session.delete(number);
    }
    Ok(())
}

/// `clear LOCATION`: deletes the breakpoints there.
pub fn clear(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let spec = match call.arguments {
        "" => match i.session.target().map(|t| t.selected) {
            Some(_) => super::breakpoints::here(i)?,
            None => fail!("No source file specified."),
        },
        spec => spec.to_string(),
    };
    let places = match i.session.locate(&spec, Origin::Break) {
        Ok(places) => places,
        Err(Unresolved::Bad(error)) => return Err(error),
        Err(Unresolved::NotFound { message, .. }) => fail!("{message}"),
    };
    let there = |address: u64| places.iter().any(|place| place.address == address);
    let found: Vec<u32> = i
        .session
        .probes
        .iter()
        .filter(|probe| probe.locations.iter().any(|l| there(l.address)))
        .map(|probe| probe.number)
        .collect();
    if found.is_empty() {
        fail!("No breakpoint at {spec}.");
    }
    let list: String = found.iter().map(|number| format!("{number} ")).collect();
    if found.len() > 1 {
        i.print(&format!("Deleted breakpoints {list}\n"));
    } else if call.from_tty {
        i.print(&format!("Deleted breakpoint {list}\n"));
    }
    for number in found {
        i.session.delete(number);
    }
    Ok(())
}

/// Subcommands of gdb's `enable` and `disable` for things that do not exist here: nothing is on or
/// off then.
const OTHER_THINGS: &[&str] = &[
    "frame-filter",
    "pretty-printer",
    "probes",
    "type-printer",
    "unwinder",
    "xmethod",
];

fn is_other_thing(word: &str) -> bool {
    let begins = |thing: &&str| thing.starts_with(word);
    !word.is_empty() && OTHER_THINGS.iter().filter(|thing| begins(thing)).count() == 1
}

/// `enable [breakpoints] [once|delete|count N] [N…]`, `enable display [N…]`
pub fn enable(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (first, rest) = split(call.arguments);
    if is_other_thing(first) {
        return Ok(());
    }
    if !first.is_empty() && "display".starts_with(first) && first != "d" && first != "de" {
        return super::display::switch(i, rest, true);
    }
    let arguments = without_word(call.arguments);
    let (word, list) = split(arguments);
    let required = || Error::new("Argument required (one or more breakpoint numbers).");
    match word {
        "once" | "delete" | "del" if list.is_empty() => Err(required()),
        "once" => switch(i, list, true, Some((Disposition::Disable, 0))),
        "delete" | "del" => switch(i, list, true, Some((Disposition::Delete, 0))),
        "count" if list.is_empty() => fail!("Argument required (hit count)."),
        "count" => {
            let (count, list) = match list.split_once(char::is_whitespace) {
                Some((count, list)) => (count, list.trim()),
                None => (list, ""),
            };
            let count = match count.strip_prefix('$') {
                Some(name) => i.listed(name),
                None => count.parse().unwrap_or(0),
            };
            if list.is_empty() {
                return Err(required());
            }
            switch(i, list, true, Some((Disposition::Disable, count)))
        }
        _ => switch(i, arguments, true, None),
    }
}

/// `disable [breakpoints] [N…]`, `disable display [N…]`
pub fn disable(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (first, rest) = split(call.arguments);
    if is_other_thing(first) {
        return Ok(());
    }
    if !first.is_empty() && "display".starts_with(first) {
        return super::display::switch(i, rest, false);
    }
    switch(i, without_word(call.arguments), false, None)
}

fn switch(
    i: &mut Interpreter,
    list: &str,
    on: bool,
    disposition: Option<(Disposition, u64)>,
) -> Result<(), Error> {
    i.session.stale = true;
    if list.is_empty() {
        i.session.probes.iter_mut().for_each(|p| p.enabled = on);
        return Ok(());
    }
    for word in list.split_ascii_whitespace() {
        for choice in choices(word, &mut |name| i.listed(name))? {
            switch_one(i, choice, on, disposition)?;
        }
    }
    Ok(())
}

fn switch_one(
    i: &mut Interpreter,
    choice: Choice,
    on: bool,
    disposition: Option<(Disposition, u64)>,
) -> Result<(), Error> {
    let (Choice::Probe(number) | Choice::Location(number, _)) = choice;
    let Some(probe) = i.session.probes.get_mut(number) else {
        let text = format!("No breakpoint number {number}.");
        // A location's is an error.
        if matches!(choice, Choice::Location(..)) {
            fail!("{text}");
        }
        i.print(&format!("{text}\n"));
        return Ok(());
    };
    match choice {
        Choice::Probe(_) => {
            probe.enabled = on;
            if let Some((disposition, left)) = disposition {
                (probe.disposition, probe.left) = (disposition, left);
            }
        }
        Choice::Location(_, location) => {
            let index = (location as usize).wrapping_sub(1);
            if !i.session.switch_location(number, index, on) {
                fail!("Bad breakpoint location number '{location}'");
            }
        }
    }
    Ok(())
}

/// `condition N [EXPRESSION]`
pub fn condition(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        fail!("Argument required (breakpoint number).");
    }
    let (word, expression) = match call.arguments.split_once(char::is_whitespace) {
        Some((word, expression)) => (word, expression.trim()),
        None => (call.arguments, ""),
    };
    let Some(number) = one_number(i, word) else {
        fail!("Bad breakpoint argument: '{}'", call.arguments);
    };
    let Some(probe) = i.session.probes.get(number).cloned() else {
        fail!("No breakpoint number {number}.");
    };
    let condition = match expression {
        "" => {
            if call.from_tty {
                i.print(&format!("Breakpoint {number} now unconditional.\n"));
            }
            None
        }
        expression => {
            match probe.event {
                Some(_) => check_condition_of_event(i, expression)?,
                None => check_condition(i, expression, &probe.spec, &probe.locations)?,
            }
            Some(expression.to_string())
        }
    };
    if let Some(probe) = i.session.probes.get_mut(number) {
        probe.condition = condition;
        if probe.origin == Origin::Break {
            probe.typed = probe.spec.clone();
        }
    }
    i.session.stale = true;
    Ok(())
}

fn one_number(i: &mut Interpreter, word: &str) -> Option<u32> {
    match numbers(word, &mut |name| i.listed(name)).ok()?.as_slice() {
        [Some(number)] => Some(*number),
        _ => None,
    }
}

/// `ignore N COUNT`
pub fn ignore(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (word, count) = match call.arguments.split_once(char::is_whitespace) {
        Some((word, count)) => (word, count.trim()),
        None => (call.arguments, ""),
    };
    if word.is_empty() {
        fail!("Argument required (a breakpoint number).");
    }
    let Some(number) = one_number(i, word) else {
        fail!("bad breakpoint number: '{}'", call.arguments);
    };
    if count.is_empty() {
        fail!("Second argument (specified ignore-count) is missing.");
    }
    let count = super::data::signed_number(i, count)?;
    if i.session.probes.get(number).is_none() {
        fail!("No breakpoint number {number}.");
    }
    let count = count.max(0) as u64;
    i.session.set_ignore(number, count);
    if call.from_tty {
        i.print(&ignore_text(number, count));
    }
    Ok(())
}
