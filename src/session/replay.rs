//! Showing a hit from its record: the body runs again over what was collected.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Session;
use super::breakpoint::{Disposition, Origin};
use super::messages::Known;
use super::plan::{PIECES, Plan, Returns};
use super::process;
use super::view::View;
use crate::arch::{self, ExitKind, Registers};
use crate::engine::protocol::{SiteId, Tid};
use crate::lang::statement::{Command, Context, Flow, run_body};
use crate::probe::program::Fault;
use crate::record::shared::ProbeCounters;
use crate::record::wire::{Header, Record};
use crate::record::{Calls, Hit, HitFault, ProbeSummary, Summary, clock, json, text};

/// How hits are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Show {
    /// As gdb does: the banner unless it is silent, and what the body prints.
    #[default]
    Gdb,
    /// As records, in the session's sinks.
    Records,
}

impl Show {
    /// The front is `trapline trace`: no stop is ever presented.
    pub fn never_stops(self) -> bool {
        self != Show::Gdb
    }
}

/// How many integer arguments a probe without a body shows.
const ARGUMENTS: u32 = 6;

impl Session {
    /// Shows one hit.
    pub fn replay(&mut self, index: usize, record: &Record) {
        let header = &record.header;
        let Some(probe) = self.probes.at_place(header.probe) else {
            return;
        };
        let (number, origin) = (probe.number, probe.origin);
        let disposition = probe.disposition;
        let silent = super::plan::is_silent(probe);
        if !header.hit {
            self.condition_failed(index, number, record);
            return;
        }
        if self.limit == Some(0) {
            return;
        }
        self.limit = self.limit.map(|left| left - 1);
        let bodiless = probe.body.is_none();
        let (commands, returns, known) = match self.plan_at(index, record, number) {
            Some(plan) => {
                let (place, shown) = (plan.place.clone(), plan.shown.clone());
                let (commands, returns) = (plan.commands.clone(), plan.returns.clone());
                let known = self.known_in(index, record, &place, &shown, &returns);
                (commands, returns, known)
            }
            None => Default::default(),
        };
        if self.show == Show::Gdb {
            self.announce_from_record(index, record);
            self.switching(index, Tid(header.tid));
            if !silent && origin == Origin::Break {
                self.print_banner(index, number, record);
            }
            if origin == Origin::Trace {
                let mut hit = self.hit(index, number, record, Vec::new(), None, &commands);
                known.tell(bodiless, &mut hit);
                let line = text::line(&hit, header.mono_ns as i64, text::PLAIN);
                self.output.print(&format!("{line}\n"));
            }
            let (out, fault) = self.run_recorded(index, record, &commands, returns);
            self.output.print_bytes(&out);
            if let Some(fault) = fault {
                self.output.print(&format!("{}\n", fault.message));
            }
        } else {
            let (out, fault) = self.run_recorded(index, record, &commands, returns);
            let mut hit = self.hit(index, number, record, out, fault, &commands);
            known.tell(bodiless, &mut hit);
            self.print_hit(&hit);
        }
        match disposition {
            Disposition::Keep => {}
            Disposition::Delete => {
                self.delete(number);
            }
            Disposition::Disable => {
                if let Some(probe) = self.probes.get_mut(number) {
                    probe.enabled = false;
                }
                self.stale = true;
            }
        }
    }

    fn print_banner(&mut self, index: usize, number: u32, record: &Record) {
        let header = &record.header;
        if let Some(probe) = self.probes.get(number) {
            let banner = self.hit_text(index, Tid(header.tid), probe, &header.registers);
            self.output.print(&banner);
        }
    }

    /// The record of a hit that the front was asked about, made before its body runs: the
    /// registers are those of the thread. `None` where no line is shown.
    pub fn asked_record(&mut self, tid: Tid, number: u32) -> Option<(Record, Known)> {
        let probe = self.probes.get(number)?;
        if self.show == Show::Gdb && probe.origin != Origin::Trace {
            return None;
        }
        let place = probe.place;
        let registers = self.registers(tid)?;
        let header = Header {
            mono_ns: clock::monotonic_ns(),
            wall_ns: clock::wall_ns(),
            target: self.target()?.id.0,
            // One that shares the target's memory is another process.
            pid: process::of_thread(tid.0).unwrap_or(self.target()?.pid),
            tid: tid.0,
            cpu: None,
            site: 0,
            probe: place,
            hit: true,
            command: 0,
            fault: None,
            registers: *registers,
        };
        let record = Record {
            header,
            segments: Vec::new(),
        };
        Some((record, self.known_now(tid, number)))
    }

