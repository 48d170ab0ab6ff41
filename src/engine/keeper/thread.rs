//! What the keeper knows of one thread.

use std::time::Instant;

use super::calls::Anew;
use super::entries::Values;
use super::signals::{TRAP_BIT, UNBLOCKABLE};
use super::stop::Stopped;
use crate::arch::DebugRegisters;

/// A handler that makes more system calls than this (two stops each) is not seen to return.
const CALLS: u32 = 4096;

/// Every so many hits it is looked whether a thread blocks SIGTRAP that did not.
const LOOK: u32 = 64;

/// Whether a thread blocks SIGTRAP: if so, which other signals it blocks with it. An int3 ends that it
/// does, and what is left of the mask is what tells of it afterwards.
pub type TrapBlocked = Option<u64>;

/// One thread of a target.
#[derive(Debug)]
pub struct Thread {
    /// Kernel id.
    pub tid: i32,
    /// The process it belongs to: the target, or a child that shares the target's memory.
    pub pid: i32,
    /// Whether it runs.
    pub state: State,
    /// Passes of a site that were counted although the instruction has not run yet: the thread
    /// was taken out of the slot for a signal, and comes by again.
    pub counted: Vec<Counted>,
    /// SIGTRAP is blocked here: an int3 unblocks it, so every hit blocks it again.
    pub trap_blocked: TrapBlocked,
    /// Hits since its signal mask was looked at without a reason.
    unseen: u32,
    /// Where the kernel tells the processor it runs on, once it is known.
    pub rseq: Option<u64>,
    /// How often that was asked for in vain: it is registered only some way into a start, and by
    /// some C libraries never.
    pub rseq_missed: u8,
    /// A signal that we sent it because its stop could not deliver one; 0: none.
    pub sent: i32,
    /// It is held until then, and nobody waits for it.
    pub until: Option<Instant>,
    /// What the call had kept that ends where it stands, for each probe there.
    pub entries: Vec<(u16, Option<Values>)>,
    /// It was let go so that it stops at system calls.
    pub sees_calls: bool,
    /// The system call that it is in, as far as its beginning was seen.
    pub in_call: Option<u64>,
    /// What its debug registers hold.
    pub debug: DebugRegisters,
    /// The call that was begun anew last for it.
    pub anew: Option<Anew>,
    /// So many more system calls are looked at for a handler's return.
    calls_left: u32,
}

/// A pass that must not be counted again: the site, and the stack pointer it was made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// The site's address.
    pub site: u64,
    /// The thread's stack pointer there.
    pub sp: u64,
    /// A handler runs that may come back there, or leave by `longjmp`: only its return tells.
    pub open: bool,
}

/// Whether a thread runs.
#[derive(Debug)]
pub enum State {
    /// It runs, or is blocked in a system call.
    Running,
    /// It stands because its process was stopped by a signal; a SIGCONT lets it go on.
    Listening,
    /// We hold it.
    Held(Held),
}

/// A thread that we hold.
#[derive(Debug)]
pub struct Held {
    /// The stop.
    pub stop: Stopped,
    /// Its number, if the front is told of it; 0 if it stands because the front asked for that.
    pub number: u64,
    /// The signal it gets when it goes on (0: none).
    pub signal: i32,
    /// The signal that it stopped with, which [`Held::signal`] depends on (0: none).
    pub arrived: i32,
    /// The site that it stands on with its hit counted: it goes on through the slot.
    pub pass: Option<u64>,
    /// Its process is stopped by a signal besides: it stays there when we let it go.
    pub group: bool,
}

impl Thread {
    /// A thread that runs.
    pub fn new(tid: i32, pid: i32, trap_blocked: TrapBlocked) -> Thread {
        Thread {
            tid,
            pid,
            state: State::Running,
            counted: Vec::new(),
            trap_blocked,
            unseen: 0,
            rseq: None,
            rseq_missed: 0,
            sent: 0,
            until: None,
            entries: Vec::new(),
            sees_calls: false,
            in_call: None,
            debug: DebugRegisters::default(),
            anew: None,
            calls_left: 0,
        }
    }

    /// True if its mask is to be looked at behind this hit: always if it is known to block SIGTRAP,
    /// now and then, beginning with the first one, if not.
    pub fn mask_matters(&mut self) -> bool {
        let first = self.unseen == 0;
        self.unseen = (self.unseen + 1) % LOOK;
        first || self.trap_blocked.is_some()
    }

