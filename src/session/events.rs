//! What happens to the targets while they run, up to the next thing that a person must see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::announce::missed;
use super::sites::{INTERNAL, unless_gone};
use super::threads::Thread;
use super::{Session, Target, engine_error, process};
use crate::engine::client::Happening;
use crate::engine::protocol::{Event, Failure, Reason, TargetId, Tid};
use crate::error::Error;
use crate::lang::script::Node;

/// A thread that stands and waits for an answer.
#[derive(Debug, Clone)]
pub struct Stop {
    /// Which one.
    pub tid: Tid,
    /// Why.
    pub reason: Reason,
}

/// What [`Session::wait`] came back for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wake {
    /// A stop that was presented; these bodies are to be run now, in order.
    Stopped(Vec<Arc<[Node]>>),
    /// A probe that goes on by itself but must be asked: run its body on that thread, then
    /// [`Session::resume_thread`].
    Ask {
        /// The thread.
        tid: Tid,
        /// The first probe hit there.
        number: u32,
        /// The bodies of the probes hit there, in order.
        bodies: Vec<Arc<[Node]>>,
    },
    /// No process is left.
    Ended,
    /// Ctrl-C, in a front that never stops the target; or nobody reads what it writes.
    Interrupted,
    /// The time that was given is over.
    TimeOver,
}

/// Counts Ctrl-C and SIGTERM.
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

/// A front that never stops its targets.
static TERMINATE: AtomicBool = AtomicBool::new(false);

/// For the signal handlers of the front.
pub fn note_signal(number: i32) {
    INTERRUPTS.fetch_add(1, Ordering::Relaxed);
    if number != libc::SIGINT {
        TERMINATE.store(true, Ordering::Relaxed);
    }
}

/// Whether Ctrl-C came since this was asked last.
pub fn interrupted() -> bool {
    INTERRUPTS.swap(0, Ordering::Relaxed) > 0
}

/// Whether the front itself was asked to end.
pub fn must_end() -> bool {
    TERMINATE.load(Ordering::Relaxed)
}

/// How long one look at the keeper takes at most: what Ctrl-C may have to wait.
const LOOK: Duration = Duration::from_millis(50);

/// How long the target's own SIGINT may take to arrive behind a Ctrl-C at the same terminal.
const GRACE: Duration = Duration::from_millis(200);

impl Session {
    /// Lets everything go on that stands. Stops that were not presented yet come first.
    pub fn resume(&mut self) -> Result<(), Error> {
        self.sync()?;
        self.asked_to_stop = None;
        let current = self.target().map(|target| target.id);
        self.finish_fork(true)?;
        if self.target().map(|target| target.id) != current {
            // It is the child that goes on.
            self.running = true;
            return Ok(());
        }
        for index in 0..self.targets.len() {
            if !self.is_active(index) {
                continue;
            }
            let target = &mut self.targets[index];
            target.previous = target.selected;
            self.running = true;
            if !target.waiting.is_empty() {
                continue;
            }
            self.release(index)?;
        }
        Ok(())
    }

    /// Lets everything go on that stands of one process.
    pub(super) fn release(&mut self, index: usize) -> Result<(), Error> {
        let target = &mut self.targets[index];
        target.stopped = false;
        target.threads.iter_mut().for_each(Thread::goes);
        let id = target.id;
        unless_gone(self.keeper()?.resume(id, None))
    }

    /// Lets one thread go on.
    pub fn resume_thread(&mut self, tid: Tid) -> Result<(), Error> {
        self.sync()?;
        if self.forking.is_some() {
            return self.finish_fork(false);
        }
        self.go_on(self.current, tid)
    }

    fn go_on(&mut self, index: usize, tid: Tid) -> Result<(), Error> {
        let Some(target) = self.targets.get_mut(index) else {
            return Ok(());
        };
        if let Some(thread) = target.threads.get_mut(tid) {
            thread.goes();
        }
        let id = target.id;
        self.keeper()?
            .let_go(id, tid)
            .map_err(|error| engine_error(&error))
    }

