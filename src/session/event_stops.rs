//! Stops of probes that have no place: what decides about them, and how they are presented.

use super::events::{Stop, Wake};
use super::{Announced, Session};
use crate::engine::protocol::Tid;
use crate::error::Error;
use crate::lang;

impl Session {
    /// A thread has touched what is watched.
    pub(super) fn watch_stop(
        &mut self,
        index: usize,
        stop: &Stop,
        all_stand: bool,
    ) -> Result<Option<Wake>, Error> {
        self.current = index;
        let (hit, said) = self.watch_hits(index, stop.tid);
        self.present_event(index, stop.tid, all_stand, &hit, &said)
    }

    /// Presents a stop of these probes, of which `said` is said; none: the thread goes on.
    pub(super) fn present_event(
        &mut self,
        index: usize,
        tid: Tid,
        all_stand: bool,
        hit: &[u32],
        said: &str,
    ) -> Result<Option<Wake>, Error> {
        let Some(first) = hit.first().copied() else {
            self.pass_by(index, tid, all_stand)?;
            return Ok(None);
        };
        let asks = self.stands_for(index, tid, hit)?;
        if let Some(thread) = self.targets[index].threads.get_mut(tid) {
            thread.stopped_by = Some(first);
        }
        self.switching(index, tid);
        let shown = !self.any_silent(hit);
        let mut text = String::new();
        if let Some(registers) = self.registers(tid).filter(|_| shown) {
            text = format!("{said}{}\n", self.frame(index, &registers));
        }
        self.announced = Some(Announced { text, shown });
        Ok(Some(self.wake(tid, first, hit, asks)))
    }

    /// Whether a probe's condition holds on a thread; one that fails counts as true, as in gdb.
    pub(super) fn holds(&mut self, number: u32, tid: Tid) -> bool {
        let probe = self.probes.get(number);
        let Some(condition) = probe.and_then(|probe| probe.condition.clone()) else {
            return true;
        };
        let holds = self.with_view_of(Some(tid), |view, _| {
            let expr = lang::parse(&condition, view)?;
            lang::evaluate(&expr, view)?.is_true(view)
        });
        holds.unwrap_or_else(|error: lang::Error| {
            let text = format!("Error in testing breakpoint condition:\n{error}");
            self.output.complain(&text);
            true
        })
    }

    /// Counts a hit; false for one that is to be ignored.
    pub(super) fn counts(&self, number: u32) -> bool {
        match (self.probes.get(number), &self.keeper) {
            (Some(probe), Some(keeper)) => keeper.counters().probe(probe.place).hit(),
            _ => true,
        }
    }
}
