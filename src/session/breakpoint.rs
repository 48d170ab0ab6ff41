//! What the user asked for, and the table that `info breakpoints` prints.

use std::fmt::Write as _;
use std::sync::Arc;

use super::catching::Catch;
use super::returns::WayOut;
use super::watching::Watched;
use crate::error::{Error, fail};
use crate::lang::rate::Rate;
use crate::lang::script::Node;
use crate::probe::named::Pieces;

/// How a probe came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// `break` and `tbreak`: stops, unless its body says `continue`.
    Break,
    /// `trace`: never stops.
    Trace,
    /// `dprintf`: prints and never stops.
    Dprintf,
    /// `watch`, `catch` and their kin: stops wherever something happens, unless its body says
    /// `continue`.
    Event,
}

impl Origin {
    /// Its hits stop the program, unless its body says `continue`.
    pub fn stops(self) -> bool {
        matches!(self, Origin::Break | Origin::Event)
    }
}

/// What a probe without a place waits for.
#[derive(Debug, Clone)]
pub enum Event {
    /// Memory is touched.
    Watch(Watched),
    /// The program does something, or something happens to it.
    Catch(Catch),
}

/// What happens to a probe after a hit that was presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It stays.
    Keep,
    /// It is deleted.
    Delete,
    /// It is disabled.
    Disable,
}

/// One place of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Where it is now: a run-time address, or the file's before there is a process.
    pub address: u64,
    /// `f+4`, as gdb shows it between `<` and `>`.
    pub symbol: Option<String>,
    /// `disable 1.2` is per location.
    pub enabled: bool,
    /// What a named probe knows there.
    pub pieces: Option<Arc<Pieces>>,
    /// It is a way out of a function, since that was asked for.
    pub out: Option<WayOut>,
}

/// A location that was disabled by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Off {
    /// Where it was then.
    pub address: u64,
    /// The file's name of its module and the address in that file, which stay the same wherever the
    /// module is loaded.
    pub home: Option<(String, u64)>,
}

impl Off {
    /// Disables the locations that this one is now. The same code twice in a process (`dlmopen`) is
    /// told apart by the address, as long as that stays.
    pub fn apply(&self, locations: &mut [Location], home: impl Fn(u64) -> Option<(String, u64)>) {
        let is = |location: &Location| home(location.address) == self.home;
        let there = |location: &&mut Location| location.address == self.address && is(location);
        if let Some(location) = locations.iter_mut().find(there) {
            location.enabled = false;
        } else if self.home.is_some() {
            let moved = locations.iter_mut().filter(|location| is(location));
            moved.for_each(|location| location.enabled = false);
        }
    }
}

/// A breakpoint or a tracing probe, by its number.
#[derive(Debug, Clone)]
pub struct Probe {
    /// From 1, never used again.
    pub number: u32,
    /// Its place in the counters that front and keeper share.
    pub place: u16,
    /// What made it.
    pub origin: Origin,
    /// The location as it was typed.
    pub spec: String,
    /// What was typed in all, as it is shown until the location is found.
    pub typed: String,
    /// The condition as it was typed.
    pub condition: Option<String>,
    /// Only so many of its hits are looked at.
    pub sample: Option<Rate>,
    /// What runs at a hit.
    pub body: Option<Arc<[Node]>>,
    /// After a hit.
    pub disposition: Disposition,
    /// `disable`.
    pub enabled: bool,
    /// Hits so far.
    pub hits: u64,
    /// How many hits are still to be ignored.
    pub ignore: u64,
    /// After how many stops it is disabled, with [`Disposition::Disable`] (`enable count`).
    pub left: u64,
    /// Where it is; empty while nothing that it names is loaded.
    pub locations: Vec<Location>,
    /// Those of its locations that are disabled, whether they are there at the moment or not.
    pub off: Vec<Off>,
    /// It has or had a place.
    pub resolved: bool,
    /// Why it has none.
    pub missing: Option<String>,
    /// The function that chooses the one that was named (STT_GNU_IFUNC), until that has happened.
    pub chooser: Option<Location>,
    /// What it waits for, if it has no place.
    pub event: Option<Event>,
}