    /// Shows such a hit, with what its body printed and what ended it.
    pub fn show_asked(
        &mut self,
        (record, known): (Record, Known),
        number: u32,
        out: Vec<u8>,
        error: Option<String>,
    ) {
        if self.limit == Some(0) || self.target().is_none() {
            return;
        }
        self.limit = self.limit.map(|left| left - 1);
        let fault = error.map(|message| HitFault {
            command: None,
            message,
        });
        let mut hit = self.hit(self.current, number, &record, out, fault, &[]);
        let bodiless = self.probes.get(number).is_some_and(|p| p.body.is_none());
        if !bodiless {
            hit.args.clear();
        }
        known.tell(bodiless, &mut hit);
        self.print_hit(&hit);
    }

    fn print_hit(&mut self, hit: &Hit) {
        match &mut self.sinks {
            Some(sinks) => sinks.hit(hit),
            None => {
                let text = text::hit(hit, hit.mono_ns as i64, text::PLAIN);
                self.output.print(&text);
            }
        }
    }

    /// The condition could not be evaluated: no hit, but not nothing either.
    fn condition_failed(&mut self, index: usize, number: u32, record: &Record) {
        let Some(fault) = &record.header.fault else {
            return;
        };
        let message = fault_text(fault);
        match self.show {
            Show::Gdb => self.output.complain(&format!(
                "Error in testing breakpoint condition:\n{message}"
            )),
            Show::Records => {
                let fault = HitFault {
                    command: None,
                    message: message.clone(),
                };
                let hit = self.hit(index, number, record, Vec::new(), Some(fault), &[]);
                let line = json::fault(&hit).unwrap_or_default();
                if !self.sinks.as_mut().is_some_and(|sinks| sinks.json(&line)) {
                    self.output.complain(&format!(
                        "warning: the condition of probe {number}: {message}"
                    ));
                }
            }
        }
    }

    /// How a site runs a probe.
    fn plan_at(&self, index: usize, record: &Record, number: u32) -> Option<&Plan> {
        let header = &record.header;
        let target = self.targets.get(index)?;
        let site = target.site(SiteId(header.site), Some(header.registers.pc()))?;
        let mut probes = site.probes.iter();
        probes.find(|(n, _)| *n == number).map(|(_, plan)| plan)
    }

    /// `[New Thread …]` for a thread that a record shows first.
    fn announce_from_record(&mut self, index: usize, record: &Record) {
        let tid = Tid(record.header.tid);
        let target = &mut self.targets[index];
        target.threads.add(tid);
        let Some(thread) = target.threads.get_mut(tid) else {
            return;
        };
        thread.handle = Some(record.header.registers.get(arch::Register::FsBase));
        if !thread.announced {
            thread.announced = true;
            let text = format!("[New {}]\n", thread.title());
            self.output.print(&text);
        }
    }

