//! What an expression can reach in a session: the files alone, a stopped thread, or a record.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::plan::Returns;
use super::variables::Variables;
use crate::arch::{Register, Registers};
use crate::engine::client::Keeper;
use crate::engine::protocol::{TargetId, Tid};
use crate::lang::scope::{Fact, Special, Unavailable, WayOut};
use crate::lang::{Expr, Scope, ScopeError, Symbol, Unreadable, Value};
use crate::probe::named::Reading;
use crate::record::clock;
use crate::record::wire::{Record, Segment};

/// Names and file contents of what is loaded; addresses are run-time ones where there is a
/// process.
pub trait Names {
    /// A symbol by name.
    fn symbol(&self, name: &str) -> Option<Symbol>;
    /// The symbol at or before an address.
    fn symbol_at(&self, address: u64) -> Option<(String, u64)>;
    /// The same by the linker's name.
    fn linkage_symbol_at(&self, address: u64) -> Option<(String, u64)>;
    /// What the files hold at an address.
    fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), u64>;
    /// Whether any of it has debug info.
    fn debug_info(&self) -> bool;
}

/// Where memory and registers come from.
pub enum Source<'a> {
    /// The files: there is no process.
    Files,
    /// A process; registers where a thread is stopped.
    Live {
        /// Which target.
        target: TargetId,
        /// Its process id.
        pid: i32,
        /// Which thread.
        tid: Tid,
    },
    /// What a hit left behind.
    Record(Snapshot<'a>),
}

/// A record seen as memory, with the body's own changes on top.
pub struct Snapshot<'a> {
    record: &'a Record,
    /// Newer pieces last.
    written: Vec<(u64, Vec<u8>)>,
    variables: HashMap<String, u64>,
    /// How many random numbers were asked for.
    drawn: Cell<usize>,
}

impl<'a> Snapshot<'a> {
    /// The record as it came.
    pub fn new(record: &'a Record, names: &Variables) -> Snapshot<'a> {
        // The first value that was recorded of a variable counts: the body changes it again itself.
        let variables = record
            .segments
            .iter()
            .rev()
            .filter_map(|segment| match segment {
                Segment::Variable { variable, value } => {
                    Some((names.at(*variable)?.0.to_string(), *value))
                }
                Segment::Memory { .. } | Segment::Entry { .. } | Segment::Random { .. } => None,
            })
            .collect();
        Snapshot {
            record,
            written: Vec::new(),
            variables,
            drawn: Cell::new(0),
        }
    }

    /// The next of the random numbers that the program drew.
    fn random(&self) -> Option<u64> {
        let numbers = self
            .record
            .segments
            .iter()
            .filter_map(|segment| match segment {
                Segment::Random { value } => Some(*value),
                _ => None,
            });
        let number = self.drawn.get();
        self.drawn.set(number + 1);
        numbers.into_iter().nth(number)
    }

    fn special(&self, what: Special) -> Option<u64> {
        let header = &self.record.header;
        Some(match what {
            Special::Now => header.mono_ns,
            Special::Wall => header.wall_ns,
            Special::Tid => header.tid as u64,
            Special::Pid => header.pid as u64,
            Special::Cpu => u64::from(header.cpu?),
            Special::Random => self.random()?,
        })
    }

    fn at_entry(&self, index: u16) -> Result<u64, Unavailable> {
        let value = self
            .record
            .segments
            .iter()
            .find_map(|segment| match segment {
                Segment::Entry { index: of, value } if *of == index => Some(*value),
                _ => None,
            });
        // The fault that ended the program says more.
        value.ok_or(Unavailable::EntryUnknown)
    }

    fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), Unreadable> {
        if self.written.is_empty() && self.read_whole(address, buf) {
            return Ok(());
        }
        self.read_pieces(address, buf)
    }

