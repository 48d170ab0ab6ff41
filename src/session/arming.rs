//! Makes the keeper hold what the probes want: plans what each site runs, arms and disarms in batches,
//! and tells what could not be armed.
//!
//! This is done before a target goes on, never while a person is still typing: a `break` without its
//! `commands` must not be hit.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::breakpoint::{Location, Origin, Probe};
use super::images::{Images, Unresolved};
use super::libraries::PATIENCE_MS;
use super::plan::Plan;
use super::sites::{Site, home, is_gone};
use super::{Session, engine_error, foreign, process};
use crate::engine::client::EngineError;
use crate::engine::protocol::{Failure, SiteId, SiteProbe, SiteSpec, Then};
use crate::error::Error;
use crate::probe::program::Program;

/// What the last arming did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arming {
    /// Sites that are armed now, in all targets.
    pub sites: usize,
    /// How long it took from the plans to the last int3.
    pub time: Duration,
}

/// A site that the keeper could not arm.
struct Failed {
    probes: Vec<u32>,
    place: String,
    /// gdb's text.
    text: String,
    /// The same without the address: sites that failed alike are told of together.
    reason: String,
}

/// So many failures are told one by one, and so many places of one reason.
const TOLD_SINGLY: usize = 8;
/// So often sites are made anew because libraries went away meanwhile.
const ATTEMPTS: usize = 8;
/// See [`TOLD_SINGLY`].
const PLACES_NAMED: usize = 20;

/// What is to be at one address.
#[derive(Default)]
struct Here {
    /// By probe; what only keeps something for its return comes before its own program.
    programs: Vec<((u32, bool), SiteProbe)>,
    plans: Vec<(u32, Plan)>,
}

/// What was made already, of a target's plans.
#[derive(Default)]
struct Plans {
    /// The probes without their locations, of which there may be thousands.
    probes: HashMap<u32, Probe>,
    /// By number, and whether it is for the entries of functions.
    made: HashMap<(u32, bool), (u16, Plan)>,
}

/// What is wanted at an address: what the keeper shall hold, and how each probe runs there.
type Wanted = BTreeMap<u64, (SiteSpec, Vec<(u32, Plan)>)>;

