//! What the front wants to happen to signals.

use super::target::Target;
use super::thread::State;
use crate::engine::protocol::{Event, SignalPolicy, Tid};

impl Target {
    /// The signal that a thread gets of one that has arrived: that, or none.
    pub(super) fn passed(&self, signal: i32) -> i32 {
        let bit = 1_u64 << (signal - 1).clamp(0, 63);
        if self.signals.pass & bit == 0 {
            0
        } else {
            signal
        }
    }

    /// Tells the front of a signal that stops nobody.
    pub(super) fn tell_signal(&self, tid: i32, number: i32) {
        let event = Event::Signalled {
            target: self.id,
            tid: Tid(tid),
            number,
            ring: self.ring.head(),
        };
        self.front.event(event, None);
    }

    /// A thread is held with a signal, which it gets when it goes on if the policy then says so.
    pub(super) fn holds_signal(&mut self, tid: i32, signal: i32) {
        if let Some(thread) = self.threads.get_mut(&tid)
            && let State::Held(held) = &mut thread.state
        {
            held.arrived = signal;
        }
    }

    /// Another policy, also for signals that threads stand with.
    pub(super) fn set_signals(&mut self, signals: SignalPolicy) {
        self.signals = signals;
        let arrived = |state: &State| match state {
            State::Held(held) => held.arrived,
            _ => 0,
        };
        let standing: Vec<(i32, i32)> = self
            .threads
            .values()
            .map(|thread| (thread.tid, arrived(&thread.state)))
            .filter(|(_, signal)| *signal != 0)
            .collect();
        for (tid, signal) in standing {
            let passed = self.passed(signal);
            if let Some(thread) = self.threads.get_mut(&tid)
                && let State::Held(held) = &mut thread.state
            {
                held.signal = passed;
            }
        }
    }
}