    /// What the first piece that has any of it has all of.
    fn read_whole(&self, address: u64, buf: &mut [u8]) -> bool {
        for segment in &self.record.segments {
            let Segment::Memory {
                address: at, bytes, ..
            } = segment
            else {
                continue;
            };
            let offset = address.wrapping_sub(*at) as usize;
            let whole = offset.checked_add(buf.len());
            if let Some(piece) = whole.and_then(|end| bytes.get(offset..end)) {
                buf.copy_from_slice(piece);
                return true;
            }
            let behind = at.wrapping_sub(address) as usize;
            if offset < bytes.len() || behind < buf.len() && !bytes.is_empty() {
                return false;
            }
        }
        false
    }

    fn read_pieces(&self, address: u64, buf: &mut [u8]) -> Result<(), Unreadable> {
        let mut known = vec![false; buf.len()];
        let length = buf.len();
        let mut lay = |at: u64, bytes: &[u8], over: bool| {
            for (i, byte) in bytes.iter().enumerate() {
                let offset = at.wrapping_add(i as u64).wrapping_sub(address) as usize;
                if offset < length && (over || !known[offset]) {
                    buf[offset] = *byte;
                    known[offset] = true;
                }
            }
        };
        for segment in &self.record.segments {
            if let Segment::Memory { address, bytes, .. } = segment {
                lay(*address, bytes, false);
            }
        }
        for (at, bytes) in &self.written {
            lay(*at, bytes, true);
        }
        match known.iter().position(|k| !k) {
            None => Ok(()),
            Some(offset) => Err(Unreadable {
                address: address.wrapping_add(offset as u64),
            }),
        }
    }
}

/// The [`Scope`] of the front.
pub struct View<'a> {
    /// Where memory comes from.
    pub source: Source<'a>,
    /// What is loaded.
    pub names: &'a dyn Names,
    /// Variables and history.
    pub variables: &'a mut Variables,
    /// The tracing process, once there is one: it shares memory for variables.
    pub keeper: Option<RefCell<&'a mut Keeper>>,
    /// The thread's registers.
    pub registers: Option<Registers>,
    /// What the probes there know of a way out of a function, with their places in the counters.
    pub returns: Vec<(u16, Returns)>,
    /// The place of the hit, and that of its probe as it was typed.
    pub site: Option<(u64, String)>,
    /// The thread's name, where it is known.
    pub comm: Option<String>,
    /// A process is not to be changed.
    pub read_only: bool,
    /// A process's memory was changed.
    pub wrote: bool,
    /// Warnings about what was evaluated.
    pub warnings: RefCell<Vec<String>>,
    /// What the named probe knows that expressions are about.
    pub reading: Option<Reading>,
}

impl<'a> View<'a> {
    /// What a hit left behind; nobody's process can be changed through that.
    pub fn of_record(
        record: &'a Record,
        returns: Returns,
        names: &'a dyn Names,
        variables: &'a mut Variables,
        keeper: Option<&'a mut Keeper>,
    ) -> View<'a> {
        View {
            source: Source::Record(Snapshot::new(record, variables)),
            names,
            variables,
            keeper: keeper.map(RefCell::new),
            registers: Some(record.header.registers),
            returns: vec![(record.header.probe, returns)],
            site: None,
            comm: None,
            read_only: false,
            wrote: false,
            warnings: RefCell::default(),
            reading: None,
        }
    }

    /// Whether what a command asks for may be done to the process.
    fn check_writable(&self) -> Result<(), ScopeError> {
        match self.source {
            Source::Live { .. } if self.read_only => Err(ScopeError::Refused(READ_ONLY.into())),
            _ => Ok(()),
        }
    }
}

/// What is said to a command that would change a process under `--read-only`.
pub const READ_ONLY: &str = "The program is not changed: --read-only was given.";

