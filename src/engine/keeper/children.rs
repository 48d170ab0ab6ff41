//! New threads, new processes, new programs: what a target makes and becomes.

use super::memory::Memory;
use super::site::Sites;
use super::slots::{self, SlotPages};
use super::stop::Stopped;
use super::sys;
use super::target::{Parts, Target, failure};
use super::thread::{Thread, TrapBlocked};
use crate::engine::protocol::{AddressSpaceId, Birth, Call, Event, Fate, Reason, Tid};

/// A thread or a process that was made, and whose first stop is still to come.
pub struct Unborn {
    /// The thread that made it.
    parent: i32,
    /// It blocks SIGTRAP, as that one does.
    blocked: TrapBlocked,
    birth: Birth,
    /// The thread that made a process waits until that was met: what the front is told of the child
    /// comes before what its parent does next.
    pub waits: Option<Stopped>,
    /// That thread stops then, for the front.
    stops: bool,
}

impl Unborn {
    /// Made by `parent`, which goes on.
    pub fn of(parent: i32, birth: Birth) -> Unborn {
        Unborn {
            parent,
            blocked: None,
            birth,
            waits: None,
            stops: false,
        }
    }
}

/// A process with the memory of the one that it came of.
#[derive(Debug, Clone, Copy)]
pub struct Sharer {
    birth: Birth,
    /// The thread that made it.
    parent: i32,
}

impl Target {
    /// True for a thread that sits in a `vfork` until the child has a memory of its own: nothing but
    /// its death ends that wait, so that it neither runs nor stops.
    pub(super) fn waits_for_child(&self, tid: i32) -> bool {
        let mut sharers = self.sharers.values();
        sharers.any(|sharer| sharer.birth == Birth::Vfork && sharer.parent == tid)
    }

    /// True for a child in a `vfork` that is let go: what it passes is no hit, as it is none in a child
    /// with a copy of the memory.
    pub(super) fn is_let_go(&self, pid: i32) -> bool {
        let sharer = self.sharers.get(&pid);
        !self.children.keep && sharer.is_some_and(|sharer| sharer.birth == Birth::Vfork)
    }

    /// A thread made another thread or a process; that one's first stop does the rest.
    pub(super) fn cloned(&mut self, stopped: Stopped, birth: Birth) {
        let parent = stopped.tid();
        let thread = self.threads.get(&parent);
        let blocked = thread.and_then(|thread| thread.trap_blocked);
        let Ok(child) = sys::event_message(parent) else {
            return self.go(stopped, 0);
        };
        let stops = self.children.stop && birth != Birth::Clone;
        if let Some(thread) = self.threads.get_mut(&child) {
            thread.trap_blocked = blocked;
        } else if sys::exists(child) {
            let mut unborn = Unborn {
                blocked,
                stops,
                ..Unborn::of(parent, birth)
            };
            if birth != Birth::Clone {
                unborn.waits = Some(stopped);
                self.births.insert(child, unborn);
                return;
            }
            self.births.insert(child, unborn);
        } else if stops {
            // It was killed before it began.
            return self.tell_stopped(stopped, 0, None, Reason::Forked { child, birth });
        }
        self.go(stopped, 0);
    }

    /// The first stop of a thread that we did not know.
    pub(super) fn meet(&mut self, stopped: Stopped) {
        let tid = stopped.tid();
        let unborn = self.births.remove(&tid);
        let unborn = unborn.unwrap_or_else(|| Unborn::of(self.pid, Birth::Clone));
        let process = slots::process_of(tid).unwrap_or(tid);
        if process == self.pid {
            return self.meet_thread(stopped, unborn.blocked);
        }
        let same = |other: i32| sys::same_memory(other, tid);
        if same(unborn.parent) || same(self.pid) {
            self.meet_sharer(stopped, process, &unborn);
        } else if self.children.keep {
            self.keep_child(stopped, &unborn);
        } else {
            self.release_child(stopped, &unborn);
        }
        self.was_met(tid, unborn);
    }

    /// The thread that has made this process goes on, or stops now if it is to.
    pub(super) fn was_met(&mut self, child: i32, unborn: Unborn) {
        let birth = unborn.birth;
        match unborn.waits {
            Some(waits) if unborn.stops => {
                self.tell_stopped(waits, 0, None, Reason::Forked { child, birth });
            }
            Some(waits) => self.go(waits, 0),
            None => {}
        }
    }

    fn meet_thread(&mut self, stopped: Stopped, blocked: TrapBlocked) {
        let (target, tid) = (self.id, stopped.tid());
        let thread = Thread::new(tid, self.pid, blocked);
        self.threads.insert(tid, thread);
        self.threaded = true;
        self.entries.thread_began();
        let tid = Tid(tid);
        self.front.event(Event::ThreadStarted { target, tid }, None);
        self.stands(stopped, false);
    }

    /// A process with our target's memory, or a thread of one: our int3s are its too.
    fn meet_sharer(&mut self, stopped: Stopped, process: i32, unborn: &Unborn) {
        let tid = stopped.tid();
        let thread = Thread::new(tid, process, unborn.blocked);
        self.threads.insert(tid, thread);
        self.entries.thread_began();
        if tid == process {
            // `clone` tells of a fork where the parent gets a SIGCHLD.
            let birth = match unborn.birth {
                Birth::Vfork => Birth::Vfork,
                Birth::Fork | Birth::Clone => Birth::Clone,
            };
            let parent = unborn.parent;
            self.sharers.insert(process, Sharer { birth, parent });
            self.tell_forked(unborn.parent, process, birth, Fate::Shares, None);
        }
        self.stands(stopped, false);
    }

