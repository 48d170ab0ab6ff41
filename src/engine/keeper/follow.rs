//! Which processor the tracing thread runs on.
//!
//! One hot thread is served fastest from its own processor: waking an idle one costs far more
//! than a switch on a busy one. With hits from several processors following costs more than it
//! saves, so the tracer follows only after a run of hits from one.

use super::sys;

/// So many hits from one processor make the tracer move there.
const RUN: u32 = 8;

/// Where the last hits came from.
#[derive(Debug, Default)]
pub struct Follow {
    last: Option<u32>,
    run: u32,
    pinned: Option<u32>,
}

impl Follow {
    /// A hit came from this processor.
    pub fn saw(&mut self, cpu: u32) {
        if self.last == Some(cpu) {
            self.run = self.run.saturating_add(1);
        } else {
            self.last = Some(cpu);
            self.run = 0;
        }
        if self.pinned.is_some_and(|pinned| pinned != cpu) {
            self.pinned = None;
            sys::run_on(None);
        } else if self.pinned.is_none() && self.run >= RUN {
            self.pinned = Some(cpu);
            sys::run_on(Some(cpu));
        }
    }
}