impl Scope for View<'_> {
    fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), Unreadable> {
        match &self.source {
            Source::Files => self
                .names
                .read(address, buf)
                .map_err(|address| Unreadable { address }),
            Source::Live { target, .. } => match &self.keeper {
                Some(keeper) => keeper
                    .borrow()
                    .read(*target, address, buf)
                    .map_err(|address| Unreadable { address }),
                None => Err(Unreadable { address }),
            },
            // What is read-only in the file is the same in the process (strings, code).
            Source::Record(snapshot) => snapshot.read(address, buf),
        }
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ScopeError> {
        self.check_writable()?;
        match &mut self.source {
            Source::Files => Err(Unreadable { address }.into()),
            Source::Live { target, .. } => match &mut self.keeper {
                Some(keeper) => {
                    self.wrote = true;
                    keeper
                        .get_mut()
                        .write(*target, address, bytes)
                        .map_err(|error| super::write_error(address, error))
                }
                None => Err(Unreadable { address }.into()),
            },
            Source::Record(snapshot) => {
                snapshot.written.push((address, bytes.to_vec()));
                Ok(())
            }
        }
    }

    fn registers(&self) -> Option<&Registers> {
        self.registers.as_ref()
    }

    fn set_register(&mut self, register: Register, value: u64) -> Result<(), ScopeError> {
        self.check_writable()?;
        let Some(registers) = &mut self.registers else {
            return Err(ScopeError::NoRegisters);
        };
        let mut changed = *registers;
        changed.set(register, value);
        if let (Source::Live { target, tid, .. }, Some(keeper)) = (&self.source, &mut self.keeper) {
            keeper
                .get_mut()
                .set_registers(*target, *tid, changed)
                .map_err(|error| ScopeError::Refused(super::engine_error(&error).message))?;
        }
        *registers = changed;
        Ok(())
    }

    fn vector_register(&self, name: &str) -> Option<Vec<u8>> {
        let Source::Live { target, tid, .. } = &self.source else {
            return None;
        };
        self.registers?;
        let area = self
            .keeper
            .as_ref()?
            .borrow_mut()
            .vector_registers(*target, *tid)
            .ok()?;
        crate::arch::vector_register(name, &area)
    }

    fn piece(&self, name: &str) -> Option<Result<Expr, crate::lang::Error>> {
        self.reading.as_ref()?.piece(name, self)
    }

    fn symbol(&self, name: &str) -> Option<Symbol> {
        self.names.symbol(name)
    }

    fn symbol_at(&self, address: u64) -> Option<(String, u64)> {
        self.names.symbol_at(address)
    }

    fn linkage_symbol_at(&self, address: u64) -> Option<(String, u64)> {
        self.names.linkage_symbol_at(address)
    }

    fn has_symbols(&self) -> bool {
        self.names.debug_info()
    }

    fn variable(&self, name: &str) -> Option<Value> {
        if let Source::Record(snapshot) = &self.source
            && let Some(bits) = snapshot.variables.get(name)
            && let Some(ty) = self.variables.shared_type(name)
        {
            return Some(Value::from_u64(ty.clone(), *bits));
        }
        let keeper = self.keeper.as_ref().map(RefCell::borrow);
        self.variables
            .get(name, keeper.as_ref().map(|k| k.counters()))
    }

    fn set_variable(&mut self, name: &str, value: Value) -> Result<(), ScopeError> {
        if let Source::Record(snapshot) = &mut self.source
            && self.variables.shared_type(name).is_some()
        {
            // The program changed the shared one at the hit.
            if let Some(bits) = super::variables::integer(&value) {
                snapshot.variables.insert(name.into(), bits);
            }
            return Ok(());
        }
        let keeper = self.keeper.as_ref().map(RefCell::borrow);
        self.variables
            .set(name, value, keeper.as_ref().map(|k| k.counters()));
        Ok(())
    }

    fn history(&self, number: usize) -> Option<Value> {
        self.variables.history(number)
    }

    fn history_length(&self) -> usize {
        self.variables.history_length()
    }

    fn push_history(&mut self, value: Value) -> usize {
        self.variables.push_history(value)
    }

    fn fact(&self, what: Fact) -> Option<String> {
        match (what, &self.source) {
            (Fact::Comm, Source::Live { tid, .. }) => Some(super::process::thread_name(tid.0)),
            (Fact::Comm, _) => self.comm.clone(),
            (Fact::Probe, _) => self.site.as_ref().map(|(_, probe)| probe.clone()),
            (Fact::Func, _) => {
                let pc = self.registers.as_ref().map(Registers::pc);
                let address = self.site.as_ref().map(|(address, _)| *address).or(pc)?;
                self.names.symbol_at(address).map(|(name, _)| name)
            }
        }
    }

    fn way_out(&self) -> WayOut {
        let ways = self.returns.iter().map(|(_, returns)| returns.way);
        ways.into_iter()
            .find(|way| *way != WayOut::None)
            .unwrap_or_default()
    }

    fn at_entry(&self, expr: &Expr) -> Result<u64, Unavailable> {
        if self.way_out() == WayOut::None {
            return Err(Unavailable::Entry);
        }
        let kept = self.returns.iter().find_map(|(probe, returns)| {
            let index = returns.entries.iter().position(|kept| kept == expr)?;
            Some((*probe, index as u16))
        });
        let (probe, index) = kept.ok_or(Unavailable::EntryNotKept)?;
        match &self.source {
            Source::Files => Err(Unavailable::Entry),
            Source::Record(snapshot) => snapshot.at_entry(index),
            Source::Live { target, tid, .. } => {
                let keeper = self.keeper.as_ref().ok_or(Unavailable::Entry)?;
                let values = keeper.borrow_mut().entry(*target, *tid, probe);
                let values = values.ok().flatten().ok_or(Unavailable::EntryUnknown)?;
                let value = values.iter().find(|(of, _)| *of == index);
                value.map(|(_, v)| *v).ok_or(Unavailable::EntryFault)
            }
        }
    }

    fn warn(&self, text: &str) {
        self.warnings.borrow_mut().push(text.into());
    }

    fn special(&self, what: Special) -> Option<u64> {
        match (what, &self.source) {
            (_, Source::Record(snapshot)) => snapshot.special(what),
            (Special::Now, _) => Some(clock::monotonic_ns()),
            (Special::Wall, _) => Some(clock::wall_ns()),
            (Special::Random, _) => Some(random()),
            (Special::Tid, Source::Live { tid, .. }) => Some(tid.0 as u64),
            (Special::Pid, Source::Live { pid, .. }) => Some(*pid as u64),
            (Special::Tid | Special::Pid | Special::Cpu, _) => None,
        }
    }
}

