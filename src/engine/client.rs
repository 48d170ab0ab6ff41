//! The front's end: starts the keeper, asks it, and reads events and records in order.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::keeper;
use super::link::Link;
use super::protocol::{
    AddressSpaceId, Answer, Calls, Children, Envelope, Event, Failure, Fate, Launch, MAX_PACKET,
    Message, Reason, Request, SignalPolicy, SiteId, SiteSpec, TargetId, Tid, WatchSpec,
};
use crate::arch::Registers;
use crate::record::ring::Ring;
use crate::record::shared::Counters;
use crate::record::wire::{self, Record};

/// How often the rings are looked at when nothing else wakes the front.
const LOOK: Duration = Duration::from_millis(5);

/// How much of a message sites may take; the rest is for the message itself.
const BATCH: usize = MAX_PACKET - 1024;
/// As many sites as the answer has room for, if each of them fails.
const BATCH_SITES: usize = 512;

/// What the front learns next.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // Most are hits, which shall not be allocated.
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
    #[error("{0}")]
    Refused(Failure),
    /// The keeper is gone.
    #[error("the tracing process ended unexpectedly; its targets may have been harmed")]
    KeeperGone,
    /// It could not be started or reached.
    #[error("cannot start or reach the tracing process: {0}")]
    Io(#[from] io::Error),
    /// It says what it cannot say.
    #[error("the tracing process said something that trapline does not know")]
    Unknown,
    /// What is asked does not fit into one message.
    #[error("the request is too large for one message ({0} bytes, at most {MAX_PACKET})")]
    TooLarge(usize),
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

/// What the front keeps of one target.
struct Target {
    /// That of the process it came of, for a followed child.
    records: Rc<Records>,
    /// The image whose addresses are in `sites`.
    space: AddressSpaceId,
    /// Nothing, where a followed child came when no more files could be opened.
    memory: Option<File>,
    /// The number of the last stop that was handed out.
    seen: u64,
    /// Site number to address, and address to the program's byte there.
    sites: HashMap<SiteId, u64>,
    originals: BTreeMap<u64, u8>,
    /// How often its sites were changed.
    changes: u64,
}

/// The records of a target and of those that came of it.
struct Records {
    ring: Ring,
    /// One that was taken out too early, and where it was.
    early: RefCell<Option<(u64, Record)>>,
}

impl Records {
    /// The oldest record, if it lies before a position and its process was told of already.
    fn take(
        &self,
        words: &mut Vec<u64>,
        before: Option<u64>,
        known: impl Fn(TargetId) -> bool,
    ) -> Option<Happening> {
        let mut early = self.early.borrow_mut();
        while early.is_none() {
            let at = self.ring.tail();
            if before.is_some_and(|before| at >= before) || !self.ring.pop(words) {
                return None;
            }
            *early = wire::decode(words).map(|record| (at, record));
        }
        let target = |record: &Record| TargetId(record.header.target);
        let in_time = |(at, record): &mut (u64, Record)| {
            before.is_none_or(|before| *at < before) && known(target(record))
        };
        let (_, record) = early.take_if(in_time)?;
        Some(Happening::Hit(target(&record), record))
    }
}

/// The keeper, seen from the front.
pub struct Keeper {
    process: Child,
    link: Option<Link>,
    counters: Counters,
    ring_bytes: usize,
    sequence: u32,
    next_target: u32,
    targets: BTreeMap<TargetId, Target>,
    events: VecDeque<Event>,
    packet: Vec<u8>,
    words: Vec<u64>,
}

impl Keeper {
    /// Starts the keeper process; each target gets a ring of `ring_bytes`.
    pub fn start(ring_bytes: usize) -> Result<Keeper, EngineError> {
        let (front, back) = Link::pair()?;
        let counters = Counters::create()?;
        let socket = back.descriptor().as_raw_fd();
        let shared = counters.file().as_raw_fd();
        let mut command = Command::new("/proc/self/exe");
        command.arg0(keeper::NAME);
        // SAFETY: the closure only makes system calls.
        unsafe { command.pre_exec(move || inherit(socket, shared)) };
        let process = command.spawn()?;
        Ok(Keeper {
            process,
            link: Some(front),
            counters,
            ring_bytes,
            sequence: 0,
            next_target: 1,
            targets: BTreeMap::new(),
            events: VecDeque::new(),
            packet: vec![0; MAX_PACKET],
            words: Vec::new(),
        })
    }

    /// The counters and variables that the keeper shares.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Launches a program; its only thread stands at the first instruction after the exec.
    pub fn launch(&mut self, launch: Launch) -> Result<Started, EngineError> {
        let target = self.new_target();
        let started = self.begin(target, Request::Launch { target, launch })?;
        loop {
            self.receive(None)?;
            let exec = |event: &Event| match event {
                Event::Stopped {
                    target: of, reason, ..
                } => *of == target && matches!(reason, Reason::Exec { .. }),
                _ => false,
            };
            if let Some(at) = self.events.iter().position(exec) {
                let event = self.events.remove(at);
                event.iter().for_each(|event| self.saw(event));
                return Ok(started);
            }
            let ended =
                |event: &Event| matches!(event, Event::Exited { target: of, .. } if *of == target);
            if self.events.iter().any(ended) {
                return Err(EngineError::Refused(Failure::NoTarget));
            }
        }
    }

    /// Attaches to a running process; nothing is stopped.
    pub fn attach(
        &mut self,
        pid: i32,
        signals: SignalPolicy,
        children: Children,
    ) -> Result<Started, EngineError> {
        let target = self.new_target();
        let request = Request::Attach {
            target,
            pid,
            signals,
            children,
        };
        self.begin(target, request)
    }

    /// Says what becomes of the children that a target makes from now on.
    pub fn set_children(
        &mut self,
        target: TargetId,
        children: Children,
    ) -> Result<(), EngineError> {
        let request = Request::Children { target, children };
        self.ask(request, None).map(drop)
    }

    /// True if a followed child has the very sites that `parent` has: nobody has changed either's
    /// since it was made.
    pub fn has_sites_of(&self, child: TargetId, parent: TargetId) -> bool {
        let changes = |target| self.targets.get(target).map(|known| known.changes);
        changes(&child) == changes(&parent)
    }

    /// The sites that the keeper holds in a target.
    pub fn sites(&self, target: TargetId) -> Vec<SiteId> {
        let known = self.targets.get(&target);
        known.map_or_else(Vec::new, |known| known.sites.keys().copied().collect())
    }

    /// Arms a site, or replaces the probes of an armed one. No thread needs to stand.
    pub fn arm(&mut self, target: TargetId, site: SiteSpec) -> Result<(), EngineError> {
        match self.arm_all(target, vec![site])?.pop() {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// Arms many sites; gives those that could not be armed. Each message holds as many as fit: thousands
    /// of round trips take longer than the int3s themselves.
    pub fn arm_all(
        &mut self,
        target: TargetId,
        sites: Vec<SiteSpec>,
    ) -> Result<Vec<(SiteId, EngineError)>, EngineError> {
        let known = self.targets.get(&target);
        let space = known.map_or(AddressSpaceId(0), |known| known.space);
        let mut refused = Vec::new();
        let (mut batch, mut filled) = (Vec::new(), 0);
        for site in sites {
            let size = postcard::experimental::serialized_size(&site).map_err(io::Error::other)?;
            if size > BATCH {
                refused.push((site.id, EngineError::TooLarge(size)));
                continue;
            }
            if filled + size > BATCH || batch.len() == BATCH_SITES {
                refused.extend(self.arm_batch(target, space, std::mem::take(&mut batch))?);
                filled = 0;
            }
            filled += size;
            batch.push(site);
        }
        if !batch.is_empty() {
            refused.extend(self.arm_batch(target, space, batch)?);
        }
        Ok(refused)
    }

    fn arm_batch(
        &mut self,
        target: TargetId,
        space: AddressSpaceId,
        sites: Vec<SiteSpec>,
    ) -> Result<Vec<(SiteId, EngineError)>, EngineError> {
        let armed: Vec<_> = sites
            .iter()
            .map(|site| (site.id, site.address, site.code.first().copied()))
            .collect();
        let request = Request::Arm {
            target,
            space,
            sites,
        };
        let refused = self.refused(request)?;
        let Some(known) = self.targets.get_mut(&target) else {
            return Ok(refused);
        };
        known.changes += 1;
        let failed: HashSet<SiteId> = refused.iter().map(|(id, _)| *id).collect();
        for (id, address, first) in armed {
            if let Some(first) = first.filter(|_| !failed.contains(&id)) {
                known.sites.insert(id, address);
                known.originals.entry(address).or_insert(first);
            }
        }
        Ok(refused)
    }

    fn refused(&mut self, request: Request) -> Result<Vec<(SiteId, EngineError)>, EngineError> {
        match self.ask(request, None)?.0 {
            Answer::Refused(list) => Ok(list
                .into_iter()
                .map(|(id, failure)| (id, EngineError::Refused(failure)))
                .collect()),
            _ => Err(EngineError::Refused(Failure::Malformed)),
        }
    }

    /// Takes sites out; gives those where that failed. `true` beside one: its code is mapped no more, so that
    /// nothing is to be put back.
    pub fn disarm_all(
        &mut self,
        target: TargetId,
        sites: &[(SiteId, bool)],
    ) -> Result<Vec<(SiteId, EngineError)>, EngineError> {
        let mut refused = Vec::new();
        for batch in sites.chunks(BATCH_SITES) {
            let request = Request::Disarm {
                target,
                sites: batch.to_vec(),
            };
            refused.extend(self.refused(request)?);
            let Some(known) = self.targets.get_mut(&target) else {
                continue;
            };
            known.changes += 1;
            for (site, _) in batch {
                if let Some(address) = known.sites.remove(site) {
                    known.originals.remove(&address);
                }
            }
        }
        Ok(refused)
    }

    /// Lets one stopped thread, or all, go on. A thread whose stop was not handed out yet waits for
    /// that.
    pub fn resume(&mut self, target: TargetId, tid: Option<Tid>) -> Result<(), EngineError> {
        let request = Request::Resume {
            target,
            tid,
            seen: self.seen(target),
        };
        self.ask(request, None).map(drop)
    }

    /// Lets one stopped thread go on without waiting for an answer: a thread that is gone says so
    /// in an event.
    pub fn let_go(&mut self, target: TargetId, tid: Tid) -> Result<(), EngineError> {
        let request = Request::Resume {
            target,
            tid: Some(tid),
            seen: self.seen(target),
        };
        self.send(request, None).map(drop)
    }

    fn seen(&self, target: TargetId) -> u64 {
        self.targets.get(&target).map_or(0, |known| known.seen)
    }

    /// Stops every thread; returns when all stand (events that came meanwhile are queued).
    pub fn interrupt(&mut self, target: TargetId) -> Result<(), EngineError> {
        self.ask(Request::Interrupt { target }, None).map(drop)
    }

    /// The registers of a stopped thread.
    pub fn registers(&mut self, target: TargetId, tid: Tid) -> Result<Registers, EngineError> {
        match self.ask(Request::Registers { target, tid }, None)?.0 {
            Answer::Registers(registers) => Ok(*registers),
            _ => Err(EngineError::Refused(Failure::Malformed)),
        }
    }

    /// Changes the registers of a stopped thread.
    pub fn set_registers(
        &mut self,
        target: TargetId,
        tid: Tid,
        registers: Registers,
    ) -> Result<(), EngineError> {
        let request = Request::SetRegisters {
            target,
            tid,
            registers,
        };
        self.ask(request, None).map(drop)
    }

    /// What the call that ends where a thread stands had kept for a probe at its entry; `None` if
    /// it was not seen to begin.
    pub fn entry(
        &mut self,
        target: TargetId,
        tid: Tid,
        probe: u16,
    ) -> Result<Option<Vec<(u16, u64)>>, EngineError> {
        match self.ask(Request::Entry { target, tid, probe }, None)?.0 {
            Answer::Entry(values) => Ok(values),
            _ => Err(EngineError::Refused(Failure::Malformed)),
        }
    }

    /// The XSAVE area of a stopped thread.
    pub fn vector_registers(&mut self, target: TargetId, tid: Tid) -> Result<Vec<u8>, EngineError> {
        match self.ask(Request::VectorRegisters { target, tid }, None)?.0 {
            Answer::Bytes(bytes) => Ok(bytes),
            _ => Err(EngineError::Refused(Failure::Malformed)),
        }
    }

    /// Reads memory as the program sees it (no int3 in it); `Err` is the first unreadable address.
    pub fn read(&self, target: TargetId, address: u64, buf: &mut [u8]) -> Result<(), u64> {
        let known = self.targets.get(&target).ok_or(address)?;
        let mut done = 0;
        while done < buf.len() {
            let at = address.wrapping_add(done as u64);
            let memory = known.memory.as_ref().ok_or(at)?;
            match memory.read_at(&mut buf[done..], at) {
                Ok(more) if more > 0 => done += more,
                _ => return Err(at),
            }
        }
        let end = address.saturating_add(buf.len() as u64);
        for (site, original) in known.originals.range(address..end) {
            buf[(site - address) as usize] = *original;
        }
        Ok(())
    }

    /// What really is in memory, our int3 or another's.
    pub fn raw_byte(&self, target: TargetId, address: u64) -> Option<u8> {
        let mut byte = [0];
        let memory = &self.targets.get(&target)?.memory;
        let memory = memory.as_ref()?;
        memory.read_exact_at(&mut byte, address).ok()?;
        Some(byte[0])
    }

    /// Writes memory; bytes over a site go below its int3.
    pub fn write(
        &mut self,
        target: TargetId,
        address: u64,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        for (n, piece) in bytes.chunks(MAX_PACKET / 2).enumerate() {
            let request = Request::Write {
                target,
                address: address.wrapping_add((n * (MAX_PACKET / 2)) as u64),
                bytes: piece.to_vec(),
            };
            self.ask(request, None)?;
        }
        let end = address.saturating_add(bytes.len() as u64);
        if let Some(known) = self.targets.get_mut(&target) {
            for (site, original) in known.originals.range_mut(address..end) {
                *original = bytes[(site - address) as usize];
            }
        }
        Ok(())
    }

    /// Watches this memory and no other; gives the probes whose memory cannot be watched beside the
    /// others', in which case nothing has changed.
    pub fn watch(
        &mut self,
        target: TargetId,
        watches: Vec<WatchSpec>,
    ) -> Result<Vec<u16>, EngineError> {
        match self.ask(Request::Watch { target, watches }, None)?.0 {
            Answer::Unwatched(probes) => Ok(probes),
            _ => Err(EngineError::Refused(Failure::Malformed)),
        }
    }

    /// Stops threads at these system calls, and at no others.
    pub fn catch_calls(&mut self, target: TargetId, calls: Calls) -> Result<(), EngineError> {
        self.ask(Request::Calls { target, calls }, None).map(drop)
    }

    /// A stopped thread gets a signal (0: none) when it goes on, instead of the one that it stopped
    /// with.
    pub fn queue_signal(
        &mut self,
        target: TargetId,
        tid: Tid,
        signal: i32,
    ) -> Result<(), EngineError> {
        let request = Request::QueueSignal {
            target,
            tid,
            signal,
        };
        self.ask(request, None).map(drop)
    }

    /// Changes what a target's signals do.
    pub fn set_signals(
        &mut self,
        target: TargetId,
        signals: SignalPolicy,
    ) -> Result<(), EngineError> {
        self.ask(Request::Signals { target, signals }, None)
            .map(drop)
    }

    /// Whether a launched program ends when this process does, however that happens.
    pub fn set_exit_kill(&mut self, target: TargetId, on: bool) -> Result<(), EngineError> {
        self.ask(Request::ExitKill { target, on }, None).map(drop)
    }

    /// Puts everything back and leaves. Records that are on their way can still be read.
    pub fn detach(&mut self, target: TargetId) -> Result<(), EngineError> {
        self.ask(Request::Detach { target }, None)?;
        if let Some(known) = self.targets.get_mut(&target) {
            known.sites.clear();
            known.originals.clear();
        }
        Ok(())
    }

    /// Forgets a target that has ended; its records were read.
    pub fn forget(&mut self, target: TargetId) {
        // It need not be there any more.
        let _ = self.ask(Request::Detach { target }, None);
        self.targets.remove(&target);
    }

    /// Ends the program; [`Event::Exited`] follows.
    pub fn kill(&mut self, target: TargetId) -> Result<(), EngineError> {
        self.ask(Request::Kill { target }, None).map(drop)
    }

    /// The next hit or event, in order; `None` when `timeout` passed. Hits are looked for every
    /// few milliseconds: the keeper does not pay a system call to announce one.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Happening>, EngineError> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(happening) = self.ready_seen() {
                return Ok(Some(happening));
            }
            let left = end.saturating_duration_since(Instant::now());
            let received = self.receive(Some(left.min(LOOK)))?;
            if !received && left.is_zero() {
                return Ok(self.ready_seen());
            }
        }
    }

    fn ready_seen(&mut self) -> Option<Happening> {
        let happening = self.ready();
        if let Some(Happening::Event(event)) = &happening {
            self.saw(event);
        }
        happening
    }

    /// An event is handed out.
    fn saw(&mut self, event: &Event) {
        if let Event::Stopped { target, number, .. } = event
            && let Some(known) = self.targets.get_mut(target)
        {
            known.seen = *number;
        }
    }

    /// What is there already: the records that come before the next event, then the event.
    fn ready(&mut self) -> Option<Happening> {
        let barrier = self.events.front().map(|event| match event {
            Event::Stopped { target, ring, .. }
            | Event::Signalled { target, ring, .. }
            | Event::Exited { target, ring, .. }
            | Event::Forked { target, ring, .. }
            | Event::Lost { target, ring, .. } => Some((*target, *ring)),
            _ => None,
        });
        let words = &mut self.words;
        let known = |target| self.targets.contains_key(&target);
        match barrier {
            Some(Some((target, ring))) => self
                .targets
                .get(&target)
                .and_then(|it| it.records.take(words, Some(ring), known))
                .or_else(|| self.events.pop_front().map(Happening::Event)),
            Some(None) => self.events.pop_front().map(Happening::Event),
            None => self
                .targets
                .values()
                .find_map(|it| it.records.take(words, None, known)),
        }
    }

    fn new_target(&mut self) -> TargetId {
        let target = TargetId(self.next_target);
        self.next_target += 1;
        target
    }

    fn begin(&mut self, target: TargetId, request: Request) -> Result<Started, EngineError> {
        let ring = Ring::create(self.ring_bytes)?;
        let (answer, memory) = self.ask(request, Some(ring.file()))?;
        match (answer, memory) {
            (
                Answer::Target {
                    pid,
                    space,
                    threads,
                },
                Some(memory),
            ) => {
                let known = Target {
                    records: Rc::new(Records {
                        ring,
                        early: RefCell::default(),
                    }),
                    space,
                    memory: Some(memory),
                    seen: 0,
                    sites: HashMap::new(),
                    originals: BTreeMap::new(),
                    changes: 0,
                };
                self.targets.insert(target, known);
                Ok(Started {
                    target,
                    pid,
                    threads,
                })
            }
            _ => Err(EngineError::Refused(Failure::Malformed)),
        }
    }

    /// Asks, and waits for the answer; events that come before it are queued.
    fn ask(
        &mut self,
        request: Request,
        file: Option<&File>,
    ) -> Result<(Answer, Option<File>), EngineError> {
        let sequence = self.send(request, file)?;
        loop {
            match self.message(true)? {
                Some((Message::Reply(of, Answer::Failed(failure)), _)) if of == sequence => {
                    return Err(EngineError::Refused(failure));
                }
                Some((Message::Reply(of, answer), file)) if of == sequence => {
                    return Ok((answer, file));
                }
                Some((Message::Event(event), file)) => self.queue(event, file),
                // An answer that nobody waits for any more.
                Some((Message::Reply(..), _)) | None => {}
            }
        }
    }

    /// Sends a request; gives its number.
    fn send(&mut self, request: Request, file: Option<&File>) -> Result<u32, EngineError> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        let envelope = Envelope { sequence, request };
        let packet = postcard::to_stdvec(&envelope).map_err(io::Error::other)?;
        if packet.len() > MAX_PACKET {
            return Err(EngineError::TooLarge(packet.len()));
        }
        let link = self.link.as_ref().ok_or(EngineError::KeeperGone)?;
        link.send(&packet, file)
            .map_err(|_| EngineError::KeeperGone)?;
        Ok(sequence)
    }

    /// Takes what the keeper has sent, waiting at most `timeout` (`None`: as long as it takes)
    /// for the first message; true if there was one.
    fn receive(&mut self, timeout: Option<Duration>) -> Result<bool, EngineError> {
        let link = self.link.as_ref().ok_or(EngineError::KeeperGone)?;
        let timeout = match timeout {
            Some(timeout) => PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX),
            None => PollTimeout::NONE,
        };
        let mut wait = [PollFd::new(link.descriptor().as_fd(), PollFlags::POLLIN)];
        match poll(&mut wait, timeout) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let mut any = false;
        while let Some((message, file)) = self.message(false)? {
            any = true;
            if let Message::Event(event) = message {
                self.queue(event, file);
            }
        }
        Ok(any)
    }

    fn message(&mut self, wait: bool) -> Result<Option<(Message, Option<File>)>, EngineError> {
        let link = self.link.as_ref().ok_or(EngineError::KeeperGone)?;
        let (length, file) = match link.receive(&mut self.packet, wait) {
            Ok(Some(received)) => received,
            Ok(None) => return Err(EngineError::KeeperGone),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match postcard::from_bytes(&self.packet[..length]) {
            Ok(message) => Ok(Some((message, file))),
            Err(_) => Err(EngineError::Unknown),
        }
    }

    fn queue(&mut self, event: Event, mut memory: Option<File>) {
        if let Event::Forked {
            target,
            tid,
            fate: Fate::Kept(child),
            ..
        } = &event
            && let Some(parent) = self.targets.get(target)
        {
            // What its parent has at this moment it has, too, unless it has executed a program.
            let copy = tid.0 != 0;
            let child_sites = copy.then(|| (parent.sites.clone(), parent.originals.clone()));
            let (sites, originals) = child_sites.unwrap_or_default();
            let known = Target {
                records: parent.records.clone(),
                space: parent.space,
                memory: memory.take(),
                seen: 0,
                sites,
                originals,
                changes: parent.changes,
            };
            self.targets.insert(*child, known);
        }
        if let Event::Stopped {
            target,
            reason: Reason::Exec { space, .. },
            ..
        } = &event
            && let Some(known) = self.targets.get_mut(target)
        {
            known.space = *space;
            known.sites.clear();
            known.originals.clear();
            if memory.is_some() {
                known.memory = memory;
            }
        }
        if let Event::SiteLost { target, site, .. } = &event
            && let Some(known) = self.targets.get_mut(target)
            && let Some(address) = known.sites.remove(site)
        {
            known.originals.remove(&address);
        }
        self.events.push_back(event);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The closed socket makes it leave every target and end.
        self.link = None;
        let _ = self.process.wait();
    }
}

