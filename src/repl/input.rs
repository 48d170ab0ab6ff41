//! Where command lines come from.

use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::Error;
use crate::session::events;

/// What asking for a line gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A line without its newline.
    Line(String),
    /// There are no more.
    End,
    /// Ctrl-C.
    Interrupted,
}

/// A source of lines.
pub trait Input {
    /// The next line; `prompt` is shown on a terminal only.
    fn line(&mut self, prompt: &str) -> Result<Next, Error>;

    /// The answer to a question: not kept in the history.
    fn answer(&mut self, question: &str) -> Result<Next, Error>;

    /// A person is at the other end.
    fn is_terminal(&self) -> bool;

    /// Keeps a line for later sessions.
    fn remember(&mut self, line: &str);
}

/// A terminal that can do nothing but show text (`TERM=dumb`): the kernel edits the line.
pub struct Plain;

/// How long Ctrl-C may have to wait at such a prompt, ms.
const LOOK_MS: u16 = 50;

impl Input for Plain {
    fn line(&mut self, prompt: &str) -> Result<Next, Error> {
        self.answer(prompt)
    }

    fn answer(&mut self, question: &str) -> Result<Next, Error> {
        let failed = |error| Error::new(format!("Cannot use the terminal: {error}."));
        let mut out = io::stdout();
        out.write_all(question.as_bytes()).map_err(failed)?;
        out.flush().map_err(failed)?;
        let stdin = io::stdin();
        loop {
            let mut ready = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            let readable = poll(&mut ready, PollTimeout::from(LOOK_MS));
            if events::interrupted() {
                return Ok(Next::Interrupted);
            }
            // A terminal is readable by whole lines, and at their end.
            if matches!(readable, Ok(count) if count > 0) {
                return Piped.line(question);
            }
        }
    }

    fn is_terminal(&self) -> bool {
        true
    }

    fn remember(&mut self, _: &str) {}
}

/// Standard input that is no terminal: no prompt.
pub struct Piped;

impl Input for Piped {
    fn line(&mut self, _: &str) -> Result<Next, Error> {
        let mut bytes = Vec::new();
        match io::stdin().lock().read_until(b'\n', &mut bytes) {
            Ok(0) => Ok(Next::End),
            Ok(_) => {
                while matches!(bytes.last(), Some(b'\n' | b'\r')) {
                    bytes.pop();
                }
                Ok(Next::Line(String::from_utf8_lossy(&bytes).into_owned()))
            }
            Err(error) => Err(Error::new(format!("Cannot read standard input: {error}."))),
        }
    }

    fn answer(&mut self, _: &str) -> Result<Next, Error> {
        Ok(Next::End)
    }

    fn is_terminal(&self) -> bool {
        false
    }

    fn remember(&mut self, _: &str) {}
}
