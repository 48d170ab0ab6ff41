//! A hit: from the trap to the thread running again, with one stop and at most six system calls
//! (wait, registers, one read of all memory, a write if the body changes something, registers,
//! continue).

use std::sync::atomic::Ordering;

use super::crash::Point;
use super::entries::{Entries, Frame, Values};
use super::memory::Memory;
use super::site::{PlacedSlot, Site, Sites};
use super::stop::Stopped;
use super::sys::{self, Remote};
use super::target::{Target, failure};
use crate::arch::{Register, Registers};
use crate::engine::protocol::{Call, Event, Failure, Reason, SiteId, Then};
use crate::probe::interpret::{self, Machine, Outcome};
use crate::probe::program::{Fault, Program, Special, Unavailable, Width};
use crate::record::clock;
use crate::record::shared::Counters;
use crate::record::wire::{Builder, Header};

/// `SEGV_MAPERR` (`<asm-generic/siginfo.h>`): nothing is mapped there.
const SEGV_MAPERR: i32 = 1;

/// A thread without an rseq area is asked for it at this many hits, then no more.
const RSEQ_TRIES: u8 = 8;

/// The most a record holds; what goes beyond is cut, visibly.
const RECORD_MAX: usize = 1 << 20;

/// What a hit works in; used again by the next one.
#[derive(Default)]
pub struct HitSpace {
    ahead: Ahead,
    values: Vec<u64>,
    builder: Builder,
    chunk: Vec<u8>,
    /// How long the thread is to be held, nanoseconds.
    delay: u64,
    random: Random,
}

/// Random numbers, by xorshift64* (Vigna 2016).
struct Random(u64);

impl Default for Random {
    fn default() -> Random {
        Random(clock::wall_ns() | 1)
    }
}

impl Random {
    /// 63 bits.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 1
    }
}

/// Memory that was read before the programs run.
#[derive(Default)]
struct Ahead {
    remote: Vec<Remote>,
    /// Address, length, and where in `bytes`.
    pieces: Vec<(u64, usize, usize)>,
    bytes: Vec<u8>,
}

impl Ahead {
    fn start(&mut self) {
        self.remote.clear();
        self.pieces.clear();
        self.bytes.clear();
    }

    fn add(&mut self, address: u64, length: usize) {
        self.remote.push(sys::remote(address, length));
        self.pieces.push((address, length, self.bytes.len()));
        self.bytes.resize(self.bytes.len() + length, 0);
    }

    /// Reads all pieces; those behind an unreadable place are forgotten.
    fn read(&mut self, tid: i32, sites: &Sites) {
        if self.remote.is_empty() {
            return;
        }
        let came = sys::read_vectored(tid, &self.remote, &mut self.bytes).unwrap_or(0);
        self.pieces.retain(|(_, length, at)| at + length <= came);
        for (address, length, at) in &self.pieces {
            sites.mask(*address, &mut self.bytes[*at..at + length]);
        }
    }

    fn get(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.pieces.iter().find_map(|(start, have, at)| {
            let offset = address.checked_sub(*start)?;
            let inside = offset.checked_add(length as u64)? <= *have as u64;
            let from = at + offset as usize;
            inside
                .then(|| self.bytes.get(from..from + length))
                .flatten()
        })
    }

