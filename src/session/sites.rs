//! From probes to sites: where each probe is now, and what the keeper must hold.
//!
//! Sites are made before a target goes on, never while a person is still typing: a `break` without
//! its `commands` must not be hit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::breakpoint::{Disposition, Location, Origin, Probe};
use super::images::{Images, Unresolved};
use super::plan::Plan;
use super::view::Names;
use super::{Session, engine_error, process};
use crate::engine::client::{EngineError, Keeper};
use crate::engine::protocol::{Failure, SiteId, SiteProbe, SiteSpec, Tid};
use crate::error::{Error, fail};
use crate::lang;
use crate::probe::named::{Named, Pieces, shown};

/// Which probes are at which address, each with what a named probe knows there.
type Wanted = BTreeMap<u64, Vec<(u32, Option<Arc<Pieces>>)>>;

/// One site of one target.
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
    /// Where a location is, in the first target or in the program's file.
    pub fn locate(&mut self, spec: &str, origin: Origin) -> Result<Vec<Location>, Unresolved> {
        self.locate_in(0, spec, origin)
    }

    fn locate_in(
        &mut self,
        target: usize,
        spec: &str,
        origin: Origin,
    ) -> Result<Vec<Location>, Unresolved> {
        if let Some(named) = self.named.get(spec) {
            return self.locate_named(target, &named);
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
                images.locate(spec, origin == Origin::Break)?
            }
        };
        let Some(images) = self.images_of(target) else {
            return Ok(addresses.iter().map(|a| location(*a, None, None)).collect());
        };
        Ok(addresses
            .iter()
            .map(|address| location(*address, Some(images), None))
            .collect())
    }

    /// Every place that a named probe has in a target. Of the versions that fit one module the
    /// first counts.
    pub fn locate_named(
        &mut self,
        target: usize,
        named: &Named,
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
                            let pieces = Some(place.pieces.clone());
                            found.push(location(address, Some(images), pieces));
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
        Ok(found)
    }

    /// The expressions of a file may name symbols, which are known only now.
    fn check_pieces(&mut self, found: &[Location]) -> Result<(), Unresolved> {
        for pieces in found.iter().filter_map(|location| location.pieces.clone()) {
            let parsed = self.naming(Some(pieces.clone()), |session| {
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

    /// What a named probe knows at a place whose conditions and bodies are still to be read.
    pub fn pieces_of(&self, spec: &str, locations: &[Location]) -> Option<Arc<Pieces>> {
        match locations.first() {
            Some(location) => location.pieces.clone(),
            None => {
                let named = self.named.get(spec)?;
                let place = named.versions.first()?.places.first()?;
                Some(place.pieces.clone())
            }
        }
    }

    /// What a probe knows where a thread of the current process stands.
    pub fn pieces_where(&mut self, tid: Tid, number: u32) -> Option<Arc<Pieces>> {
        let here = self.registers(tid)?.pc();
        self.pieces_at(self.current, here, Some(number))
    }

    /// What a named probe knows at a site, that of `number` or the first.
    pub(super) fn pieces_at(
        &self,
        target: usize,
        address: u64,
        number: Option<u32>,
    ) -> Option<Arc<Pieces>> {
        let site = self.targets.get(target)?.sites.get(&address)?;
        let mut plans = site.probes.iter();
        plans.find_map(|(own, plan)| match number.is_none_or(|n| n == *own) {
            true => plan.pieces.clone(),
            false => None,
        })
    }

    fn images_of(&self, target: usize) -> Option<&Images> {
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
        let numbers: Vec<(u32, String, Origin)> = self
            .probes
            .iter()
            .map(|p| (p.number, p.spec.clone(), p.origin))
            .collect();
        for (number, spec, origin) in numbers {
            let found = self.locate(&spec, origin);
            let Some(probe) = self.probes.get_mut(number) else {
                continue;
            };
            match found {
                Ok(mut locations) => {
                    for (index, location) in locations.iter_mut().enumerate() {
                        if let Some(old) = probe.locations.get(index) {
                            location.enabled = old.enabled;
                        }
                    }
                    probe.locations = locations;
                    probe.resolved = true;
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

    /// Makes the keeper hold what the probes want, in every target.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.sync_counters()?;
        self.stale |= std::mem::take(&mut self.variables.retyped);
        if !self.stale {
            return Ok(());
        }
        self.stale = false;
        let mut failed = Vec::new();
        for index in 0..self.targets.len() {
            self.sync_target(index, &mut failed)?;
        }
        if failed.is_empty() {
            return Ok(());
        }
        self.stale = true;
        fail!("{}", failed.join("\n"))
    }

    /// A script that was written with a stopped process in mind says something (`echo ready`) when
    /// its probes are complete. Where the process runs on meanwhile they must be in place by then.
    /// What cannot be is told when the script lets the process go on.
    pub fn arm_early(&mut self) {
        let runs = |target: &super::Target| !target.stopped;
        if !self.running && self.targets.first().is_some_and(runs) {
            let _ = self.sync();
        }
    }

    fn sync_target(&mut self, index: usize, failed: &mut Vec<String>) -> Result<(), Error> {
        let wanted = self.wanted(index);
        let id = self.targets[index].id;
        // The program is compiled over the symbols as they are now.
        let mut specs: BTreeMap<u64, (SiteSpec, Vec<(u32, Plan)>)> = BTreeMap::new();
        for (address, numbers) in wanted {
            let mut plans = Vec::new();
            let mut probes = Vec::new();
            for (number, pieces) in numbers {
                let Some(probe) = self.probes.get(number).cloned() else {
                    continue;
                };
                let plan = self.plan(index, &probe, address, pieces);
                probes.push(SiteProbe {
                    probe: probe.place,
                    program: plan.program.clone(),
                    then: plan.then,
                });
                plans.push((number, plan));
            }
            let target = &mut self.targets[index];
            let site = match target.sites.get(&address) {
                Some(site) => site.id,
                None => {
                    target.next_site += 1;
                    SiteId(target.next_site)
                }
            };
            let spec = SiteSpec {
                id: site,
                address,
                code: target.images.code(address),
                probes,
            };
            specs.insert(address, (spec, plans));
        }
        let old: Vec<(u64, SiteId, bool)> = self.targets[index]
            .sites
            .iter()
            .map(|(address, site)| (*address, site.id, site.armed.is_some()))
            .collect();
        for (address, site, armed) in old {
            let internal = self.targets[index].internal == Some(address);
            if !specs.contains_key(&address) && !internal {
                if armed {
                    // A site that is gone already is as good as taken out.
                    let _ = self.keeper()?.disarm(id, site);
                }
                self.targets[index].sites.remove(&address);
            }
        }
        for (address, (spec, plans)) in specs {
            self.arm(index, address, spec, plans, failed)?;
        }
        Ok(())
    }

    fn arm(
        &mut self,
        index: usize,
        address: u64,
        spec: SiteSpec,
        plans: Vec<(u32, Plan)>,
        failed: &mut Vec<String>,
    ) -> Result<(), Error> {
        let held = self.targets[index]
            .sites
            .get(&address)
            .is_some_and(|site| site.armed.as_ref() == Some(&spec) || site.lost);
        let id = self.targets[index].id;
        let result = if held {
            Ok(())
        } else {
            self.keeper()?.arm(id, spec.clone())
        };
        let armed = match result {
            Ok(()) => Some(spec.clone()),
            // It has ended meanwhile, which an event tells.
            Err(error) if is_gone(&error) || process::has_ended(self.targets[index].pid) => None,
            Err(error) => {
                let numbers: Vec<String> = plans.iter().map(|(n, _)| n.to_string()).collect();
                failed.push(format!(
                    "Cannot insert breakpoint {}.\n{}",
                    numbers.join(", "),
                    engine_error(&error)
                ));
                None
            }
        };
        let lost = self.targets[index]
            .sites
            .get(&address)
            .is_some_and(|s| s.lost);
        let site = Site {
            id: spec.id,
            armed,
            probes: plans,
            lost,
        };
        self.targets[index].sites.insert(address, site);
        Ok(())
    }

    /// Which probes are at which address of a target.
    fn wanted(&mut self, index: usize) -> Wanted {
        let mut wanted = Wanted::new();
        let probes: Vec<Probe> = self.probes.iter().filter(|p| p.enabled).cloned().collect();
        for probe in probes {
            let locations = if self.targets.len() == 1 {
                probe.locations.clone()
            } else {
                self.locate_in(index, &probe.spec, probe.origin)
                    .unwrap_or_default()
            };
            for location in locations.iter().filter(|l| l.enabled) {
                let numbers = wanted.entry(location.address).or_default();
                if !numbers.iter().any(|(number, _)| *number == probe.number) {
                    numbers.push((probe.number, location.pieces.clone()));
                }
            }
        }
        wanted
    }

    /// Tells the keeper which probes are on, and how many hits each lets by.
    fn sync_counters(&mut self) -> Result<(), Error> {
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
            let temporary = probe.disposition != Disposition::Keep;
            place.temporary.store(temporary.into(), Ordering::Relaxed);
            place.enabled.store(probe.enabled.into(), Ordering::Release);
        }
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

/// The keeper has no such target any more.
pub(super) fn is_gone(error: &EngineError) -> bool {
    matches!(error, EngineError::Refused(Failure::NoTarget))
}

/// Tells the keeper how many hits of a probe are let by.
pub(super) fn store_ignore(keeper: &Keeper, probe: &Probe) {
    let place = &keeper.counters().probe(probe.place).ignore;
    let count = i64::try_from(probe.ignore).unwrap_or(i64::MAX);
    place.store(count, Ordering::Relaxed);
}

/// Why the versions of a named probe have no place.
#[derive(Default)]
struct Tried {
    versions: Vec<(String, String)>,
    hints: Vec<String>,
}

impl Tried {
    /// One line a version: what its first place lacks.
    fn note(&mut self, version: &str, error: Unresolved) {
        let (message, hint) = match error {
            Unresolved::NotFound { message, hint, .. } => (message, hint),
            Unresolved::Bad(error) => (error.message, None),
        };
        if self.versions.iter().all(|(other, _)| other != version) {
            let message = message.trim_end_matches('.').replace('\n', " ");
            self.versions.push((version.into(), message));
        }
        self.hints
            .extend(hint.filter(|hint| !self.hints.contains(hint)));
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

fn location(address: u64, images: Option<&Images>, pieces: Option<Arc<Pieces>>) -> Location {
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
        pieces,
    }
}
