//! A thread that traces: one process that was launched or attached to, and those that came of it.
//!
//! ptrace lets only the thread that traces a process wait for it and change it, and the end of that
//! thread releases what it still traces.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use super::Front;
use super::doorbell::Doorbell;
use super::slots::process_of;
use super::stop::{Stop, Stopped};
use super::sys::{self, Status};
use super::target::Target;
use crate::engine::protocol::{Answer, Failure, Request, TargetId};

/// After so many stops every thread is asked once.
const FAIR: u32 = 64;

/// What the control thread hands to a tracing thread.
#[allow(clippy::large_enum_variant)] // Most are requests.
pub enum Order {
    /// A request of the front, to be answered under this number.
    Request(u32, Request),
    /// Leave one process, and say what is left; nothing else is ordered before that was said.
    Leave(TargetId, Sender<Left>),
    /// The front is gone: leave everything.
    End,
}

/// What a tracing thread has after it was told to leave a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Other processes. Threads of the one that was left may be traced still, with nothing armed,
    /// where nothing else leaves them undisturbed: until they stir, or the thread ends.
    Others,
    /// Nothing: the thread ends now.
    Nothing,
    /// There was no such process; nothing has changed.
    NoTarget,
}

/// A stop as `wait4` tells of it.
type Told = (i32, Status);

/// A process that nobody has told of yet.
struct Early {
    stopped: Stopped,
    /// Its parent's process, as far as `/proc` knows: `CLONE_PARENT` makes that another one.
    parent: i32,
}

/// See the module.
pub struct Tracer {
    front: Arc<Front>,
    doorbell: Doorbell,
    inbox: Receiver<Order>,
    targets: BTreeMap<TargetId, Target>,
    /// Processes that were left, but for threads that are blocked in a system call.
    lingering: Vec<Target>,
    /// Whose a thread is, as far as that was asked; what has changed since is asked again.
    owners: HashMap<i32, TargetId>,
    /// New processes whose first stop came before the stop of the thread that made them.
    early: HashMap<i32, Early>,
    /// What was seen and not dealt with yet.
    waiting: VecDeque<Told>,
    over: bool,
}

impl Tracer {
    /// With one process.
    pub fn new(
        front: Arc<Front>,
        doorbell: Doorbell,
        inbox: Receiver<Order>,
        target: Target,
    ) -> Tracer {
        Tracer {
            front,
            doorbell,
            inbox,
            targets: BTreeMap::from([(target.id, target)]),
            lingering: Vec::new(),
            owners: HashMap::new(),
            early: HashMap::new(),
            waiting: VecDeque::new(),
            over: false,
        }
    }

    /// Traces until every process was left. The end of the calling thread then releases threads that
    /// are blocked in system calls.
    pub fn run(mut self) {
        let traced = catch_unwind(AssertUnwindSafe(|| self.trace()));
        if traced.is_err() {
            // A mistake of ours must not cost the targets their lives.
            self.leave_all();
        }
    }

    fn trace(&mut self) {
        let mut single = 0;
        while !self.over {
            // `wait4` always gives the first child that has something to say, so a few busy
            // threads would keep it from the others: now and then everyone is asked.
            if self.waiting.is_empty() && single >= FAIR && self.several() {
                single = 0;
                while let Ok(Some(told)) = sys::wait_any(false) {
                    self.waiting.push_back(told);
                }
            }
            let next = match self.waiting.pop_front() {
                Some(next) => Ok(Some(next)),
                None => sys::wait_any(true),
            };
            single += 1;
            match next {
                Ok(Some((pid, _))) if pid == self.doorbell.pid() => self.rung(),
                Ok(Some((tid, status))) => self.happened(tid, status),
                Ok(None) => {}
                Err(_) => return self.leave_all(),
            }
        }
    }

    fn several(&self) -> bool {
        let threads = self.targets.values().map(|target| target.threads.len());
        threads.sum::<usize>() > 1
    }

    fn rung(&mut self) {
        self.doorbell.answer();
        self.catch_up();
        while !self.over
            && let Ok(order) = self.inbox.try_recv()
        {
            self.serve(order);
            self.catch_up();
        }
        for target in self.targets.values_mut() {
            target.end_delays();
            target.end_patience();
        }
    }

    /// Deals with what was seen: orders that look at threads must not find those running that stand.
    fn catch_up(&mut self) {
        while let Some((tid, status)) = self.waiting.pop_front() {
            match tid == self.doorbell.pid() {
                true => self.doorbell.answer(),
                false => self.happened(tid, status),
            }
        }
    }

    fn serve(&mut self, order: Order) {
        match order {
            Order::End => {
                self.end_with_front();
                self.leave_all();
            }
            Order::Leave(id, answer) => {
                // The control thread waits for that.
                let _ = answer.send(self.leave(id));
            }
            Order::Request(number, request) => match self.targets.get_mut(&request.target()) {
                Some(target) => target.serve(number, request),
                None => {
                    let answer = Answer::Failed(Failure::NoTarget);
                    self.front.reply(number, answer);
                }
            },
        }
    }