impl Session {
    /// Makes the keeper hold what the probes want, in every target.
    ///
    /// Places that could not be armed of a probe that could be elsewhere are complained about, once. A probe
    /// that could be armed nowhere is an error; where nobody waits for a stop, only if there is no other one.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.sync_counters()?;
        self.sync_signals()?;
        self.sync_watches()?;
        self.sync_calls()?;
        self.sync_children()?;
        self.stale |= std::mem::take(&mut self.variables.retyped);
        if !self.stale && !self.targets.iter().any(|target| target.stale) {
            return Ok(());
        }
        let begun = Instant::now();
        let mut failed = Vec::new();
        for _ in 0..ATTEMPTS {
            let all = std::mem::take(&mut self.stale);
            failed.clear();
            for index in 0..self.targets.len() {
                if std::mem::take(&mut self.targets[index].stale) || all {
                    failed.push((index, self.sync_target(index)?));
                }
            }
            if !self.stale && !self.targets.iter().any(|target| target.stale) {
                break;
            }
        }
        let mut nowhere = Vec::new();
        for (index, failed) in failed {
            let rest = self.tell_failed(index, failed);
            nowhere.extend(rest.into_iter().map(|failed| (index, failed)));
        }
        let sites = self.targets.iter().map(|target| armed(&target.sites)).sum();
        self.arming = Arming {
            sites,
            time: begun.elapsed(),
        };
        let to_come =
            |probe: &Probe| probe.enabled && probe.locations.is_empty() && probe.event.is_none();
        let others = sites > 0 || self.probes.iter().any(to_come);
        if nowhere.is_empty() || self.show.never_stops() && others {
            self.go_without(nowhere);
            return Ok(());
        }
        self.stale = true;
        let nowhere: Vec<Failed> = nowhere.into_iter().map(|(_, failed)| failed).collect();
        let texts = match nowhere.len() > TOLD_SINGLY {
            true => summary(&nowhere),
            false => nowhere.into_iter().map(|failed| failed.text).collect(),
        };
        Err(Error::new(texts.join("\n")))
    }

    /// Says which places are given up, and notes the probes that are armed nowhere.
    fn go_without(&mut self, nowhere: Vec<(usize, Failed)>) {
        let mut all = Vec::new();
        for (index, failed) in nowhere {
            let sites = self.targets[index].sites.values_mut();
            let unarmed = sites.filter(|site| site.armed.is_none());
            let of = |site: &Site| {
                let mut probes = site.probes.iter();
                probes.any(|(number, _)| failed.probes.contains(number))
            };
            unarmed.for_each(|site| site.lost |= of(site));
            for number in &failed.probes {
                let why = format!("not armed: {}: {}", failed.place, failed.reason);
                self.unarmed.entry(*number).or_insert(why);
            }
            all.push(failed);
        }
        let there = self.targets.iter().flat_map(|target| target.sites.values());
        for site in there.filter(is_armed) {
            for (number, _) in &site.probes {
                self.unarmed.remove(number);
            }
        }
        for line in summary(&all) {
            self.output.complain(&line);
        }
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

    fn sync_target(&mut self, index: usize) -> Result<Vec<Failed>, Error> {
        let wanted = self.wanted(index);
        self.disarm_others(index, &wanted)?;
        let target = &self.targets[index];
        let held = |address: &u64, spec: &SiteSpec| {
            let site = target.sites.get(address);
            site.is_some_and(|site| site.armed.as_ref() == Some(spec) || site.lost)
        };
        let new: Vec<SiteSpec> = wanted
            .iter()
            .filter(|(address, (spec, _))| !held(address, spec))
            .map(|(_, (spec, _))| spec.clone())
            .collect();
        let id = target.id;
        let refused = match new.is_empty() {
            true => Vec::new(),
            false => match self.keeper()?.arm_all(id, new) {
                Ok(refused) => refused,
                // It has ended meanwhile, which an event tells.
                Err(error) if is_gone(&error) => {
                    let ids = wanted.values().map(|(spec, _)| spec.id);
                    ids.map(|id| (id, EngineError::Refused(Failure::NoTarget)))
                        .collect()
                }
                Err(error) => return Err(engine_error(&error)),
            },
        };
        Ok(self.keep(index, wanted, refused))
    }

    /// Notes what the keeper holds now; gives what it refused.
    fn keep(
        &mut self,
        index: usize,
        wanted: Wanted,
        refused: Vec<(SiteId, EngineError)>,
    ) -> Vec<Failed> {
        let refused: HashMap<SiteId, EngineError> = refused.into_iter().collect();
        let ended =
            !refused.is_empty() && process::living_thread(self.targets[index].pid).is_none();
        // The linker may be about to tell that a library is gone: then the probes are found again.
        let looked = !refused.is_empty() && !ended && self.libraries_changed(index).is_ok();
        let target = &mut self.targets[index];
        let mut failed = Vec::new();
        for (address, (spec, plans)) in wanted {
            let error = refused.get(&spec.id);
            let unmapped = looked && target.images.modules.module_at(address).is_none();
            if let Some(error) = error.filter(|error| !ended && !unmapped && !is_gone(error)) {
                let place = target.images.place_name(address);
                failed.push(failure(&target.images, address, place, &plans, error));
            }
            let lost = target.sites.get(&address).is_some_and(|site| site.lost);
            let site = Site {
                id: spec.id,
                armed: error.is_none().then_some(spec),
                probes: plans,
                lost,
            };
            target.sites.insert(address, site);
        }
        failed
    }

    /// Takes out the sites that no probe wants any more.
    fn disarm_others(&mut self, index: usize, wanted: &Wanted) -> Result<(), Error> {
        let target = &mut self.targets[index];
        let id = target.id;
        let modules = &target.images.modules;
        let mut armed = Vec::new();
        target.sites.retain(|address, site| {
            let stays = wanted.contains_key(address);
            if !stays && site.armed.is_some() {
                armed.push((site.id, modules.module_at(*address).is_none()));
            }
            stays
        });
        if !armed.is_empty() {
            // A site that is gone already is as good as taken out.
            let _ = self.keeper()?.disarm_all(id, &armed);
        }
        Ok(())
    }

    /// What the sites of a target shall run.
    fn wanted(&mut self, index: usize) -> Wanted {
        let mut plans = Plans::default();
        let mut all: BTreeMap<u64, Here> = BTreeMap::new();
        for probes in self.addresses(index).into_values() {
            for (number, location) in probes {
                self.want(index, number, &location, &mut plans, &mut all);
            }
        }
        let mut wanted = Wanted::new();
        let watch = self.targets[index].watch.as_ref().map(|w| w.address);
        if let Some(address) = watch {
            all.entry(address).or_default();
        }
        for (address, mut here) in all {
            here.programs.sort_by_key(|(order, _)| *order);
            let probes = here.programs.into_iter().map(|(_, probe)| probe);
            let spec = self.site_spec(index, address, probes.collect());
            wanted.insert(address, (spec, here.plans));
        }
        wanted
    }

    /// What the keeper is to hold at an address; the front's own probe is the first one there.
    fn site_spec(&mut self, index: usize, address: u64, mut probes: Vec<SiteProbe>) -> SiteSpec {
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

    /// Arms the front's own site in the dynamic linker; gives why it cannot be.
    pub(super) fn arm_watch(
        &mut self,
        index: usize,
        address: u64,
    ) -> Result<Option<String>, Error> {
        let spec = self.site_spec(index, address, Vec::new());
        let id = self.targets[index].id;
        let refused = match self.keeper()?.arm(id, spec.clone()) {
            Err(EngineError::KeeperGone) => return Err(engine_error(&EngineError::KeeperGone)),
            result => result.err().map(|error| (spec.id, error)),
        };
        let text = refused
            .as_ref()
            .map(|(_, error)| engine_error(error).message);
        let wanted = Wanted::from([(address, (spec, Vec::new()))]);
        self.keep(index, wanted, refused.into_iter().collect());
        Ok(text)
    }

    /// Adds what a probe runs at an address, and what it keeps at the entry of the function that is
    /// left there.
    fn want(
        &mut self,
        index: usize,
        number: u32,
        location: &Location,
        plans: &mut Plans,
        all: &mut BTreeMap<u64, Here>,
    ) {
        let Some((place, plan)) = self.plan_once(index, number, location, plans) else {
            return;
        };
        let (address, out) = (location.address, location.out.as_ref());
        let run = |program: &Program, then| SiteProbe {
            probe: place,
            program: program.clone(),
            then,
        };
        if let Some(out) = out.filter(|_| !plan.at_entry.is_empty()) {
            let entry = all.entry(out.function.entry).or_default();
            // The function's other ways out want the same.
            if !entry.programs.iter().any(|(of, _)| *of == (number, false)) {
                let kept = plan.at_entry.iter();
                let kept = kept.map(|program| ((number, false), run(program, Then::Nothing)));
                entry.programs.extend(kept);
            }
        }
        let here = all.entry(address).or_default();
        here.programs
            .push(((number, true), run(&plan.program, plan.then)));
        here.plans.push((number, plan));
    }

    /// The probe's place in the counters, and its plan at a location. All entries of functions run the same
    /// program of a probe, and so do all other places but ways out and those of named probes: it is made once.
    fn plan_once(
        &mut self,
        index: usize,
        number: u32,
        location: &Location,
        plans: &mut Plans,
    ) -> Option<(u16, Plan)> {
        let key = (number, self.is_entry(index, location.address));
        let alike = location.out.is_none() && location.pieces.is_none();
        if let Some(made) = plans.made.get(&key).filter(|_| alike) {
            return Some(made.clone());
        }
        let probe = match plans.probes.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let mut probe = self.probes.get(number)?.clone();
                probe.locations = Vec::new();
                vacant.insert(probe)
            }
        };
        let made = (probe.place, self.plan(index, probe, location));
        if alike {
            plans.made.insert(key, made.clone());
        }
        Some(made)
    }

    /// Which enabled probes are at which address of a target, in number order.
    fn addresses(&mut self, index: usize) -> BTreeMap<u64, Vec<(u32, Location)>> {
        let mut addresses: BTreeMap<u64, Vec<(u32, Location)>> = BTreeMap::new();
        let mut add = |number: u32, location: &Location| {
            let numbers = addresses.entry(location.address).or_default();
            if numbers.last().is_none_or(|(last, _)| *last != number) {
                numbers.push((number, location.clone()));
            }
        };
        let placed = |probe: &&Probe| probe.enabled && probe.event.is_none();
        let enabled = self.probes.iter().filter(placed);
        if self.targets.len() == 1 {
            for probe in enabled {
                let locations = probe.locations.iter().filter(|location| location.enabled);
                locations.for_each(|location| add(probe.number, location));
            }
            return addresses;
        }
        let specs: Vec<(u32, String, Origin)> = enabled
            .map(|probe| (probe.number, probe.spec.clone(), probe.origin))
            .collect();
        for (number, spec, origin) in specs {
            let mut found = match self.locate_in(index, &spec, origin) {
                Ok(found) => found,
                Err(_) if self.is_for_another(index, &spec, origin) => continue,
                Err(why) => {
                    self.tell_nowhere(index, number, why);
                    continue;
                }
            };
            let images = &self.targets[index].images;
            for off in self.probes.get(number).into_iter().flat_map(|p| &p.off) {
                off.apply(&mut found, |address| home(&[images], address));
            }
            let found = found.iter().filter(|location| location.enabled);
            found.for_each(|location| add(number, location));
        }
        addresses
    }

    /// Complains about the places that could not be armed; gives those of probes that are nowhere else.
    fn tell_failed(&mut self, index: usize, failed: Vec<Failed>) -> Vec<Failed> {
        if failed.is_empty() {
            return Vec::new();
        }
        let sites = &mut self.targets[index].sites;
        let there = sites.values().filter(is_armed);
        let alive: HashSet<u32> = there
            .flat_map(|site| site.probes.iter().map(|(number, _)| *number))
            .collect();
        let (some, none): (Vec<_>, Vec<_>) = failed
            .into_iter()
            .partition(|failed| failed.probes.iter().all(|number| alive.contains(number)));
        if !some.is_empty() {
            for site in sites.values_mut().filter(|site| site.armed.is_none()) {
                site.lost |= site.probes.iter().all(|(number, _)| alive.contains(number));
            }
            for line in summary(&some) {
                self.output.complain(&line);
            }
        }
        none
    }

    /// Says of a probe that is in other processes that it is not in this one; once.
    fn tell_nowhere(&mut self, index: usize, number: u32, why: Unresolved) {
        let Some(probe) = self.probes.get(number) else {
            return;
        };
        // One that is nowhere at all was told of when it was made.
        if probe.locations.is_empty() || !self.targets[index].nowhere.insert(number) {
            return;
        }
        let pid = self.targets[index].pid;
        let (Unresolved::NotFound { message: why, .. }
        | Unresolved::Bad(Error { message: why, .. })) = why;
        let name = process::thread_name(pid);
        let spec = &probe.spec;
        self.output.complain(&format!(
            "warning: probe {number} ({spec}) is not in process {pid} ({name}): {why}"
        ));
    }
}

