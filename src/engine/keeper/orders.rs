//! What the front asks of a target.

use std::fs::File;

use super::crash::Point;
use super::stop::Stopped;
use super::sys;
use super::target::{Target, failure};
use super::thread::{State, Thread};
use crate::arch::Displaced;
use crate::engine::protocol::{Answer, Call, Failure, Request, SiteId, SiteSpec, Tid};

impl Target {
    /// What the front is told of a target that has begun, and the descriptor of its memory.
    pub(super) fn introduction(&self) -> (Answer, &File) {
        let mut threads: Vec<Tid> = self.threads.keys().copied().map(Tid).collect();
        threads.sort_unstable_by_key(|tid| (tid.0 != self.pid, *tid));
        let (pid, space) = (self.pid, self.space);
        let answer = Answer::Target {
            pid,
            space,
            threads,
        };
        (answer, self.memory.file())
    }

    /// Does what the front asks under this number.
    pub(super) fn serve(&mut self, number: u32, request: Request) {
        self.patience.absent = false;
        let answer = match request {
            Request::Arm { space, .. } if space != self.space => Answer::Failed(Failure::Replaced),
            Request::Arm { sites, .. } => self.arm(sites),
            Request::Disarm { sites, .. } => self.disarm(sites),
            Request::Resume { tid, seen, .. } => self.let_go_on(tid, seen),
            Request::QueueSignal { tid, signal, .. } => self.queue_signal(tid, signal),
            Request::Interrupt { .. } => {
                self.patience.forget();
                self.interrupting = Some(number);
                self.forget_delays();
                self.interrupt_running();
                return self.interrupt_finished();
            }
            Request::Registers { tid, .. } => self.with_held(tid, |stop| {
                stop.registers()
                    .map(|regs| Answer::Registers(Box::new(regs)))
            }),
            Request::SetRegisters { tid, registers, .. } => self.with_held(tid, |stop| {
                stop.set_registers(&registers).map(|()| Answer::Done)
            }),
            Request::Entry { tid, probe, .. } => match self.threads.get(&tid.0) {
                Some(thread) => {
                    let kept = thread.entries.iter().find(|(of, _)| *of == probe);
                    Answer::Entry(kept.and_then(|(_, values)| values.clone()))
                }
                None => Answer::Failed(Failure::NotStopped),
            },
            Request::VectorRegisters { tid, .. } => {
                self.with_held(tid, |stop| sys::xstate(stop.tid()).map(Answer::Bytes))
            }
            Request::Children { children, .. } => {
                self.children = children;
                Answer::Done
            }
            Request::Write { address, bytes, .. } => done(self.write(address, bytes)),
            Request::Watch { watches, .. } => match self.set_watches(number, watches) {
                Some(answer) => answer,
                None => return,
            },
            Request::Calls { calls, .. } => {
                self.set_calls(calls);
                Answer::Done
            }
            Request::Signals { signals, .. } => {
                self.set_signals(signals);
                Answer::Done
            }
            Request::ExitKill { on, .. } => {
                self.exit_kill = on;
                Answer::Done
            }
            Request::Kill { .. } => done(
                sys::kill(self.pid, libc::SIGKILL).map_err(|error| failure(Call::Other, &error)),
            ),
            Request::Launch { .. } | Request::Attach { .. } | Request::Detach { .. } => {
                Answer::Failed(Failure::Malformed)
            }
        };
        self.front.reply(number, answer);
    }

    fn arm(&mut self, sites: Vec<SiteSpec>) -> Answer {
        let shadowed = has_shadow_stack(self.pid);
        let mut refused = Vec::new();
        for site in sites {
            let id = site.id;
            self.crash.pass(Point::Arming);
            if let Err(failure) = self.arm_one(site, shadowed) {
                refused.push((id, failure));
            }
            self.crash.pass(Point::Armed);
        }
        Answer::Refused(refused)
    }

    fn arm_one(&mut self, mut site: SiteSpec, shadowed: bool) -> Result<(), Failure> {
        // A shadow stack would miss a return that the processor did not do.
        site.by_hand &= !shadowed;
        // A call that the tracer does pushes its return address on the ordinary stack only, and
        // the return would be refused.
        if shadowed
            && Displaced::decode(&site.code, site.address).is_ok_and(|first| first.is_call())
        {
            return Err(Failure::Instruction {
                address: site.address,
                why: "it is a call, and the target's shadow stack (CET) would not know of it"
                    .into(),
            });
        }
        self.sites.arm(&self.memory, site)
    }

