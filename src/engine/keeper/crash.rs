//! Labelled points of attaching, arming, hits and leaving at which a test can have the front killed.
//!
//! `TRAPLINE_TEST_KILL_FRONT=LABEL[:N]` in the environment of the command makes its keeper kill
//! it when the path comes by LABEL for the Nth time (the first time without N). That shows that
//! the target is left clean from wherever the front's death finds the keeper.

use std::cell::Cell;
use std::rc::Rc;

use super::sys;

/// A point, in the order in which a session and a hit pass them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// All threads of a process were seized.
    Seized,
    /// It is known what has to be put back after hits.
    Attached,
    /// A site is about to be armed.
    Arming,
    /// A site was just armed.
    Armed,
    /// A thread has trapped and was waited for.
    Trapped,
    /// Its registers were read.
    Registers,
    /// A slot page was mapped.
    SlotPage,
    /// The memory was read.
    Read,
    /// The program has run, with its changes.
    Ran,
    /// The record is in the ring.
    Recorded,
    /// The new registers are set.
    Moved,
    /// The thread runs again.
    Resumed,
    /// The target is to be left.
    Leaving,
    /// The int3s are out.
    Disarmed,
    /// A thread that ran was stopped, to be taken out of a slot.
    Gathered,
    /// Nobody has a trap of ours on the way any more.
    Settled,
    /// A thread was let go.
    Released,
    /// The target was left, but for the threads that the end of the tracing thread releases.
    Left,
}

impl Point {
    /// All points and their labels.
    pub const ALL: [(Point, &str); 18] = [
        (Point::Seized, "seized"),
        (Point::Attached, "attached"),
        (Point::Arming, "arming"),
        (Point::Armed, "armed"),
        (Point::Trapped, "trapped"),
        (Point::Registers, "registers"),
        (Point::SlotPage, "slot-page"),
        (Point::Read, "read"),
        (Point::Ran, "ran"),
        (Point::Recorded, "recorded"),
        (Point::Moved, "moved"),
        (Point::Resumed, "resumed"),
        (Point::Leaving, "leaving"),
        (Point::Disarmed, "disarmed"),
        (Point::Gathered, "gathered"),
        (Point::Settled, "settled"),
        (Point::Released, "released"),
        (Point::Left, "left"),
    ];
}

/// When the front is to be killed, if at all: all processes of a tracing thread count together.
#[derive(Debug, Clone, Default)]
pub struct CrashPoint {
    at: Rc<Cell<Option<(Point, u64)>>>,
}

impl CrashPoint {
    /// What the environment asks for.
    pub fn from_environment() -> CrashPoint {
        let Ok(text) = std::env::var("TRAPLINE_TEST_KILL_FRONT") else {
            return CrashPoint::default();
        };
        let (label, count) = text.split_once(':').unwrap_or((&text, "1"));
        let point = Point::ALL.iter().find(|(_, name)| *name == label);
        let at = point.map(|(point, _)| (*point, count.parse().unwrap_or(1)));
        CrashPoint {
            at: Rc::new(Cell::new(at)),
        }
    }

    /// The path comes by a point.
    pub fn pass(&self, point: Point) {
        if let Some((at, left)) = self.at.get()
            && at == point
        {
            let left = left.saturating_sub(1);
            self.at.set((left > 0).then_some((at, left)));
            if left == 0 {
                let _ = sys::kill(std::os::unix::process::parent_id() as i32, libc::SIGKILL);
            }
        }
    }
}