    /// Runs a body over a record; gives what it printed.
    fn run_recorded(
        &mut self,
        index: usize,
        record: &Record,
        commands: &[Command],
        returns: Returns,
    ) -> (Vec<u8>, Option<HitFault>) {
        let mut out = Vec::new();
        if let Some(fault) = &record.header.fault
            && record.header.command == PIECES
        {
            let fault = HitFault {
                command: None,
                message: fault_text(fault),
            };
            return (out, Some(fault));
        }
        let nothing_to_tell = commands.is_empty() && record.header.fault.is_none();
        if nothing_to_tell || index >= self.targets.len() {
            return (out, None);
        }
        let comm = self.comm(index, record.header.tid);
        let probe = self.probes.at_place(record.header.probe);
        let pc = record.header.registers.pc();
        let site = probe.map(|probe| (Session::named_by(probe, pc), probe.spec.clone()));
        let mut view = View {
            site,
            comm: Some(comm),
            ..View::of_record(
                record,
                returns,
                &self.targets[index].images,
                &mut self.variables,
                self.keeper.as_mut(),
            )
        };
        let mut context = Context {
            scope: &mut view,
            out: &mut out,
            state: &mut self.examine,
            disassemble: &super::disassemble,
        };
        let result = run_body(commands, &mut context, &mut |_, _| Ok(Flow::Stop));
        let fault = match (&record.header.fault, result) {
            (Some(fault), Err((command, _))) => Some(HitFault {
                command: Some(command),
                message: fault_text(fault),
            }),
            (Some(fault), Ok(_)) => Some(HitFault {
                command: Some(record.header.command),
                message: fault_text(fault),
            }),
            (None, Err((command, failure))) => Some(HitFault {
                command: Some(command),
                message: failure.to_string(),
            }),
            (None, Ok(_)) => None,
        };
        (out, fault)
    }

    fn hit(
        &mut self,
        index: usize,
        number: u32,
        record: &Record,
        out: Vec<u8>,
        fault: Option<HitFault>,
        commands: &[Command],
    ) -> Hit {
        let header = &record.header;
        let site = header.registers.pc();
        self.targets[index].threads.add(Tid(header.tid));
        let comm = self.comm(index, header.tid);
        let way_out = self
            .probes
            .get(number)
            .and_then(|probe| Session::out_at(probe, site));
        let function = match &way_out {
            Some(out) => out.function.name.clone(),
            None => self.targets[index].images.place_name(site),
        };
        let retval = way_out.map(|out| {
            let value = header.registers.get(arch::RETURN_VALUE);
            (out.kind == ExitKind::Return).then(|| format!("{value:#x}"))
        });
        Hit {
            mono_ns: header.mono_ns,
            wall_ns: header.wall_ns,
            pid: header.pid as u32,
            tid: header.tid as u32,
            comm,
            cpu: header.cpu,
            probe: number,
            site,
            function,
            msg: None,
            args: if commands.is_empty() && retval.is_none() {
                arguments(&header.registers)
            } else {
                Vec::new()
            },
            out: String::from_utf8_lossy(&out)
                .lines()
                .map(String::from)
                .collect(),
            retval,
            fault,
        }
    }

    /// The name of a thread, or what its process runs if it is gone.
    fn comm(&mut self, index: usize, tid: i32) -> String {
        let target = &mut self.targets[index];
        if let Some(thread) = target.threads.get_mut(Tid(tid)) {
            thread.learn_name();
            if !thread.name.is_empty() {
                return thread.name.clone();
            }
        }
        let file = target.program.file_name().unwrap_or_default();
        // As the kernel cuts it (TASK_COMM_LEN).
        file.to_string_lossy().chars().take(15).collect()
    }

    /// How many hits could not be shown since this was told last; `trapline trace` has it in its
    /// summary.
    pub fn tell_drops(&mut self) {
        if self.show.never_stops() {
            return;
        }
        let Some(keeper) = &self.keeper else {
            return;
        };
        let counters = keeper.counters();
        let mut list = Vec::new();
        let mut total = 0;
        for probe in self.probes.iter() {
            let drops = counters.probe(probe.place).drops.swap(0, Ordering::Relaxed);
            if drops > 0 {
                list.push(format!("breakpoint {}: {drops}", probe.number));
                total += drops;
            }
        }
        if total > 0 {
            self.output.complain(&format!(
                "warning: {total} hits are not shown, since the output could not be written as fast as they came ({}). They were counted, and their commands ran.",
                list.join(", ")
            ));
        }
    }