impl Probe {
    /// The condition came with the location, which is not found yet: both are shown as typed.
    fn shows_condition_as_typed(&self) -> bool {
        let typed = self.origin == Origin::Break && self.typed != self.spec;
        !self.resolved && self.locations.is_empty() && typed
    }

    /// `Breakpoint`, or `Temporary breakpoint`.
    pub fn noun(&self) -> &'static str {
        match &self.event {
            Some(Event::Watch(watched)) => return watched.noun(),
            Some(Event::Catch(_)) => return "Catchpoint",
            None => {}
        }
        match (self.origin, self.disposition) {
            (Origin::Trace, _) => "Trace",
            (Origin::Dprintf, _) => "Dprintf",
            (Origin::Break, Disposition::Delete) => "Temporary breakpoint",
            (Origin::Break | Origin::Event, _) => "Breakpoint",
        }
    }

    /// What `break` says when it has set one.
    pub fn mention(&self) -> String {
        let noun = self.noun();
        let number = self.number;
        match &self.event {
            Some(Event::Watch(_)) => return format!("{noun} {number}: {}", self.spec),
            Some(Event::Catch(catch)) => return format!("{noun} {number} ({catch})"),
            None => {}
        }
        if let Some(chooser) = &self.chooser {
            let address = chooser.address;
            return format!("{noun} {number} at gnu-indirect-function resolver at {address:#x}");
        }
        match self.locations.as_slice() {
            [] => format!("{noun} {number} ({}) pending.", self.typed),
            [only] => format!("{noun} {number} at {:#x}", only.address),
            [first, ..] => format!(
                "{noun} {number} at {:#x} ({} locations)",
                first.address,
                self.locations.len()
            ),
        }
    }
}

/// All probes, in number order.
#[derive(Debug, Default)]
pub struct Probes {
    /// In number order.
    list: Vec<Probe>,
    next: u32,
    /// The numbers of the probes by their places in the counters, 0 where the place is free.
    places: Vec<u32>,
    /// The first that the last command made.
    group: u32,
}

impl Probes {
    /// Adds one; gives its number.
    pub fn add(&mut self, make: impl FnOnce(u32, u16) -> Probe) -> Result<u32, Error> {
        // The last place is the front's own.
        let usable = usize::from(super::sites::INTERNAL);
        let free = self.places.iter().position(|number| *number == 0);
        let place = free.unwrap_or(self.places.len());
        if place >= usable {
            fail!("There are {usable} probes already; delete some.");
        }
        self.next += 1;
        if place == self.places.len() {
            self.places.push(self.next);
        } else {
            self.places[place] = self.next;
        }
        self.list.push(make(self.next, place as u16));
        Ok(self.next)
    }

    /// A command begins that makes one or more.
    pub fn begin_group(&mut self) {
        self.group = self.next + 1;
    }

