//! The front as the keeper's threads reach it, without ever waiting for it.
//!
//! What does not fit into the socket is kept, in order, until the front reads again. A front that
//! stands (Ctrl-Z, a debugger, a terminal that takes nothing) must not hold up the program: threads
//! that come and go in the meantime are told in short.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::mem::{size_of, take};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::engine::link::Link;
use crate::engine::protocol::{Answer, Event, Fate, Message, TargetId, Tid};

/// With more waiting for the front, what it can do without is dropped; bytes.
const ROOM: usize = 256 << 10;
/// With more than that left the front is as good as gone; bytes. Living threads are told in less.
const MOST: usize = 64 << 20;

/// The front.
pub struct Front {
    link: Link,
    outbox: Mutex<Outbox>,
    /// Wakes the control thread when there is something to send as soon as the front reads.
    filled: EventFd,
}

/// What waits for the front.
#[derive(Default)]
struct Outbox {
    queue: VecDeque<Waiting>,
    /// What the queue takes.
    bytes: usize,
    /// The queue is looked through when it takes more.
    thin_at: usize,
    /// Threads and children that the front was not told of.
    missed: (u64, u64),
}

/// One packet that waits.
struct Waiting {
    packet: Vec<u8>,
    file: Option<File>,
    news: News,
}

impl Waiting {
    fn size(&self) -> usize {
        size_of::<Waiting>() + self.packet.len()
    }
}

/// What can be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    /// With the end of the same thread.
    Began(TargetId, Tid),
    /// With its beginning.
    Ended(TargetId, Tid),
    /// A child that was let go.
    Child,
    /// Nothing of the kind: the front waits for it, or a thread does.
    Needed,
}

impl News {
    fn of(message: &Message) -> News {
        match *message {
            Message::Event(Event::ThreadStarted { target, tid }) => News::Began(target, tid),
            Message::Event(Event::ThreadExited { target, tid }) => News::Ended(target, tid),
            // Of a child that is followed much more will be told.
            Message::Event(Event::Forked {
                fate: Fate::LetGo | Fate::Shares,
                ..
            }) => News::Child,
            _ => News::Needed,
        }
    }
}

/// What the control thread is woken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A request may be there, or the front's end.
    Request,
    /// Something else: ask again.
    Nothing,
}

impl Front {
    /// The one at the other end.
    pub fn new(link: Link) -> io::Result<Front> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Front {
            link,
            outbox: Mutex::new(Outbox {
                thin_at: ROOM,
                ..Outbox::default()
            }),
            filled: EventFd::from_value_and_flags(0, flags)?,
        })
    }

    /// Waits until the front asks something or is gone, and sends what waits meanwhile.
    pub fn wait(&self) -> io::Result<Woken> {
        let mut wanted = PollFlags::POLLIN;
        if !self.outbox().flush(&self.link) {
            wanted |= PollFlags::POLLOUT;
        }
        let mut wait = [
            PollFd::new(self.link.descriptor().as_fd(), wanted),
            PollFd::new(self.filled.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut wait, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Woken::Nothing),
            Err(error) => return Err(error.into()),
        }
        let [link, filled] = wait.map(|one| one.revents().unwrap_or(PollFlags::empty()));
        if filled.contains(PollFlags::POLLIN) {
            // Another thread may have emptied it: nothing depends on the number.
            let _ = self.filled.read();
        }
        let read = PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR;
        Ok(match link.intersects(read) {
            true => Woken::Request,
            false => Woken::Nothing,
        })
    }

    /// The next request with its descriptor, if one is there; `None`: the front is gone.
    pub fn receive(&self, packet: &mut [u8]) -> io::Result<Option<(usize, Option<File>)>> {
        self.link.receive(packet, false)
    }

    /// Answers a request.
    pub fn reply(&self, number: u32, answer: Answer) {
        self.send(&Message::Reply(number, answer), None);
    }

    /// Answers a request with a descriptor.
    pub fn reply_with(&self, number: u32, answer: Answer, file: &File) {
        self.send(&Message::Reply(number, answer), Some(file));
    }

    /// Tells of something.
    pub fn event(&self, event: Event, file: Option<&File>) {
        self.send(&Message::Event(event), file);
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        // A thread that panicked between two changes has left a queue all the same.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, message: &Message, file: Option<&File>) {
        let Ok(packet) = postcard::to_stdvec(message) else {
            return;
        };
        let mut outbox = self.outbox();
        // A front that is gone is seen by the control thread.
        if outbox.flush(&self.link) && !matches!(self.link.offer(&packet, file), Ok(false)) {
            return;
        }
        outbox.push(Waiting {
            packet,
            // Without it the front says that it cannot use the answer.
            file: file.and_then(|file| file.try_clone().ok()),
            news: News::of(message),
        });
        if outbox.bytes > MOST {
            // The control thread reads an end, and leaves every target.
            self.link.close();
        }
        drop(outbox);
        // The count is full: then the control thread is about to look.
        let _ = self.filled.write(1);
    }
}

