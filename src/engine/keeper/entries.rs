//! Calls that are under way: what was kept at a function's entry until the call returns.
//!
//! A call is known by its function and by where its return address lies: rsp at the entry is rsp
//! again at the `ret`, whatever happened between them, on whichever thread that is (coroutines
//! move from one to another with their stacks). No two calls that are under way have one place.
//!
//! A call that an exception or a `longjmp` has left never returns, so its place is taken again.
//! On the stack that a thread was made with, more is certain: what lies below rsp at an entry or a
//! return is no call any more. Of a stack that we know nothing about, nothing is concluded.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::slots::mapping;
use crate::record::shared::Counters;

/// What a call has kept: the expression's number and its value.
pub type Values = Vec<(u16, u64)>;

/// The most calls that are remembered; the oldest are forgotten.
const MOST: usize = 1 << 16;

/// The most mappings that are known to be no thread's own stack.
const FOREIGN_MOST: usize = 1024;

/// How far the first thread's stack may grow beyond what is mapped now. The kernel leaves a
/// larger gap below it (`MIN_GAP`, 128 MiB).
const GROWTH: u64 = 64 << 20;

/// A call as a thread at its entry or its return sees it.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// For whom values are kept.
    pub probe: u16,
    /// The function's address.
    pub function: u64,
    /// Where the return address is.
    pub sp: u64,
    /// The thread.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its thread block (`fs_base`), which the C library puts at the upper end of a stack.
    pub thread_block: u64,
}

