//! Where named probes are in a process, and what is known at such a place.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Session;
use super::breakpoint::Location;
use super::images::Unresolved;
use super::sites;
use crate::engine::protocol::Tid;
use crate::error::Error;
use crate::lang;
use crate::probe::named::{Named, Pieces, Reading, shown};

/// What a named probe knows at a place; nothing at a place of any other probe.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    /// What is known.
    pub pieces: Option<Arc<Pieces>>,
    /// At a way out the pieces are what they were at the entry.
    out: bool,
}

impl Place {
    /// That of a location.
    pub fn of(location: &Location) -> Place {
        Place {
            pieces: location.pieces.clone(),
            out: location.out.is_some(),
        }
    }

    /// For the expressions that are about this place.
    pub fn reading(&self) -> Option<Reading> {
        let pieces = self.pieces.clone()?;
        Some(Reading::new(pieces, self.out))
    }

    /// The condition that a probe has here: its own and the place's.
    pub fn condition(&self, own: Option<&str>) -> Option<String> {
        let when = self
            .pieces
            .as_ref()
            .and_then(|pieces| pieces.when.as_deref());
        let when = when.map(|when| match self.out {
            true => format!("$_entry({when})"),
            false => when.to_string(),
        });
        match (when, own) {
            (Some(when), Some(own)) => Some(format!("({when}) && ({own})")),
            (Some(when), None) => Some(when),
            (None, own) => own.map(String::from),
        }
    }
}

impl Session {
    /// Runs `f` with expressions being about a place, or, where nothing is known there, about none.
    pub fn naming<R>(&mut self, place: Place, f: impl FnOnce(&mut Session) -> R) -> R {
        let before = self.naming.replace(place);
        let result = f(self);
        self.naming = before;
        result
    }

    /// Every place that a named probe has in a target. Of the versions that fit one module the
    /// first counts.
    pub fn locate_named(
        &mut self,
        target: usize,
        named: &Named,
        returns: bool,
    ) -> Result<Vec<Location>, Unresolved> {
        let (mut found, mut tried): (Vec<Location>, _) = (Vec::new(), Tried::default());
        if let Some(images) = self.images_of(target) {
            let mut taken = BTreeSet::new();
            for version in &named.versions {
                let mut own = BTreeSet::new();
                for place in &version.places {
                    let spec = place.spec(version.library.as_deref());
                    // A named probe is about a function's entry.
                    let addresses = match images.locate(&spec, false) {
                        Ok(addresses) => addresses,
                        Err(error) => {
                            tried.note(&version.title, error);
                            continue;
                        }
                    };
                    for address in addresses {
                        let module = images.modules.module_at(address);
                        let known = found.iter().any(|other| other.address == address);
                        if !known && !taken.contains(&module) {
                            own.insert(module);
                            found.push(Location {
                                pieces: Some(place.pieces.clone()),
                                ..sites::location(address, Some(images))
                            });
                        }
                    }
                }
                taken.append(&mut own);
            }
        }
        if found.is_empty() {
            let running = self.targets.get(target).is_some();
            return Err(tried.unresolved(&named.name, running));
        }
        self.about(target, |session| session.check_pieces(&found))?;
        match returns {
            true => self.left(target, &found),
            false => Ok(found),
        }
    }

    /// The ways out of functions, with what is known at their entries.
    fn left(&mut self, target: usize, entries: &[Location]) -> Result<Vec<Location>, Unresolved> {
        let mut all = Vec::new();
        for entry in entries {
            let mut ways = self.ways_out(target, vec![entry.address])?;
            for way in &mut ways {
                way.pieces = entry.pieces.clone();
            }
            all.append(&mut ways);
        }
        Ok(all)
    }

    /// The expressions of a file may name symbols, which are known only now.
    fn check_pieces(&mut self, found: &[Location]) -> Result<(), Unresolved> {
        for location in found {
            let Some(pieces) = location.pieces.clone() else {
                continue;
            };
            let parsed = self.naming(Place::of(location), |session| {
                session.with_view(|view, _| {
                    let when = pieces.when.as_deref();
                    when.map_or(Ok(()), |when| lang::parse(when, view).map(drop))?;
                    shown(&pieces, view).map(drop)
                })
            });
            parsed.map_err(|e| Unresolved::Bad(Error::new(format!("{}: {e}", pieces.probe))))?;
        }
        Ok(())
    }

    /// What is known at the places of a probe whose condition is still to be read.
    pub fn place_of(&self, spec: &str, locations: &[Location]) -> Place {
        if let Some(location) = locations.first() {
            return Place::of(location);
        }
        let (spec, _) = crate::lang::braces::split_process(spec);
        let (name, out) = super::returns::strip(spec);
        let named = self.named.get(name);
        let place = named
            .as_ref()
            .and_then(|named| named.versions.first()?.places.first());
        Place {
            pieces: place.map(|place| place.pieces.clone()),
            out,
        }
    }

    /// What a probe knows where a thread of the current process stands.
    pub fn place_where(&mut self, tid: Tid, number: u32) -> Place {
        match self.registers(tid) {
            Some(registers) => self.place_at(self.current, registers.pc(), Some(number)),
            None => Place::default(),
        }
    }

    /// What is known at a site by the probe `number`, or by the first named one.
    pub(super) fn place_at(&self, target: usize, address: u64, number: Option<u32>) -> Place {
        let site = self.targets.get(target).and_then(|t| t.sites.get(&address));
        let mut plans = site.map_or(&[][..], |site| &site.probes).iter();
        let wanted = |own: u32| number.is_none_or(|number| number == own);
        plans
            .find(|(own, plan)| wanted(*own) && plan.place.pieces.is_some())
            .map(|(_, plan)| plan.place.clone())
            .unwrap_or_default()
    }
}

/// Why the versions of a named probe have no place.
#[derive(Default)]
struct Tried {
    versions: Vec<(String, String)>,
    hints: Vec<String>,
}

impl Tried {
    /// Of each version what its first place lacks.
    fn note(&mut self, version: &str, error: Unresolved) {
        let (message, hint) = match error {
            Unresolved::NotFound { message, hint, .. } => (message, hint),
            Unresolved::Bad(error) => (error.message, None),
        };
        if self.versions.iter().all(|(other, _)| other != version) {
            let message = message.trim_end_matches('.').replace('\n', " ");
            self.versions.push((version.into(), message));
        }
        let new = hint.filter(|hint| !self.hints.contains(hint));
        self.hints.extend(new);
    }

    fn unresolved(self, name: &str, running: bool) -> Unresolved {
        let versions: Vec<String> = self
            .versions
            .iter()
            .map(|(version, why)| format!("{version} ({why})"))
            .collect();
        let message = match versions.as_slice() {
            [] => format!("{name} has no place: no program is loaded."),
            list => format!("{name} has no place here; tried: {}.", list.join("; ")),
        };
        Unresolved::NotFound {
            message,
            hint: (!self.hints.is_empty()).then(|| self.hints.join("\n")),
            // What is not started yet has its libraries still to come.
            imported: !running,
        }
    }
}
