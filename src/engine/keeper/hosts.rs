//! Which tracing thread has which target: followed children get their numbers from the threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::engine::protocol::TargetId;

/// The front numbers the targets that it begins from 1; those that came of them have this bit.
const CHILD: u32 = 1 << 31;

/// The targets that came of others, and for each the one whose thread traces it.
#[derive(Debug, Default)]
pub struct Hosts {
    made: AtomicU32,
    hosts: Mutex<HashMap<TargetId, TargetId>>,
}

impl Hosts {
    /// A number for a process that came of one which the thread of `host` traces.
    pub fn adopt(&self, host: TargetId) -> TargetId {
        let id = TargetId(CHILD | self.made.fetch_add(1, Ordering::Relaxed));
        self.lock().insert(id, host);
        id
    }

    /// The target whose thread traces this one.
    pub fn host(&self, target: TargetId) -> TargetId {
        self.lock().get(&target).copied().unwrap_or(target)
    }

    /// The front knows the target no more.
    pub fn forget(&self, target: TargetId) {
        self.lock().remove(&target);
    }

    /// The thread of `host` has ended.
    pub fn ended(&self, host: TargetId) {
        self.lock().retain(|_, of| *of != host);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TargetId, TargetId>> {
        // Whoever panicked here has changed all or nothing.
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
