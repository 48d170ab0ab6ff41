//! The keeper: the ptrace parent of all targets, in a process of its own.
//!
//! It parses no files of the target's, has no terminal, and never waits for the front. One thread
//! (this one) listens to the front; each target has a thread that traces it, and with it what comes
//! of it.

mod calls;
mod catch;
mod children;
mod crash;
mod delay;
mod doorbell;
mod entries;
mod follow;
mod front;
mod hit;
#[cfg(test)]
mod hostile;
mod hosts;
mod inject;
mod launch;
mod leave;
pub(super) mod memory;
mod orders;
mod patience;
mod policy;
mod prefetch;
mod signals;
mod site;
mod slots;
mod stop;
pub(super) mod sys;
mod target;
mod thread;
mod timer;
mod tracer;
mod watch;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use self::doorbell::{Bell, Doorbell};
use self::front::{Front, Woken};
use self::hosts::Hosts;
use self::launch::Inheritance;
use self::target::{Common, Parts};
use self::tracer::{Left, Order, Tracer};
use super::link::Link;
use super::protocol::{Answer, Call, Envelope, Failure, MAX_PACKET, Request, TargetId};
use crate::record::ring::Ring;
use crate::record::shared::Counters;

/// `argv[0]` of the keeper process, as `ps` shows it.
pub const NAME: &str = "trapline-keeper";

/// The descriptors that a keeper inherits: the socket to the front, and the shared counters.
pub const SOCKET: i32 = 3;
/// See [`SOCKET`].
pub const COUNTERS: i32 = 4;

