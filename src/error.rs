//! What the front says when something cannot be done.

use std::fmt;

/// An error as a person reads it: one or more lines without a final newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What went wrong, where, and the cure.
    pub message: String,
    /// The way to the exit status.
    pub kind: Kind,
}

/// Whether the fault is in how the command was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something failed: exit status 1.
    Failure,
    /// Wrong usage, found before anything was touched: exit status 2.
    Usage,
}

impl Error {
    /// Something failed.
    pub fn new(message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
            kind: Kind::Failure,
        }
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
            kind: Kind::Usage,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// An i/o error without its number.
pub fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

/// A shorthand for `return Err(Error::new(format!(…)))`.
macro_rules! fail {
    ($($arg:tt)*) => { return Err($crate::error::Error::new(format!($($arg)*))) };
}
pub(crate) use fail;
