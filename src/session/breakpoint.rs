//! What the user asked for.

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
    pub(super) fn shows_condition_as_typed(&self) -> bool {
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
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::lang::script::{FullNames, Position, read};

    /// A breakpoint at `f`.
    pub fn probe(number: u32, place: u16, at: &[(u64, &str)]) -> Probe {
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

    /// A body as it was typed.
    pub fn body(text: &str) -> Arc<[Node]> {
        let first = Position {
            file: "t".into(),
            line: 1,
        };
        read(first, text, &FullNames).unwrap().into()
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
}
