//! One hit as it lies in the ring.
//!
//! A record is a [`Header`], then segments: each a [`SegmentHeader`] and its bytes, padded to 8.
//! Both sides are the same binary on the same machine, so the layout is the native one.

use crate::arch::Registers;

/// The fixed part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// CLOCK_MONOTONIC at the hit, nanoseconds.
    pub mono_ns: u64,
    /// CLOCK_REALTIME at the hit, nanoseconds since the epoch.
    pub wall_ns: u64,
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
    /// The body command that was reached last.
    pub command: u16,
    /// The fault that ended the program early.
    pub fault: Option<RecordFault>,
    /// Registers at the hit, before the program changed any.
    pub registers: Registers,
}

/// A fault as the record tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// Memory could not be read or written at this address.
    Memory(u64),
    /// Division by zero.
    DivisionByZero,
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
    /// A convenience variable's value when the program read it first.
    Variable {
        /// Its number.
        variable: u16,
        /// Its value.
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
