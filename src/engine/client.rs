//! The front's end: starts the keeper, asks it, and reads events and records in order.

use std::time::Duration;

use super::protocol::{Event, Failure, Launch, SignalPolicy, SiteId, SiteSpec, TargetId, Tid};
use crate::arch::Registers;
use crate::record::wire::Record;

/// What the front learns next.
#[derive(Debug)]
pub enum Happening {
    /// A hit of a probe that continues.
    Hit(TargetId, Record),
    /// Anything else.
    Event(Event),
}

/// Why the keeper could not serve.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The keeper said no.
    #[error("{0:?}")]
    Refused(Failure),
    /// The keeper is gone.
    #[error("the tracing process ended unexpectedly")]
    KeeperGone,
    /// It could not be started or reached.
    #[error("cannot start the tracing process: {0}")]
    Io(#[from] std::io::Error),
}

/// The program that was launched or attached to.
#[derive(Debug, Clone)]
pub struct Started {
    /// Its number.
    pub target: TargetId,
    /// Its process id.
    pub pid: i32,
    /// Its threads, the leader first.
    pub threads: Vec<Tid>,
}

/// The keeper, seen from the front.
pub struct Keeper {}

#[allow(unused_variables)]
impl Keeper {
    /// Starts the keeper process with a ring of `ring_bytes` for each target.
    pub fn start(ring_bytes: usize) -> Result<Keeper, EngineError> {
        unimplemented!()
    }
    /// Launches a program; its only thread stands at the first instruction after the exec.
    pub fn launch(&mut self, launch: Launch) -> Result<Started, EngineError> {
        unimplemented!()
    }
    /// Attaches to a running process; nothing is stopped.
    pub fn attach(&mut self, pid: i32, signals: SignalPolicy) -> Result<Started, EngineError> {
        unimplemented!()
    }
    /// Arms a site, or replaces the probes of an armed one. No thread needs to stand.
    pub fn arm(&mut self, target: TargetId, site: SiteSpec) -> Result<(), EngineError> {
        unimplemented!()
    }
    /// Takes a site out.
    pub fn disarm(&mut self, target: TargetId, site: SiteId) -> Result<(), EngineError> {
        unimplemented!()
    }
    /// Lets one stopped thread, or all, go on.
    pub fn resume(
        &mut self,
        target: TargetId,
        tid: Option<Tid>,
        signal: Option<i32>,
    ) -> Result<(), EngineError> {
        unimplemented!()
    }
    /// Stops every thread; returns when all stand (events that came meanwhile are queued).
    pub fn interrupt(&mut self, target: TargetId) -> Result<(), EngineError> {
        unimplemented!()
    }
    /// The registers of a stopped thread.
    pub fn registers(&mut self, target: TargetId, tid: Tid) -> Result<Registers, EngineError> {
        unimplemented!()
    }
    /// Changes the registers of a stopped thread.
    pub fn set_registers(
        &mut self,
        target: TargetId,
        tid: Tid,
        registers: Registers,
    ) -> Result<(), EngineError> {
        unimplemented!()
    }
    /// The XSAVE area of a stopped thread.
    pub fn vector_registers(&mut self, target: TargetId, tid: Tid) -> Result<Vec<u8>, EngineError> {
        unimplemented!()
    }
    /// Reads memory as the program sees it (no int3 in it); `Err` is the first unreadable address.
    pub fn read(&self, target: TargetId, address: u64, buf: &mut [u8]) -> Result<(), u64> {
        unimplemented!()
    }
    /// Writes memory; bytes over a site go below its int3.
    pub fn write(
        &mut self,
        target: TargetId,
        address: u64,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        unimplemented!()
    }
    /// Changes what signals do.
    pub fn signals(&mut self, target: TargetId, signals: SignalPolicy) -> Result<(), EngineError> {
        unimplemented!()
    }
    /// Puts everything back and leaves.
    pub fn detach(&mut self, target: TargetId) -> Result<(), EngineError> {
        unimplemented!()
    }
    /// Ends the program.
    pub fn kill(&mut self, target: TargetId) -> Result<(), EngineError> {
        unimplemented!()
    }
    /// The next hit or event, in order; `None` when `timeout` passed. Hits are looked for every
    /// few milliseconds: the keeper does not pay a system call to announce one.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Happening>, EngineError> {
        unimplemented!()
    }
}
