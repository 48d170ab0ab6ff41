//! Where command lines come from.

use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::complete::Words;
use super::screen::Screen;
use crate::error::Error;
use crate::session::events;

/// What asking for a line gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A line without its newline; several where several were pasted.
    Line(String),
    /// There are no more.
    End,
    /// Ctrl-C.
    Interrupted,
}

/// What reads lines, as long as that takes.
pub trait Source {
    /// The next line; `prompt` is shown on a terminal only.
    fn read(&mut self, prompt: &str) -> Result<Next, Error>;

    /// Keeps a line for later sessions.
    fn remember(&mut self, _: &str) {}

    /// What can be completed from here on.
    fn learn(&mut self, _: Words) {}
}

/// A source of lines as commands see it: a line can be asked for and waited for later.
pub trait Input {
    /// Asks for the next line, which [`Input::ready`] gives.
    fn begin(&mut self, prompt: &str);

    /// The line that was asked for, if it comes in time.
    fn ready(&mut self, wait: Duration) -> Option<Result<Next, Error>>;

    /// The next line, waited for; no line may be asked for already.
    fn line(&mut self, prompt: &str) -> Result<Next, Error>;

    /// The answer to a question: not kept in the history. [`Next::End`] while a line is typed.
    fn answer(&mut self, question: &str) -> Result<Next, Error>;

    /// A person is at the other end.
    fn is_terminal(&self) -> bool;

    /// Words can be completed there.
    fn completes(&self) -> bool {
        false
    }

    /// Keeps a line for later sessions.
    fn remember(&mut self, _: &str) {}

    /// What can be completed from here on.
    fn learn(&mut self, _: Words) {}

    /// Where text goes while a line is being typed; `None`: anywhere.
    fn screen(&self) -> Option<Screen> {
        None
    }
}

/// A terminal that can do nothing but show text (`TERM=dumb`): the kernel edits the line.
pub struct Plain;

/// How long Ctrl-C may have to wait at such a prompt, ms.
const LOOK_MS: u16 = 50;

impl Source for Plain {
    fn read(&mut self, prompt: &str) -> Result<Next, Error> {
        let failed = |error| Error::new(format!("Cannot use the terminal: {error}."));
        let mut out = io::stdout();
        out.write_all(prompt.as_bytes()).map_err(failed)?;
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
                return Piped.read(prompt);
            }
        }
    }
}

/// Standard input that is no terminal: no prompt.
pub struct Piped;

impl Source for Piped {
    fn read(&mut self, _: &str) -> Result<Next, Error> {
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
}

impl Input for Piped {
    fn begin(&mut self, _: &str) {}

    fn ready(&mut self, _: Duration) -> Option<Result<Next, Error>> {
        Some(self.read(""))
    }

    fn line(&mut self, prompt: &str) -> Result<Next, Error> {
        self.read(prompt)
    }

    fn answer(&mut self, _: &str) -> Result<Next, Error> {
        Ok(Next::End)
    }

    fn is_terminal(&self) -> bool {
        false
    }
}
