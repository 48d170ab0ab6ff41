//! `break`, `tbreak`, `trace` and what changes a probe afterwards.

use std::sync::Arc;

use super::interpreter::{Call, Interpreter};
use crate::error::{Error, fail};
use crate::lang;
use crate::lang::braces;
use crate::lang::rate::Rate;
use crate::lang::script::{Line, Node, Position, Resolver};
use crate::session::breakpoint::{Disposition, Event, Location, Origin, Probe};
use crate::session::images::Unresolved;
use crate::session::search;

/// `break [LOCATION] [if CONDITION]`
pub fn break_(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    set(i, call, Disposition::Keep)
}

/// `tbreak [LOCATION] [if CONDITION]`
pub fn tbreak(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    set(i, call, Disposition::Delete)
}

fn set(i: &mut Interpreter, call: &Call<'_>, disposition: Disposition) -> Result<(), Error> {
    let (spec, condition) = split_condition(call.arguments);
    let (spec, thread) = split_thread(spec);
    if let Some(thread) = thread {
        fail!(
            "break … thread {thread}: breakpoints for one thread are not supported; use `if $_tid == …'."
        );
    }
    let typed = match spec.trim() {
        "" => here(i)?,
        _ => call.arguments.to_string(),
    };
    let spec = match spec.trim() {
        "" => typed.clone(),
        spec => spec.to_string(),
    };
    let Some(locations) = find(i, &spec, "breakpoint")? else {
        return Ok(());
    };
    if let Some(condition) = condition {
        check_condition(i, condition, &spec, &locations)?;
    }
    i.session.probes.begin_group();
    let wanted = Wanted {
        origin: Origin::Break,
        spec,
        typed,
        condition: condition.map(String::from),
        sample: None,
        body: None,
        disposition,
        locations,
        missing: None,
        event: None,
    };
    add(i, wanted, true, call.from_tty)
}

/// A probe that waits for something to happen, wherever that is.
pub fn add_event(
    i: &mut Interpreter,
    event: Event,
    shown: String,
    condition: Option<&str>,
    disposition: Disposition,
) -> Result<(), Error> {
    if let Some(condition) = condition {
        check_condition_of_event(i, condition)?;
    }
    i.session.probes.begin_group();
    let wanted = Wanted {
        origin: Origin::Event,
        typed: shown.clone(),
        spec: shown,
        condition: condition.map(String::from),
        sample: None,
        body: None,
        disposition,
        locations: Vec::new(),
        missing: None,
        event: Some(event),
    };
    add(i, wanted, true, false)
}

/// The condition of what has no place is looked at at once.
pub fn check_condition_of_event(i: &mut Interpreter, condition: &str) -> Result<(), Error> {
    i.may_evaluate(condition)?;
    let parsed = i.session.with_view(|view, _| lang::parse(condition, view));
    parsed.map(drop).map_err(|e| Error::new(e.to_string()))
}

/// Where a location is; nowhere if it may come later, `None` if nobody wants to wait for that.
fn find(i: &mut Interpreter, spec: &str, noun: &str) -> Result<Option<Vec<Location>>, Error> {
    match i.session.locate(spec, Origin::Break) {
        Ok(locations) => Ok(Some(locations)),
        Err(Unresolved::Bad(error)) => Err(error),
        // It will be there as soon as the program runs; gdb takes the stub that jumps to it.
        Err(Unresolved::NotFound { imported: true, .. }) => Ok(Some(Vec::new())),
        Err(Unresolved::NotFound { message, hint, .. }) => {
            Ok(pending(i, &message, hint, noun)?.then(Vec::new))
        }
    }
}