/// In the forked child: the two descriptors get their agreed numbers.
fn inherit(socket: i32, shared: i32) -> io::Result<()> {
    // SAFETY: plain system calls on descriptors that are open until the exec.
    let moved = unsafe {
        // Out of the way first: either may have the other's number.
        let socket = libc::fcntl(socket, libc::F_DUPFD, 10);
        let shared = libc::fcntl(shared, libc::F_DUPFD, 10);
        libc::dup2(socket, keeper::SOCKET) != -1
            && libc::dup2(shared, keeper::COUNTERS) != -1
            && libc::close(socket) == 0
            && libc::close(shared) == 0
    };
    if moved {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::tests::messages;
    use super::*;
    use crate::hostile::hostile;

    const TARGET: TargetId = TargetId(1);

    /// A front with one target, and the keeper's end of its link.
    fn front() -> (Keeper, Link) {
        let (front, back) = Link::pair().unwrap();
        let mut targets = BTreeMap::new();
        let known = Target {
            records: Rc::new(Records {
                ring: Ring::create(4096).unwrap(),
                early: RefCell::default(),
            }),
            space: AddressSpaceId(0),
            memory: File::open("/dev/null").ok(),
            seen: 0,
            sites: HashMap::from([(SiteId(1), 0x1000)]),
            originals: BTreeMap::from([(0x1000, 0x55)]),
            changes: 0,
        };
        targets.insert(TARGET, known);
        let keeper = Keeper {
            process: Command::new("true").spawn().unwrap(),
            link: Some(front),
            counters: Counters::create().unwrap(),
            ring_bytes: 4096,
            sequence: 0,
            next_target: 2,
            targets,
            events: VecDeque::new(),
            packet: vec![0; MAX_PACKET],
            words: Vec::new(),
        };
        (keeper, back)
    }

    fn is_one_line<T>(result: Result<T, EngineError>) {
        if let Err(error) = result {
            let text = error.to_string();
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }

    hostile!(fuzz_answers, messages(), { cases: 200 }, |input| {
        let (mut keeper, other) = front();
        other.offer(input, None).unwrap();
        other.offer(input, Some(&File::open("/dev/null").unwrap())).unwrap();
        while let Ok(Some(_)) = keeper.next(Duration::ZERO) {}
        // The answer to the next question, in front of which anything may come.
        other.offer(input, None).unwrap();
        let answer = Message::Reply(1, Answer::Done);
        other.offer(&postcard::to_stdvec(&answer).unwrap(), None).unwrap();
        drop(other);
        is_one_line(keeper.registers(TARGET, Tid(1)));
        is_one_line(keeper.interrupt(TARGET));
        let _ = keeper.read(TARGET, 0xfff, &mut [0; 4]);
        is_one_line(keeper.next(Duration::ZERO));
    });

    #[test]
    fn what_no_keeper_says_is_told_in_a_line() {
        let (mut keeper, other) = front();
        other.offer(&[0xff; 40], None).unwrap();
        let error = keeper.next(Duration::ZERO).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the tracing process said something that trapline does not know"
        );
    }
}