    /// Remembers what was read on the way, unless it is known.
    fn learn(&mut self, address: u64, bytes: &[u8]) {
        if !bytes.is_empty() && self.get(address, bytes.len()).is_none() {
            self.pieces.push((address, bytes.len(), self.bytes.len()));
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// A write happened: what was read there before is no longer true.
    fn forget(&mut self, address: u64, length: usize) {
        let end = address.saturating_add(length as u64);
        self.pieces
            .retain(|(start, have, _)| end <= *start || start + *have as u64 <= address);
    }
}

/// Who and when, for the record.
#[derive(Clone, Copy)]
struct Moment {
    mono_ns: u64,
    pid: i32,
    tid: i32,
    cpu: Option<u32>,
}

impl Target {
    /// A thread has trapped behind the int3 at `at`.
    pub(super) fn hit(&mut self, stopped: Stopped, mut registers: Registers, at: u64) {
        let mono_ns = clock::monotonic_ns();
        let rseq = self.rseq(stopped.tid());
        let Some(site) = self.sites.get(at) else {
            return;
        };
        let ahead = &mut self.work.ahead;
        ahead.start();
        for (address, length) in site.plan.ranges(&registers) {
            ahead.add(address, length);
        }
        // The processor is asked last: an unreadable range makes it unknown, nothing else.
        if let Some(rseq) = rseq {
            ahead.add(rseq + 4, 4);
        }
        ahead.read(stopped.tid(), &self.sites);
        self.crash.pass(Point::Read);
        let ahead = &self.work.ahead;
        if site.doubtful && !fresh(site, ahead, &registers) && !self.is_site_trap(&stopped) {
            return self.signal(stopped, libc::SIGTRAP);
        }
        let cpu = rseq
            .and_then(|rseq| ahead.get(rseq + 4, 4))
            .and_then(|bytes| Some(u32::from_ne_bytes(bytes.try_into().ok()?)));
        if let Some(cpu) = cpu {
            self.follow.borrow_mut().saw(cpu);
        }
        let Some(stopped) = self.repair_signal_state(stopped) else {
            return;
        };
        let tid = stopped.tid();
        registers.set(Register::Rip, at);
        let thread = self.threads.get_mut(&tid);
        let pid = thread.as_ref().map_or(self.pid, |thread| thread.pid);
        if thread.is_some_and(|thread| thread.was_counted(at, registers.sp())) {
            return self.pass(stopped, registers, at);
        }
        if pid != self.pid && self.is_let_go(pid) {
            return self.pass(stopped, registers, at);
        }
        let moment = Moment {
            mono_ns,
            pid,
            tid,
            cpu,
        };
        match self.run_probes(&mut registers, at, moment) {
            Some((site, probe)) => {
                self.work.delay = 0;
                let _ = stopped.set_registers(&registers);
                let pass = (registers.pc() == at).then_some(at);
                let reason = Reason::Probe { site, probe };
                let patience = self.sites.get(at).and_then(|site| site.patience(probe));
                match (patience, pass) {
                    (Some(_), Some(at)) if self.patience.absent => {
                        self.pass(stopped, registers, at)
                    }
                    (patience, pass) => {
                        self.tell_stopped(stopped, 0, pass, reason);
                        patience.into_iter().for_each(|it| self.wait_at_most(it));
                    }
                }
            }
            None if self.work.delay > 0 => {
                let ns = std::mem::take(&mut self.work.delay);
                self.delay(stopped, registers, at, ns);
            }
            None if registers.pc() == at => self.pass(stopped, registers, at),
            None => {
                let _ = stopped.set_registers(&registers);
                self.go(stopped, 0);
            }
        }
    }

    /// Runs every probe of a site in number order; gives the first one that stops the thread.
    fn run_probes(
        &mut self,
        registers: &mut Registers,
        at: u64,
        moment: Moment,
    ) -> Option<(SiteId, u16)> {
        let mut stops = None;
        // The list is taken out while the programs run, since they may write over sites.
        let site = self.sites.get_mut(at)?;
        let shared = self.counters.clone();
        let probes = std::mem::take(&mut site.probes);
        let id = site.id;
        for probe in &probes {
            let counters = shared.probe(probe.probe);
            if counters.enabled.load(Ordering::Acquire) == 0 {
                continue;
            }
            let before = *registers;
            let (outcome, left) = self.run(&probe.program, probe.probe, registers, moment);
            self.crash.pass(Point::Ran);
            match outcome.fault {
                None => {}
                _ if probe.then == Then::Nothing => {}
                // No pass without a value can meet a condition on it.
                Some(Fault::Unavailable(_)) if !outcome.hit => {
                    counters.undecided.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Some(_) => {
                    counters.faults.fetch_add(1, Ordering::Relaxed);
                }
            }
            match probe.then {
                Then::Nothing => {}
                Then::Continue => self.record(outcome, &before, id, probe.probe, moment),
                Then::StopOnFault if !outcome.hit && outcome.fault.is_some() => {
                    self.record(outcome, &before, id, probe.probe, moment);
                    if counters.hit() {
                        stops = stops.or(Some((id, probe.probe)));
                    }
                }
                Then::Stop | Then::StopOnFault if outcome.hit => {
                    stops = stops.or(Some((id, probe.probe)));
                    if let (Some(left), Some(thread)) = (left, self.threads.get_mut(&moment.tid)) {
                        thread.entries.retain(|(of, _)| *of != probe.probe);
                        thread.entries.push((probe.probe, left));
                    }
                }
                Then::Stop | Then::StopOnFault => {}
            }
            let cost = clock::monotonic_ns().saturating_sub(moment.mono_ns);
            counters.cost_ns.fetch_add(cost, Ordering::Relaxed);
        }
        if let Some(site) = self.sites.get_mut(at) {
            site.probes = probes;
        }
        stops
    }

    /// Runs a program for a thread that stands at no site.
    pub(super) fn decide(
        &mut self,
        program: &Program,
        probe: u16,
        tid: i32,
        registers: &mut Registers,
    ) -> Outcome {
        self.work.ahead.start();
        let thread = self.threads.get(&tid);
        let moment = Moment {
            mono_ns: clock::monotonic_ns(),
            pid: thread.map_or(self.pid, |thread| thread.pid),
            tid,
            cpu: None,
        };
        self.run(program, probe, registers, moment).0
    }

    /// Runs a program; gives also what the call had kept that ends here, if it was seen to begin.
    fn run(
        &mut self,
        program: &Program,
        probe: u16,
        registers: &mut Registers,
        moment: Moment,
    ) -> (Outcome, Option<Option<Values>>) {
        let mut machine = HitMachine {
            memory: &self.memory,
            sites: &mut self.sites,
            ahead: &mut self.work.ahead,
            builder: &mut self.work.builder,
            chunk: &mut self.work.chunk,
            delay: &mut self.work.delay,
            random: &mut self.work.random,
            registers,
            counters: &self.counters,
            probe,
            moment,
            entries: &mut self.entries,
            left: None,
        };
        machine.builder.start();
        let outcome = interpret::run(program, &mut machine, &mut self.work.values);
        (outcome, machine.left)
    }

    /// Writes the record of a hit, or of a condition that could not be evaluated.
    fn record(
        &mut self,
        outcome: Outcome,
        before: &Registers,
        site: SiteId,
        probe: u16,
        moment: Moment,
    ) {
        if !outcome.hit && outcome.fault.is_none() {
            return;
        }
        let header = Header {
            mono_ns: moment.mono_ns,
            wall_ns: clock::wall_ns(),
            target: self.id.0,
            pid: moment.pid,
            tid: moment.tid,
            cpu: moment.cpu,
            site: site.0,
            probe,
            hit: outcome.hit,
            command: outcome.command,
            fault: outcome.fault,
            registers: *before,
        };
        if !self.ring.push(self.work.builder.finish(&header)) {
            let drops = &self.counters.probe(probe).drops;
            drops.fetch_add(1, Ordering::Relaxed);
        }
        self.crash.pass(Point::Recorded);
    }

    /// Sends a thread past a site whose int3 stays in: through the slot, or by doing its call.
    pub(super) fn pass(&mut self, stopped: Stopped, mut registers: Registers, at: u64) {
        let Some(site) = self.sites.get(at) else {
            return self.back_to(stopped, registers, at);
        };
        if site.displaced.is_call() {
            return self.do_call(stopped, registers, at);
        }
        let mut word = [0; 8];
        if site.by_hand && self.memory.read(registers.sp(), &mut word).is_ok() {
            registers.set(Register::Rsp, registers.sp().wrapping_add(8));
            return self.back_to(stopped, registers, u64::from_le_bytes(word));
        }
        let placed = site.slot.as_ref().map(|slot| slot.address);
        let (stopped, slot) = match placed {
            Some(slot) => (Some(stopped), Ok(slot)),
            None => self.place_slot(stopped, at),
        };
        let Some(stopped) = stopped else {
            return;
        };
        match slot {
            Ok(slot) => {
                registers.set(Register::Rip, slot);
                let _ = stopped.set_registers(&registers);
                self.crash.pass(Point::Moved);
                self.go(stopped, 0);
                self.crash.pass(Point::Resumed);
            }
            Err(why) => self.lose_site(stopped, registers, at, why),
        }
    }

    /// Writes the slot of a site, on a page near it.
    fn place_slot(&mut self, stopped: Stopped, at: u64) -> (Option<Stopped>, Result<u64, Failure>) {
        let mut stopped = Some(stopped);
        let address = match self.slots.take(at) {
            Some(address) => address,
            None => {
                let Some(thread) = stopped.take() else {
                    return (None, Err(Failure::NotStopped));
                };
                let (thread, made) = self.slots.add(&self.memory, thread, at);
                stopped = thread;
                self.crash.pass(Point::SlotPage);
                match made.ok().and_then(|()| self.slots.take(at)) {
                    Some(address) => address,
                    None => return (stopped, Err(failure(Call::Other, &no_room()))),
                }
            }
        };
        (stopped, self.write_slot(at, address))
    }

    fn write_slot(&mut self, at: u64, address: u64) -> Result<u64, Failure> {
        let site = self.sites.get(at).ok_or(Failure::NoTarget)?;
        let code = site
            .displaced
            .slot(address)
            .map_err(|why| Failure::Instruction {
                address: at,
                why: why.to_string(),
            })?;
        self.memory
            .write_text(address, &code.code)
            .map_err(|address| Failure::Memory { address })?;
        self.sites.place(at, PlacedSlot { address, code });
        Ok(address)
    }

    /// A site that cannot be passed is taken out, and the front is told: the target goes on.
    fn lose_site(&mut self, stopped: Stopped, registers: Registers, at: u64, why: Failure) {
        let id = self.sites.get(at).map(|site| site.id);
        let _ = self.sites.take_out(&self.memory, at);
        if let Some(site) = id {
            let target = self.id;
            self.front
                .event(Event::SiteLost { target, site, why }, None);
        }
        self.back_to(stopped, registers, at);
    }

    /// Does a `call` for the thread: it would push its slot's address otherwise.
    fn do_call(&mut self, stopped: Stopped, mut registers: Registers, at: u64) {
        let mut failed = 0;
        let sp = registers.sp().wrapping_sub(8);
        let call = self.sites.get(at).and_then(|site| {
            site.displaced.call(&registers, &mut |address| {
                let mut word = [0; 8];
                failed = address;
                self.memory.read(address, &mut word).ok()?;
                Some(u64::from_le_bytes(word))
            })
        });
        let pushed = call.and_then(|call| {
            // POKEDATA lets the stack grow as the push itself would.
            failed = sp;
            sys::poke(stopped.tid(), sp, call.return_address).ok()?;
            Some(call.target)
        });
        match pushed {
            Some(target) => {
                registers.set(Register::Rsp, sp);
                registers.set(Register::Rip, target);
                let _ = stopped.set_registers(&registers);
                self.crash.pass(Point::Moved);
                self.go(stopped, 0);
                self.crash.pass(Point::Resumed);
            }
            None => self.fault_at(stopped, registers, at, failed),
        }
    }

    /// The instruction at a site would fault: the thread gets the fault there.
    fn fault_at(&mut self, stopped: Stopped, registers: Registers, at: u64, address: u64) {
        let _ = stopped.set_registers(&registers);
        if let Some(thread) = self.threads.get_mut(&stopped.tid()) {
            thread.mark(at, registers.sp());
        }
        if let Ok(mut info) = sys::signal_info(stopped.tid()) {
            info.si_signo = libc::SIGSEGV;
            info.si_code = SEGV_MAPERR;
            super::signals::set_address(&mut info, address);
            let _ = sys::set_signal_info(stopped.tid(), &info);
        }
        self.go(stopped, libc::SIGSEGV);
    }

    fn rseq(&mut self, tid: i32) -> Option<u64> {
        let thread = self.threads.get_mut(&tid)?;
        if thread.rseq.is_none() && thread.rseq_missed < RSEQ_TRIES {
            thread.rseq = sys::rseq_address(tid);
            thread.rseq_missed += 1;
        }
        thread.rseq
    }
}

fn no_room() -> std::io::Error {
    std::io::Error::from_raw_os_error(libc::ENOMEM)
}

/// True if the word at rsp shows that a site's push has not run: right behind it the word is the
/// pushed register. (A SIGTRAP that somebody sent would have to arrive exactly there.)
fn fresh(site: &Site, ahead: &Ahead, registers: &Registers) -> bool {
    let pushes = site.displaced.is_push_register();
    let register = pushes.filter(|register| *register != Register::Rsp);
    let word = ahead.get(registers.sp(), 8);
    match (register, word) {
        (Some(register), Some(word)) => *word != registers.get(register).to_le_bytes(),
        _ => false,
    }
}

/// One probe's program at work on one stopped thread.
struct HitMachine<'a> {
    memory: &'a Memory,
    sites: &'a mut Sites,
    ahead: &'a mut Ahead,
    builder: &'a mut Builder,
    chunk: &'a mut Vec<u8>,
    delay: &'a mut u64,
    random: &'a mut Random,
    registers: &'a mut Registers,
    counters: &'a Counters,
    probe: u16,
    moment: Moment,
    entries: &'a mut Entries,
    /// The call that ended here: what it had kept, if it was seen to begin.
    left: Option<Option<Values>>,
}

impl HitMachine<'_> {
    /// Reads into the chunk as much as is readable of `length` bytes; gives how much that was.
    fn read_chunk(&mut self, address: u64, length: usize) -> usize {
        self.chunk.clear();
        if let Some(bytes) = self.ahead.get(address, length) {
            self.chunk.extend_from_slice(bytes);
            return length;
        }
        self.chunk.resize(length, 0);
        let readable = match self.memory.read(address, self.chunk) {
            Ok(()) => length,
            Err(at) => at.wrapping_sub(address).min(length as u64) as usize,
        };
        self.chunk.truncate(readable);
        self.sites.mask(address, self.chunk);
        readable
    }

    /// The call whose return address is at the stack pointer.
    fn frame(&self, function: u64) -> Frame {
        Frame {
            probe: self.probe,
            function,
            sp: self.registers.sp(),
            tid: self.moment.tid,
            pid: self.moment.pid,
            thread_block: self.registers.get(Register::FsBase),
        }
    }

    /// How much of a capture the record still has room for.
    fn room(&self, wanted: u64) -> usize {
        let left = RECORD_MAX.saturating_sub(self.builder.bytes());
        wanted.min(left as u64) as usize
    }
}

impl Machine for HitMachine<'_> {
    fn read(&mut self, address: u64, buf: &mut [u8]) -> Result<(), u64> {
        if let Some(bytes) = self.ahead.get(address, buf.len()) {
            buf.copy_from_slice(bytes);
            return Ok(());
        }
        self.memory.read(address, buf)?;
        self.sites.mask(address, buf);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), u64> {
        let mut buf = [0; 8];
        let buf = &mut buf[..bytes.len()];
        buf.copy_from_slice(bytes);
        self.sites.overwrite(address, buf);
        self.memory.write(address, buf)?;
        self.ahead.forget(address, bytes.len());
        Ok(())
    }

