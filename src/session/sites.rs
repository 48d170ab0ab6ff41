//! From probes to sites: where each probe is now, and what is counted there.

use std::sync::atomic::Ordering;

use super::breakpoint::{Disposition, Location, Off, Origin, Probe};
use super::images::{Images, Unresolved};
use super::plan::Plan;
use super::view::Names;
use super::{Session, Target, returns, search, wording};
use crate::engine::client::{EngineError, Keeper};
use crate::engine::protocol::{Failure, SiteId, SiteSpec};
use crate::error::Error;
use crate::lang::{self, braces};

/// One site of one target.
#[derive(Debug, Clone)]
pub struct Site {
    /// The front's number.
    pub id: SiteId,
    /// What the keeper holds; `None` before it was armed.
    pub armed: Option<SiteSpec>,
    /// The probes there and how each runs, in number order.
    pub probes: Vec<(u32, Plan)>,
    /// The keeper could not hold it, which was said.
    pub lost: bool,
}

/// The place in the counters that stands for the front's own site in the dynamic linker.
pub const INTERNAL: u16 = (crate::record::shared::PROBES - 1) as u16;

impl Session {
    /// Where a location is, in the first target that has it or in the program's file; if none has,
    /// what the first one says.
    pub fn locate(&mut self, spec: &str, origin: Origin) -> Result<Vec<Location>, Unresolved> {
        let first = self.locate_in(0, spec, origin);
        if !matches!(first, Err(Unresolved::NotFound { .. })) {
            return first;
        }
        for target in 1..self.targets.len() {
            let found = self.locate_in(target, spec, origin);
            if found.is_ok() {
                self.elsewhere = true;
                return found;
            }
        }
        first
    }

    pub(super) fn locate_in(
        &mut self,
        target: usize,
        spec: &str,
        origin: Origin,
    ) -> Result<Vec<Location>, Unresolved> {
        let (spec, only) = split_process(spec, origin);
        if let Some(only) = only {
            self.check_process(target, only)?;
        }
        wording::check(spec).map_err(Unresolved::Bad)?;
        let (spec, returns) = returns::strip(spec);
        if let Some(named) = self.named.get(spec) {
            return self.locate_named(target, &named, returns);
        }
        let addresses = match spec.strip_prefix('*') {
            Some(expression) => vec![self.exact_address(target, expression)?],
            None => {
                let Some(images) = self.images_of(target) else {
                    return Err(Unresolved::NotFound {
                        message: "No symbol table is loaded.  Use the \"file\" command.".into(),
                        hint: None,
                        imported: false,
                    });
                };
                let behind_prologue = origin != Origin::Trace && !returns;
                let found = images.locate(spec, behind_prologue);
                found.map_err(|error| match self.named.instead_of(spec) {
                    Some(message) => Unresolved::Bad(Error::new(message)),
                    None => error,
                })?
            }
        };
        if returns {
            return self.ways_out(target, addresses);
        }
        let images = self.images_of(target);
        Ok(addresses
            .iter()
            .map(|address| location(*address, images))
            .collect())
    }

    /// A probe is for one process, and a target is another one.
    pub(super) fn is_for_another(&self, target: usize, spec: &str, origin: Origin) -> bool {
        let only = split_process(spec, origin).1;
        only.is_some_and(|only| self.check_process(target, only).is_err())
    }

    /// Whether a target is the process that a probe is for. Before there is one, every program is.
    fn check_process(&self, target: usize, only: &str) -> Result<(), Unresolved> {
        let wanted = search::Wanted::parse(only).map_err(Unresolved::Bad)?;
        let Some(target) = self.targets.get(target) else {
            return Ok(());
        };
        match wanted.fits(target.pid) {
            true => Ok(()),
            false => Err(Unresolved::NotFound {
                message: format!("Of the processes that are traced none is {wanted}."),
                hint: None,
                imported: false,
            }),
        }
    }

    pub(super) fn images_of(&self, target: usize) -> Option<&Images> {
        self.targets
            .get(target)
            .map(|t| &t.images)
            .or(self.program.as_ref())
    }

