//! trapline stops at, reads, changes and times the messages inside a running Linux process.
#![deny(missing_docs)]

pub(crate) mod arch;
pub mod cli;
pub(crate) mod command;
pub(crate) mod engine;
pub(crate) mod error;
pub(crate) mod lang;
pub(crate) mod probe;
pub(crate) mod record;
pub(crate) mod repl;
pub(crate) mod session;
#[allow(dead_code)]
pub(crate) mod symbols;