    /// The numbers of those that the last command made, whether they still exist or not.
    pub fn last_group(&self) -> std::ops::RangeInclusive<u32> {
        self.group.min(self.next).max(1)..=self.next
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Probe> {
        self.list.iter()
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Probe> {
        self.list.iter_mut()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// By number.
    pub fn get(&self, number: u32) -> Option<&Probe> {
        self.list.get(self.index(number)?)
    }

    /// By number.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Probe> {
        let index = self.index(number)?;
        self.list.get_mut(index)
    }

    fn index(&self, number: u32) -> Option<usize> {
        self.list
            .binary_search_by_key(&number, |probe| probe.number)
            .ok()
    }

    /// By its place in the shared counters.
    pub fn at_place(&self, place: u16) -> Option<&Probe> {
        self.get(*self.places.get(usize::from(place))?)
    }

    /// Takes one out.
    pub fn remove(&mut self, number: u32) -> Option<Probe> {
        let probe = self.list.remove(self.index(number)?);
        if let Some(place) = self.places.get_mut(usize::from(probe.place)) {
            *place = 0;
        }
        Some(probe)
    }

    /// `Note: breakpoints 1 and 2 also set at pc 0x….`, if other breakpoints are at `address`.
    pub fn note(&self, address: u64) -> Option<String> {
        let others: Vec<String> = self
            .iter()
            .filter(|p| p.locations.iter().any(|l| l.address == address))
            .map(|p| {
                let disabled = if p.enabled { "" } else { " (disabled)" };
                format!("{}{disabled}", p.number)
            })
            .collect();
        let (last, first) = others.split_last()?;
        let list = match first {
            [] => last.clone(),
            [one] => format!("{one} and {last}"),
            many => format!("{} and {last}", many.join(", ")),
        };
        let noun = if first.is_empty() {
            "breakpoint"
        } else {
            "breakpoints"
        };
        Some(format!(
            "Note: {noun} {list} also set at pc {address:#x}.\n"
        ))
    }

    /// What `info breakpoints` prints; `chosen` empty means all, `typed` is how they were chosen.
    /// `running`: there is a process, where what is watched has its place.
    pub fn table(&self, chosen: &[u32], typed: &str, running: bool) -> String {
        let found = self.rows(chosen, running, |_| true);
        found.unwrap_or_else(|| match chosen {
            [] => "No breakpoints or watchpoints.\n".into(),
            _ => format!("No breakpoint or watchpoint matching '{typed}'.\n"),
        })
    }

    /// The same of `info watchpoints`.
    pub fn watch_table(&self, chosen: &[u32], typed: &str, running: bool) -> String {
        let watch = |probe: &Probe| matches!(probe.event, Some(Event::Watch(_)));
        let found = self.rows(chosen, running, watch);
        found.unwrap_or_else(|| match chosen {
            [] => "No watchpoints.\n".into(),
            _ => format!("No watchpoint matching '{typed}'.\n"),
        })
    }

    fn rows(
        &self,
        chosen: &[u32],
        running: bool,
        which: impl Fn(&Probe) -> bool,
    ) -> Option<String> {
        let shown: Vec<&Probe> = self
            .iter()
            .filter(|p| chosen.is_empty() || chosen.contains(&p.number))
            .filter(|p| which(p))
            .collect();
        if shown.is_empty() {
            return None;
        }
        // Without any address the column is narrow.
        let never = |probe: &&Probe| match &probe.event {
            Some(Event::Watch(_)) => !running,
            Some(Event::Catch(_)) => true,
            None => probe.locations.is_empty() && !probe.resolved,
        };
        let width = match shown.iter().all(never) {
            true => 10,
            false => 18,
        };
        let kinds = shown.iter().map(|probe| kind(probe).len());
        let kind = kinds.max().unwrap_or(0).max(14);
        let mut out = format!(
            "Num     {:<kind$} Disp Enb {:<width$} What\n",
            "Type", "Address"
        );
        for probe in shown {
            rows(probe, (kind, width), &mut out);
        }
        Some(out)
    }
}

/// The type of a breakpoint at a function that is not chosen yet.
const CHOOSER: &str = "STT_GNU_IFUNC resolver";

fn kind(probe: &Probe) -> &'static str {
    match (probe.origin, &probe.event) {
        _ if probe.chooser.is_some() => CHOOSER,
        (_, Some(Event::Watch(watched))) => watched.kind(),
        (_, Some(Event::Catch(_))) => "catchpoint",
        (Origin::Break | Origin::Event, _) => "breakpoint",
        (Origin::Trace, _) => "trace",
        (Origin::Dprintf, _) => "dprintf",
    }
}

/// The rows of a probe; `widths` are those of the type and of the address.
fn rows(probe: &Probe, widths: (usize, usize), out: &mut String) {
    let (type_width, width) = widths;
    let locations = match &probe.chooser {
        Some(chooser) => std::slice::from_ref(chooser),
        None => probe.locations.as_slice(),
    };
    let kind = kind(probe);
    let disposition = match probe.disposition {
        Disposition::Keep => "keep",
        Disposition::Delete => "del",
        Disposition::Disable => "dis",
    };
    let only_off = matches!(locations, [only] if !only.enabled);
    let enabled = if probe.enabled && !only_off { 'y' } else { 'n' };
    let _ = write!(
        out,
        "{:<7} {kind:<type_width$} {disposition:<4} {enabled}   ",
        probe.number
    );
    match locations {
        [] if probe.event.is_some() => {
            let what = match &probe.event {
                Some(Event::Catch(catch)) => catch.row(),
                _ => probe.spec.clone(),
            };
            let _ = writeln!(out, "{:<width$} {what}", "");
        }
        [] => {
            let what = if probe.resolved {
                &probe.spec
            } else {
                &probe.typed
            };
            let _ = writeln!(out, "{:<width$} {what}", "<PENDING>");
        }
        [only] => place(only, out),
        _ => {
            let _ = writeln!(out, "{:<width$} ", "<MULTIPLE>");
        }
    }
    if let Some(condition) = &probe.condition
        && !probe.shows_condition_as_typed()
    {
        let _ = writeln!(out, "\tstop only if {condition}");
    }
    if let Some(rate) = probe.sample {
        let _ = writeln!(out, "\tsample {rate} of the hits");
    }
    if probe.hits > 0 {
        let s = if probe.hits == 1 { "" } else { "s" };
        let noun = match probe.event {
            Some(Event::Catch(_)) => "catchpoint",
            _ => "breakpoint",
        };
        let _ = writeln!(out, "\t{noun} already hit {} time{s}", probe.hits);
    }
    if probe.ignore > 0 {
        let _ = writeln!(out, "\tignore next {} hits", probe.ignore);
    }
    // gdb counts the last one with the disposition alone.
    if probe.left > 1 {
        let _ = writeln!(out, "\tdisable after next {} hits", probe.left);
    }
    // What a dprintf prints stands behind its location until that is found.
    let pending = !probe.resolved && probe.locations.is_empty();
    if let Some(body) = &probe.body
        && !(pending && probe.origin == Origin::Dprintf)
    {
        lines(body, 8, out);
    }
    if locations.len() > 1 {
        for (index, location) in locations.iter().enumerate() {
            let number = format!("{}.{}", probe.number, index + 1);
            let enabled = match (location.enabled, probe.enabled) {
                (false, _) => "n ",
                (true, true) => "y ",
                (true, false) => "y-",
            };
            let _ = write!(out, "{number:<7} {:<type_width$} {:<4} {enabled}  ", "", "");
            place(location, out);
        }
    }
    for remark in super::returns::remarks(&probe.locations) {
        let _ = writeln!(out, "\t{remark}");
    }
}

fn place(location: &Location, out: &mut String) {
    let _ = write!(out, "{:#018x} ", location.address);
    if let Some(symbol) = &location.symbol {
        let _ = write!(out, "<{symbol}>");
    }
    if let Some(remark) = location.out.as_ref().and_then(WayOut::remark) {
        let _ = write!(out, " ({remark})");
    }
    out.push('\n');
}

/// The text of a body, indented as gdb shows it.
pub fn lines(body: &[Node], indent: usize, out: &mut String) {
    let line = |text: &str, out: &mut String| {
        // A backslash at a line's end would join it with the next.
        let end = if text.ends_with('\\') { " " } else { "" };
        let _ = writeln!(out, "{:indent$}{text}{end}", "");
    };
    let joined = |word: &str, rest: &str| {
        if rest.is_empty() {
            word.to_string()
        } else {
            format!("{word} {rest}")
        }
    };
    for node in body {
        match node {
            Node::Simple(simple) | Node::LoopBreak(simple) | Node::LoopContinue(simple) => {
                line(&simple.text, out);
            }
            Node::If {
                condition,
                then,
                otherwise,
            } => {
                line(&format!("if {}", condition.text), out);
                lines(then, indent + 2, out);
                if !otherwise.is_empty() {
                    line("else", out);
                    lines(otherwise, indent + 2, out);
                }
                line("end", out);
            }
            Node::While { condition, body } => {
                line(&format!("while {}", condition.text), out);
                lines(body, indent + 2, out);
                line("end", out);
            }
            Node::Commands { arguments, body } => {
                line(&joined("commands", &arguments.text), out);
                lines(body, indent + 2, out);
                line("end", out);
            }
            Node::Define { name, body } => {
                line(&joined("define", &name.text), out);
                lines(body, indent + 2, out);
                line("end", out);
            }
            Node::Document { name, .. } => line(&joined("document", &name.text), out),
            Node::Foreign { line: foreign } => line(&foreign.text, out),
        }
    }
}

/// What a word like `3`, `3-5` or `2.1` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A whole probe.
    Probe(u32),
    /// One of its locations, from 1.
    Location(u32, u32),
}

