//! The way between front and keeper: messages that are whole packets.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// One end of the socket pair between front and keeper.
pub struct Link {
    socket: OwnedFd,
}

impl Link {
    /// Both ends.
    pub fn pair() -> io::Result<(Link, Link)> {
        use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
        let kind = SockType::SeqPacket;
        let (a, b) = socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC)?;
        Ok((Link { socket: a }, Link { socket: b }))
    }

    /// The end that an inherited descriptor is.
    pub fn from_descriptor(socket: OwnedFd) -> Link {
        Link { socket }
    }

    /// The descriptor of this end.
    pub fn descriptor(&self) -> &OwnedFd {
        &self.socket
    }

    /// Sends one packet, with a descriptor if there is one; waits until there is room.
    pub fn send(&self, packet: &[u8], file: Option<&File>) -> io::Result<()> {
        Ok(self.put(packet, file, MsgFlags::empty())?)
    }

    /// As [`Link::send`] without waiting; false if there is no room now.
    pub fn offer(&self, packet: &[u8], file: Option<&File>) -> io::Result<bool> {
        match self.put(packet, file, MsgFlags::MSG_DONTWAIT) {
            Ok(()) => Ok(true),
            // ETOOMANYREFS: so many descriptors are on their way already.
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM | Errno::ETOOMANYREFS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn put(&self, packet: &[u8], file: Option<&File>, flags: MsgFlags) -> nix::Result<()> {
        let data = [IoSlice::new(packet)];
        let descriptors: Vec<RawFd> = file.iter().map(|file| file.as_raw_fd()).collect();
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let control: &[ControlMessage] = if file.is_some() { &rights } else { &[] };
        let (socket, flags) = (self.socket.as_raw_fd(), flags | MsgFlags::MSG_NOSIGNAL);
        loop {
            match sendmsg::<()>(socket, &data, control, flags, None) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Both sides read an end from now on.
    pub fn close(&self) {
        use nix::sys::socket::{Shutdown, shutdown};
        // What is closed already cannot be closed again.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }

    /// Receives one packet into `buf`; `None` when the other side is gone. Without `wait` an
    /// empty queue is `WouldBlock`.
    pub fn receive(&self, buf: &mut [u8], wait: bool) -> io::Result<Option<(usize, Option<File>)>> {
        let mut space = nix::cmsg_space!([RawFd; 1]);
        let mut flags = MsgFlags::MSG_CMSG_CLOEXEC;
        if !wait {
            flags |= MsgFlags::MSG_DONTWAIT;
        }
        let mut data = [IoSliceMut::new(buf)];
        let socket = self.socket.as_raw_fd();
        let message = loop {
            match recvmsg::<()>(socket, &mut data, Some(&mut space), flags) {
                Ok(message) => break message,
                Err(Errno::EINTR) if wait => {}
                Err(Errno::ECONNRESET) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        };
        let mut file = None;
        if let Ok(parts) = message.cmsgs() {
            for part in parts {
                if let ControlMessageOwned::ScmRights(descriptors) = part {
                    for descriptor in descriptors {
                        // SAFETY: the kernel has just made this descriptor for us alone.
                        file = Some(unsafe { File::from_raw_fd(descriptor) });
                    }
                }
            }
        }
        let length = message.bytes;
        Ok((length > 0).then_some((length, file)))
    }
}
