//! Watchpoints: expressions whose memory the processor watches.
//!
//! The memory that an expression reads is what is watched; what it reads may change when the program
//! goes on, so it is looked at again before each time. The keeper tells of memory that has changed
//! (or, for a read, has not); the expression's value is compared here.

use std::cell::{Cell, RefCell};

use super::breakpoint::{Event, Probe};
use super::sites::is_gone;
use super::view::View;
use super::{Session, engine_error};
use crate::arch::{DEBUG_SLOTS, Register, Registers, debug_slots_for};
use crate::engine::protocol::{Access, Tid, Trigger, WatchSpec};
use crate::error::{Error, fail};
use crate::lang::scope::{Fact, Special, Unavailable};
use crate::lang::{self, Expr, Scope, ScopeError, Symbol, Type, Unreadable, Value};
use crate::probe::program::Program;

/// What a watchpoint watches, and what was there.
#[derive(Debug, Clone)]
pub struct Watched {
    /// What of it stops the program.
    pub access: Access,
    what: What,
    /// The value that was shown last; `None` if it could not be read.
    value: Option<Value>,
    /// It was looked at since the program began, and nobody but the program has changed it.
    known: bool,
    /// Where it is, as it was looked at last.
    regions: Vec<(u64, u32)>,
    /// Its bytes are its value, so that the keeper can tell whether that has changed.
    plain: bool,
    /// What decides about a change there, and the condition that it was made of.
    program: Option<(Option<String>, Program)>,
}

#[derive(Debug, Clone)]
enum What {
    /// It is evaluated each time.
    Expression(String),
    /// `-location`: what an expression stood for when it was set.
    Place(Type, u64),
}

/// An expression that was evaluated, and what that took.
struct Looked {
    value: Result<Value, lang::Error>,
    regions: Vec<(u64, u32)>,
    /// Something else than memory was asked: registers, variables.
    other: bool,
}

impl Looked {
    /// What was read is the value, and nothing else.
    fn is_plain(&self) -> bool {
        let Ok(value) = &self.value else {
            return false;
        };
        let whole = |address| (address, value.ty().size() as u32);
        value.address().map(whole).as_slice() == self.regions.as_slice()
    }
}

/// Memory as it was at one moment: address and bytes.
type Moment = [(u64, Vec<u8>)];

impl Watched {
    /// `Hardware watchpoint`, as gdb calls it.
    pub fn noun(&self) -> &'static str {
        match self.access {
            Access::Write => "Hardware watchpoint",
            Access::Read => "Hardware read watchpoint",
            Access::Any => "Hardware access (read/write) watchpoint",
        }
    }

    /// Its type in `info breakpoints`.
    pub fn kind(&self) -> &'static str {
        match self.access {
            Access::Write => "hw watchpoint",
            Access::Read => "read watchpoint",
            Access::Any => "acc watchpoint",
        }
    }

    /// The command that makes it.
    pub fn command(&self) -> &'static str {
        match self.access {
            Access::Write => "watch",
            Access::Read => "rwatch",
            Access::Any => "awatch",
        }
    }
}

impl Session {
    /// What `watch` and its kin make of an expression; `location`: it is about the place that the
    /// expression stands for now.
    pub fn watched(
        &mut self,
        access: Access,
        expression: &str,
        location: bool,
    ) -> Result<Watched, Error> {
        let tid = self.target().map(|target| target.selected);
        let looked = self.look(tid, &What::Expression(expression.into()), &[])?;
        let failed = |error: &lang::Error| !matches!(error, lang::Error::Memory(_));
        if let Some(error) = looked.value.as_ref().err().filter(|error| failed(error)) {
            return Err(Error::new(error.to_string()));
        }
        if looked.regions.is_empty() && !looked.other {
            fail!("Cannot watch constant value `{expression}'.");
        }
        let (what, looked) = match location {
            true => {
                let what = self.place_of_expression(tid, expression)?;
                let looked = self.look(tid, &what, &[])?;
                (what, looked)
            }
            false => (What::Expression(expression.into()), looked),
        };
        if looked.other || looked.regions.is_empty() {
            fail!(
                "{expression} is not in memory alone, which is what the processor can watch; software watchpoints are not supported. With -location the place is found once and then watched."
            );
        }
        check_size(expression, &looked.regions)?;
        let (running, plain) = (tid.is_some(), looked.is_plain());
        Ok(Watched {
            access,
            what,
            value: looked.value.ok(),
            known: running,
            plain,
            regions: looked.regions,
            program: None,
        })
    }