/// Reads one word of a list as `enable` and `disable` do; `variable` gives the value of a
/// convenience variable, 0 if it has none.
pub fn choices(word: &str, variable: &mut dyn FnMut(&str) -> u64) -> Result<Vec<Choice>, Error> {
    if let Some((first, locations)) = word.split_once('.') {
        let Some(probe) = plain(first, variable) else {
            fail!("Bad breakpoint number '{word}'");
        };
        return locations_of(probe, locations, variable);
    }
    if word.starts_with('-') {
        fail!("Negative breakpoint number '{word}'");
    }
    let Some((first, last)) = word.split_once('-') else {
        return match plain(word, variable) {
            Some(number) => Ok(vec![Choice::Probe(number)]),
            None => fail!("Bad breakpoint number '{word}'"),
        };
    };
    if last.is_empty() {
        fail!("Bad breakpoint number at or near: '{word}'");
    }
    let Some(from) = plain(first, variable) else {
        fail!("Bad breakpoint number '{first}'");
    };
    let Some(to) = plain(last, variable) else {
        fail!("Bad breakpoint number '{last}'");
    };
    if to < from {
        fail!("Inverted breakpoint range at '{word}'");
    }
    Ok(range(from, to).map(Choice::Probe).collect())
}

fn locations_of(
    probe: u32,
    text: &str,
    variable: &mut dyn FnMut(&str) -> u64,
) -> Result<Vec<Choice>, Error> {
    let mut one = |text: &str| match plain(text, variable) {
        Some(number) => Ok(number),
        None => fail!("Bad breakpoint location number '{text}'"),
    };
    let Some((first, last)) = text.split_once('-') else {
        return Ok(vec![Choice::Location(probe, one(text)?)]);
    };
    if last.is_empty() {
        fail!("Bad breakpoint location number at or near: '{text}'");
    }
    let (from, to) = (one(first)?, one(last)?);
    if to < from {
        fail!("Inverted breakpoint location range at '{text}'");
    }
    let list = range(from, to).map(|location| Choice::Location(probe, location));
    Ok(list.collect())
}