impl Frame {
    fn key(&self) -> Key {
        Key {
            probe: self.probe,
            function: self.function,
            sp: self.sp,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    probe: u16,
    function: u64,
    sp: u64,
}

#[derive(Debug)]
struct Call {
    serial: u64,
    values: Values,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Entries {
    calls: HashMap<Key, Call>,
    /// In the order of their beginning; some are over.
    order: VecDeque<(u64, Key)>,
    /// By thread: calls on the stack that it was made with, the innermost last, that is by
    /// descending `sp`; some are over.
    own: HashMap<i32, Vec<(u64, Key)>>,
    stacks: Stacks,
    serial: u64,
}

impl Entries {
    /// A call begins.
    pub fn enter(&mut self, frame: Frame, counters: &Counters) {
        let key = frame.key();
        count(counters, key, |c| &c.entries);
        self.serial += 1;
        let serial = self.serial;
        if self.stacks.is_own(&frame) {
            // Another probe's note of this very call stays.
            self.unwind(&frame, counters, |old| {
                old.function != key.function || old.probe == key.probe
            });
            self.own.entry(frame.tid).or_default().push((serial, key));
        }
        let values = Values::new();
        if self.calls.insert(key, Call { serial, values }).is_some() {
            count(counters, key, |c| &c.dropped);
        }
        self.order.push_back((serial, key));
        self.bound(frame.tid, counters);
    }

    /// Keeps a value of the call that has just begun.
    pub fn remember(&mut self, frame: Frame, index: u16, value: u64) {
        if let Some(call) = self.calls.get_mut(&frame.key()) {
            call.values.push((index, value));
        }
    }

    /// A call ends; gives what it had kept if it was seen to begin.
    pub fn leave(&mut self, frame: Frame, counters: &Counters) -> Option<Values> {
        let key = frame.key();
        if self.stacks.is_own(&frame) {
            self.unwind(&frame, counters, |old| old.function != key.function);
            if let Some(own) = self.own.get_mut(&frame.tid) {
                let first = own.partition_point(|(_, old)| old.sp > key.sp);
                own.extract_if(first.., |(_, old)| *old == key)
                    .for_each(drop);
            }
        }
        let call = self.calls.remove(&key);
        count(counters, key, |c| match call {
            Some(_) => &c.returns,
            None => &c.unknown,
        });
        call.map(|call| call.values)
    }

    /// Drops the calls below a frame on its thread's own stack; of those in the same place the
    /// ones that `over` names.
    fn unwind(&mut self, frame: &Frame, counters: &Counters, over: impl Fn(&Key) -> bool) {
        let Some(own) = self.own.get_mut(&frame.tid) else {
            return;
        };
        let first = own.partition_point(|(_, old)| old.sp > frame.sp);
        let dead = |old: &Key| old.sp < frame.sp || over(old);
        for (serial, key) in own.extract_if(first.., |(_, old)| dead(old)) {
            drop_call(&mut self.calls, serial, key, counters);
        }
    }

    /// A thread has ended, and with it every call on the stack that it was made with.
    pub fn thread_ended(&mut self, tid: i32, counters: &Counters) {
        for (serial, key) in self.own.remove(&tid).unwrap_or_default() {
            drop_call(&mut self.calls, serial, key, counters);
        }
        self.stacks.thread_ended(tid);
    }

    /// A thread has begun: its stack may be where something else was before.
    pub fn thread_began(&mut self) {
        self.stacks.foreign.clear();
    }

    /// The memory is another one.
    pub fn executed(&mut self, counters: &Counters) {
        for key in self.calls.keys() {
            count(counters, *key, |c| &c.dropped);
        }
        *self = Entries::default();
    }

    /// Forgets the oldest calls beyond the most that are remembered, after one of a thread has
    /// begun.
    fn bound(&mut self, tid: i32, counters: &Counters) {
        while self.calls.len() > MOST {
            let Some((serial, key)) = self.order.pop_front() else {
                return;
            };
            if self.calls.get(&key).is_some_and(|c| c.serial == serial) {
                self.calls.remove(&key);
                count(counters, key, |c| &c.evicted);
            }
        }
        // Most of a list as long as that are over: keep what is not.
        let calls = &self.calls;
        let under_way =
            |(serial, key): &(u64, Key)| calls.get(key).is_some_and(|call| call.serial == *serial);
        if self.order.len() > 2 * MOST {
            self.order.retain(under_way);
        }
        if let Some(own) = self.own.get_mut(&tid)
            && own.len() > 2 * MOST
        {
            own.retain(under_way);
        }
    }
}

fn drop_call(calls: &mut HashMap<Key, Call>, serial: u64, key: Key, counters: &Counters) {
    if calls.get(&key).is_some_and(|call| call.serial == serial) {
        calls.remove(&key);
        count(counters, key, |c| &c.dropped);
    }
}

fn count(
    counters: &Counters,
    key: Key,
    which: impl FnOnce(&crate::record::shared::ProbeCounters) -> &AtomicU64,
) {
    which(counters.probe(key.probe)).fetch_add(1, Ordering::Relaxed);
}

/// Which memory is the stack that a thread was made with.
#[derive(Debug, Default)]
struct Stacks {
    own: HashMap<i32, Range<u64>>,
    /// Mappings where a call was seen and that are nobody's own stack.
    foreign: Vec<Range<u64>>,
}

impl Stacks {
    /// Whether a frame is on the stack that its thread was made with. `/proc/PID/maps` is read for
    /// the first frame in a mapping.
    fn is_own(&mut self, frame: &Frame) -> bool {
        let own = self.own.get(&frame.tid);
        if own.is_some_and(|own| own.contains(&frame.sp)) {
            return true;
        }
        if self.foreign.iter().any(|range| range.contains(&frame.sp)) {
            return false;
        }
        let maps = fs::read(format!("/proc/{}/maps", frame.tid)).unwrap_or_default();
        match classify(&maps, frame) {
            Some((range, true)) => {
                self.own.insert(frame.tid, range);
                true
            }
            Some((range, false)) => {
                if self.foreign.len() >= FOREIGN_MOST {
                    self.foreign.clear();
                }
                self.foreign.push(range);
                false
            }
            None => false,
        }
    }

    fn thread_ended(&mut self, tid: i32) {
        self.own.remove(&tid);
        self.foreign.clear();
    }
}

/// The memory around a frame, and whether it is its thread's own stack: the kernel's `[stack]` for
/// the first thread, what ends with the thread block for others.
fn classify(maps: &[u8], frame: &Frame) -> Option<(Range<u64>, bool)> {
    let text = String::from_utf8_lossy(maps);
    let mut mapped = text.lines().filter_map(mapping);
    let map = mapped.find(|map| (map.start..map.end).contains(&frame.sp))?;
    let (start, end) = (map.start, map.end);
    Some(if frame.tid == frame.pid && map.stack {
        (start.saturating_sub(GROWTH)..end, true)
    } else if (start..end).contains(&frame.thread_block) && frame.sp < frame.thread_block {
        (start..frame.thread_block, true)
    } else {
        (start..end, false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: u64 = 0x1000;
    const G: u64 = 0x2000;

    fn frame(tid: i32, function: u64, sp: u64) -> Frame {
        Frame {
            probe: 1,
            function,
            sp,
            tid,
            pid: 1,
            thread_block: 0,
        }
    }

    /// Thread 1 has its own stack below 0x10000; what is above is coroutines'.
    fn table() -> (Entries, Counters) {
        let mut entries = Entries::default();
        entries.stacks.own.insert(1, 0..0x10000);
        entries.stacks.foreign.push(0x10000..u64::MAX);
        (entries, Counters::create().unwrap())
    }

    fn enter(entries: &mut Entries, counters: &Counters, frame: Frame, value: u64) {
        entries.enter(frame, counters);
        entries.remember(frame, 0, value);
    }

    fn counts(counters: &Counters) -> [u64; 5] {
        let c = counters.probe(1);
        [&c.entries, &c.returns, &c.dropped, &c.evicted, &c.unknown]
            .map(|count| count.load(Ordering::Relaxed))
    }

    #[test]
    fn recursion_gives_each_call_its_own() {
        let (mut entries, counters) = table();
        for depth in 0..10 {
            let call = frame(1, F, 0x9000 - depth * 0x40);
            enter(&mut entries, &counters, call, depth);
        }
        for depth in (0..10).rev() {
            let call = frame(1, F, 0x9000 - depth * 0x40);
            assert_eq!(entries.leave(call, &counters), Some(vec![(0, depth)]));
        }
        assert_eq!(entries.leave(frame(1, F, 0x9000), &counters), None);
        assert_eq!(counts(&counters), [10, 10, 0, 0, 1]);
        assert!(entries.calls.is_empty() && entries.own[&1].is_empty());
    }

    #[test]
    fn calls_that_were_left_are_dropped_when_that_is_certain() {
        let (mut entries, counters) = table();
        // f and g inside of it, left by an exception; their caller's return proves it.
        enter(&mut entries, &counters, frame(1, F, 0x9000), 1);
        enter(&mut entries, &counters, frame(1, F, 0x8000), 2);
        enter(&mut entries, &counters, frame(1, G, 0x7000), 3);
        let outer = entries.leave(frame(1, F, 0x9000), &counters);
        assert_eq!(outer, Some(vec![(0, 1)]));
        assert_eq!(counts(&counters), [3, 1, 2, 0, 0]);
        // An entry at the place of another function proves it too.
        enter(&mut entries, &counters, frame(1, F, 0x9000), 1);
        enter(&mut entries, &counters, frame(1, G, 0x9000), 1);
        assert_eq!(counts(&counters)[2], 3);
        // And one at its own place, on a stack that nothing is known of.
        for value in [5, 6] {
            enter(&mut entries, &counters, frame(1, F, 0x20000), value);
        }
        let last = entries.leave(frame(2, F, 0x20000), &counters);
        assert_eq!(last, Some(vec![(0, 6)]));
        assert_eq!(counts(&counters)[2], 4);
        // The thread ends inside of g.
        entries.thread_ended(1, &counters);
        let [begun, returned, dropped, evicted, _] = counts(&counters);
        assert_eq!(begun, returned + dropped + evicted);
        assert!(entries.calls.is_empty());
    }

    #[test]
    fn a_coroutine_s_calls_outlive_those_above_them_in_memory() {
        let (mut entries, counters) = table();
        enter(&mut entries, &counters, frame(1, F, 0x30000), 1);
        enter(&mut entries, &counters, frame(1, F, 0x20000), 2);
        let upper = entries.leave(frame(2, F, 0x30000), &counters);
        assert_eq!(upper, Some(vec![(0, 1)]));
        let lower = entries.leave(frame(3, F, 0x20000), &counters);
        assert_eq!(lower, Some(vec![(0, 2)]));
        assert_eq!(counts(&counters), [2, 2, 0, 0, 0]);
    }

    #[test]
    fn probes_at_one_function_do_not_disturb_each_other() {
        let (mut entries, counters) = table();
        let call = frame(1, F, 0x9000);
        let other = Frame { probe: 2, ..call };
        enter(&mut entries, &counters, call, 1);
        enter(&mut entries, &counters, other, 2);
        assert_eq!(entries.leave(call, &counters), Some(vec![(0, 1)]));
        assert_eq!(entries.leave(other, &counters), Some(vec![(0, 2)]));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let (mut entries, counters) = table();
        let calls = MOST as u64 + 10;
        for n in 0..calls {
            enter(&mut entries, &counters, frame(1, F, 0x20000 + n * 8), n);
        }
        assert_eq!(entries.leave(frame(1, F, 0x20000), &counters), None);
        let last = frame(1, F, 0x20000 + (calls - 1) * 8);
        assert_eq!(entries.leave(last, &counters), Some(vec![(0, calls - 1)]));
        assert_eq!(counts(&counters), [calls, 1, 0, 10, 1]);
        // What is over does not pile up.
        for _ in 0..5 * MOST {
            enter(&mut entries, &counters, last, 0);
            entries.leave(last, &counters);
        }
        assert!(entries.order.len() <= 2 * MOST + 1);
    }

    #[test]
    fn what_is_forgotten_of_a_deep_recursion_does_not_pile_up() {
        let (mut entries, counters) = table();
        let top = 1 << 40;
        entries.stacks.own.insert(1, 0..top);
        let calls = 5 * MOST as u64;
        let call = |n: u64| frame(1, F, top - 8 - n * 8);
        for n in 0..calls {
            enter(&mut entries, &counters, call(n), n);
        }
        assert!(entries.own[&1].len() <= 2 * MOST);
        for n in (0..calls).rev() {
            let kept = (n >= calls - MOST as u64).then(|| vec![(0, n)]);
            assert_eq!(entries.leave(call(n), &counters), kept);
        }
        assert!(entries.own[&1].is_empty());
        assert_eq!(counts(&counters)[3], calls - MOST as u64);
    }

    #[test]
    fn the_stack_that_a_thread_was_made_with() {
        let maps = b"7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n\
            7f0000001000-7f0000801000 rw-p 00000000 00:00 0 \n\
            7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n";
        let first = frame(1, F, 0x7ffc_0002_0000);
        let (range, own) = classify(maps, &first).unwrap();
        assert!(own && range.contains(&0x7ffb_ffff_f000));
        let second = Frame {
            tid: 2,
            thread_block: 0x7f00_0080_0640,
            ..frame(2, F, 0x7f00_0080_0000)
        };
        assert!(classify(maps, &second).unwrap().1);
        let coroutine = Frame {
            sp: 0x7f00_0080_0700,
            ..second
        };
        assert!(!classify(maps, &coroutine).unwrap().1);
        assert!(!classify(maps, &Frame { tid: 3, ..first }).unwrap().1);
        assert_eq!(classify(maps, &frame(1, F, 0x1000)), None);
        assert_eq!(classify(b"\xff-", &first), None);
    }
}