    fn place_of_expression(&mut self, tid: Option<Tid>, text: &str) -> Result<What, Error> {
        let value = self.with_view_of(tid, |view, _| {
            let expr = lang::parse(text, view)?;
            lang::evaluate(&expr, view)
        });
        let value = value.map_err(|error| Error::new(error.to_string()))?;
        match value.address() {
            Some(address) => Ok(What::Place(value.ty().clone(), address)),
            None => fail!("Attempt to take address of value not located in memory."),
        }
    }

    /// Evaluates what is watched; memory is as it was at a moment, as far as that is known.
    fn look(&mut self, tid: Option<Tid>, what: &What, moment: &Moment) -> Result<Looked, Error> {
        self.with_view_of(tid, |view, _| {
            let expr = match what {
                What::Expression(text) => {
                    let expr = lang::parse(text, view);
                    Some(expr.map_err(|error| Error::new(error.to_string()))?)
                }
                What::Place(..) => None,
            };
            let mut recorder = Recorder {
                view,
                moment,
                regions: RefCell::default(),
                other: Cell::new(false),
            };
            let value = match (expr, what) {
                (None, What::Place(ty, address)) => Ok(Value::at(ty.clone(), *address)),
                (Some(expr), _) => lang::evaluate(&expr, &mut recorder),
                (None, _) => Err(lang::Error::new("Nothing to watch.")),
            };
            let value = value.and_then(|value| value.fetched(&recorder));
            Ok(Looked {
                value,
                other: recorder.other.get(),
                regions: recorder.regions.take(),
            })
        })
    }

    /// Makes the keeper watch what is to be watched, wherever it is now.
    pub(super) fn sync_watches(&mut self) -> Result<(), Error> {
        // What came of the first process has what it does not share.
        let Some(target) = self.targets.first() else {
            return Ok(());
        };
        let (id, tid) = (target.id, target.selected);
        if target.watches.is_empty() && !self.probes.iter().any(is_watch) {
            return Ok(());
        }
        let numbers: Vec<u32> = self
            .probes
            .iter()
            .filter(|probe| is_watch(probe))
            .map(|probe| probe.number)
            .collect();
        for number in &numbers {
            self.about(0, |session| session.look_again(*number, tid));
        }
        let mut specs: Vec<(u32, WatchSpec)> = numbers
            .iter()
            .filter_map(|number| self.watch_spec(*number))
            .collect();
        specs.sort_by_key(|(_, spec)| spec.regions.first().copied());
        let wanted: Vec<WatchSpec> = specs.iter().map(|(_, spec)| spec.clone()).collect();
        if self.targets[0].watches == wanted {
            return Ok(());
        }
        let refused = match self.keeper()?.watch(id, wanted.clone()) {
            Ok(refused) => refused,
            // It has ended meanwhile, which an event tells.
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(engine_error(&error)),
        };
        if refused.is_empty() {
            self.targets[0].watches = wanted;
            return Ok(());
        }
        let of = |(number, spec): &(u32, WatchSpec)| {
            let refused = refused.contains(&spec.probe);
            refused.then(|| format!("Could not insert hardware watchpoint {number}.\n"))
        };
        let lines: String = specs.iter().filter_map(of).collect();
        fail!(
            "Warning:\n{lines}Could not insert hardware breakpoints:\nYou may have requested too many hardware breakpoints/watchpoints.\n"
        )
    }

    fn watch_spec(&self, number: u32) -> Option<(u32, WatchSpec)> {
        let probe = self.probes.get(number).filter(|probe| probe.enabled)?;
        let watched = watched_by(probe)?;
        let spec = WatchSpec {
            probe: probe.place,
            access: watched.access,
            regions: watched.regions.clone(),
            condition: watched.program.as_ref().map(|(_, program)| program.clone()),
        };
        Some((number, spec))
    }

    /// Finds out where a watchpoint's memory is now, and what is there if that is not known.
    fn look_again(&mut self, number: u32, tid: Tid) {
        let Some(what) = self.probes.get(number).and_then(watched_by) else {
            return;
        };
        let (what, known) = (what.what.clone(), what.known);
        let Ok(looked) = self.look(Some(tid), &what, &[]) else {
            return;
        };
        if let Some(watched) = self.probes.get_mut(number).and_then(watched_by_mut) {
            watched.plain = looked.is_plain();
            if check_size("", &looked.regions).is_ok() {
                watched.regions = looked.regions;
            }
            if !known {
                watched.value = looked.value.ok();
                watched.known = true;
            }
        }
        self.decide_there(number);
    }

