//! From probes to sites: where each probe is now, and what the keeper must hold.
//!
//! Sites are made before a target goes on, never while a person is still typing: a `break` without
//! its `commands` must not be hit.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::breakpoint::{Disposition, Location, Origin, Probe};
use super::images::{Images, Unresolved};
use super::libraries::PATIENCE_MS;
use super::plan::Plan;
use super::view::Names;
use super::{Session, engine_error, process, returns};
use crate::engine::client::{EngineError, Keeper};
use crate::engine::protocol::{Failure, SiteId, SiteProbe, SiteSpec, Then};
use crate::error::{Error, fail};
use crate::lang;
use crate::probe::program::Program;

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

/// What is to be at one address.
#[derive(Default)]
struct Wanted {
    /// By probe; what only keeps something for its return comes before its own program.
    programs: Vec<((u32, bool), SiteProbe)>,
    plans: Vec<(u32, Plan)>,
}

/// The place in the counters that stands for the front's own site in the dynamic linker.
pub const INTERNAL: u16 = (crate::record::shared::PROBES - 1) as u16;

/// So often sites are made anew because libraries went away meanwhile.
const ATTEMPTS: usize = 8;

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
                return found;
            }
        }
        first
    }

    fn locate_in(
        &mut self,
        target: usize,
        spec: &str,
        origin: Origin,
    ) -> Result<Vec<Location>, Unresolved> {
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
                let behind_prologue = origin == Origin::Break && !returns;
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
        let Some(images) = self.images_of(target) else {
            return Ok(addresses.iter().map(|a| location(*a, None)).collect());
        };
        Ok(addresses
            .iter()
            .map(|address| location(*address, Some(images)))
            .collect())
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
        let mut failed = Vec::new();
        for _ in 0..ATTEMPTS {
            self.stale = false;
            failed.clear();
            for index in 0..self.targets.len() {
                self.sync_target(index, &mut failed)?;
            }
            if !self.stale {
                break;
            }
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
        let id = self.targets[index].id;
        // The program is compiled over the symbols as they are now.
        let mut wanted: BTreeMap<u64, Wanted> = BTreeMap::new();
        for probes in self.wanted(index).into_values() {
            for (number, location) in probes {
                self.want(index, number, &location, &mut wanted);
            }
        }
        let mut specs: BTreeMap<u64, (SiteSpec, Vec<(u32, Plan)>)> = BTreeMap::new();
        for (address, wanted) in wanted {
            specs.insert(address, self.spec(index, address, wanted));
        }
        let watch = self.targets[index].watch.as_ref().map(|w| w.address);
        if let Some(address) = watch.filter(|address| !specs.contains_key(address)) {
            let spec = self.site_spec(index, address, Vec::new());
            specs.insert(address, (spec, Vec::new()));
        }
        let old: Vec<(u64, SiteId, bool)> = self.targets[index]
            .sites
            .iter()
            .map(|(address, site)| (*address, site.id, site.armed.is_some()))
            .collect();
        for (address, site, armed) in old {
            if !specs.contains_key(&address) {
                let modules = &self.targets[index].images.modules;
                let gone = modules.module_at(address).is_none();
                if armed {
                    // A site that is gone already is as good as taken out.
                    let _ = self.keeper()?.disarm(id, site, gone);
                }
                self.targets[index].sites.remove(&address);
            }
        }
        for (address, (spec, plans)) in specs {
            self.arm(index, address, spec, plans, failed)?;
        }
        Ok(())
    }

    /// Adds what a probe runs at an address, and what it keeps at the entry of the function that is
    /// left there.
    fn want(
        &mut self,
        index: usize,
        number: u32,
        location: &Location,
        wanted: &mut BTreeMap<u64, Wanted>,
    ) {
        let Some(probe) = self.probes.get(number).cloned() else {
            return;
        };
        let (address, out) = (location.address, location.out.as_ref());
        let plan = self.plan(index, &probe, location);
        let run = |program: &Program, then| SiteProbe {
            probe: probe.place,
            program: program.clone(),
            then,
        };
        if let Some(out) = out.filter(|_| !plan.at_entry.is_empty()) {
            let entry = wanted.entry(out.function.entry).or_default();
            // The function's other ways out want the same.
            if !entry.programs.iter().any(|(of, _)| *of == (number, false)) {
                let kept = plan.at_entry.iter();
                let kept = kept.map(|program| ((number, false), run(program, Then::Nothing)));
                entry.programs.extend(kept);
            }
        }
        let here = wanted.entry(address).or_default();
        here.programs
            .push(((number, true), run(&plan.program, plan.then)));
        here.plans.push((number, plan));
    }

    /// What the keeper is to hold at an address, and how each probe runs there.
    fn spec(
        &mut self,
        index: usize,
        address: u64,
        mut wanted: Wanted,
    ) -> (SiteSpec, Vec<(u32, Plan)>) {
        wanted.programs.sort_by_key(|(order, _)| *order);
        let probes = wanted.programs.into_iter().map(|(_, probe)| probe);
        (
            self.site_spec(index, address, probes.collect()),
            wanted.plans,
        )
    }

    /// What the keeper is to hold at an address; the front's own probe is the first one there.
    pub(super) fn site_spec(
        &mut self,
        index: usize,
        address: u64,
        mut probes: Vec<SiteProbe>,
    ) -> SiteSpec {
        let target = &mut self.targets[index];
        let id = match target.sites.get(&address) {
            Some(site) => site.id,
            None => {
                target.next_site += 1;
                SiteId(target.next_site)
            }
        };
        let watch = target.watch.as_ref().filter(|w| w.address == address);
        if let Some(watch) = watch {
            probes.insert(0, watch.probe());
        }
        SiteSpec {
            id,
            address,
            code: target.images.code(address),
            by_hand: watch.is_some_and(|watch| watch.by_hand),
            patience_ms: if watch.is_some() { PATIENCE_MS } else { 0 },
            probes,
        }
    }

    pub(super) fn arm(
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
            // The linker is about to tell that the library is gone.
            Err(_) if self.is_unmapped(index, address) => None,
            Err(error) => {
                let numbers: Vec<String> = plans.iter().map(|(n, _)| n.to_string()).collect();
                let at = match numbers.is_empty() {
                    true => format!("{address:#x}"),
                    false => numbers.join(", "),
                };
                failed.push(format!(
                    "Cannot insert breakpoint {}.\n{}",
                    at,
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

    /// True if the code at an address was unmapped since the probes were found there; then they are
    /// found again.
    fn is_unmapped(&mut self, index: usize, address: u64) -> bool {
        let read = self.libraries_changed(index).is_ok();
        let modules = &self.targets[index].images.modules;
        read && modules.module_at(address).is_none()
    }

    /// Which probes are at which address of a target.
    fn wanted(&mut self, index: usize) -> BTreeMap<u64, Vec<(u32, Location)>> {
        let mut wanted: BTreeMap<u64, Vec<(u32, Location)>> = BTreeMap::new();
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
                    numbers.push((probe.number, location.clone()));
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
