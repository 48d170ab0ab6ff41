//! Stops that wait for the front only so long.
//!
//! A tracing thread sits in `wait4`, so another thread keeps the time and rings its doorbell. It
//! remembers the last stop alone: where the next one has come the one before was answered.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::doorbell::Bell;
use super::target::Order;

/// Asks a tracing thread to look at a stop again, later.
pub struct Alarm {
    orders: Sender<Order>,
    bell: Bell,
    timer: Option<Sender<(Instant, u64)>>,
}

impl Alarm {
    /// For the tracing thread that takes `orders` when `bell` rings.
    pub fn new(orders: Sender<Order>, bell: Bell) -> Alarm {
        Alarm {
            orders,
            bell,
            timer: None,
        }
    }

    /// [`Order::Expire`] comes for this stop when the time is over, unless it is set again.
    pub fn set(&mut self, stop: u64, after: Duration) {
        let when = (Instant::now() + after, stop);
        if self.timer.is_none() {
            self.timer = self.start();
        }
        if let Some(timer) = &self.timer {
            // It ends only with the process.
            let _ = timer.send(when);
        }
    }

    fn start(&self) -> Option<Sender<(Instant, u64)>> {
        let (timer, inbox) = channel();
        let (orders, bell) = (self.orders.clone(), self.bell.another().ok()?);
        let thread = std::thread::Builder::new().name("alarm".into());
        thread
            .spawn(move || keep_time(&inbox, &orders, &bell))
            .ok()?;
        Some(timer)
    }
}

fn keep_time(inbox: &Receiver<(Instant, u64)>, orders: &Sender<Order>, bell: &Bell) {
    while let Ok((mut end, mut stop)) = inbox.recv() {
        loop {
            match inbox.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(next) => (end, stop) = next,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        if orders.send(Order::Expire(stop)).is_err() {
            return;
        }
        bell.ring();
    }
}