/// A range names at most what can exist.
fn range(from: u32, to: u32) -> std::ops::RangeInclusive<u32> {
    from..=to.min(from.saturating_add(crate::record::shared::PROBES as u32))
}

/// A number that is not 0.
fn plain(word: &str, variable: &mut dyn FnMut(&str) -> u64) -> Option<u32> {
    let number = match word.strip_prefix('$') {
        Some(name) => u32::try_from(variable(name)).ok()?,
        None => word.parse().ok()?,
    };
    (number > 0).then_some(number)
}

/// The numbers of a list as `delete` and most others read it: up to the first word that cannot be
/// one. `None` stands for a word that is none.
pub fn numbers(
    text: &str,
    variable: &mut dyn FnMut(&str) -> u64,
) -> Result<Vec<Option<u32>>, Error> {
    let mut list = Vec::new();
    for word in text.split_ascii_whitespace() {
        match word.bytes().next() {
            Some(b'-') => fail!("negative value"),
            Some(b'$' | b'0'..=b'9') => {}
            _ => break,
        }
        match word.split_once('-') {
            None => list.push(plain(word, variable)),
            Some((first, last)) => {
                let to = plain(last, variable).unwrap_or(0);
                match plain(first, variable) {
                    None => list.push(None),
                    Some(from) if to < from => fail!("inverted range"),
                    Some(from) => list.extend(range(from, to).map(Some)),
                }
            }
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::script::{FullNames, Position, read};

    fn probe(number: u32, place: u16, at: &[(u64, &str)]) -> Probe {
        Probe {
            number,
            place,
            origin: Origin::Break,
            spec: "f".into(),
            typed: "f".into(),
            condition: None,
            sample: None,
            body: None,
            disposition: Disposition::Keep,
            enabled: true,
            hits: 0,
            ignore: 0,
            left: 0,
            locations: at
                .iter()
                .map(|(address, symbol)| Location {
                    address: *address,
                    symbol: Some(symbol.to_string()),
                    enabled: true,
                    pieces: None,
                    out: None,
                })
                .collect(),
            off: Vec::new(),
            resolved: true,
            missing: None,
            chooser: None,
            event: None,
        }
    }

    fn body(text: &str) -> Arc<[Node]> {
        let first = Position {
            file: "t".into(),
            line: 1,
        };
        read(first, text, &FullNames).unwrap().into()
    }

    #[test]
    fn the_table_is_gdbs() {
        let mut probes = Probes::default();
        probes
            .add(|n, p| probe(n, p, &[(0x1198, "main+4")]))
            .unwrap();
        probes
            .add(|n, p| Probe {
                disposition: Disposition::Delete,
                enabled: false,
                hits: 2,
                ignore: 1,
                ..probe(n, p, &[(0x1139, "n::ov(int)"), (0x113d, "n::ov(char*)")])
            })
            .unwrap();
        probes.add(|n, p| probe(n, p, &[])).unwrap();
        let first = probes.get_mut(1).unwrap();
        first.condition = Some("1==1".into());
        first.body = Some(body("if $rdi\nx/i $pc\nelse\nwhile 1\np 1\nend\nend"));
        let expected = "\
Num     Type           Disp Enb Address            What
1       breakpoint     keep y   0x0000000000001198 <main+4>
\tstop only if 1==1
        if $rdi
          x/i $pc
        else
          while 1
            p 1
          end
        end
2       breakpoint     del  n   <MULTIPLE>         
\tbreakpoint already hit 2 times
\tignore next 1 hits
2.1                         y-  0x0000000000001139 <n::ov(int)>
2.2                         y-  0x000000000000113d <n::ov(char*)>
3       breakpoint     keep y   <PENDING>          f
";
        assert_eq!(probes.table(&[], "", false), expected);
        assert_eq!(
            probes.table(&[99], "99", false),
            "No breakpoint or watchpoint matching '99'.\n"
        );
    }

    #[test]
    fn a_disabled_location_is_known_again_wherever_it_is() {
        // Two libraries, and the second twice, at 0x3000 and 0x4000.
        let home = |address: u64| {
            let name = if address < 0x3000 { "a.so" } else { "b.so" };
            Some((name.to_string(), address & 0xfff))
        };
        let off = |address| Off {
            address,
            home: home(address),
        };
        let after = |off: Off, at: &[u64]| -> Vec<bool> {
            let at: Vec<_> = at.iter().map(|address| (*address, "f")).collect();
            let mut probe = probe(1, 0, &at);
            off.apply(&mut probe.locations, home);
            probe.locations.iter().map(|l| l.enabled).collect()
        };
        // Another one has come before it.
        assert_eq!(after(off(0x3010), &[0x2010, 0x3010]), [true, false]);
        // It is loaded elsewhere; its neighbour is another function.
        assert_eq!(after(off(0x5010), &[0x3010, 0x3020]), [false, true]);
        assert_eq!(after(off(0x3010), &[0x3010, 0x4010]), [false, true]);
        assert_eq!(after(off(0x3010), &[0x1010, 0x2010]), [true, true]);
        // In no module there is the address alone.
        let anywhere = Off {
            address: 0x10,
            home: None,
        };
        let mut probe = probe(1, 0, &[(0x10, "f"), (0x20, "f")]);
        anywhere.apply(&mut probe.locations, |_| None);
        assert!(!probe.locations[0].enabled && probe.locations[1].enabled);
    }

    /// Also when it is the only one that is left.
    #[test]
    fn the_place_of_the_front_itself_is_never_given_out() {
        let mut probes = Probes::default();
        let internal = super::super::sites::INTERNAL;
        for number in 1..=u32::from(internal) {
            assert_eq!(probes.add(|n, p| probe(n, p, &[])), Ok(number));
        }
        let full = probes.add(|n, p| probe(n, p, &[])).unwrap_err();
        assert!(full.message.contains("8191 probes already"), "{full}");
        assert!(probes.iter().all(|probe| probe.place < internal));
        assert!(probes.at_place(internal).is_none());
        // A place that becomes free is found again, and no other one.
        let place = probes.remove(internal.into()).unwrap().place;
        let number = probes.add(|n, p| probe(n, p, &[])).unwrap();
        assert_eq!(probes.get(number).unwrap().place, place);
        assert_eq!(number, u32::from(internal) + 1);
        assert!(probes.add(|n, p| probe(n, p, &[])).is_err());
    }

    #[test]
    fn what_break_says() {
        let mut probes = Probes::default();
        assert_eq!(probes.note(0x10), None);
        for _ in 0..3 {
            probes.add(|n, p| probe(n, p, &[(0x10, "f")])).unwrap();
        }
        assert_eq!(
            probes.note(0x10).as_deref(),
            Some("Note: breakpoints 1, 2 and 3 also set at pc 0x10.\n")
        );
        assert_eq!(probes.get(1).unwrap().mention(), "Breakpoint 1 at 0x10");
        let two = probe(4, 3, &[(0x10, "f"), (0x20, "f")]);
        assert_eq!(two.mention(), "Breakpoint 4 at 0x10 (2 locations)");
    }

    #[test]
    fn words_that_enable_and_disable_take() {
        let list = |text| choices(text, &mut |_| 0).map_err(|e| e.message);
        use Choice::{Location, Probe};
        assert_eq!(list("3-4"), Ok(vec![Probe(3), Probe(4)]));
        assert_eq!(list("2.1"), Ok(vec![Location(2, 1)]));
        assert_eq!(list("2.1-2"), Ok(vec![Location(2, 1), Location(2, 2)]));
        for (text, message) in [
            ("x", "Bad breakpoint number 'x'"),
            ("0", "Bad breakpoint number '0'"),
            ("$x", "Bad breakpoint number '$x'"),
            ("-1", "Negative breakpoint number '-1'"),
            ("2-1", "Inverted breakpoint range at '2-1'"),
            ("1-", "Bad breakpoint number at or near: '1-'"),
            ("1.x", "Bad breakpoint location number 'x'"),
            ("1.3-2", "Inverted breakpoint location range at '3-2'"),
        ] {
            assert_eq!(list(text), Err(message.into()), "{text}");
        }
        assert!(list("1-4294967295").unwrap().len() < 10_000);
    }

    #[test]
    fn lists_that_delete_takes() {
        let list = |text| numbers(text, &mut |_| 7).map_err(|e| e.message);
        assert_eq!(
            list("1 3-4 $x"),
            Ok(vec![Some(1), Some(3), Some(4), Some(7)])
        );
        assert_eq!(list("1 x 2"), Ok(vec![Some(1)]));
        assert_eq!(list("0 1x"), Ok(vec![None, None]));
        assert_eq!(list("-1"), Err("negative value".into()));
        assert_eq!(list("2-x"), Err("inverted range".into()));
    }
}
