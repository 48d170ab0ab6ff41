//! A private network for middleware that multicasts: nobody else's traffic comes in, none of ours goes out.

use std::ffi::OsStr;
use std::process::Command;

use super::{App, Missing};

/// A network, System V and shared-memory namespace of their own, for as long as this is held.
pub struct Network {
    holder: App,
}

impl Network {
    /// A loopback device that multicasts, and an empty `/dev/shm`.
    pub fn start() -> Result<Network, Missing> {
        const SETUP: &str = "ip link set lo up && ip link set lo multicast on && mount -t tmpfs none /dev/shm \
                             && echo up && exec cat";
        let mut command = Command::new("unshare");
        command.args(["--net", "--ipc", "--mount"]);
        if !is_root() {
            command.arg("--map-root-user");
        }
        command.args(["sh", "-c", SETUP]);
        let mut holder = App::spawn(command);
        if holder.line("a namespace", |_| true) != "up" {
            return Err(Missing("no network namespace can be made here".into()));
        }
        Ok(Network { holder })
    }

    /// A command that runs `program` in it; its process id is the program's.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--ipc", "--mount", "--target"]);
        command.arg(self.holder.pid().to_string());
        if !is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg(program);
        command
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
