//! Counters and convenience variables that front and keeper share.
//!
//! They live in one memory file that both map, so that a condition or a body can count and change
//! variables at the hit, and the front can enable, disable, ignore and show without a message.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use super::mapping::Mapping;

/// How many probes can exist at one time (places are used again).
pub const PROBES: usize = 8192;

/// How many convenience variables programs can use.
pub const VARIABLES: usize = 4096;

/// What is counted for one probe, and its switches. All zero is a new, disabled probe.
#[repr(C, align(64))]
pub struct ProbeCounters {
    /// Passes whose condition was true (what gdb calls "already hit").
    pub hits: AtomicU64,
    /// How many of the next hits are let by.
    pub ignore: AtomicI64,
    /// Hits whose body ended in a fault.
    pub faults: AtomicU64,
    /// Hits that found the ring full: counted, but not shown.
    pub drops: AtomicU64,
    /// Nanoseconds the keeper spent on the hits.
    pub cost_ns: AtomicU64,
    /// Calls that were seen to begin, where `$_entry` wants that.
    pub entries: AtomicU64,
    /// Those of them that were seen to end.
    pub returns: AtomicU64,
    /// Those that an exception, a `longjmp` or their thread's end left.
    pub dropped: AtomicU64,
    /// Those that were forgotten for want of room.
    pub evicted: AtomicU64,
    /// Ends of calls that were not seen to begin.
    pub unknown: AtomicU64,
    /// Passes whose condition needed a value that was not available: no hits.
    pub undecided: AtomicU64,
    /// Hits that a rate was asked about, and those that were not looked at.
    pub sampled: AtomicU64,
    /// See there.
    pub skipped: AtomicU64,
    /// 0: passes are neither counted nor looked at.
    pub enabled: AtomicU32,
    /// 1: disabled by its first hit (`tbreak`).
    pub temporary: AtomicU32,
}

impl ProbeCounters {
    /// Makes the place new for another probe.
    pub fn reset(&self) {
        self.enabled.store(0, Ordering::Release);
        self.temporary.store(0, Ordering::Relaxed);
        self.hits.store(0, Ordering::Relaxed);
        self.ignore.store(0, Ordering::Relaxed);
        self.faults.store(0, Ordering::Relaxed);
        self.drops.store(0, Ordering::Relaxed);
        self.cost_ns.store(0, Ordering::Relaxed);
        for count in [
            &self.entries,
            &self.returns,
            &self.dropped,
            &self.evicted,
            &self.unknown,
            &self.undecided,
            &self.sampled,
            &self.skipped,
        ] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Decides about one hit of a rate: the first of each `all / of`, evenly spread.
    pub fn sample(&self, of: u32, all: u32) -> bool {
        let number = self.sampled.fetch_add(1, Ordering::Relaxed);
        let place = number % u64::from(all.max(1)) * u64::from(of) % u64::from(all.max(1));
        let taken = place < u64::from(of);
        if !taken {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// Counts one hit; `false` when an ignore count took it.
    pub fn hit(&self) -> bool {
        // A temporary probe whose one hit another thread got meanwhile.
        if self.enabled.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        let taken = self
            .ignore
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                (left > 0).then(|| left - 1)
            });
        if taken.is_ok() {
            return false;
        }
        if self.temporary.load(Ordering::Relaxed) != 0 {
            // Of several threads that arrive together only one gets the one hit.
            return self.enabled.swap(0, Ordering::AcqRel) != 0;
        }
        true
    }
}

#[repr(C)]
struct Layout {
    probes: [ProbeCounters; PROBES],
    variables: [AtomicU64; VARIABLES],
}

/// The shared counters and variables of one front and its keeper.
pub struct Counters {
    mapping: Mapping,
}

impl Counters {
    /// New, all zero.
    pub fn create() -> io::Result<Counters> {
        Ok(Counters {
            mapping: Mapping::create("trapline-counters", size_of::<Layout>())?,
        })
    }

    /// The other side's, by its descriptor.
    pub fn open(file: File) -> io::Result<Counters> {
        Ok(Counters {
            mapping: Mapping::open(file, size_of::<Layout>())?,
        })
    }

    /// The descriptor that the other side opens.
    pub fn file(&self) -> &File {
        self.mapping.file()
    }

    /// The counters of a probe's place; a number out of range gives the last place.
    pub fn probe(&self, place: u16) -> &ProbeCounters {
        &self.layout().probes[usize::from(place).min(PROBES - 1)]
    }

    /// A shared convenience variable; a number out of range gives the last one.
    pub fn variable(&self, index: u16) -> &AtomicU64 {
        &self.layout().variables[usize::from(index).min(VARIABLES - 1)]
    }

    fn layout(&self) -> &Layout {
        self.mapping.view()
    }
}

// SAFETY: `Layout` is made of atomics alone.
unsafe impl super::mapping::Shared for Layout {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_see_one_memory() {
        let front = Counters::create().unwrap();
        let keeper = Counters::open(front.file().try_clone().unwrap()).unwrap();
        front.probe(3).ignore.store(2, Ordering::Relaxed);
        front.probe(3).enabled.store(1, Ordering::Relaxed);
        assert_eq!(
            [0; 4].map(|_| keeper.probe(3).hit()),
            [false, false, true, true]
        );
        assert_eq!(front.probe(3).hits.load(Ordering::Relaxed), 4);
        keeper.variable(7).store(9, Ordering::Relaxed);
        assert_eq!(front.variable(7).load(Ordering::Relaxed), 9);
    }

    #[test]
    fn a_rate_is_kept_to_the_hit() {
        let counters = Counters::create().unwrap();
        for (place, (of, all)) in [(1, 10), (3, 7), (5, 1000), (1, 1), (999, 1000)]
            .into_iter()
            .enumerate()
        {
            let probe = counters.probe(place as u16);
            let taken = (0..7000).filter(|_| probe.sample(of, all)).count();
            assert_eq!(taken as u32, 7000 / all * of);
            assert_eq!(probe.skipped.load(Ordering::Relaxed), 7000 - taken as u64);
        }
        let probe = counters.probe(9);
        assert_eq!(
            [0; 4].map(|_| probe.sample(1, 2)),
            [true, false, true, false]
        );
    }

    #[test]
    fn a_temporary_probe_gives_one_hit() {
        let counters = Counters::create().unwrap();
        let probe = counters.probe(0);
        probe.enabled.store(1, Ordering::Relaxed);
        probe.temporary.store(1, Ordering::Relaxed);
        assert!(probe.hit());
        assert!(!probe.hit());
    }
}