    /// Something happened to a thread.
    fn happened(&mut self, tid: i32, status: Status) {
        if let Status::Exited(_) | Status::Killed(_) = status {
            self.owners.remove(&tid);
            if self.early.remove(&tid).is_some() {
                return;
            }
        }
        let stop = Stop::new(tid, status);
        let Some(id) = self.owner(tid) else {
            return self.stranger(tid, stop);
        };
        if let Some(target) = self.targets.get(&id)
            && ends_image(target, tid, &stop)
        {
            let untold = target.threaded || matches!(stop, Stop::Killed(_));
            self.meet_all(id, untold);
        }
        match self.targets.get_mut(&id) {
            Some(target) => target.happened(tid, stop),
            None => return self.happened_to_left(id, tid, stop),
        }
        self.settle(id);
    }

    /// Takes over what a process has made, and gives up one that has ended.
    fn settle(&mut self, id: TargetId) {
        let Some(target) = self.targets.get_mut(&id) else {
            return;
        };
        let ended = target.has_ended();
        for child in std::mem::take(&mut target.offspring) {
            self.targets.insert(child.id, child);
        }
        if !self.early.is_empty() {
            self.meet_named();
        }
        if ended && let Some(mut target) = self.targets.remove(&id) {
            // Processes that share its memory are left with it.
            self.leave_one(&mut target);
            self.let_linger(target);
        }
    }

    /// The process that a thread belongs to, which may be one that was left.
    fn owner(&mut self, tid: i32) -> Option<TargetId> {
        let known = self.owners.get(&tid);
        if let Some(id) = known
            && let Some(target) = self.targets.get(id)
            && target.threads.contains_key(&tid)
        {
            return Some(*id);
        }
        let found = whose(tid, self.targets.values().chain(&self.lingering))?;
        self.owners.insert(tid, found);
        Some(found)
    }

    /// The first stop of a new process that nobody has told of: the thread that made it will.
    fn stranger(&mut self, tid: i32, stop: Stop) {
        let Some((stopped, signal)) = stop.standing() else {
            return;
        };
        let parent = parent_of(tid);
        let left = |target: &Target| parent == Some(target.pid);
        if let Some(target) = self.lingering.iter().find(|target| left(target)) {
            let id = target.id;
            return self.happened_to_left(id, tid, Stop::Interrupted(stopped));
        }
        match parent {
            Some(parent) if !self.targets.is_empty() => {
                self.early.insert(tid, Early { stopped, parent });
            }
            // Nobody is left who could have made it: it must not stand for ever.
            _ => drop(stopped.detach(signal)),
        }
    }

    /// Meets the processes that came early and were told of since.
    fn meet_named(&mut self) {
        for tid in self.early.keys().copied().collect::<Vec<_>>() {
            let mut all = self.targets.values().chain(&self.lingering);
            let Some(id) = all.find(|it| it.knows(tid)).map(|it| it.id) else {
                continue;
            };
            if let Some(Early { stopped, .. }) = self.early.remove(&tid) {
                self.meet(id, tid, stopped);
            }
        }
    }

    fn meet(&mut self, id: TargetId, tid: i32, stopped: Stopped) {
        match self.targets.get_mut(&id) {
            Some(target) => target.meet(stopped),
            None => return self.happened_to_left(id, tid, Stop::Interrupted(stopped)),
        }
        self.settle(id);
    }

    /// Meets all that a process has made with the memory that it is about to lose: they have copies
    /// of it. `untold`: of some nobody may ever tell, since the thread that made them was killed.
    fn meet_all(&mut self, id: TargetId, untold: bool) {
        let Some(target) = self.targets.get(&id) else {
            return;
        };
        let pid = target.pid;
        let mut new: Vec<i32> = target.births.keys().copied().collect();
        // Threads of its own end with it.
        new.retain(|tid| process_of(*tid).is_some_and(|process| process != pid));
        let early = self.early.iter().filter(|(_, early)| early.parent == pid);
        new.extend(early.map(|(tid, _)| *tid));
        if untold {
            new.extend(self.unknown());
        }
        for tid in new {
            let early = self.early.remove(&tid).map(|early| early.stopped);
            if let Some(stopped) = early.or_else(|| first_stop(tid)) {
                self.meet(id, tid, stopped);
            }
        }
    }

    /// The processes that this thread traces, and that it does not know of.
    fn unknown(&self) -> Vec<i32> {
        let own = sys::own_tid().to_string();
        let known = |pid: i32| {
            let mut all = self.targets.values().chain(&self.lingering);
            self.early.contains_key(&pid) || all.any(|target| target.knows(pid))
        };
        let traced = |pid: &i32| sys::status(*pid, "TracerPid:").is_some_and(|by| by == own);
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(traced).filter(|pid| !known(*pid)).collect()
    }

    /// A thread of a process that was left stirs: it can be let go now.
    fn happened_to_left(&mut self, id: TargetId, tid: i32, stop: Stop) {
        self.owners.remove(&tid);
        if let Some(target) = self.lingering.iter_mut().find(|target| target.id == id) {
            target.leave_late(tid, stop);
        }
        self.lingering.retain(Target::lingers);
    }