    /// What each probe came to.
    pub fn summary(&mut self, duration: Duration) -> Summary {
        let Some(keeper) = &self.keeper else {
            return Summary::default();
        };
        let counters = keeper.counters();
        let probes = self
            .probes
            .iter()
            .map(|probe| {
                let place = counters.probe(probe.place);
                let hits = place.hits.load(Ordering::Relaxed);
                let drops = place.drops.load(Ordering::Relaxed);
                let skipped = place.skipped.load(Ordering::Relaxed);
                let cost = place.cost_ns.load(Ordering::Relaxed);
                let records = match &self.sinks {
                    Some(sinks) => sinks.records(probe.number),
                    None => hits.saturating_sub(drops).saturating_sub(skipped),
                };
                ProbeSummary {
                    probe: probe.number,
                    location: probe.spec.clone(),
                    hits,
                    records,
                    skipped: probe.sample.is_some().then_some(skipped),
                    drops,
                    faults: place.faults.load(Ordering::Relaxed),
                    ns_per_hit: cost.checked_div(hits),
                    calls: calls(place),
                    undecided: place.undecided.load(Ordering::Relaxed),
                }
            })
            .collect();
        Summary {
            duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
            probes,
        }
    }

    /// The probes that never had a place, or none that could be armed, each with the reason and the
    /// nearest names.
    pub fn unresolved(&self) -> Vec<String> {
        self.probes
            .iter()
            .filter_map(|p| {
                let missing = p.missing.as_deref().unwrap_or("it was never loaded");
                let unarmed = self.unarmed.get(&p.number).map(String::as_str);
                let why = unarmed.or((!p.resolved).then_some(missing))?;
                Some(format!("probe {} ({}): {why}", p.number, p.spec))
            })
            .collect()
    }
}

/// What came of the calls whose beginnings were looked at; `None` if none was.
fn calls(place: &ProbeCounters) -> Option<Calls> {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let calls = Calls {
        entries: count(&place.entries),
        returns: count(&place.returns),
        dropped: count(&place.dropped),
        evicted: count(&place.evicted),
        unknown: count(&place.unknown),
    };
    (calls != Calls::default()).then_some(calls)
}

/// `arg1=0x…` of the integer arguments in registers.
fn arguments(registers: &Registers) -> Vec<(String, String)> {
    (1..=ARGUMENTS)
        .filter_map(|number| match arch::argument(number)? {
            arch::Argument::Register(register) => Some((
                format!("arg{number}"),
                format!("{:#x}", registers.get(register)),
            )),
            arch::Argument::Stack(_) => None,
        })
        .collect()
}

/// gdb's text of a fault.
pub fn fault_text(fault: &Fault) -> String {
    match fault {
        Fault::Memory(address) => format!("Cannot access memory at address {address:#x}"),
        Fault::DivisionByZero => "Division by zero".into(),
        Fault::Unavailable(what) => what.to_string(),
    }
}

/// The summary as a person reads it.
pub fn summary_lines(summary: &Summary) -> Vec<String> {
    let seconds = summary.duration_ns as f64 / 1e9;
    let mut lines = vec![format!("trapline: {seconds:.3} s")];
    for probe in &summary.probes {
        let mut line = format!(
            "  probe {}: {}: {} hits",
            probe.probe, probe.location, probe.hits
        );
        if probe.drops > 0 {
            line.push_str(&format!(
                ", {} dropped (the reader was too slow)",
                probe.drops
            ));
        }
        if let Some(skipped) = probe.skipped {
            line.push_str(&format!(", {skipped} left out (sample)"));
        }
        if probe.faults > 0 {
            line.push_str(&format!(", {} faults", probe.faults));
        }
        if probe.undecided > 0 {
            line.push_str(&format!(
                ", {} passes without a value that the condition needs",
                probe.undecided
            ));
        }
        if let Some(ns) = probe.ns_per_hit {
            line.push_str(&format!(", {:.1} us a hit", ns as f64 / 1e3));
        }
        lines.push(line);
        lines.extend(probe.calls.as_ref().map(calls_line));
    }
    lines
}

/// `entries`, and what became of them.
fn calls_line(calls: &Calls) -> String {
    let mut line = format!("    {} entries: {} returned", calls.entries, calls.returns);
    for (count, what) in [
        (
            calls.dropped,
            "left by an exception, a longjmp or the thread's end",
        ),
        (calls.evicted, "forgotten (too many at one time)"),
        (calls.open(), "still inside"),
    ] {
        if count > 0 {
            line.push_str(&format!(", {count} {what}"));
        }
    }
    if calls.unknown > 0 {
        line.push_str(&format!(
            "; {} more returned that had begun before",
            calls.unknown
        ));
    }
    line
}
