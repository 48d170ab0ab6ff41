//! Ctrl-C and the wish to end, taken as events: nothing runs in a signal handler.
//!
//! The signals are blocked in every thread of the front and read from a descriptor; the keeper
//! and the programs that it launches start with an empty mask.

use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::Error;
use crate::session::events;

/// How long the front may take to leave its targets after SIGTERM before it ends without that:
/// the keeper then leaves them by itself.
const GRACE: Duration = Duration::from_secs(2);

/// Begins to listen. To be called before any other thread starts.
pub fn listen() -> Result<(), Error> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        set.add(signal);
    }
    let failed = |error: nix::Error| Error::new(format!("Cannot wait for signals: {error}."));
    set.thread_block().map_err(failed)?;
    let descriptor = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC).map_err(failed)?;
    thread::spawn(move || {
        while let Ok(Some(signal)) = descriptor.read_signal() {
            let number = signal.ssi_signo as i32;
            events::note_signal(number);
            if number != libc::SIGINT {
                thread::sleep(GRACE);
                std::process::exit(128 + number);
            }
        }
    });
    Ok(())
}