    fn register(&self, register: Register) -> u64 {
        self.registers.get(register)
    }

    fn set_register(&mut self, register: Register, value: u64) {
        self.registers.set(register, value);
    }

    fn variable(&mut self, variable: u16) -> u64 {
        let value = self.counters.variable(variable).load(Ordering::Relaxed);
        self.builder.variable(variable, value);
        value
    }

    fn set_variable(&mut self, variable: u16, value: u64) {
        self.counters
            .variable(variable)
            .store(value, Ordering::Relaxed);
    }

    fn special(&mut self, what: Special) -> u64 {
        match what {
            Special::Now => self.moment.mono_ns,
            Special::Wall => clock::wall_ns(),
            Special::Tid => self.moment.tid as u64,
            Special::Pid => self.moment.pid as u64,
            Special::Cpu => self.moment.cpu.map_or(u64::MAX, u64::from),
            Special::Random => {
                let value = self.random.next();
                self.builder.random(value);
                value
            }
        }
    }

    fn enter(&mut self, function: u64) {
        let frame = self.frame(function);
        self.entries.enter(frame, self.counters);
    }

    fn remember(&mut self, function: u64, index: u16, value: u64) {
        let frame = self.frame(function);
        self.entries.remember(frame, index, value);
    }

    fn leave(&mut self, function: u64) {
        let frame = self.frame(function);
        self.left = Some(self.entries.leave(frame, self.counters));
    }

