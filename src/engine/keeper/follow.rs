//! Which processor the tracing thread runs on.
//!
//! One hot thread is served fastest from its own processor: waking an idle one costs far more
//! than a switch on a busy one. With hits from several processors following costs more than it
//! saves, so the tracer follows only after a run of hits from one.

use super::sys;

/// So many hits from one processor make the tracer move there, at first.
const RUN: u32 = 8;

/// A move that lasted for so many hits was worth it.
const WORTH: u32 = 64;

/// Where other processors are idle the scheduler takes the thread away again and again: after each
/// move that was not worth it the next one waits longer, up to this many hits.
const PATIENCE: u32 = 1 << 16;

/// Where the last hits came from.
#[derive(Debug)]
pub struct Follow {
    last: Option<u32>,
    run: u32,
    pinned: Option<u32>,
    /// How long a run must be before the next move.
    wanted: u32,
}

impl Default for Follow {
    fn default() -> Follow {
        Follow {
            last: None,
            run: 0,
            pinned: None,
            wanted: RUN,
        }
    }
}

impl Follow {
    /// A hit came from this processor.
    pub fn saw(&mut self, cpu: u32) {
        let before = self.run;
        if self.last == Some(cpu) {
            self.run = self.run.saturating_add(1);
        } else {
            self.last = Some(cpu);
            self.run = 0;
        }
        if self.pinned.is_some_and(|pinned| pinned != cpu) {
            let lasted = before.saturating_sub(self.wanted);
            self.wanted = match lasted < WORTH {
                true => (self.wanted * 2).min(PATIENCE),
                false => RUN,
            };
            self.pinned = None;
            sys::run_on(None);
        } else if self.pinned.is_none() && self.run >= self.wanted {
            self.pinned = Some(cpu);
            sys::run_on(Some(cpu));
        }
    }
}
