//! The two clocks of every record; both are answered without entering the kernel.

use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in nanoseconds since the epoch.
pub fn wall_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_REALTIME)
}

fn nanoseconds(clock: ClockId) -> u64 {
    // These two clocks exist on every Linux.
    let time = clock_gettime(clock).ok();
    time.map_or(0, |t| {
        t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
    })
}