impl Outbox {
    /// Sends what waits, as far as there is room; true when nothing is left.
    fn flush(&mut self, link: &Link) -> bool {
        loop {
            // First of all: behind the last word about a target nobody listens.
            if self.missed != (0, 0) && !self.tell_missed(link) {
                return false;
            }
            let Some(first) = self.queue.front() else {
                self.thin_at = ROOM;
                return true;
            };
            if let Ok(false) = link.offer(&first.packet, first.file.as_ref()) {
                return false;
            }
            self.bytes -= first.size();
            self.queue.pop_front();
        }
    }

    fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.size();
        self.queue.push_back(waiting);
        if self.bytes > self.thin_at {
            self.thin();
            // What is needed stays: looked through again only when it has doubled.
            self.thin_at = ROOM.max(2 * self.bytes);
        }
    }

    /// Drops threads that began and ended while the front read nothing, and children that were let go.
    fn thin(&mut self) {
        let mut drop = vec![false; self.queue.len()];
        let mut begun = HashMap::new();
        for (index, waiting) in self.queue.iter().enumerate() {
            match waiting.news {
                News::Began(target, tid) => {
                    begun.insert((target, tid), index);
                }
                News::Ended(target, tid) => {
                    if let Some(began) = begun.remove(&(target, tid)) {
                        (drop[began], drop[index]) = (true, true);
                        self.missed.0 += 1;
                    }
                }
                News::Child => {
                    drop[index] = true;
                    self.missed.1 += 1;
                }
                News::Needed => {}
            }
        }
        let queue = take(&mut self.queue).into_iter().zip(drop);
        let left = queue.filter_map(|(waiting, drop)| (!drop).then_some(waiting));
        self.queue = left.collect();
        self.bytes = self.queue.iter().map(Waiting::size).sum();
    }

    fn tell_missed(&mut self, link: &Link) -> bool {
        let (threads, children) = self.missed;
        let message = Message::Event(Event::Missed { threads, children });
        let packet = postcard::to_stdvec(&message).unwrap_or_default();
        let told = !matches!(link.offer(&packet, None), Ok(false));
        if told {
            self.missed = (0, 0);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::protocol::{Birth, MAX_PACKET};

    const TARGET: TargetId = TargetId(1);

    fn read_all(link: &Link) -> Vec<Message> {
        let mut buf = vec![0; MAX_PACKET];
        let mut all = Vec::new();
        while let Ok(Some((length, _))) = link.receive(&mut buf, false) {
            all.push(postcard::from_bytes(&buf[..length]).unwrap());
        }
        all
    }

    fn began(tid: i32) -> Event {
        let (target, tid) = (TARGET, Tid(tid));
        Event::ThreadStarted { target, tid }
    }

    fn ended(tid: i32) -> Event {
        let (target, tid) = (TARGET, Tid(tid));
        Event::ThreadExited { target, tid }
    }

    /// All that the front gets when it reads again, with what it makes of the threads.
    fn drain(front: &Front, other: &Link) -> Vec<Message> {
        let mut all = Vec::new();
        loop {
            let empty = front.outbox().flush(&front.link);
            all.extend(read_all(other));
            if empty {
                return all;
            }
        }
    }

    fn living(messages: &[Message]) -> Vec<i32> {
        let mut living = Vec::new();
        for message in messages {
            match message {
                Message::Event(Event::ThreadStarted { tid, .. }) => living.push(tid.0),
                Message::Event(Event::ThreadExited { tid, .. }) => {
                    living.retain(|other| *other != tid.0);
                }
                _ => {}
            }
        }
        living
    }

    #[test]
    fn what_a_front_that_stands_missed_is_told_in_short() {
        let (back, other) = Link::pair().unwrap();
        let front = Front::new(back).unwrap();
        front.event(began(1), None);
        for round in 0..20_000 {
            // Ids come again, as the kernel's do.
            let tid = 10 + round % 300;
            front.event(began(tid), None);
            let child = round;
            front.event(
                Event::Forked {
                    target: TARGET,
                    tid: Tid(1),
                    child,
                    birth: Birth::Fork,
                    fate: Fate::LetGo,
                    ring: 0,
                },
                None,
            );
            front.reply(round as u32, Answer::Done);
            front.event(ended(tid), None);
        }
        front.event(began(2), None);
        front.event(ended(1), None);
        let all = drain(&front, &other);
        // Nothing that somebody waits for is lost, and in its order.
        let replies: Vec<u32> = all
            .iter()
            .filter_map(|message| match message {
                Message::Reply(number, Answer::Done) => Some(*number),
                _ => None,
            })
            .collect();
        assert!(replies.into_iter().eq(0..20_000));
        assert_eq!(living(&all), [2]);
        let (mut threads, mut children) = (0, 0);
        for message in &all {
            match message {
                Message::Event(Event::Missed {
                    threads: t,
                    children: c,
                }) => (threads, children) = (threads + t, children + c),
                Message::Event(Event::ThreadStarted { .. }) => threads += 1,
                Message::Event(Event::Forked { .. }) => children += 1,
                _ => {}
            }
        }
        assert_eq!((threads, children), (20_002, 20_000));
    }

    #[test]
    fn what_the_front_can_do_without_takes_little() {
        let (back, _other) = Link::pair().unwrap();
        let front = Front::new(back).unwrap();
        for round in 0..50_000 {
            front.event(began(round), None);
            front.event(ended(round), None);
            assert!(front.outbox().bytes <= ROOM + 1024);
        }
    }

    #[test]
    fn descriptors_wait_too() {
        let (back, other) = Link::pair().unwrap();
        let front = Front::new(back).unwrap();
        for round in 0..5000 {
            front.reply(round, Answer::Done);
        }
        let file = File::open("/dev/null").unwrap();
        front.reply_with(9999, Answer::Done, &file);
        let mut buf = vec![0; MAX_PACKET];
        let mut with = 0;
        loop {
            let empty = front.outbox().flush(&front.link);
            while let Ok(Some((_, file))) = other.receive(&mut buf, false) {
                with += u32::from(file.is_some());
            }
            if empty {
                break;
            }
        }
        assert_eq!(with, 1);
    }

    #[test]
    fn a_front_that_never_reads_is_gone_in_the_end() {
        let (back, other) = Link::pair().unwrap();
        let front = Front::new(back).unwrap();
        let bytes = vec![0; MAX_PACKET / 2];
        let mut sent = 0;
        while sent < 2 * MOST {
            front.reply(0, Answer::Bytes(bytes.clone()));
            sent += bytes.len();
        }
        assert_eq!(front.wait().unwrap(), Woken::Request);
        let mut buf = vec![0; 16];
        assert!(matches!(front.receive(&mut buf), Ok(None)));
        drop(other);
    }

    #[test]
    fn nothing_is_kept_for_a_front_that_is_gone() {
        let (back, other) = Link::pair().unwrap();
        let front = Front::new(back).unwrap();
        for round in 0..5000 {
            front.event(began(round), None);
        }
        drop(other);
        front.event(began(1), None);
        assert_eq!(front.outbox().queue.len(), 0);
        assert_eq!(front.wait().unwrap(), Woken::Request);
    }
}
