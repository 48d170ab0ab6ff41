//! A child process, its lines, and its certain end.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::process;

/// How long anything may take, on a busy machine, before it counts as hanging.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A program under test or a tracer: stdin is a pipe that we hold, stdout and stderr come as lines in one
/// order. Dropped, it is killed and waited for.
pub struct App {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: Vec<String>,
    patience: Duration,
}

impl App {
    /// Starts `program`.
    pub fn start<S: AsRef<OsStr>>(program: &Path, arguments: &[S]) -> App {
        let mut command = Command::new(program);
        command.args(arguments);
        App::spawn(command)
    }

    /// Starts `command`; its standard streams are taken over.
    pub fn spawn(mut command: Command) -> App {
        let name = command.get_program().to_string_lossy().into_owned();
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let errors = writer.try_clone().expect("a second end");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(writer)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        drop(command); // and with it our copies of the pipe's writing end
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut line = Vec::new();
            while reader
                .read_until(b'\n', &mut line)
                .is_ok_and(|count| count > 0)
            {
                let text =
                    String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned();
                line.clear();
                if sender.send(text).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        App {
            name,
            child,
            stdin,
            lines,
            seen: Vec::new(),
            patience: PATIENCE,
        }
    }

    /// Allows more time than usual, for a test that does much.
    pub fn patient(mut self, patience: Duration) -> App {
        self.patience = patience;
        self
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// Writes one line to stdin.
    pub fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        if let Err(error) = writeln!(stdin, "{line}") {
            self.fail(&format!("cannot be sent {line:?}: {error}"));
        }
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("a signal to our child");
    }

    /// The next line for which `wanted` holds; lines before it are kept in [`App::seen`].
    pub fn line(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + self.patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if wanted(&line) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.fail(&format!("did not say {what:?} in time"))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.fail(&format!("ended without {what:?}"))
                }
            }
        }
    }

    /// The next line that begins with `prefix`.
    pub fn expect(&mut self, prefix: &str) -> String {
        self.line(prefix, |line| line.starts_with(prefix))
    }

    /// Sends a line and waits for its answer.
    pub fn ask(&mut self, line: &str, answer: &str) -> String {
        self.send(line);
        self.expect(answer)
    }

    /// Waits for the end of the output and of the process.
    pub fn finish(&mut self) -> (ExitStatus, String) {
        self.close_stdin();
        let deadline = Instant::now() + self.patience;
        loop {
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => self.fail("did not end in time"),
            }
        }
        let mut status = None;
        let exited = process::until(deadline, || {
            status = self.child.try_wait().expect("our child");
            status.is_some()
        });
        match status {
            Some(status) if exited => (status, self.seen.join("\n")),
            _ => self.fail("closed its output but did not end"),
        }
    }

    /// [`App::finish`], and the exit status has to be 0.
    pub fn succeed(&mut self) -> String {
        let (status, output) = self.finish();
        assert!(
            status.success(),
            "{} ended with {status}:\n{output}",
            self.name
        );
        output
    }

    fn fail(&mut self, why: &str) -> ! {
        self.seen.extend(self.lines.try_iter());
        let state = process::status_field(self.pid(), "State").unwrap_or_else(|| "gone".into());
        panic!(
            "{} {why}; state {state}; it said:\n{}",
            self.name,
            self.seen.join("\n")
        );
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number behind `key=` in a line of a test program.
pub fn number(line: &str, key: &str) -> u64 {
    line.split_whitespace()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
        .unwrap_or_else(|| panic!("no {key}= in {line:?}"))
}