    /// Makes the program that decides about a watchpoint in the keeper, if it can be decided there.
    fn decide_there(&mut self, number: u32) {
        let Some(probe) = self.probes.get(number) else {
            return;
        };
        let condition = probe.condition.clone();
        let Some(watched) = watched_by(probe) else {
            return;
        };
        let made_of = watched.program.as_ref().map(|(of, _)| of);
        if watched.plain && made_of == Some(&condition) && !self.stale && !self.variables.retyped {
            return;
        }
        let program = match watched.plain {
            true => self.condition_program(condition.as_deref()),
            false => None,
        };
        if let Some(watched) = self.probes.get_mut(number).and_then(watched_by_mut) {
            watched.program = program.map(|program| (condition, program));
        }
    }

    /// There is another process: what was known of the last one is not true of it.
    pub(super) fn forget_watched(&mut self) {
        for watched in self.probes.iter_mut().filter_map(watched_by_mut) {
            watched.known = false;
            watched.regions.clear();
            watched.program = None;
        }
    }

    /// Another program runs, in which what was watched has no meaning; gdb forgets it too.
    pub(super) fn delete_watched(&mut self) {
        let watch = self.probes.iter().filter(|probe| is_watch(probe));
        let numbers: Vec<u32> = watch.map(|probe| probe.number).collect();
        for number in numbers {
            self.delete(number);
        }
    }

    /// What was told of a watchpoint's value is no longer true: a command has written memory.
    pub(super) fn watched_memory_written(&mut self) {
        for watched in self.probes.iter_mut().filter_map(watched_by_mut) {
            watched.known = false;
        }
    }

    /// The watchpoints that a thread stops for, and what is said of them.
    pub(super) fn watch_hits(&mut self, index: usize, tid: Tid) -> (Vec<u32>, String) {
        let thread = self.targets[index].threads.get_mut(tid);
        let triggers = thread.map_or_else(Vec::new, |thread| std::mem::take(&mut thread.touched));
        let mut hits = Vec::new();
        let mut said = String::new();
        for trigger in triggers {
            let Some(number) = self
                .probes
                .at_place(trigger.probe)
                .map(|probe| probe.number)
            else {
                continue;
            };
            if let Some(text) = self.watch_hit(index, tid, number, &trigger) {
                hits.push((number, text));
            }
        }
        hits.sort_by_key(|(number, _)| *number);
        let numbers = hits.iter().map(|(number, _)| *number).collect();
        said.extend(hits.into_iter().map(|(_, text)| text));
        (numbers, said)
    }

    /// What is said of one, if it stops the thread.
    fn watch_hit(
        &mut self,
        index: usize,
        tid: Tid,
        number: u32,
        trigger: &Trigger,
    ) -> Option<String> {
        let probe = self.probes.get(number)?;
        let watched = watched_by(probe)?;
        let (what, access) = (watched.what.clone(), watched.access);
        let starts: Vec<u64> = watched
            .regions
            .iter()
            .map(|(address, _)| *address)
            .collect();
        let last = watched.value.clone();
        let mut at = |bytes: &[Vec<u8>]| {
            let moment: Vec<_> = starts.iter().copied().zip(bytes.iter().cloned()).collect();
            Some(self.look(Some(tid), &what, &moment).ok()?.value.ok())
        };
        let after = at(&trigger.now)?;
        // The last value that was looked at here may be that of a hit long ago.
        let before = match trigger.decided {
            true => at(&trigger.before)?,
            false => last,
        };
        let bytes =
            |value: &Option<Value>| value.as_ref().and_then(|value| value.contents().cloned());
        let changed = bytes(&before) != bytes(&after);
        if let Some(watched) = self.probes.get_mut(number).and_then(watched_by_mut) {
            watched.value = after.clone();
        }
        if access == Access::Write && !changed {
            return None;
        }
        let counts = trigger.decided || self.holds(number, tid) && self.counts(number);
        if !counts {
            return None;
        }
        let [old, new] = [&before, &after].map(|value| self.shown(tid, value.as_ref()));
        let values = match access {
            Access::Any | Access::Write if changed => {
                format!("Old value = {old}\nNew value = {new}\n")
            }
            _ => format!("Value = {new}\n"),
        };
        let probe = self.probes.get(number)?;
        let prefix = self.hit_prefix(index, tid);
        Some(format!("\n{prefix}{}\n\n{values}", probe.mention()))
    }

