//! New threads, new processes, new programs: what a target makes and becomes.

use super::memory::Memory;
use super::site::Sites;
use super::slots::{self, SlotPages};
use super::stop::Stopped;
use super::sys;
use super::target::Target;
use super::thread::Thread;
use crate::engine::protocol::{Event, Reason, Tid};

impl Target {
    /// A thread made another thread or a process; that one's first stop does the rest.
    pub(super) fn cloned(&mut self, stopped: Stopped) {
        let blocked = self
            .threads
            .get(&stopped.tid())
            .is_some_and(|thread| thread.trap_blocked);
        if let Ok(child) = sys::event_message(stopped.tid()) {
            match self.threads.get_mut(&child) {
                Some(thread) => thread.trap_blocked = blocked,
                None => {
                    self.births.insert(child, blocked);
                }
            }
        }
        self.go(stopped, 0);
    }

    /// The first stop of a thread that we did not know.
    pub(super) fn meet(&mut self, stopped: Stopped) {
        let tid = stopped.tid();
        let blocked = self.births.remove(&tid).unwrap_or(false);
        let process = slots::process_of(tid).unwrap_or(tid);
        let same = process == self.pid || sys::same_memory(self.pid, tid);
        if !same {
            return self.release_child(stopped);
        }
        self.threads.insert(tid, Thread::new(tid, process, blocked));
        self.entries.thread_began();
        if process == self.pid {
            let target = self.id;
            self.front.event(
                Event::ThreadStarted {
                    target,
                    tid: Tid(tid),
                },
                None,
            );
        }
        self.stands(stopped, false);
    }

    /// A forked child has a copy of our int3s: takes them out and lets it go.
    fn release_child(&mut self, stopped: Stopped) {
        let child = stopped.tid();
        if let Ok(memory) = Memory::open(child) {
            self.sites.clean(&memory);
        }
        if let Ok(registers) = stopped.registers() {
            self.leave_slot(&stopped, registers);
        }
        let _ = stopped.detach(0);
        let target = self.id;
        self.front.event(Event::Forked { target, child }, None);
    }

    /// Another program runs in the process: nothing of the old one is left.
    pub(super) fn exec(&mut self, stopped: Stopped) {
        let tid = stopped.tid();
        if tid != self.pid {
            // A child that shared our target's memory has one of its own now.
            self.threads.remove(&tid);
            let _ = stopped.detach(0);
            let (target, child) = (self.id, tid);
            return self.front.event(Event::Forked { target, child }, None);
        }
        self.sites.clean(&self.memory);
        let Ok(memory) = Memory::open(self.pid) else {
            return self.go(stopped, 0);
        };
        self.memory = memory;
        self.sites = Sites::default();
        self.entries.executed(&self.counters);
        self.slots = SlotPages::default();
        self.watches_forgotten();
        // The thread that called exec has the leader's id now; the others are gone unannounced.
        let pid = self.pid;
        let blocked = sys::event_message(tid)
            .ok()
            .and_then(|former| self.threads.get(&former))
            .is_some_and(|thread| thread.trap_blocked);
        self.threads.retain(|_, thread| thread.pid != pid);
        self.threads.insert(pid, Thread::new(pid, pid, blocked));
        if self.skip_execs > 0 {
            self.skip_execs -= 1;
            return self.go(stopped, 0);
        }
        self.space.0 += 1;
        let space = self.space;
        self.tell_stopped(stopped, 0, None, Reason::Exec { space });
    }
}
