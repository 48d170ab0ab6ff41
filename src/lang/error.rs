//! Why an expression could not be parsed, typed or evaluated.

use super::scope::{ScopeError, Unavailable, Unreadable};
use crate::record::wire::Fault;

/// The text of each is gdb's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// Memory that is not there; a hit that meets it is counted and tracing goes on.
    #[error("Cannot access memory at address {0:#x}")]
    Memory(u64),
    /// Integer division or remainder by zero.
    #[error("Division by zero")]
    DivisionByZero,
    /// A value that the place does not have.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// Anything else, in gdb's words.
    #[error("{0}")]
    Message(String),
}

impl Error {
    /// An error with this text.
    pub(crate) fn new(text: impl Into<String>) -> Error {
        Error::Message(text.into())
    }
}

impl From<Unreadable> for Error {
    fn from(error: Unreadable) -> Error {
        Error::Memory(error.address)
    }
}

impl From<ScopeError> for Error {
    fn from(error: ScopeError) -> Error {
        match error {
            ScopeError::Unreadable(at) => at.into(),
            other => Error::Message(other.to_string()),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::Memory(at) => Error::Memory(at),
            Fault::DivisionByZero => Error::DivisionByZero,
            Fault::Unavailable(what) => Error::Unavailable(what),
        }
    }
}