/// `dprintf LOCATION,"FORMAT",ARGUMENTS…`: prints at each hit and goes on.
pub fn dprintf(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (location, text) = split_format(call.arguments);
    if location.is_empty() {
        here(i)?;
    }
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        fail!("Format string required");
    };
    if !text.starts_with('"') {
        fail!("Bad format string, missing '\"'.");
    }
    let style = i.session.settings.known.get("dprintf-style");
    if let Some(style) = style.filter(|style| *style != "gdb") {
        fail!("dprintf-style {style}: only \"gdb\" is supported.");
    }
    let (spec, condition) = split_condition(location);
    let Some(locations) = find(i, spec, "dprintf")? else {
        return Ok(());
    };
    if let Some(condition) = condition {
        check_condition(i, condition, spec, &locations)?;
    }
    let line = Line {
        text: format!("printf {text}"),
        at: call.at.clone(),
    };
    i.session.probes.begin_group();
    let wanted = Wanted {
        origin: Origin::Dprintf,
        spec: spec.into(),
        typed: call.arguments.into(),
        condition: condition.map(String::from),
        body: Some([Node::Simple(line)].into()),
        disposition: Disposition::Keep,
        locations,
        missing: None,
        event: None,
        sample: None,
    };
    add(i, wanted, true, call.from_tty)
}

/// Splits at the comma behind a location; those of a function's parameters are its own.
fn split_format(text: &str) -> (&str, Option<&str>) {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '<' => depth += 1,
            ')' | '>' => depth = depth.saturating_sub(1),
            '"' => break,
            ',' if depth == 0 => return (text[..at].trim(), Some(text[at + 1..].trim_start())),
            _ => {}
        }
    }
    (text.trim(), None)
}

/// A breakpoint on a function, one of several that a command makes.
pub fn set_at(i: &mut Interpreter, name: &str, note: bool) -> Result<(), Error> {
    let locations = match i.session.locate(name, Origin::Break) {
        Ok(locations) => locations,
        Err(Unresolved::Bad(error)) => return Err(error),
        Err(Unresolved::NotFound { message, .. }) => return Err(Error::new(message)),
    };
    let wanted = Wanted {
        origin: Origin::Break,
        spec: name.to_string(),
        typed: name.to_string(),
        condition: None,
        body: None,
        disposition: Disposition::Keep,
        locations,
        missing: None,
        event: None,
        sample: None,
    };
    add(i, wanted, true, note)
}

/// What a new probe is made of.
struct Wanted {
    origin: Origin,
    spec: String,
    typed: String,
    condition: Option<String>,
    sample: Option<Rate>,
    body: Option<Arc<[Node]>>,
    disposition: Disposition,
    locations: Vec<Location>,
    missing: Option<String>,
    event: Option<Event>,
}

fn add(i: &mut Interpreter, wanted: Wanted, tell: bool, note: bool) -> Result<(), Error> {
    let mut text = String::new();
    for location in wanted.locations.iter().filter(|_| note) {
        text.extend(i.session.probes.note(location.address));
    }
    let chooser = match wanted.origin {
        Origin::Break => i.session.chooser(&wanted.spec),
        Origin::Trace | Origin::Dprintf | Origin::Event => None,
    };
    let number = i.session.probes.add(|number, place| Probe {
        number,
        place,
        origin: wanted.origin,
        spec: wanted.spec,
        typed: wanted.typed,
        condition: wanted.condition,
        sample: wanted.sample,
        body: wanted.body,
        disposition: wanted.disposition,
        enabled: true,
        hits: 0,
        ignore: 0,
        left: 0,
        resolved: !wanted.locations.is_empty(),
        locations: wanted.locations,
        off: Vec::new(),
        missing: wanted.missing,
        chooser,
        event: wanted.event,
    })?;
    i.session.stale = true;
    if let Some(probe) = i.session.probes.get(number) {
        text.push_str(&probe.mention());
        text.push('\n');
    }
    if tell {
        i.print(&text);
    }
    let value = lang::Value::from_u64(lang::Type::int(), number.into());
    i.session
        .with_view(|view, _| lang::Scope::set_variable(view, "bpnum", value))
        .map_err(|e| Error::new(e.to_string()))
}