/// Runs the keeper in a process that was started for it; returns when the front is gone and every
/// target was left.
pub fn main() -> ExitCode {
    // SAFETY: the front made these two descriptors for us; nothing else owns them.
    let (socket, counters) =
        unsafe { (OwnedFd::from_raw_fd(SOCKET), OwnedFd::from_raw_fd(COUNTERS)) };
    let inheritance = settle();
    let (Ok(counters), Ok(front)) = (
        Counters::open(File::from(counters)),
        Front::new(Link::from_descriptor(socket)),
    ) else {
        return ExitCode::FAILURE;
    };
    let keeper = Control {
        front: Arc::new(front),
        counters: Arc::new(counters),
        hosts: Arc::default(),
        inheritance,
        threads: HashMap::new(),
    };
    match keeper.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Makes the process one that only the front's end ends: an own process group, so that the
/// terminal's Ctrl-C is not for it, and no signal that a person sends to the command by mistake.
fn settle() -> Inheritance {
    let ignored = signals::SignalState::of(std::process::id() as i32).ignored;
    // SAFETY: plain system calls on numbers.
    let group = unsafe {
        let group = libc::getpgid(0);
        libc::setpgid(0, 0);
        for signal in [
            libc::SIGINT,
            libc::SIGHUP,
            libc::SIGTERM,
            libc::SIGQUIT,
            libc::SIGPIPE,
            libc::SIGTTOU,
            libc::SIGTTIN,
            libc::SIGTSTP,
        ] {
            libc::signal(signal, libc::SIG_IGN);
        }
        for descriptor in [SOCKET, COUNTERS] {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        group
    };
    Inheritance { group, ignored }
}

/// One tracing thread, from the control thread's side.
struct TracingThread {
    orders: Sender<Order>,
    bell: Arc<Bell>,
    thread: JoinHandle<()>,
}

impl TracingThread {
    fn order(&self, order: Order) -> bool {
        let sent = self.orders.send(order).is_ok();
        self.bell.ring();
        sent
    }

    /// Leaves one of its processes.
    fn leave(&self, target: TargetId) -> Left {
        let (answer, left) = channel();
        self.order(Order::Leave(target, answer));
        // A thread that panicked has left everything all the same.
        left.recv().unwrap_or(Left::Nothing)
    }

    /// Returns when the thread has ended, and so nothing of its is traced any more.
    fn end(self) {
        self.order(Order::End);
        drop(self.orders);
        let _ = self.thread.join();
    }
}

struct Control {
    front: Arc<Front>,
    counters: Arc<Counters>,
    hosts: Arc<Hosts>,
    inheritance: Inheritance,
    /// By the target that each began with.
    threads: HashMap<TargetId, TracingThread>,
}

impl Control {
    /// Serves until the front is gone, then leaves every target.
    fn run(mut self) -> io::Result<()> {
        let end = self.serve_all();
        // All of them first: none waits for another.
        for thread in self.threads.values() {
            thread.order(Order::End);
        }
        for (_, thread) in self.threads.drain() {
            thread.end();
        }
        end
    }

    fn serve_all(&mut self) -> io::Result<()> {
        let mut packet = vec![0; MAX_PACKET];
        loop {
            if self.front.wait()? == Woken::Nothing {
                continue;
            }
            match self.front.receive(&mut packet) {
                Ok(Some((length, file))) => self.serve(&packet[..length], file),
                Ok(None) => return Ok(()),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn serve(&mut self, packet: &[u8], file: Option<File>) {
        let Ok(Envelope { sequence, request }) = postcard::from_bytes(packet) else {
            return self
                .front
                .reply(u32::MAX, Answer::Failed(Failure::Malformed));
        };
        match request {
            Request::Launch { target, .. } | Request::Attach { target, .. } => {
                if let Err(failure) = self.begin(target, sequence, request, file) {
                    self.front.reply(sequence, Answer::Failed(failure));
                }
            }
            Request::Detach { target } => {
                let answer = self.leave(target);
                self.front.reply(sequence, answer);
            }
            request => {
                let host = self.hosts.host(request.target());
                let sent = self
                    .threads
                    .get(&host)
                    .is_some_and(|thread| thread.order(Order::Request(sequence, request)));
                if !sent {
                    self.front
                        .reply(sequence, Answer::Failed(Failure::NoTarget));
                }
            }
        }
    }

    /// Leaves a target, and ends its thread if that has no other one.
    fn leave(&mut self, target: TargetId) -> Answer {
        let host = self.hosts.host(target);
        let left = self.threads.get(&host).map(|thread| thread.leave(target));
        self.hosts.forget(target);
        if left == Some(Left::Nothing)
            && let Some(thread) = self.threads.remove(&host)
        {
            thread.end();
            self.hosts.ended(host);
        }
        match left {
            Some(Left::Nothing | Left::Others) => Answer::Done,
            Some(Left::NoTarget) | None => Answer::Failed(Failure::NoTarget),
        }
    }

    /// Starts the thread for a new target; the thread answers.
    fn begin(
        &mut self,
        id: TargetId,
        sequence: u32,
        request: Request,
        ring: Option<File>,
    ) -> Result<(), Failure> {
        let fork = |error: io::Error| target::failure(Call::Fork, &error);
        let ring = ring
            .and_then(|file| Ring::open(file).ok())
            .ok_or(Failure::Malformed)?;
        let (read, bell) = doorbell::pipe().map_err(fork)?;
        let (orders, inbox) = channel();
        let begin = Begin {
            id,
            sequence,
            request,
            ring,
            bell: Arc::new(bell),
            front: self.front.clone(),
            counters: self.counters.clone(),
            hosts: self.hosts.clone(),
            inheritance: self.inheritance,
        };
        let bell = begin.bell.clone();
        let thread = std::thread::Builder::new()
            .name(format!("target-{}", id.0))
            .spawn(move || trace(begin, read, inbox))
            .map_err(fork)?;
        let thread = TracingThread {
            orders,
            bell,
            thread,
        };
        if let Some(old) = self.threads.insert(id, thread) {
            old.end();
        }
        Ok(())
    }
}

/// What a tracing thread begins with.
struct Begin {
    id: TargetId,
    sequence: u32,
    request: Request,
    ring: Ring,
    bell: Arc<Bell>,
    front: Arc<Front>,
    counters: Arc<Counters>,
    hosts: Arc<Hosts>,
    inheritance: Inheritance,
}

/// The life of a tracing thread.
fn trace(begin: Begin, read: OwnedFd, inbox: Receiver<Order>) {
    let (front, sequence) = (begin.front, begin.sequence);
    let doorbell = match Doorbell::start(read) {
        Ok(doorbell) => doorbell,
        Err(error) => {
            let failure = target::failure(Call::Fork, &error);
            return front.reply(sequence, Answer::Failed(failure));
        }
    };
    let common = Common::new(
        begin.id,
        begin.hosts,
        front.clone(),
        begin.counters,
        begin.ring,
        begin.bell,
    );
    let parts = |signals, children| Parts {
        id: begin.id,
        signals,
        children,
        common,
    };
    let begun = match begin.request {
        Request::Attach {
            pid,
            signals,
            children,
            ..
        } => launch::attach(parts(signals, children), pid).map(|target| (target, None)),
        Request::Launch { launch, .. } => {
            let parts = parts(launch.signals, launch.children);
            let begun = launch::launch(parts, &launch, begin.inheritance);
            begun.map(|(target, stopped)| (target, Some(stopped)))
        }
        _ => Err(Failure::Malformed),
    };
    match begun {
        Ok((mut target, stopped)) => {
            let (answer, memory) = target.introduction();
            front.reply_with(sequence, answer, memory);
            if let Some(stopped) = stopped {
                target.exec(stopped);
            }
            Tracer::new(front, doorbell, inbox, target).run();
        }
        Err(failure) => front.reply(sequence, Answer::Failed(failure)),
    }
}