/// What is lost is not asked for again, as if it were armed.
fn is_armed(site: &&Site) -> bool {
    site.armed.is_some() && !site.lost
}

fn armed(sites: &BTreeMap<u64, Site>) -> usize {
    let armed = sites.values().filter(is_armed);
    armed.filter(|site| !site.probes.is_empty()).count()
}

fn failure(
    images: &Images,
    address: u64,
    place: String,
    plans: &[(u32, Plan)],
    error: &EngineError,
) -> Failed {
    let probes: Vec<u32> = plans.iter().map(|(number, _)| *number).collect();
    let numbers: Vec<String> = probes.iter().map(u32::to_string).collect();
    let mut why = engine_error(error).message;
    let reason = match error {
        EngineError::Refused(Failure::Foreign { found, .. }) => {
            let owner = foreign::owner(images, address, found);
            let found: String = found.iter().map(|byte| format!(" {byte:02x}")).collect();
            why = format!(
                "Cannot insert breakpoint at {address:#x}: {owner}. Memory there is{found}, not what the file holds."
            );
            owner
        }
        EngineError::Refused(Failure::Instruction { why, .. }) => why.clone(),
        EngineError::Refused(Failure::Memory { .. }) => "memory there cannot be accessed".into(),
        other => other.to_string(),
    };
    let text = format!("Cannot insert breakpoint {}.\n{why}", numbers.join(", "));
    Failed {
        probes,
        place: match place.is_empty() {
            true => format!("{address:#x}"),
            false => format!("{address:#x} <{place}>"),
        },
        text,
        reason,
    }
}

