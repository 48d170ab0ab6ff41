//! Processes that become another program, as the kernel tells of them.
//!
//! The process events connector (`Documentation/driver-api/connector.rst`, `<linux/cn_proc.h>`)
//! needs CAP_NET_ADMIN and the first pid and user namespaces, and elsewhere says nothing at all, not
//! even that: the answer to the subscription is what tells that it works.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, NetlinkAddr, bind, recv, send};

/// `NETLINK_CONNECTOR` (`<linux/netlink.h>`).
const NETLINK_CONNECTOR: i32 = 11;
/// `CN_IDX_PROC` and `CN_VAL_PROC`.
const PROCESSES: u32 = 1;
/// `PROC_CN_MCAST_LISTEN`.
const LISTEN: u32 = 1;
/// `PROC_EVENT_NONE`: the answer to a subscription.
const EVENT_NONE: u32 = 0;
/// `PROC_EVENT_EXEC`.
const EVENT_EXEC: u32 = 2;

/// `struct nlmsghdr` and `struct cn_msg` in front of `struct proc_event`.
const HEADERS: usize = 16 + 20;
/// `event_data` in `struct proc_event`: behind what, processor and time.
const EVENT_DATA: usize = 16;

/// How long the answer to the subscription may take: the kernel sends it at once.
const ANSWER: Duration = Duration::from_millis(100);

/// The subscription; closed when dropped.
#[derive(Debug)]
pub struct Arrivals {
    socket: OwnedFd,
}

/// What the kernel told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// The subscription is heard (0) or refused (an error number).
    Answer(i32),
    /// This process runs another program now.
    Exec(i32),
}

impl Arrivals {
    /// Subscribes. `None` where the kernel does not tell this process.
    pub fn listen() -> Option<Arrivals> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: a plain system call.
        let raw = unsafe { libc::socket(libc::AF_NETLINK, kind, NETLINK_CONNECTOR) };
        if raw < 0 {
            return None;
        }
        // SAFETY: the descriptor was made this moment and is nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, PROCESSES)).ok()?;
        send(socket.as_raw_fd(), &subscription(), MsgFlags::empty()).ok()?;
        let arrivals = Arrivals { socket };
        let end = Instant::now() + ANSWER;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let told = arrivals.receive(left).ok()?;
            let answer = told.iter().find_map(|told| match told {
                Told::Answer(error) => Some(*error),
                Told::Exec(_) => None,
            });
            if let Some(error) = answer {
                return (error == 0).then_some(arrivals);
            }
        }
    }

    /// The processes that became another program, once there is one or `timeout` is over. `None`:
    /// there were more than the kernel kept, so that any process may be new.
    pub fn wait(&self, timeout: Duration) -> Option<Vec<i32>> {
        let told = self.receive(timeout).ok()?;
        let pids = told.into_iter().filter_map(|told| match told {
            Told::Exec(pid) => Some(pid),
            Told::Answer(_) => None,
        });
        Some(pids.collect())
    }

    fn receive(&self, timeout: Duration) -> io::Result<Vec<Told>> {
        let mut told = Vec::new();
        let mut wait = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut wait, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(told),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut packet = [0; 4096];
        loop {
            match recv(self.socket.as_raw_fd(), &mut packet, MsgFlags::empty()) {
                Ok(length) => told.extend(parse(&packet[..length])),
                Err(Errno::EAGAIN) => return Ok(told),
                Err(Errno::EINTR) => {}
                // ENOBUFS: the kernel dropped some.
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The message that asks for events.
fn subscription() -> Vec<u8> {
    let length = (HEADERS + 4) as u32;
    let mut message = Vec::new();
    // nlmsghdr: length, type NLMSG_DONE, flags, sequence, port
    message.extend(length.to_ne_bytes());
    message.extend(3_u16.to_ne_bytes());
    message.extend(0_u16.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    // cn_msg: idx, val, seq, ack, len, flags
    for word in [PROCESSES, PROCESSES, 0, 0] {
        message.extend(word.to_ne_bytes());
    }
    message.extend(4_u16.to_ne_bytes());
    message.extend(0_u16.to_ne_bytes());
    message.extend(LISTEN.to_ne_bytes());
    message
}

/// What one message says, if it is of interest.
fn parse(packet: &[u8]) -> Option<Told> {
    let word = |at: usize| {
        let bytes = packet.get(HEADERS + at..HEADERS + at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    match word(0)? {
        EVENT_NONE => Some(Told::Answer(word(EVENT_DATA)? as i32)),
        // The thread that called exec, then its process.
        EVENT_EXEC => Some(Told::Exec(word(EVENT_DATA + 4)? as i32)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: u32, data: [u32; 2]) -> Vec<u8> {
        let mut packet = vec![0; HEADERS];
        for word in [what, 0, 0, 0, data[0], data[1]] {
            packet.extend(word.to_ne_bytes());
        }
        packet
    }

    #[test]
    fn events_are_read_and_others_left() {
        assert_eq!(parse(&event(0, [0, 0])), Some(Told::Answer(0)));
        assert_eq!(parse(&event(0, [1, 0])), Some(Told::Answer(1)));
        assert_eq!(parse(&event(2, [7, 6])), Some(Told::Exec(6)));
        assert_eq!(parse(&event(1, [7, 6])), None);
        assert_eq!(parse(&event(2, [7, 6])[..40]), None);
        assert_eq!(parse(&[]), None);
    }

    #[test]
    fn an_exec_is_told_of_where_the_kernel_does() {
        let Some(arrivals) = Arrivals::listen() else {
            return;
        };
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let pid = child.id() as i32;
        let end = Instant::now() + Duration::from_secs(20);
        let mut seen = false;
        while !seen && Instant::now() < end {
            seen = arrivals
                .wait(Duration::from_millis(100))
                .is_none_or(|pids| pids.contains(&pid));
        }
        child.wait().unwrap();
        assert!(seen);
    }
}