    fn shown(&mut self, tid: Tid, value: Option<&Value>) -> String {
        let Some(value) = value else {
            return "<unreadable>".into();
        };
        self.with_view_of(Some(tid), |view, _| {
            lang::print_value(value, None, view).unwrap_or_else(|error| format!("<error: {error}>"))
        })
    }
}

fn is_watch(probe: &Probe) -> bool {
    watched_by(probe).is_some()
}

fn watched_by(probe: &Probe) -> Option<&Watched> {
    match &probe.event {
        Some(Event::Watch(watched)) => Some(watched),
        _ => None,
    }
}

fn watched_by_mut(probe: &mut Probe) -> Option<&mut Watched> {
    match &mut probe.event {
        Some(Event::Watch(watched)) => Some(watched),
        _ => None,
    }
}

/// Refuses what no processor can watch, whatever else is watched.
fn check_size(expression: &str, regions: &[(u64, u32)]) -> Result<(), Error> {
    let slots = |(address, length): &(u64, u32)| debug_slots_for(*address, (*length).into());
    let needed: usize = regions.iter().map(slots).sum();
    if needed <= DEBUG_SLOTS {
        return Ok(());
    }
    let bytes: u64 = regions.iter().map(|(_, length)| u64::from(*length)).sum();
    fail!(
        "{expression} takes {bytes} bytes in more than {DEBUG_SLOTS} pieces of at most 8, which is what the processor can watch; software watchpoints are not supported."
    )
}

/// Notes what of memory is read, and gives it as it was at a moment.
struct Recorder<'a, 'v> {
    view: &'a mut View<'v>,
    moment: &'a Moment,
    regions: RefCell<Vec<(u64, u32)>>,
    other: Cell<bool>,
}

impl Recorder<'_, '_> {
    fn note(&self, address: u64, length: usize) {
        let Ok(length) = u32::try_from(length) else {
            return self.other.set(true);
        };
        let mut regions = self.regions.borrow_mut();
        let inside = |(start, have): &(u64, u32)| {
            *start <= address
                && address.saturating_add(length.into()) <= start.saturating_add((*have).into())
        };
        if length > 0 && !regions.iter().any(inside) {
            regions.push((address, length));
        }
    }
}

/// What is said to an expression that would change something each time it is looked at.
const NO_CHANGES: &str = "An expression that changes something cannot be watched.";

impl Scope for Recorder<'_, '_> {
    fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), Unreadable> {
        self.note(address, buf.len());
        let then = self.moment.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(buf.len())?)
        });
        match then {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => self.view.read(address, buf),
        }
    }

    fn registers(&self) -> Option<&Registers> {
        self.other.set(true);
        self.view.registers()
    }

    fn set_register(&mut self, _: Register, _: u64) -> Result<(), ScopeError> {
        Err(ScopeError::Refused(NO_CHANGES.into()))
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), ScopeError> {
        Err(ScopeError::Refused(NO_CHANGES.into()))
    }

    fn vector_register(&self, name: &str) -> Option<Vec<u8>> {
        self.other.set(true);
        self.view.vector_register(name)
    }

    fn symbol(&self, name: &str) -> Option<Symbol> {
        self.view.symbol(name)
    }

    fn symbol_at(&self, address: u64) -> Option<(String, u64)> {
        self.view.symbol_at(address)
    }

    fn has_symbols(&self) -> bool {
        self.view.has_symbols()
    }

    fn variable(&self, name: &str) -> Option<Value> {
        self.other.set(true);
        self.view.variable(name)
    }

    fn set_variable(&mut self, _: &str, _: Value) -> Result<(), ScopeError> {
        Err(ScopeError::Refused(NO_CHANGES.into()))
    }

    fn history(&self, number: usize) -> Option<Value> {
        self.view.history(number)
    }

    fn history_length(&self) -> usize {
        self.view.history_length()
    }

    fn special(&self, what: Special) -> Option<u64> {
        self.other.set(true);
        self.view.special(what)
    }

    fn fact(&self, what: Fact) -> Option<String> {
        self.other.set(true);
        self.view.fact(what)
    }

    fn at_entry(&self, _: &Expr) -> Result<u64, Unavailable> {
        Err(Unavailable::Entry)
    }
}