/// The name is nowhere: asks whether to wait for it. To decline is no error, as in gdb.
fn pending(
    i: &mut Interpreter,
    message: &str,
    hint: Option<String>,
    noun: &str,
) -> Result<bool, Error> {
    let full = match &hint {
        Some(hint) => format!("{message}\n{hint}"),
        None => message.to_string(),
    };
    if i.session.settings.pending == Some(false) {
        fail!("{full}");
    }
    i.session.output.complain(&full);
    match i.session.settings.pending {
        Some(_) => Ok(true),
        None => i.query_no(&format!(
            "Make {noun} pending on future shared library load? "
        )),
    }
}

/// `break` alone: where the selected thread stands.
pub fn here(i: &mut Interpreter) -> Result<String, Error> {
    let selected = i.session.target().map(|t| t.selected);
    let registers = selected.and_then(|tid| i.session.registers(tid));
    match registers {
        Some(registers) => Ok(format!("*{:#x}", registers.pc())),
        None => fail!("No default breakpoint address now."),
    }
}

/// A condition must parse; its values may not exist yet. Of a probe without a place it may name
/// what comes with that.
pub fn check_condition(
    i: &mut Interpreter,
    condition: &str,
    spec: &str,
    locations: &[Location],
) -> Result<(), Error> {
    let place = i.session.place_of(spec, locations);
    let before = i.session.naming.replace(place);
    let checked = i.may_evaluate(condition).and_then(|()| {
        if locations.is_empty() {
            return Ok(());
        }
        let parsed = i.session.with_view(|view, _| lang::parse(condition, view));
        parsed.map(drop).map_err(|e| Error::new(e.to_string()))
    });
    i.session.naming = before;
    checked
}

/// Splits at the word `if` outside quotes and parentheses.
pub fn split_condition(text: &str) -> (&str, Option<&str>) {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut quote = None;
    let skip = braces::regex_end(text);
    for (at, byte) in bytes.iter().enumerate().skip(skip) {
        match (quote, byte) {
            (Some(q), b) if q == *b => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(*byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (None, b'i') if depth == 0 && text[at..].starts_with("if") => {
                let before = at == 0 || bytes[at - 1].is_ascii_whitespace();
                let behind = bytes.get(at + 2);
                if before && behind.is_none_or(|b| b.is_ascii_whitespace() || *b == b'(') {
                    return (text[..at].trim(), Some(text[at + 2..].trim()));
                }
            }
            _ => {}
        }
    }
    (text.trim(), None)
}

fn split_thread(spec: &str) -> (&str, Option<&str>) {
    match spec.rsplit_once(" thread ") {
        Some((spec, number)) if number.trim().bytes().all(|b| b.is_ascii_digit()) => {
            (spec, Some(number.trim()))
        }
        _ => (spec, None),
    }
}

/// `trace LOCATION [in TARGET] [if CONDITION] [sample RATE] [{ COMMAND; … }]`
pub fn trace(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        fail!("Argument required (LOCATION [in TARGET] [if CONDITION] [{{ COMMAND; … }}]).");
    }
    let text = braces::parse_probe(call.arguments, call.at, &i.names)
        .map_err(|e| Error::new(e.message))?;
    let spec = match &text.target {
        Some(target) => {
            search::Wanted::parse(target)?;
            format!("{} in {target}", text.location)
        }
        None => text.location,
    };
    let mut missing = None;
    let locations = match i.session.locate(&spec, Origin::Trace) {
        Ok(locations) => locations,
        Err(Unresolved::Bad(error)) => return Err(error),
        Err(Unresolved::NotFound { message, hint, .. }) => {
            let full = [Some(message), hint];
            let full = full.into_iter().flatten().collect::<Vec<_>>().join("\n");
            // What is launched still loads its libraries; whoever ends the session tells.
            if i.session.target().is_some_and(|t| !t.launched) {
                if !i.session.show.never_stops() || i.session.settings.pending == Some(false) {
                    if !pending(i, &full, None, "breakpoint")? {
                        return Ok(());
                    }
                } else {
                    i.session.output.complain(&full);
                }
            }
            missing = Some(full);
            Vec::new()
        }
    };
    if let Some(condition) = &text.condition {
        check_condition(i, condition, &spec, &locations)?;
    }
    if let Some(body) = &text.body {
        i.may_run(body)?;
        i.hint_body(body);
    }
    let tell = !i.session.show.never_stops();
    i.session.probes.begin_group();
    let wanted = Wanted {
        origin: Origin::Trace,
        typed: spec.clone(),
        spec,
        condition: text.condition,
        sample: text.sample,
        body: text.body.map(Arc::from),
        disposition: Disposition::Keep,
        locations,
        missing,
        event: None,
    };
    add(i, wanted, tell, false)
}