    fn recall(&mut self, index: u16) -> Result<u64, Unavailable> {
        let Some(Some(values)) = &self.left else {
            return Err(Unavailable::EntryUnknown);
        };
        let kept = values.iter().find(|(of, _)| *of == index);
        let (_, value) = kept.ok_or(Unavailable::EntryFault)?;
        self.builder.entry(index, *value);
        Ok(*value)
    }

    fn hit(&mut self) -> bool {
        self.counters.probe(self.probe).hit()
    }

    fn available(&mut self, address: u64, most: usize) -> Vec<u8> {
        self.read_chunk(address, most);
        let found = self.chunk.clone();
        self.ahead.learn(address, &found);
        found
    }

    fn comm(&mut self) -> Vec<u8> {
        let name = std::fs::read(format!("/proc/{}/comm", self.moment.tid)).unwrap_or_default();
        let mut name = name.strip_suffix(b"\n").unwrap_or(&name).to_vec();
        name.push(0);
        name
    }

    fn sample(&mut self, of: u32, all: u32) -> bool {
        self.counters.probe(self.probe).sample(of, all)
    }

    fn delay(&mut self, ns: u64) {
        *self.delay = self.delay.saturating_add(ns);
    }

    fn keep(&mut self, address: u64, bytes: &[u8]) {
        if self.room(8) > 0 {
            self.builder.memory(address, bytes.len() as u64, bytes);
        }
    }