/// One line a site, or where there are many one a reason.
fn summary(failed: &[Failed]) -> Vec<String> {
    if failed.len() <= TOLD_SINGLY {
        let line =
            |failed: &Failed| format!("warning: not armed: {}: {}", failed.place, failed.reason);
        return failed.iter().map(line).collect();
    }
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for failed in failed {
        reasons
            .entry(&failed.reason)
            .or_default()
            .push(&failed.place);
    }
    let line = |(reason, places): (&str, Vec<&str>)| {
        let more = match places.len().saturating_sub(PLACES_NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let named = &places[..places.len().min(PLACES_NAMED)];
        format!(
            "warning: not armed: {} places: {reason}: {}{more}",
            places.len(),
            named.join(", ")
        )
    };
    reasons.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(count: usize, reason: &str) -> Vec<Failed> {
        let one = |number| Failed {
            probes: vec![1],
            place: format!("{number:#x} <f>"),
            text: String::new(),
            reason: reason.into(),
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn few_are_told_singly_and_many_by_reason() {
        assert_eq!(
            summary(&failed(2, "why")),
            [
                "warning: not armed: 0x0 <f>: why",
                "warning: not armed: 0x1 <f>: why"
            ]
        );
        let mut many = failed(30, "why");
        many.extend(failed(1, "other"));
        let lines = summary(&many);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], "warning: not armed: 1 places: other: 0x0 <f>");
        assert!(lines[1].starts_with("warning: not armed: 30 places: why: 0x0 <f>, 0x1 <f>, "));
        assert!(lines[1].ends_with("0x13 <f>, and 10 more"), "{}", lines[1]);
    }
}