    /// Waits for the next thing that matters, and shows hits and births on the way.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<Wake, Error> {
        loop {
            self.flush_in_time();
            if let Some(wake) = self.next_waiting()? {
                return Ok(wake);
            }
            if self.limit == Some(0) || self.nobody_reads() || must_end() {
                return Ok(Wake::Interrupted);
            }
            if self.is_over() {
                return Ok(Wake::Ended);
            }
            if until.is_some_and(|u| Instant::now() >= u) {
                return Ok(Wake::TimeOver);
            }
            // Who looks in passing is at a prompt, where Ctrl-C means the line.
            let looks = until.is_some() && !self.show.never_stops();
            if !looks && interrupted() {
                if self.show.never_stops() {
                    return Ok(Wake::Interrupted);
                }
                self.asked_to_stop.get_or_insert_with(Instant::now);
            }
            let asked = self.asked_to_stop;
            if asked.is_some_and(|since| since.elapsed() > GRACE) {
                self.asked_to_stop = None;
                return self.interrupted_stop();
            }
            let left = until.map(|u| u.saturating_duration_since(Instant::now()));
            let happening = self
                .keeper()?
                .next(left.unwrap_or(LOOK).min(LOOK))
                .map_err(|e| engine_error(&e))?;
            match happening {
                Some(happening) => {
                    if let Some(wake) = self.take(happening)? {
                        return Ok(wake);
                    }
                }
                None if looks => self.flush_in_time(),
                None => self.flush(),
            }
        }
    }

    /// Presents or answers what stands already.
    fn next_waiting(&mut self) -> Result<Option<Wake>, Error> {
        let next = |session: &mut Session| {
            let waits = |index: &usize| {
                session.is_active(*index) && !session.targets[*index].waiting.is_empty()
            };
            let index = (0..session.targets.len()).find(waits)?;
            let stop = session.targets[index].waiting.pop_front()?;
            Some((index, stop))
        };
        while let Some((index, stop)) = next(self) {
            let all_stand = self.targets[index].stopped;
            if let Some(wake) = self.consider(index, stop, all_stand)? {
                return Ok(Some(wake));
            }
        }
        // Nothing was presented: what stood for that reason goes on.
        for index in 0..self.targets.len() {
            if self.is_active(index) && self.targets[index].stopped && self.running {
                self.release(index)?;
            }
        }
        Ok(None)
    }

    pub(super) fn index_of(&self, id: TargetId) -> Option<usize> {
        self.targets.iter().position(|t| t.id == id)
    }

    /// Deals with one happening.
    pub(super) fn take(&mut self, happening: Happening) -> Result<Option<Wake>, Error> {
        match happening {
            Happening::Hit(target, record) => {
                if let Some(index) = self.index_of(target) {
                    self.replay(index, &record);
                }
                Ok(None)
            }
            Happening::Event(event) => self.event(event),
        }
    }

    fn event(&mut self, event: Event) -> Result<Option<Wake>, Error> {
        match event {
            Event::Stopped {
                target,
                tid,
                reason,
                registers,
                ..
            } => {
                let Some(index) = self.index_of(target) else {
                    return Ok(None);
                };
                let target = &mut self.targets[index];
                target.threads.add(tid);
                if let Some(thread) = target.threads.get_mut(tid) {
                    thread.stands(Some(reason), registers);
                }
                self.consider(index, Stop { tid, reason }, false)
            }
            Event::Touched {
                target,
                tid,
                triggers,
            } => {
                if let Some(index) = self.index_of(target) {
                    let threads = &mut self.targets[index].threads;
                    threads.add(tid);
                    if let Some(thread) = threads.get_mut(tid) {
                        thread.touched = triggers;
                    }
                }
                Ok(None)
            }
            Event::Signalled {
                target,
                tid,
                number,
                ..
            } => {
                if let Some(index) = self.index_of(target) {
                    let text = self.signal_text(index, tid, number);
                    self.tell(&text);
                }
                Ok(None)
            }
            Event::ThreadStarted { target, tid } => {
                if let Some(index) = self.index_of(target) {
                    self.targets[index].threads.add(tid);
                }
                Ok(None)
            }
            Event::ThreadExited { target, tid } => {
                if let Some(index) = self.index_of(target)
                    && let Some(thread) = self.targets[index].threads.remove(tid)
                    && thread.announced
                    && thread.number > 1
                {
                    self.tell(&format!("[{} exited]\n", thread.title()));
                }
                Ok(None)
            }
            Event::Forked { .. } => {
                self.followed(event)?;
                Ok(None)
            }
            Event::SharerExited {
                child,
                code,
                signal,
                ..
            } => {
                self.sharer_ended(child, code, signal)?;
                Ok(self.is_over().then_some(Wake::Ended))
            }
            Event::Lost { target, why, .. } => {
                if let Some(index) = self.index_of(target) {
                    self.lost(index, why);
                }
                Ok(self.is_over().then_some(Wake::Ended))
            }
            Event::Exited {
                target,
                code,
                signal,
                ..
            } => {
                if let Some(index) = self.index_of(target) {
                    self.ended(index, code, signal);
                }
                // Of several targets the others are still looked at.
                Ok(self.is_over().then_some(Wake::Ended))
            }
            Event::SiteLost { target, site, why } => {
                let failure = crate::engine::client::EngineError::Refused(why);
                let text = engine_error(&failure).message;
                if let Some(index) = self.index_of(target)
                    && let Some((address, found)) = self.targets[index]
                        .sites
                        .iter_mut()
                        .find(|(_, s)| s.id == site)
                {
                    found.lost = true;
                    let text = format!("warning: the site at {address:#x} was taken out: {text}");
                    self.output.complain(&text);
                }
                Ok(None)
            }
            Event::WentOn { .. } => {
                self.output.complain(
                    "warning: a library was loaded or unloaded while this command was held up; what ran in it until now was not looked at.",
                );
                Ok(None)
            }
            Event::Missed { threads, children } => {
                self.output.complain(&missed(threads, children));
                Ok(None)
            }
            Event::SignalStateChanged { .. } => {
                self.output.complain(
                    "warning: the program blocks or ignores SIGTRAP; a hit changed that and it could not be put back.",
                );
                Ok(None)
            }
        }
    }

    /// Decides about one stopped thread. `all_stand`: it was found while everything stands.
    fn consider(
        &mut self,
        index: usize,
        stop: Stop,
        all_stand: bool,
    ) -> Result<Option<Wake>, Error> {
        match stop.reason {
            Reason::Probe { probe, .. } if probe == INTERNAL => {
                self.libraries_changed(index)?;
                if let Some(wake) = self.loads_caught(index, &stop, all_stand)? {
                    return Ok(Some(wake));
                }
                // Somebody may have a breakpoint at the same place.
                self.probe_stop(index, stop, all_stand)
            }
            Reason::Probe { .. } => self.probe_stop(index, stop, all_stand),
            Reason::Watch => self.watch_stop(index, &stop, all_stand),
            Reason::Call { number, begins } => {
                self.call_caught(index, &stop, (number, begins), all_stand)
            }
            Reason::Signal { number, .. } => {
                if self.show.never_stops() {
                    self.pass_by(index, stop.tid, all_stand)?;
                    return Ok(None);
                }
                if let Some(wake) = self.signal_caught(index, &stop, number, all_stand)? {
                    return Ok(wake);
                }
                if !self.signals.stops(number) {
                    if self.signals.prints(number) {
                        let text = self.signal_text(index, stop.tid, number);
                        self.tell(&text);
                    }
                    self.pass_by(index, stop.tid, all_stand)?;
                    return Ok(None);
                }
                let target = &mut self.targets[index];
                if number == libc::SIGINT && std::mem::take(&mut target.late_interrupt) {
                    // SIGINT does not reach the program, so nothing is lost by that.
                    self.pass_by(index, stop.tid, all_stand)?;
                    return Ok(None);
                }
                self.stand(index)?;
                self.present_signal(index, stop.tid, number);
                Ok(Some(Wake::Stopped(Vec::new())))
            }
            Reason::Forked { child, birth } => {
                if let Some(wake) = self.fork_caught(index, &stop, (child, birth), all_stand)? {
                    return Ok(Some(wake));
                }
                self.finish_fork(all_stand)?;
                self.forks(index, &stop, child, birth, all_stand)?;
                Ok(None)
            }
            Reason::Exec { former, .. } => {
                self.executed(index, former)?;
                if !self.is_active(index) {
                    // A child that is kept standing.
                    self.targets[index].stopped = true;
                    return Ok(None);
                }
                if let Some(wake) = self.exec_caught(index, &stop, all_stand)? {
                    return Ok(Some(wake));
                }
                self.pass_by(index, stop.tid, all_stand)?;
                Ok(None)
            }
        }
    }

    /// A thread that nobody needs to see goes on, unless everything stands anyway.
    pub(super) fn pass_by(&mut self, index: usize, tid: Tid, all_stand: bool) -> Result<(), Error> {
        self.sync()?;
        if all_stand {
            return Ok(());
        }
        self.go_on(index, tid)
    }

    fn probe_stop(
        &mut self,
        index: usize,
        stop: Stop,
        all_stand: bool,
    ) -> Result<Option<Wake>, Error> {
        self.current = index;
        let hit = self.hit_probes(index, &stop);
        let Some(first) = hit.first().copied() else {
            self.pass_by(index, stop.tid, all_stand)?;
            return Ok(None);
        };
        let asks = self.stands_for(index, stop.tid, &hit)?;
        let shown = hit.iter().copied().find(|number| self.is_break(*number));
        if let Some(number) = shown.filter(|_| !self.show.never_stops()) {
            self.banner(index, stop.tid, number, &hit);
        }
        Ok(Some(self.wake(stop.tid, first, &hit, asks)))
    }

    /// A thread is the one that is looked at now, for a stop of these probes. Unless all of them go on
    /// by themselves, every other one stands, too; true if they do.
    pub(super) fn stands_for(
        &mut self,
        index: usize,
        tid: Tid,
        hit: &[u32],
    ) -> Result<bool, Error> {
        let asks = self.all_continue(hit);
        if !asks {
            self.stand(index)?;
            self.announce_threads(index);
        }
        self.targets[index].selected = tid;
        Ok(asks)
    }

    /// What such a stop wakes for.
    pub(super) fn wake(&mut self, tid: Tid, first: u32, hit: &[u32], asks: bool) -> Wake {
        let bodies = self.take_bodies(hit);
        match asks {
            true => Wake::Ask {
                tid,
                number: first,
                bodies,
            },
            false => Wake::Stopped(bodies),
        }
    }

    /// Every thread of a target stands from here on.
    pub fn stand(&mut self, index: usize) -> Result<(), Error> {
        self.running = false;
        if self.targets[index].stopped {
            return Ok(());
        }
        let id = self.targets[index].id;
        self.keeper()?.interrupt(id).map_err(|e| engine_error(&e))?;
        self.targets[index].stopped = true;
        // What happened until then: hits are shown, stops wait for their turn.
        while let Some(happening) = self
            .keeper()?
            .next(Duration::ZERO)
            .map_err(|e| engine_error(&e))?
        {
            match happening {
                Happening::Event(Event::Stopped {
                    target,
                    tid,
                    reason,
                    registers,
                    ..
                }) => {
                    if matches!(reason, Reason::Probe { probe, .. } if probe == INTERNAL)
                        && let Some(at) = self.index_of(target)
                    {
                        self.libraries_changed(at)?;
                    }
                    if let Some(target) = self.targets.iter_mut().find(|t| t.id == target) {
                        target.threads.add(tid);
                        if let Some(thread) = target.threads.get_mut(tid) {
                            thread.stands(Some(reason), registers);
                        }
                        target.waiting.push_back(Stop { tid, reason });
                    }
                }
                Happening::Event(event @ Event::Exited { .. }) => {
                    self.event(event)?;
                    if self.index_of(id) != Some(index) {
                        return Err(Error::new("The program ended."));
                    }
                }
                other => {
                    self.take(other)?;
                }
            }
        }
        Ok(())
    }

    /// Ctrl-C that no signal of the target followed.
    pub fn interrupted_stop(&mut self) -> Result<Wake, Error> {
        let index = self.current;
        if self.unattended && self.target().is_some_and(|target| !target.launched) {
            // Nobody looks: what a stop of all threads would do to their blocked calls is spared
            // until a command needs one.
            self.running = false;
            self.tell("\nProgram received signal SIGINT, Interrupt.\n");
            return Ok(Wake::Stopped(Vec::new()));
        }
        self.stand(index)?;
        let target = &mut self.targets[index];
        target
            .waiting
            .retain(|s| !matches!(s.reason, Reason::Signal { number: 2, .. }));
        target.late_interrupt = process::is_pending(target.pid, libc::SIGINT);
        let tid = target.selected;
        self.present_signal(index, tid, libc::SIGINT);
        Ok(Wake::Stopped(Vec::new()))
    }

    /// Nobody knows a target any more.
    fn bury(&mut self, index: usize) -> Target {
        let target = self.take_target(index);
        if let Some(keeper) = &mut self.keeper {
            keeper.forget(target.id);
        }
        self.forget_addresses();
        target
    }

    /// A target executes a program that cannot be traced.
    fn lost(&mut self, index: usize, why: Failure) {
        let pid = self.bury(index).pid;
        self.output.complain(&format!(
            "warning: Process {pid} executes a program that cannot be traced, and was left. {why}"
        ));
    }

    fn ended(&mut self, index: usize, code: Option<i32>, signal: Option<i32>) {
        self.read_counters();
        self.tell_drops();
        self.tell_foreign(index);
        let target = self.bury(index);
        self.tell_end(target.inferior, target.pid, code, signal);
    }
}