/// A random number, 63 bits.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::wire::Header;

    /// `set $n = $n + 1` and then `print $n`: the program recorded both values.
    #[test]
    fn a_variable_is_what_the_body_read_first() {
        let mut names = Variables::default();
        let counters = crate::record::shared::Counters::create().unwrap();
        let variable = names
            .share("n", &crate::lang::Type::int(), &counters)
            .unwrap();
        let value = |value| Segment::Variable { variable, value };
        let mut record = record();
        record.segments = vec![value(4), value(5)];
        let snapshot = Snapshot::new(&record, &names);
        assert_eq!(snapshot.variables.get("n"), Some(&4));
    }

    fn record() -> Record {
        Record {
            header: Header {
                mono_ns: 0,
                wall_ns: 0,
                target: 0,
                pid: 0,
                tid: 0,
                cpu: None,
                site: 0,
                probe: 0,
                hit: true,
                command: 0,
                fault: None,
                registers: Registers::default(),
            },
            segments: Vec::new(),
        }
    }

    #[test]
    fn a_snapshot_joins_its_pieces_and_lays_changes_on_top() {
        let record = Record {
            segments: vec![
                Segment::Memory {
                    address: 10,
                    asked: 2,
                    bytes: vec![1, 2],
                },
                Segment::Memory {
                    address: 12,
                    asked: 2,
                    bytes: vec![3, 4],
                },
            ],
            ..record()
        };
        let mut snapshot = Snapshot::new(&record, &Variables::default());
        let mut buf = [0; 4];
        assert_eq!(snapshot.read(10, &mut buf), Ok(()));
        assert_eq!(buf, [1, 2, 3, 4]);
        snapshot.written.push((11, vec![9]));
        assert_eq!(snapshot.read(10, &mut buf), Ok(()));
        assert_eq!(buf, [1, 9, 3, 4]);
        assert_eq!(snapshot.read(12, &mut buf), Err(Unreadable { address: 14 }));
    }
}