    fn capture(&mut self, address: u64, length: u64, maximum: u32) -> Result<(), u64> {
        let wanted = self.room(length.min(u64::from(maximum)));
        let readable = self.read_chunk(address, wanted);
        self.builder.memory(address, length, self.chunk);
        self.ahead.learn(address, self.chunk);
        if readable == 0 && wanted > 0 {
            return Err(address);
        }
        Ok(())
    }

    fn capture_string(&mut self, address: u64, maximum: u32, unit: Width) -> u64 {
        let unit = unit.bytes();
        let most = self.room(u64::from(maximum) * unit as u64);
        let mut taken = Vec::new();
        let mut ended = false;
        while !ended && taken.len() < most {
            let at = address.wrapping_add(taken.len() as u64);
            // Up to the end of the page, then of the next: what is behind may be unreadable.
            let piece = (64 - at as usize % 64).min(most - taken.len());
            let readable = self.read_chunk(at, piece);
            if readable == 0 && taken.is_empty() {
                return address;
            }
            let chunk = &self.chunk[..readable];
            taken.extend_from_slice(chunk);
            let zero = taken
                .chunks_exact(unit)
                .position(|c| c.iter().all(|b| *b == 0));
            if let Some(zero) = zero {
                taken.truncate((zero + 1) * unit);
                ended = true;
            }
            if readable < piece {
                break;
            }
        }
        let asked = if ended {
            taken.len()
        } else {
            taken.len() + unit
        };
        self.builder.memory(address, asked as u64, &taken);
        address.wrapping_add(taken.len() as u64)
    }
}
