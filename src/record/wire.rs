//! One hit as it lies in the ring: words, native byte order, since both sides are the same binary
//! on the same machine.
//!
//! A fixed [`Header`] comes first, then segments: each two words (kind and length, address or
//! value) and, for memory, what was asked and the bytes, padded to a word.

use serde::{Deserialize, Serialize};

use crate::arch::Registers;

/// A value that a place does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[allow(missing_docs)]
pub enum Unavailable {
    #[error("$_retval is available at a function's way out only: LOCATION%return.")]
    Retval,
    #[error("$_retval is not available: the function leaves by a jump to another one.")]
    RetvalAtJump,
    #[error("$_entry is available at a function's way out only: LOCATION%return.")]
    Entry,
    #[error("$_entry is not available: the call began before it was looked at.")]
    EntryUnknown,
    #[error("$_entry is not available: the expression had no value at the entry.")]
    EntryFault,
    #[error("$_entry is not available: no condition or body named this expression.")]
    EntryNotKept,
    #[error(
        "$_entry is not available: jumps inside the function go to its first instruction, so that \
         its calls cannot be told."
    )]
    EntryInLoop,
    #[error("More than 65536 bytes are not looked at.")]
    TooLong,
}

impl Unavailable {
    const ALL: [Unavailable; 8] = [
        Unavailable::Retval,
        Unavailable::RetvalAtJump,
        Unavailable::Entry,
        Unavailable::EntryUnknown,
        Unavailable::EntryFault,
        Unavailable::EntryNotKept,
        Unavailable::EntryInLoop,
        Unavailable::TooLong,
    ];
}

/// Why a probe's program stopped in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Memory could not be read or written at this address.
    Memory(u64),
    /// Division by zero.
    DivisionByZero,
    /// The place does not have a value.
    Unavailable(Unavailable),
}

/// The fixed part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// CLOCK_MONOTONIC at the hit, nanoseconds.
    pub mono_ns: u64,
    /// CLOCK_REALTIME at the hit, nanoseconds since the epoch.
    pub wall_ns: u64,
    /// The engine's number of the traced process whose memory it is; one that shares it may have made
    /// the hit.
    pub target: u32,
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// The processor, where the thread has a registered rseq area.
    pub cpu: Option<u32>,
    /// The site's number.
    pub site: u32,
    /// The probe's place in the shared counters.
    pub probe: u16,
    /// False: the condition itself could not be evaluated (`fault` says why).
    pub hit: bool,
    /// The body command that was reached last.
    pub command: u16,
    /// The fault that ended the program early.
    pub fault: Option<Fault>,
    /// Registers at the hit, before the program changed any.
    pub registers: Registers,
}

/// One piece of what the program collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Memory of the target as the program saw it. `asked` is over `bytes.len()` when the
    /// capture was cut at its maximum or at unreadable memory.
    Memory {
        /// Where it was.
        address: u64,
        /// How many bytes the body asked for.
        asked: u64,
        /// What was there.
        bytes: Vec<u8>,
    },
    /// A convenience variable's value when the program read it.
    Variable {
        /// Its number.
        variable: u16,
        /// Its value.
        value: u64,
    },
    /// A random number that the program drew.
    Random {
        /// The number.
        value: u64,
    },
    /// What an expression was at the entry of the call that ends here.
    Entry {
        /// Its place among the probe's expressions.
        index: u16,
        /// Its value, extended to 64 bits.
        value: u64,
    },
}

/// A whole record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The fixed part.
    pub header: Header,
    /// In the order in which the program collected them.
    pub segments: Vec<Segment>,
}

const HEADER_WORDS: usize = 8 + Registers::COUNT;
const MEMORY: u64 = 1;
const VARIABLE: u64 = 2;
const ENTRY: u64 = 3;
const RANDOM: u64 = 4;

/// A record that is being made, in space that is used again for the next one.
#[derive(Default)]
pub struct Builder {
    words: Vec<u64>,
}

impl Builder {
    /// Forgets the last record and leaves room for the header.
    pub fn start(&mut self) {
        self.words.clear();
        self.words.resize(HEADER_WORDS, 0);
    }

