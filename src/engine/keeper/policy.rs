//! What the front wants to happen to signals.

use super::stop::Stopped;
use super::sys;
use super::target::Target;
use super::thread::State;
use crate::engine::protocol::{Answer, Event, Failure, SignalPolicy, Tid};

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

    /// A held thread is to get a signal (0: none) when it goes on, whatever the policy says.
    pub(super) fn queue_signal(&mut self, tid: Tid, signal: i32) -> Answer {
        match self.threads.get_mut(&tid.0).map(|thread| &mut thread.state) {
            Some(State::Held(held)) => {
                (held.signal, held.arrived) = (signal, 0);
                Answer::Done
            }
            _ => Answer::Failed(Failure::NotStopped),
        }
    }

    /// Lets a thread that was held go on with its signal.
    pub(super) fn go_on_with(&mut self, stopped: Stopped, signal: i32, pass: Option<u64>) {
        let delivered = self.deliver(&stopped, signal);
        self.pass_on(stopped, delivered, pass);
    }

    /// What a thread gets as it is let go with a signal: that, or none where its stop cannot deliver
    /// one, so that it was sent.
    pub(super) fn deliver(&mut self, stopped: &Stopped, signal: i32) -> i32 {
        let delivered = deliverable(stopped, signal);
        if delivered != signal {
            self.send(stopped.tid(), signal);
        }
        delivered
    }

    /// Sends a signal to a thread, whose stop for it then is nobody's business.
    fn send(&mut self, tid: i32, signal: i32) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.sent = signal;
            // ESRCH: it was killed; the next wait tells.
            let _ = sys::thread_kill(thread.pid, tid, signal);
        }
    }

    /// True (once) for the stop of a thread that [`Target::send`] has made.
    pub(super) fn was_sent(&mut self, tid: i32, info: &libc::siginfo_t) -> bool {
        let thread = self.threads.get_mut(&tid);
        let sent = thread.filter(|thread| thread.sent == info.si_signo);
        // Who sent it is not compared: in a namespace of its own the target knows us by no number.
        let ours = sent.filter(|_| info.si_code == libc::SI_TKILL);
        ours.map(|thread| thread.sent = 0).is_some()
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

/// The signal that a thread gets as it is let go: only a stop for a signal delivers one (ptrace(2),
/// PTRACE_CONT). In any other stop that is none.
fn deliverable(stopped: &Stopped, signal: i32) -> i32 {
    // A stop for an event has the event's number in the upper bytes; a group stop has no details.
    let delivers = |info: libc::siginfo_t| info.si_code < 0x100;
    match signal == 0 || sys::signal_info(stopped.tid()).is_ok_and(delivers) {
        true => signal,
        false => 0,
    }
}