/// What `ignore` and `continue N` say.
pub fn ignore_text(number: u32, count: u64) -> String {
    match count {
        0 => format!("Will stop next time breakpoint {number} is reached.\n"),
        1 => format!("Will ignore next crossing of breakpoint {number}.\n"),
        n => format!("Will ignore next {n} crossings of breakpoint {number}.\n"),
    }
}

impl Interpreter {
    /// A probe of the command line.
    pub fn trace_probe(&mut self, text: &str, at: &Position) -> Result<(), Error> {
        let call = Call {
            name: "trace",
            arguments: text,
            untrimmed: text,
            from_tty: false,
            at,
        };
        trace(self, &call)
    }

    /// What a person reads in front of the lines of a body.
    pub fn introduce(&mut self, line: &str) {
        let Some((command, arguments)) = self.names.resolve(line) else {
            return;
        };
        let arguments = arguments.trim();
        let last = self.session.probes.last_group();
        let last = match last.start() == last.end() {
            true => last.end().to_string(),
            false => format!("{}-{}", last.start(), last.end()),
        };
        let what = match (command, arguments) {
            ("commands", "") => format!("commands for breakpoint(s) {last}, one per line"),
            ("commands", list) => format!("commands for breakpoint(s) {list}, one per line"),
            ("define", name) => format!("commands for definition of \"{name}\""),
            ("document", name) => format!("documentation for \"{name}\""),
            _ => return,
        };
        if self.terminal.is_terminal() {
            let text = format!("Type {what}.\nEnd with a line saying just \"end\".\n");
            self.print(&text);
            self.session.output.flush();
        }
    }

    /// `commands [N…]`
    pub fn set_body(&mut self, list: &str, body: Arc<[Node]>) -> Result<(), Error> {
        self.may_run(&body)?;
        self.hint_body(&body);
        let body = (!body.is_empty()).then_some(body);
        if list.is_empty() {
            let last = self.session.probes.last_group();
            if self.session.probes.get(*last.end()).is_none() {
                fail!("Argument required (one or more breakpoint numbers).");
            }
            for number in last {
                self.give_body(number, body.clone())?;
            }
            return Ok(());
        }
        let chosen = self.existing(list)?;
        for number in chosen {
            self.give_body(number, body.clone())?;
        }
        Ok(())
    }

    fn give_body(&mut self, number: u32, body: Option<Arc<[Node]>>) -> Result<(), Error> {
        if let Some(probe) = self.session.probes.get_mut(number) {
            probe.body = body;
            self.session.stale = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_begins_at_the_word_if() {
        for (text, spec, condition) in [
            ("f if $rdi==3", "f", Some("$rdi==3")),
            ("f   if   1", "f", Some("1")),
            ("f if(1)", "f", Some("(1)")),
            ("iffy", "iffy", None),
            ("*f+4 if x", "*f+4", Some("x")),
            ("n::f(int) if 1", "n::f(int)", Some("1")),
            ("if 1", "", Some("1")),
            ("/a if b/ if 1", "/a if b/", Some("1")),
        ] {
            assert_eq!(split_condition(text), (spec, condition), "{text}");
        }
    }

    #[test]
    fn ignore_says_what_gdb_says() {
        assert_eq!(
            ignore_text(3, 2),
            "Will ignore next 2 crossings of breakpoint 3.\n"
        );
        assert_eq!(
            ignore_text(3, 1),
            "Will ignore next crossing of breakpoint 3.\n"
        );
    }
}
