//! The ring through which hits travel: one writer, one reader, words in shared memory.
//!
//! The writer never waits: what does not fit is not written, and the caller counts it. The
//! reader looks for new records by itself, since a wake-up call would cost the target time.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mapping::{Mapping, Shared};

/// Positions count words from the beginning of time; the ring holds the last `words`.
#[repr(C, align(64))]
struct Cursor(AtomicU64);

#[repr(C)]
struct Control {
    /// Written by the writer: all words before it are complete.
    head: Cursor,
    /// Written by the reader: all words before it may be overwritten.
    tail: Cursor,
}

// SAFETY: made of atomics alone.
unsafe impl Shared for Control {}

/// The ring as either side has it.
pub struct Ring {
    mapping: Mapping,
    mask: u64,
}

impl Ring {
    /// A new ring of at least `bytes`, rounded up to a power of two.
    pub fn create(bytes: usize) -> io::Result<Ring> {
        let data = bytes.clamp(4096, 1 << 30).next_power_of_two();
        let mapping = Mapping::create("trapline-ring", size_of::<Control>() + data)?;
        Ok(Ring {
            mapping,
            mask: data as u64 / 8 - 1,
        })
    }

    /// The other side's ring, by its descriptor.
    pub fn open(file: File) -> io::Result<Ring> {
        let all = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let data = all.saturating_sub(size_of::<Control>());
        if data < 4096 || !data.is_power_of_two() {
            return Err(io::Error::other("not a ring"));
        }
        Ok(Ring {
            mapping: Mapping::open(file, all)?,
            mask: data as u64 / 8 - 1,
        })
    }

    /// The descriptor that the other side opens.
    pub fn file(&self) -> &File {
        self.mapping.file()
    }

    /// The position behind the last complete record.
    pub fn head(&self) -> u64 {
        self.control().head.0.load(Ordering::Acquire)
    }

    /// Appends one record, whole or not at all: `false` when it does not fit now. Only the
    /// writer calls it.
    pub fn push(&self, record: &[u64]) -> bool {
        let head = self.control().head.0.load(Ordering::Relaxed);
        let tail = self.control().tail.0.load(Ordering::Acquire);
        let used = head.wrapping_sub(tail);
        let needed = record.len() as u64 + 1;
        if used > self.mask || self.mask + 1 - used < needed {
            return false;
        }
        let words = self.words();
        words[(head & self.mask) as usize].store(record.len() as u64, Ordering::Relaxed);
        for (at, word) in (1..).zip(record) {
            let at = (head.wrapping_add(at) & self.mask) as usize;
            words[at].store(*word, Ordering::Relaxed);
        }
        self.control()
            .head
            .0
            .store(head.wrapping_add(needed), Ordering::Release);
        true
    }

    /// Takes the oldest record into `record`; `false` when there is none. Only the reader calls
    /// it. A position or a length that cannot be (a damaged ring) empties the ring.
    pub fn pop(&self, record: &mut Vec<u64>) -> bool {
        record.clear();
        let head = self.head();
        let tail = self.control().tail.0.load(Ordering::Relaxed);
        if head == tail {
            return false;
        }
        let words = self.words();
        let length = words[(tail & self.mask) as usize].load(Ordering::Relaxed);
        let filled = head.wrapping_sub(tail);
        if length >= filled || filled > self.mask + 1 {
            self.control().tail.0.store(head, Ordering::Release);
            return false;
        }
        record.extend((1..=length).map(|at| {
            let at = (tail.wrapping_add(at) & self.mask) as usize;
            words[at].load(Ordering::Relaxed)
        }));
        self.control()
            .tail
            .0
            .store(tail.wrapping_add(1 + length), Ordering::Release);
        true
    }

    /// The position of the oldest record that was not taken yet.
    pub fn tail(&self) -> u64 {
        self.control().tail.0.load(Ordering::Acquire)
    }

    fn control(&self) -> &Control {
        self.mapping.view()
    }

    fn words(&self) -> &[AtomicU64] {
        self.mapping.words(size_of::<Control>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::hostile;

    #[test]
    fn records_cross_whole_and_in_order_and_the_rest_is_refused() {
        let writer = Ring::create(1).unwrap();
        let reader = Ring::open(writer.file().try_clone().unwrap()).unwrap();
        let total = 50_000_u64;
        let refused = std::thread::scope(|scope| {
            let producer = scope.spawn(|| {
                let mut refused = 0_u64;
                for n in 0..total {
                    let record: Vec<u64> = (0..n % 17).map(|i| n * 31 + i).collect();
                    let mut with_number = vec![n];
                    with_number.extend(record);
                    if !writer.push(&with_number) {
                        refused += 1;
                        std::thread::yield_now();
                    }
                }
                assert!(writer.push(&[u64::MAX]) || refused > 0);
                refused
            });
            let (mut seen, mut last, mut record) = (0_u64, None, Vec::new());
            loop {
                let finished = producer.is_finished();
                while reader.pop(&mut record) {
                    if record[0] == u64::MAX {
                        continue;
                    }
                    let n = record[0];
                    assert!(last < Some(n));
                    last = Some(n);
                    assert_eq!(record.len() as u64, n % 17 + 1);
                    assert!((0..n % 17).all(|i| record[1 + i as usize] == n * 31 + i));
                    seen += 1;
                }
                if finished {
                    break;
                }
            }
            let refused = producer.join().unwrap();
            assert_eq!(seen + refused, total);
            refused
        });
        assert!(refused < total);
    }

    hostile!(/// The other side writes what it likes, between any two of our steps.
    fuzz_ring, vec![(0..64).collect()], { cases: 500 }, |input| {
        let ring = Ring::create(4096).unwrap();
        let mut record = Vec::new();
        let (steps, _) = input.as_chunks::<10>();
        for [step, at, number @ ..] in steps {
            let number = u64::from_le_bytes(*number);
            match step % 6 {
                0 => ring.control().head.0.store(number, Ordering::Relaxed),
                1 => ring.control().tail.0.store(number, Ordering::Relaxed),
                2 => ring.words()[usize::from(*at)].store(number, Ordering::Relaxed),
                3 => drop(ring.push(&vec![number; usize::from(*at)])),
                _ => drop(ring.pop(&mut record)),
            }
        }
        // What was damaged is over once it was read.
        while ring.pop(&mut record) {}
        assert!(ring.head() != ring.tail() || ring.push(&[1, 2]) && ring.pop(&mut record));
    });

    #[test]
    fn a_damaged_length_loses_records_but_nothing_else() {
        let ring = Ring::create(1).unwrap();
        assert!(ring.push(&[1, 2, 3]));
        ring.words()[0].store(u64::MAX, Ordering::Relaxed);
        let mut record = Vec::new();
        assert!(!ring.pop(&mut record));
        assert!(ring.push(&[4]));
        assert!(ring.pop(&mut record));
        assert_eq!(record, [4]);
    }
}