    /// Leaves of a process what can be left without disturbing it; the rest later.
    fn let_linger(&mut self, mut target: Target) {
        target.linger(&mut self.stops());
        self.lingering.extend(Some(target).filter(Target::lingers));
    }

    fn leave(&mut self, id: TargetId) -> Left {
        let known = self.targets.remove(&id);
        if let Some(mut target) = known {
            self.leave_one(&mut target);
            if !self.targets.is_empty() {
                self.let_linger(target);
                return Left::Others;
            }
        } else if !self.targets.is_empty() {
            return Left::NoTarget;
        }
        self.over = true;
        Left::Nothing
    }

    fn leave_all(&mut self) {
        while let Some((_, mut target)) = self.targets.pop_first() {
            self.leave_one(&mut target);
        }
        self.over = true;
    }

    /// Ends the programs that are to end with the front. (PTRACE_O_EXITKILL would end them with this
    /// thread, also where it leaves them.)
    fn end_with_front(&self) {
        for target in self.targets.values().filter(|target| target.exit_kill) {
            let _ = sys::kill(target.pid, libc::SIGKILL);
        }
    }

    fn leave_one(&mut self, target: &mut Target) {
        self.owners.retain(|_, owner| *owner != target.id);
        target.leave(&mut self.stops());
    }

    fn stops(&mut self) -> Stops<'_> {
        Stops {
            doorbell: self.doorbell.pid(),
            others: &self.targets,
            lingering: &self.lingering,
            waiting: &mut self.waiting,
            early: &mut self.early,
        }
    }
}

/// Whose a thread is. The first stop of a new one may come before the stop of the one that made it.
fn whose<'a>(tid: i32, targets: impl Iterator<Item = &'a Target> + Clone) -> Option<TargetId> {
    let find = |which: &dyn Fn(&Target) -> bool| targets.clone().find(|target| which(target));
    if let Some(target) = find(&|target| target.knows(tid)) {
        return Some(target.id);
    }
    let pid = process_of(tid)?;
    let found = find(&|target| target.pid == pid || target.sharers.contains_key(&pid));
    found.map(|target| target.id)
}

fn parent_of(pid: i32) -> Option<i32> {
    sys::status(pid, "PPid:")?.parse().ok()
}

/// True if the process loses its memory by what happened to a thread of its.
fn ends_image(target: &Target, tid: i32, stop: &Stop) -> bool {
    match stop {
        Stop::Exec(_) => true,
        Stop::Exited(_) | Stop::Killed(_) => tid == target.pid || !target.leads,
        _ => false,
    }
}

/// Waits for the first stop of a new process; `None`: it was killed before.
fn first_stop(tid: i32) -> Option<Stopped> {
    loop {
        match sys::wait(tid, false) {
            Ok(Some((tid, status))) => return Some(Stop::new(tid, status).standing()?.0),
            Ok(None) if sys::is_zombie(tid) => return None,
            Ok(None) => std::thread::yield_now(),
            Err(_) => return None,
        }
    }
}

/// What threads say while one process is left; what others say waits.
pub struct Stops<'a> {
    doorbell: i32,
    others: &'a BTreeMap<TargetId, Target>,
    lingering: &'a [Target],
    waiting: &'a mut VecDeque<Told>,
    early: &'a mut HashMap<i32, Early>,
}

impl Stops<'_> {
    /// What a thread of `target`, or one that nobody knows, has to say; does not wait for it.
    pub fn next(&mut self, target: &Target) -> io::Result<Option<Told>> {
        let mine = |(tid, _): &Told| self.is_of(*tid, target);
        if let Some(at) = self.waiting.iter().position(mine) {
            return Ok(self.waiting.remove(at));
        }
        loop {
            match sys::wait_any(false)? {
                Some(told) if !self.is_of(told.0, target) => self.waiting.push_back(told),
                told => return Ok(told),
            }
        }
    }

    /// The first stop of this process, if it came before it was told of.
    pub fn met(&mut self, tid: i32) -> Option<Stopped> {
        self.early.remove(&tid).map(|early| early.stopped)
    }

    /// The first stop of a process that `pid` has made, or if nobody else is left, that anybody has.
    pub fn child_of(&mut self, pid: i32) -> Option<Stopped> {
        let alone = self.others.is_empty();
        let mut early = self.early.iter();
        let (tid, _) = early.find(|(_, early)| alone || early.parent == pid)?;
        let tid = *tid;
        self.met(tid)
    }

    fn is_of(&self, tid: i32, target: &Target) -> bool {
        if tid == self.doorbell {
            return false;
        }
        if target.knows(tid) {
            return true;
        }
        let others = self.others.values().chain(self.lingering);
        let all = std::iter::once(target).chain(others);
        match whose(tid, all) {
            Some(id) => id == target.id,
            None => self.others.is_empty() || parent_of(tid) == Some(target.pid),
        }
    }
}
