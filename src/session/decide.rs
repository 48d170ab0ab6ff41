//! Which of the probes at a place a stop is about, and what follows.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Session;
use super::breakpoint::{Disposition, Origin};
use super::events::Stop;
use super::sites::INTERNAL;
use super::threads::Thread;
use crate::engine::protocol::{Reason, Tid};
use crate::lang;
use crate::lang::script::Node;

impl Session {
    /// Whether a hit of these probes needs nobody: all their bodies let the program go on.
    pub(super) fn all_continue(&self, hit: &[u32]) -> bool {
        let continues = |number: &u32| {
            let probe = self.probes.get(*number);
            probe.is_some_and(|probe| super::plan::continues(probe, &*self.names))
        };
        self.show.never_stops() || hit.iter().all(continues)
    }

    /// Whether one of these probes' bodies wants nothing to be said of the hit.
    pub(super) fn any_silent(&self, hit: &[u32]) -> bool {
        let silent = |number: &u32| self.probes.get(*number).is_some_and(super::plan::is_silent);
        hit.iter().any(silent)
    }

    pub(super) fn is_break(&self, number: u32) -> bool {
        self.probes
            .get(number)
            .is_some_and(|p| p.origin == Origin::Break)
    }

    /// The stopping probes whose condition holds on that thread.
    pub(super) fn hit_probes(&mut self, index: usize, stop: &Stop) -> Vec<u32> {
        let Reason::Probe { site, probe: first } = stop.reason else {
            return Vec::new();
        };
        let target = &self.targets[index];
        let pc = target.threads.get(stop.tid).and_then(Thread::pc);
        let Some(site) = target.site(site, pc) else {
            return Vec::new();
        };
        let mut candidates: Vec<(u32, bool, bool)> = Vec::new();
        // The front's own probe comes before all others.
        let mut seen = first == INTERNAL;
        for (number, plan) in &site.probes {
            let Some(probe) = self.probes.get(*number).filter(|p| p.enabled) else {
                continue;
            };
            seen |= probe.place == first;
            if seen && plan.stops() {
                // The keeper decided about the first; of the others it tells nothing.
                let first = probe.place == first;
                candidates.push((*number, first, plan.condition_compiled));
            }
        }
        candidates
            .into_iter()
            .filter(|(number, first, compiled)| {
                let decided = *first && *compiled;
                let holds = decided || self.condition_holds(*number, stop.tid, *compiled);
                // What the keeper could not decide it has not sampled either.
                holds && (*compiled || self.is_sampled(*number))
            })
            .map(|(number, ..)| number)
            .collect()
    }

    /// Whether a hit is one of those that are looked at.
    pub(super) fn is_sampled(&self, number: u32) -> bool {
        let probe = self.probes.get(number);
        match (probe.and_then(|p| Some((p.place, p.sample?))), &self.keeper) {
            (Some((place, rate)), Some(keeper)) => {
                keeper.counters().probe(place).sample(rate.of, rate.all)
            }
            _ => true,
        }
    }

    /// A body that the front ran ended in an error: counted with the probe where the thread is.
    pub fn count_fault(&mut self) {
        if let (Some(number), Some(keeper)) = (self.stopped_at(), &self.keeper)
            && let Some(probe) = self.probes.get(number)
        {
            keeper
                .counters()
                .probe(probe.place)
                .faults
                .fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Evaluates a condition on a stopped thread; one that fails counts as true, as in gdb.
    /// `counted`: the keeper looked at it too, counted the hit and told of a failure.
    pub(super) fn condition_holds(&mut self, number: u32, tid: Tid, counted: bool) -> bool {
        let place = self.place_where(tid, number);
        let own = self.probes.get(number).and_then(|p| p.condition.as_deref());
        let Some(condition) = place.condition(own) else {
            return true;
        };
        let holds = self.naming(place, |session| {
            session.with_view_of(Some(tid), |view, _| {
                let expr = lang::parse(&condition, view)?;
                lang::evaluate(&expr, view)?.is_true(view)
            })
        });
        if let (false, Ok(false), Some(keeper), Some(probe)) =
            (counted, &holds, &self.keeper, self.probes.get(number))
        {
            // The keeper counted a pass whose condition it could not look at.
            keeper
                .counters()
                .probe(probe.place)
                .hits
                .fetch_sub(1, Ordering::Relaxed);
        }
        holds.unwrap_or_else(|error| {
            if !counted {
                let text = format!("Error in testing breakpoint condition:\n{error}");
                self.output.complain(&text);
            }
            true
        })
    }

    /// The bodies to run for a stop; temporary probes end here.
    pub(super) fn take_bodies(&mut self, hit: &[u32]) -> Vec<Arc<[Node]>> {
        let mut bodies = Vec::new();
        for number in hit {
            let Some(probe) = self.probes.get_mut(*number) else {
                continue;
            };
            bodies.extend(probe.body.clone());
            match probe.disposition {
                Disposition::Delete => {
                    self.delete(*number);
                }
                Disposition::Disable if probe.left > 1 => probe.left -= 1,
                Disposition::Disable => {
                    probe.enabled = false;
                    probe.left = 0;
                    self.stale = true;
                }
                Disposition::Keep => {}
            }
        }
        bodies
    }
}