    /// The value of `*EXPR`, refused where no instruction begins.
    fn exact_address(&mut self, target: usize, expression: &str) -> Result<u64, Unresolved> {
        let value = self.about(target, |session| {
            session.with_view(|view, _| {
                let expr = lang::parse(expression, view)?;
                let value = lang::evaluate(&expr, view)?;
                value.as_u64(view)
            })
        });
        let address = value.map_err(|e| Unresolved::Bad(Error::new(e.to_string())))?;
        match self.images_of(target) {
            Some(images) => images.exact(address).map_err(Unresolved::Bad),
            None => Ok(address),
        }
    }

    /// Finds every probe again: the modules are other ones or lie elsewhere.
    pub fn relocate(&mut self) {
        self.stale = true;
        self.elsewhere = false;
        let numbers: Vec<(u32, String, Origin)> = self
            .probes
            .iter()
            .filter(|p| p.event.is_none())
            .map(|p| (p.number, p.spec.clone(), p.origin))
            .collect();
        let running = !self.targets.is_empty();
        for (number, spec, origin) in numbers {
            let found = self.locate(&spec, origin);
            let images = images(&self.targets, self.program.as_ref());
            let Some(probe) = self.probes.get_mut(number) else {
                continue;
            };
            match found {
                Ok(mut locations) => {
                    for off in &probe.off {
                        off.apply(&mut locations, |address| home(&images, address));
                    }
                    probe.locations = locations;
                    probe.resolved = true;
                    if running {
                        probe.chooser = None;
                    }
                }
                Err(Unresolved::NotFound { message, hint, .. }) => {
                    let full = [Some(message), hint];
                    let full: Vec<_> = full.into_iter().flatten().collect();
                    probe.missing = Some(full.join("\n"));
                    if !self.targets.is_empty() {
                        probe.locations.clear();
                    }
                }
                Err(Unresolved::Bad(error)) => {
                    probe.locations.clear();
                    self.output.complain(&format!(
                        "warning: Cannot insert breakpoint {number}: {error}"
                    ));
                }
            }
        }
    }

    /// Finds again what the change of one target may have changed.
    pub(super) fn relocate_in(&mut self, index: usize) {
        let nowhere = |probe: &Probe| probe.locations.is_empty();
        if index == 0 || self.elsewhere || self.probes.iter().any(nowhere) {
            return self.relocate();
        }
        self.targets[index].stale = true;
    }

    /// Switches one location of a probe on or off; false if there is no such one.
    pub fn switch_location(&mut self, number: u32, index: usize, on: bool) -> bool {
        let images = images(&self.targets, self.program.as_ref());
        let Some(probe) = self.probes.get_mut(number) else {
            return false;
        };
        let Some(location) = probe.locations.get_mut(index) else {
            return false;
        };
        location.enabled = on;
        let off = |location: &Location| Off {
            address: location.address,
            home: home(&images, location.address),
        };
        let (here, disabled): (Vec<_>, Vec<_>) = {
            let all = probe.locations.iter().map(|it| (off(it), it.enabled));
            all.partition(|(_, enabled)| *enabled)
        };
        // Those that are not there at the moment stay off.
        probe.off.retain(|off| {
            let mut all = here.iter().chain(&disabled);
            !all.any(|(other, _)| other.home == off.home)
        });
        probe.off.extend(disabled.into_iter().map(|(off, _)| off));
        true
    }

    /// The function that will choose the one that is named, before there is a process.
    pub fn chooser(&mut self, spec: &str) -> Option<Location> {
        if !self.targets.is_empty() {
            return None;
        }
        let symbol = self.with_view(|view, _| lang::Scope::symbol(view, spec))?;
        let address = symbol.address;
        (symbol.kind == lang::SymbolKind::Ifunc).then(|| location(address, self.images_of(0)))
    }