    fn disarm(&mut self, sites: Vec<(SiteId, bool)>) -> Answer {
        let disarm = |(id, gone)| {
            let failure = self.sites.disarm(&self.memory, id, gone).err()?;
            Some((id, failure))
        };
        Answer::Refused(sites.into_iter().filter_map(disarm).collect())
    }

    fn write(&mut self, address: u64, mut bytes: Vec<u8>) -> Result<(), Failure> {
        self.sites.overwrite(address, &mut bytes);
        let written = self.memory.write(address, &bytes);
        self.watched_written(address, bytes.len());
        written.map_err(|address| Failure::Memory { address })
    }

    fn with_held(
        &mut self,
        tid: Tid,
        act: impl FnOnce(&Stopped) -> std::io::Result<Answer>,
    ) -> Answer {
        match self.threads.get(&tid.0).map(|thread| &thread.state) {
            Some(State::Held(held)) => act(&held.stop)
                .unwrap_or_else(|error| Answer::Failed(failure(Call::Registers, &error))),
            _ => Answer::Failed(Failure::NotStopped),
        }
    }

    /// Lets one thread or all of them go on, but for those whose stop the front has not seen.
    pub(super) fn let_go_on(&mut self, tid: Option<Tid>, seen: u64) -> Answer {
        let all: Vec<i32> = match tid {
            Some(tid) => vec![tid.0],
            None => self.threads.keys().copied().collect(),
        };
        let mut any = false;
        for tid in all {
            let Some(thread) = self.threads.get_mut(&tid) else {
                continue;
            };
            // Its time is its own.
            if thread.until.is_some() {
                continue;
            }
            match std::mem::replace(&mut thread.state, State::Running) {
                State::Held(held) if held.number <= seen => {
                    any = true;
                    if held.group {
                        let sp = held.stop.registers().map_or(0, |registers| registers.sp());
                        self.mark_counted(tid, held.pass, sp);
                        self.listen(held.stop);
                    } else {
                        match held.number {
                            0 => self.begin_call_again(&held.stop),
                            _ => self.ignores(&held.stop, held.signal),
                        }
                        self.go_on_with(held.stop, held.signal, held.pass);
                    }
                }
                other => thread.state = other,
            }
        }
        match any || tid.is_none() {
            true => Answer::Done,
            false => Answer::Failed(Failure::NotStopped),
        }
    }

    fn interrupt_running(&mut self) {
        for thread in self.threads.values() {
            if !thread.is_held() {
                // ESRCH: it has died, and its end is on the way.
                let _ = sys::interrupt(thread.tid);
            }
        }
    }

    /// Answers an interrupt when every thread stands.
    pub(super) fn interrupt_finished(&mut self) {
        // A leader that ended before its other threads stays, and never stands.
        let ended = |thread: &Thread| thread.tid == self.pid && sys::is_zombie(thread.tid);
        let stuck = |thread: &Thread| self.waits_for_child(thread.tid);
        let running = |thread: &Thread| !thread.is_held() && !ended(thread) && !stuck(thread);
        if let Some(number) = self.interrupting
            && !self.threads.values().any(running)
        {
            self.interrupting = None;
            self.front.reply(number, Answer::Done);
        }
    }
}

fn done(result: Result<(), Failure>) -> Answer {
    match result {
        Ok(()) => Answer::Done,
        Err(failure) => Answer::Failed(failure),
    }
}

/// True if a thread runs with CET's shadow stack (`/proc/PID/status`, "x86_Thread_features").
fn has_shadow_stack(tid: i32) -> bool {
    lists_shadow_stack(&sys::status_text(tid))
}

fn lists_shadow_stack(status: &str) -> bool {
    sys::field(status, "x86_Thread_features:")
        .is_some_and(|features| features.split_whitespace().any(|name| name == "shstk"))
}

#[cfg(test)]
mod tests {
    use super::lists_shadow_stack;

    #[test]
    fn the_shadow_stack_is_a_feature_that_is_on() {
        assert!(lists_shadow_stack(
            "Pid:\t1\nx86_Thread_features:\tshstk wrss \n"
        ));
        assert!(!lists_shadow_stack(
            "x86_Thread_features:\t\nx86_Thread_features_locked:\tshstk \n"
        ));
        assert!(!lists_shadow_stack(""));
    }
}