    /// A forked child is traced like its parent: it has a copy of our int3s and of the slots.
    fn keep_child(&mut self, stopped: Stopped, unborn: &Unborn) {
        let child = stopped.tid();
        let Ok(memory) = Memory::open(child) else {
            return self.release_child(stopped, unborn);
        };
        let mut thread = Thread::new(child, child, unborn.blocked);
        if let Some(parent) = self.threads.get(&unborn.parent) {
            thread.counted = parent.counted.clone();
        }
        let mut target = self.relative(child, memory, thread);
        target.space = self.space;
        target.sites = self.sites.clone();
        target.slots = self.slots.clone();
        target.sites.fit(&target.memory);
        target.slots.fit(&target.memory);
        target.trap_action = self.trap_action;
        let fate = Fate::Kept(target.id);
        let memory = Some(&target.memory);
        self.tell_forked(unborn.parent, child, unborn.birth, fate, memory);
        match self.children.stop {
            true => target.stand_at_birth(stopped),
            false => target.stands(stopped, false),
        }
        self.offspring.push(target);
    }

    fn stand_at_birth(&mut self, stopped: Stopped) {
        let registers = stopped.registers();
        let pass = registers.ok().and_then(|it| self.leave_slot(&stopped, it));
        self.hold(stopped, 0, pass, false);
    }

    /// A target of its own that came of this one.
    fn relative(&self, pid: i32, memory: Memory, thread: Thread) -> Target {
        let parts = Parts {
            id: self.common.hosts.adopt(self.common.host),
            signals: self.signals,
            children: self.children,
            common: self.common.clone(),
        };
        Target::new(parts, pid, memory, vec![thread])
    }

    /// A forked child has a copy of our int3s: takes them out and lets it go.
    fn release_child(&mut self, stopped: Stopped, unborn: &Unborn) {
        let child = stopped.tid();
        if let Ok(memory) = Memory::open(child) {
            self.sites.clean(&memory);
        }
        if let Ok(registers) = stopped.registers() {
            self.leave_slot(&stopped, registers);
        }
        let _ = stopped.detach(0);
        self.tell_forked(unborn.parent, child, unborn.birth, Fate::LetGo, None);
    }

    fn tell_forked(&self, tid: i32, child: i32, birth: Birth, fate: Fate, memory: Option<&Memory>) {
        let event = Event::Forked {
            target: self.id,
            tid: Tid(tid),
            child,
            birth,
            fate,
            ring: self.ring.head(),
        };
        self.front.event(event, memory.map(Memory::file));
    }

    /// Another program runs in the process: nothing of the old one is left.
    pub(super) fn exec(&mut self, stopped: Stopped) {
        let tid = stopped.tid();
        if tid != self.pid {
            return self.sharer_executed(stopped);
        }
        self.sites.clean(&self.memory);
        self.sites = Sites::default();
        self.slots = SlotPages::default();
        self.watches_forgotten();
        self.entries.executed(&self.counters);
        // The thread that called exec has the leader's id now; the others are gone unannounced.
        let pid = self.pid;
        let former = sys::event_message(tid).unwrap_or(pid);
        let blocked = self.threads.get(&former);
        let blocked = blocked.and_then(|thread| thread.trap_blocked);
        self.threads.retain(|_, thread| thread.pid != pid);
        self.threaded = false;
        self.leads = true;
        self.births.retain(|tid, _| sys::exists(*tid));
        self.memory = match Memory::open(pid) {
            Ok(memory) => memory,
            Err(error) => return self.lose(stopped, &error),
        };
        self.threads.insert(pid, Thread::new(pid, pid, blocked));
        if self.skip_execs > 0 {
            self.skip_execs -= 1;
            return self.go(stopped, 0);
        }
        self.space.0 += 1;
        let space = self.space;
        let former = Tid(former);
        self.tell_stopped(stopped, 0, None, Reason::Exec { space, former });
    }

    /// The new program's memory cannot be reached (too many open files, no permission): it is left.
    fn lose(&mut self, stopped: Stopped, error: &std::io::Error) {
        let _ = stopped.detach(0);
        let event = Event::Lost {
            target: self.id,
            why: failure(Call::OpenMemory, error),
            ring: self.ring.head(),
        };
        self.ends_with(event);
    }

    /// A child that had our target's memory has its own now.
    fn sharer_executed(&mut self, stopped: Stopped) {
        let pid = stopped.tid();
        let sharer = self.sharers.remove(&pid);
        let birth = sharer.map_or(Birth::Clone, |sharer| sharer.birth);
        let former = sys::event_message(pid).ok();
        let blocked = former
            .and_then(|former| self.threads.get(&former))
            .and_then(|thread| thread.trap_blocked);
        for thread in self.threads.extract_if(|_, thread| thread.pid == pid) {
            let (target, tid) = (self.id, Tid(thread.0));
            self.front.event(Event::ThreadExited { target, tid }, None);
        }
        let memory = Memory::open(pid).ok().filter(|_| self.children.keep);
        let Some(memory) = memory else {
            let _ = stopped.detach(0);
            self.tell_forked(0, pid, birth, Fate::LetGo, None);
            return self.interrupt_finished();
        };
        let mut target = self.relative(pid, memory, Thread::new(pid, pid, blocked));
        target.space = AddressSpaceId(1);
        let (fate, space) = (Fate::Kept(target.id), target.space);
        self.tell_forked(0, pid, birth, fate, Some(&target.memory));
        let former = Tid(pid);
        target.tell_stopped(stopped, 0, None, Reason::Exec { space, former });
        self.offspring.push(target);
        self.interrupt_finished();
    }
}
