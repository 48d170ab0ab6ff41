//! Where command lines come from.

use std::io::{self, BufRead};

use crate::error::Error;

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
