//! Threads that are held for a time: a helper thread that rings when one is over.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

use super::doorbell::Bell;

/// Rings a bell at given times. Its thread exists from the first one on.
#[derive(Debug)]
pub struct Timer {
    bell: Arc<Bell>,
    times: RefCell<Option<Sender<Instant>>>,
}

impl Timer {
    /// With nothing to ring for.
    pub fn new(bell: Arc<Bell>) -> Timer {
        let times = RefCell::default();
        Timer { bell, times }
    }

    /// Rings at that time; false if that cannot be.
    pub fn ring_at(&self, time: Instant) -> bool {
        let mut times = self.times.borrow_mut();
        if times.is_none() {
            let (sender, receiver) = channel();
            let bell = self.bell.clone();
            let started = std::thread::Builder::new()
                .name("timer".into())
                .spawn(move || ring(&receiver, &bell));
            *times = started.is_ok().then_some(sender);
        }
        times.as_ref().is_some_and(|times| times.send(time).is_ok())
    }
}

/// Rings until nobody can ask any more.
fn ring(times: &Receiver<Instant>, bell: &Bell) {
    let mut waiting: BinaryHeap<Reverse<Instant>> = BinaryHeap::new();
    loop {
        let next = match waiting.peek() {
            Some(Reverse(first)) => {
                times.recv_timeout(first.saturating_duration_since(Instant::now()))
            }
            None => times.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(time) => waiting.push(Reverse(time)),
            Err(RecvTimeoutError::Timeout) => {
                waiting.pop();
                bell.ring();
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
