//! Stops that wait for the front only so long.

use std::time::{Duration, Instant};

use super::target::Target;
use super::thread::{State, Thread};
use crate::engine::protocol::{Event, Tid};

/// The last stop that does not wait for ever: where the next one has come, the one before was
/// answered.
#[derive(Default)]
pub struct Patience {
    /// Its number, and when it has waited long enough.
    expiring: Option<(u64, Instant)>,
    /// When the bell rings for that. One ring is on its way at a time, however many stops there are.
    rings: Option<Instant>,
    /// The front did not answer such a stop and was not heard of since.
    pub absent: bool,
}

impl Patience {
    /// The front wants every thread to stand: nobody goes on by himself.
    pub fn forget(&mut self) {
        self.expiring = None;
    }
}

impl Target {
    /// The stop that was told last waits for the front only so long.
    pub(super) fn wait_at_most(&mut self, patience: Duration) {
        if self.interrupting.is_none()
            && let Some(end) = Instant::now().checked_add(patience)
        {
            self.patience.expiring = Some((self.stops, end));
            self.ring_for_expiry();
        }
    }

    fn ring_for_expiry(&mut self) {
        if let (Some((_, end)), None) = (self.patience.expiring, self.patience.rings)
            && self.timer.ring_at(end)
        {
            self.patience.rings = Some(end);
        }
    }

    /// Lets the thread go on that has waited long enough, if there is one.
    pub(super) fn end_patience(&mut self) {
        let now = Instant::now();
        self.patience.rings.take_if(|rings| *rings <= now);
        let expired = self.patience.expiring.take_if(|(_, end)| *end <= now);
        if let Some((stop, _)) = expired {
            self.expire(stop);
        }
        self.ring_for_expiry();
    }

    fn expire(&mut self, stop: u64) {
        let waits =
            |thread: &&Thread| matches!(&thread.state, State::Held(held) if held.number == stop);
        if let Some(tid) = self.threads.values().find(waits).map(|thread| thread.tid) {
            self.patience.absent = true;
            let (target, tid) = (self.id, Tid(tid));
            self.let_go_on(Some(tid), stop);
            self.front.event(Event::WentOn { target, tid }, None);
        }
    }
}