    /// What an int3 has left of its mask: true if it had blocked SIGTRAP. It did if it blocks
    /// everything else, or still what it blocked with it.
    pub fn blocked_trap(&mut self, left: u64) -> bool {
        let rest = left & !TRAP_BIT;
        let all = rest | TRAP_BIT | UNBLOCKABLE == !0;
        let blocked = left & TRAP_BIT != 0 || all || self.trap_blocked == Some(rest);
        self.trap_blocked = blocked.then_some(rest);
        blocked
    }

    /// We hold it.
    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Held(_))
    }

    /// Remembers a pass that is counted but not done.
    pub fn mark(&mut self, site: u64, sp: u64) {
        self.counted.retain(|mark| !mark.is_at(site, sp));
        let open = false;
        self.counted.push(Counted { site, sp, open });
    }

    /// A handler begins, and is to return to `site`. If another was to return there and did not (it
    /// jumped away, or changed where it returns to), this is another pass, which is not counted yet.
    pub fn handler_begins(&mut self, site: u64, sp: u64) {
        self.counted
            .retain(|mark| !(mark.open && mark.is_at(site, sp)));
        for mark in self.counted.iter_mut().filter(|mark| mark.is_at(site, sp)) {
            mark.open = true;
            self.calls_left = CALLS;
        }
    }

    /// A handler returns to `site`.
    pub fn handler_returns(&mut self, site: u64, sp: u64) {
        for mark in self.counted.iter_mut().filter(|mark| mark.is_at(site, sp)) {
            mark.open = false;
        }
    }

    /// True while a handler's return is to be seen, for which the thread stops at system calls.
    pub fn awaits_return(&self) -> bool {
        self.counted.iter().any(|mark| mark.open)
    }

    /// It stops at a system call. After many of them no handler is expected to return.
    pub fn calls(&mut self) {
        self.calls_left = self.calls_left.saturating_sub(1);
        if self.calls_left == 0 {
            self.counted.retain(|mark| !mark.open);
        }
    }

    /// True (once) if a pass at `site` with this stack pointer was counted before. Marks of
    /// frames that the stack has left since are forgotten.
    pub fn was_counted(&mut self, site: u64, sp: u64) -> bool {
        if self.counted.is_empty() {
            return false;
        }
        self.counted.retain(|mark| mark.sp >= sp);
        let at = self.counted.iter().position(|mark| mark.is_at(site, sp));
        // A handler that did not return was left by `longjmp`, and this is another pass.
        at.is_some_and(|at| !self.counted.swap_remove(at).open)
    }
}

impl Counted {
    fn is_at(&self, site: u64, sp: u64) -> bool {
        self.site == site && self.sp == sp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_counted_once_however_its_handlers_end() {
        let mut thread = Thread::new(1, 1, None);
        let (site, sp) = (0x1000, 0x8000);
        // A signal before the instruction has run; its handler returns.
        thread.mark(site, sp);
        thread.handler_begins(site, sp);
        assert!(thread.awaits_return());
        thread.handler_returns(site, sp);
        assert!(!thread.awaits_return());
        assert!(thread.was_counted(site, sp));
        assert!(!thread.was_counted(site, sp));
        // Its handler jumps away: the next pass is another one.
        thread.mark(site, sp);
        thread.handler_begins(site, sp);
        assert!(!thread.was_counted(site, sp));
        // So it is if a signal comes just before the next pass, and that handler returns.
        thread.mark(site, sp);
        thread.handler_begins(site, sp);
        thread.handler_begins(site, sp);
        thread.handler_returns(site, sp);
        assert!(!thread.was_counted(site, sp));
    }

    #[test]
    fn whether_sigtrap_was_blocked_is_told_by_the_rest_of_the_mask() {
        let mut thread = Thread::new(1, 1, Some(0b1010));
        assert!(thread.blocked_trap(0b1010));
        assert!(!thread.blocked_trap(0b1000));
        assert!(!thread.blocked_trap(0b1010), "that was another time");
        let all = !(TRAP_BIT | UNBLOCKABLE);
        assert!(thread.blocked_trap(all));
        assert!(thread.blocked_trap(all | UNBLOCKABLE));
        assert!(!thread.blocked_trap(0));
        assert!(thread.mask_matters());
        assert_eq!((1..LOOK).filter(|_| thread.mask_matters()).count(), 0);
        assert!(thread.mask_matters());
    }

    #[test]
    fn a_handler_that_never_returns_is_not_waited_for_for_ever() {
        let mut thread = Thread::new(1, 1, None);
        thread.mark(0x1000, 0x8000);
        thread.handler_begins(0x1000, 0x8000);
        (0..CALLS).for_each(|_| thread.calls());
        assert!(!thread.awaits_return());
    }
}