    /// Tells the keeper which probes are on, and how many hits each lets by.
    pub(super) fn sync_counters(&mut self) -> Result<(), Error> {
        if self.targets.is_empty() {
            return Ok(());
        }
        self.keeper()?;
        let Some(keeper) = &self.keeper else {
            return Ok(());
        };
        let counters = keeper.counters();
        for probe in self.probes.iter() {
            let place = counters.probe(probe.place);
            let temporary = probe.disposition != Disposition::Keep && probe.left <= 1;
            place.temporary.store(temporary.into(), Ordering::Relaxed);
            place.enabled.store(probe.enabled.into(), Ordering::Release);
        }
        Ok(())
    }

    /// The front's own probe is always on.
    pub(super) fn sync_watch_counter(&mut self) -> Result<(), Error> {
        let counters = self.keeper()?.counters();
        counters.probe(INTERNAL).enabled.store(1, Ordering::Release);
        Ok(())
    }

    /// Reads hits and ignore counts back from the shared counters.
    pub fn read_counters(&mut self) {
        let Some(keeper) = &self.keeper else {
            return;
        };
        let counters = keeper.counters();
        for probe in self.probes.iter_mut() {
            let place = counters.probe(probe.place);
            probe.hits = place.hits.load(Ordering::Relaxed);
            probe.ignore = place.ignore.load(Ordering::Relaxed).max(0) as u64;
        }
    }

    /// Sets how many hits of a probe are let by.
    pub fn set_ignore(&mut self, number: u32, count: u64) {
        let Some(probe) = self.probes.get_mut(number) else {
            return;
        };
        probe.ignore = count;
        if let Some(keeper) = &self.keeper {
            store_ignore(keeper, probe);
        }
    }

    /// Takes a probe out; what the keeper holds of it goes before the target goes on.
    pub fn delete(&mut self, number: u32) -> bool {
        let Some(probe) = self.probes.remove(number) else {
            return false;
        };
        if let Some(keeper) = &self.keeper {
            keeper.counters().probe(probe.place).reset();
        }
        self.stale = true;
        true
    }
}

/// A location, and the one process that it is for.
fn split_process(spec: &str, origin: Origin) -> (&str, Option<&str>) {
    match origin {
        Origin::Trace => braces::split_process(spec),
        Origin::Break | Origin::Dprintf | Origin::Event => (spec, None),
    }
}

/// What locations can be in: the processes, or before there is one the program's file.
fn images<'a>(targets: &'a [Target], program: Option<&'a Images>) -> Vec<&'a Images> {
    let program = program.filter(|_| targets.is_empty());
    let targets = targets.iter().map(|target| &target.images);
    targets.chain(program).collect()
}

/// The file's name of the module that is at an address, and the address in that file.
pub(super) fn home(among: &[&Images], address: u64) -> Option<(String, u64)> {
    among.iter().find_map(|images| {
        let loaded = &images.modules.loaded()[images.modules.module_at(address)?];
        Some((loaded.name(), loaded.bias.file(address).0))
    })
}

/// The keeper has no such target any more.
pub(super) fn is_gone(error: &EngineError) -> bool {
    matches!(error, EngineError::Refused(Failure::NoTarget))
}

/// What was asked of a process that has ended meanwhile has not failed: an event tells of that.
pub(super) fn unless_gone(result: Result<(), EngineError>) -> Result<(), Error> {
    match result {
        Err(error) if !is_gone(&error) => Err(super::engine_error(&error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Tells the keeper how many hits of a probe are let by.
pub(super) fn store_ignore(keeper: &Keeper, probe: &Probe) {
    let place = &keeper.counters().probe(probe.place).ignore;
    let count = i64::try_from(probe.ignore).unwrap_or(i64::MAX);
    place.store(count, Ordering::Relaxed);
}

pub(super) fn location(address: u64, images: Option<&Images>) -> Location {
    let symbol = images
        .and_then(|images| images.symbol_at(address))
        .map(|(name, offset)| match offset {
            0 => name,
            _ => format!("{name}+{offset}"),
        });
    Location {
        address,
        symbol,
        enabled: true,
        pieces: None,
        out: None,
    }
}