    /// How many bytes the record has so far.
    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Adds memory.
    pub fn memory(&mut self, address: u64, asked: u64, bytes: &[u8]) {
        self.words.push(MEMORY | (bytes.len() as u64) << 8);
        self.words.push(address);
        self.words.push(asked);
        let (words, rest) = bytes.as_chunks::<8>();
        self.words
            .extend(words.iter().map(|w| u64::from_ne_bytes(*w)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.words.push(u64::from_ne_bytes(last));
        }
    }

    /// Adds a convenience variable's value.
    pub fn variable(&mut self, variable: u16, value: u64) {
        self.words.push(VARIABLE | u64::from(variable) << 8);
        self.words.push(value);
    }

    /// Adds what an expression was at the entry.
    pub fn entry(&mut self, index: u16, value: u64) {
        self.words.push(ENTRY | u64::from(index) << 8);
        self.words.push(value);
    }

    /// Adds a random number.
    pub fn random(&mut self, value: u64) {
        self.words.push(RANDOM);
        self.words.push(value);
    }

    /// Puts the header in and gives the finished words.
    pub fn finish(&mut self, header: &Header) -> &[u64] {
        let (fault, at) = match header.fault {
            None => (0, 0),
            Some(Fault::Memory(at)) => (1, at),
            Some(Fault::DivisionByZero) => (2, 0),
            Some(Fault::Unavailable(what)) => (3, what as u64),
        };
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        self.words[0] = header.mono_ns;
        self.words[1] = header.wall_ns;
        self.words[2] = pair(header.pid as u32, header.tid as u32);
        self.words[3] = header.cpu.map_or(0, |cpu| 1 << 32 | u64::from(cpu));
        self.words[4] = pair(u32::from(header.probe), header.site);
        self.words[5] = pair(
            fault | u32::from(header.hit) << 8,
            u32::from(header.command),
        );
        self.words[6] = at;
        self.words[7] = header.target.into();
        self.words[8..HEADER_WORDS].copy_from_slice(&header.registers.0);
        &self.words
    }
}

/// Reads a record back; `None` for words that no [`Builder`] made.
pub fn decode(words: &[u64]) -> Option<Record> {
    let (head, mut rest) = words.split_at_checked(HEADER_WORDS)?;
    let high = |word: u64| (word >> 32) as u32;
    let low = |word: u64| word as u32;
    let header = Header {
        mono_ns: head[0],
        wall_ns: head[1],
        pid: high(head[2]) as i32,
        tid: low(head[2]) as i32,
        cpu: (high(head[3]) != 0).then_some(low(head[3])),
        site: low(head[4]),
        probe: u16::try_from(high(head[4])).ok()?,
        command: u16::try_from(low(head[5])).ok()?,
        hit: high(head[5]) >> 8 != 0,
        fault: match high(head[5]) & 0xff {
            0 => None,
            1 => Some(Fault::Memory(head[6])),
            2 => Some(Fault::DivisionByZero),
            3 => {
                let what = usize::try_from(head[6]).ok()?;
                Some(Fault::Unavailable(*Unavailable::ALL.get(what)?))
            }
            _ => return None,
        },
        target: u32::try_from(head[7]).ok()?,
        registers: Registers(head[8..].try_into().ok()?),
    };
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let (segment, behind) = decode_segment(rest)?;
        segments.push(segment);
        rest = behind;
    }
    Some(Record { header, segments })
}

fn decode_segment(words: &[u64]) -> Option<(Segment, &[u64])> {
    let (&[kind, value], rest) = words.split_first_chunk::<2>()?;
    match kind & 0xff {
        MEMORY => {
            let (asked, rest) = rest.split_first()?;
            let length = usize::try_from(kind >> 8).ok()?;
            let (data, rest) = rest.split_at_checked(length.div_ceil(8))?;
            let mut bytes = Vec::with_capacity(data.len() * 8);
            for word in data {
                bytes.extend_from_slice(&word.to_ne_bytes());
            }
            bytes.truncate(length);
            let segment = Segment::Memory {
                address: value,
                asked: *asked,
                bytes,
            };
            Some((segment, rest))
        }
        VARIABLE => {
            let variable = u16::try_from(kind >> 8).ok()?;
            Some((Segment::Variable { variable, value }, rest))
        }
        RANDOM => Some((Segment::Random { value }, rest)),
        ENTRY => {
            let index = u16::try_from(kind >> 8).ok()?;
            Some((Segment::Entry { index, value }, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::hostile;

    fn header(fault: Option<Fault>) -> Header {
        let mut registers = Registers::default();
        for (n, word) in registers.0.iter_mut().enumerate() {
            *word = n as u64 * 7;
        }
        Header {
            mono_ns: 1,
            wall_ns: 2,
            target: 9,
            pid: -3,
            tid: 4,
            cpu: Some(0),
            site: 6,
            probe: 7,
            hit: fault.is_none(),
            command: 8,
            fault,
            registers,
        }
    }

    #[test]
    fn what_was_built_is_read_back() {
        let mut builder = Builder::default();
        let unavailable = Unavailable::ALL.map(|what| Some(Fault::Unavailable(what)));
        let others = [None, Some(Fault::Memory(9)), Some(Fault::DivisionByZero)];
        for fault in others.into_iter().chain(unavailable) {
            builder.start();
            builder.memory(0x1000, 20, b"Hello World!!");
            builder.variable(5, u64::MAX);
            builder.entry(3, 7);
            builder.random(8);
            builder.memory(1, 0, b"");
            let words = builder.finish(&header(fault)).to_vec();
            let record = decode(&words).unwrap();
            assert_eq!(record.header, header(fault));
            let memory = |address, asked, bytes: &[u8]| Segment::Memory {
                address,
                asked,
                bytes: bytes.to_vec(),
            };
            let variable = Segment::Variable {
                variable: 5,
                value: u64::MAX,
            };
            let expected = [
                memory(0x1000, 20, b"Hello World!!"),
                variable,
                Segment::Entry { index: 3, value: 7 },
                Segment::Random { value: 8 },
                memory(1, 0, b""),
            ];
            assert_eq!(record.segments, expected);
        }
    }

    fn sample() -> Vec<u8> {
        let mut builder = Builder::default();
        builder.start();
        builder.memory(0x1000, 20, b"Hello World!!");
        builder.variable(5, u64::MAX);
        builder.entry(3, 7);
        builder.memory(1, 0, b"");
        let words = builder.finish(&header(Some(Fault::Memory(9)))).to_vec();
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    hostile!(fuzz_records, vec![sample()], { cases: 3000 }, |input| {
        let (words, _) = input.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let Some(record) = decode(&words) else { return };
        // What is read can be written, and then it is the same.
        let mut builder = Builder::default();
        builder.start();
        for segment in &record.segments {
            match segment {
                Segment::Memory { address, asked, bytes } => builder.memory(*address, *asked, bytes),
                Segment::Variable { variable, value } => builder.variable(*variable, *value),
                Segment::Random { value } => builder.random(*value),
                Segment::Entry { index, value } => builder.entry(*index, *value),
            }
        }
        let again = builder.finish(&record.header).to_vec();
        assert_eq!(decode(&again), Some(record));
    });
}
