//! trapline at a terminal: a pseudo-terminal whose other end is this test.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::pty::openpty;

use super::app::PATIENCE;
use super::process;

/// What Ctrl-C sends.
pub const CTRL_C: &str = "\x03";
/// What Ctrl-D sends.
pub const CTRL_D: &str = "\x04";
/// What the arrow up sends.
pub const UP: &str = "\x1b[A";

/// A process at its own terminal. Dropped, it is killed and waited for.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// What came and was not expected yet.
    unread: String,
    seen: String,
}

impl Terminal {
    /// Starts `command` as the leader of a session whose terminal is a new one of the kind `term`.
    pub fn start(command: &Command, term: &str) -> Terminal {
        let pair = openpty(None, None).expect("a pseudo-terminal");
        let (master, slave) = (File::from(pair.master), File::from(pair.slave));
        let mut session = Command::new("setsid");
        session
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        let end = || Stdio::from(slave.try_clone().expect("another end"));
        let child = session
            .env("TERM", term)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("setsid (util-linux) runs");
        drop((session, slave));
        let (sender, screen) = channel();
        let mut reader = master.try_clone().expect("another end");
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // EIO: nobody has the terminal open any more.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Terminal {
            child,
            keyboard: master,
            screen,
            unread: String::new(),
            seen: String::new(),
        }
    }

    /// Types, without Enter.
    pub fn keys(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("the terminal is open");
    }

    /// Waits until `text` is shown behind what was expected before; gives all that came with it.
    pub fn expect(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let plain = without_escapes(&self.unread);
            if let Some(at) = plain.find(text) {
                let end = at + text.len();
                self.unread = plain[end..].to_owned();
                return plain[..end].to_owned();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                // What goes on for ever is no answer.
                Ok(_) if left.is_zero() => panic!("no {text:?} in time in:\n{}", self.seen),
                Ok(bytes) => self.show(&bytes),
                Err(error) => panic!("no {text:?} ({error}) in:\n{}", self.seen),
            }
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.unread.push_str(&text);
        self.seen.push_str(&text);
    }

    /// Waits for the end of the process; gives what came until then.
    pub fn end(&mut self) -> (ExitStatus, String) {
        let (status, text) = self.end_raw();
        (status, without_escapes(&text))
    }

    /// The same with what moves the cursor and colors.
    pub fn end_raw(&mut self) -> (ExitStatus, String) {
        let mut status = None;
        let ended = process::until(Instant::now() + PATIENCE, || {
            while let Ok(bytes) = self.screen.try_recv() {
                self.show(&bytes);
            }
            status = self.child.try_wait().expect("our child");
            status.is_some()
        });
        while let Ok(bytes) = self.screen.recv_timeout(Duration::from_millis(100)) {
            self.show(&bytes);
        }
        let status = status.filter(|_| ended);
        let status = status.unwrap_or_else(|| panic!("it does not end:\n{}", self.seen));
        (status, self.unread.clone())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text without what moves the cursor; an unfinished sequence at the end stays.
fn without_escapes(text: &str) -> String {
    let escape = regex::Regex::new("\x1b\\[[0-9;?]*[A-Za-z]|\r").expect("a pattern");
    escape.replace_all(text, "").into_owned()
}
