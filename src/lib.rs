//! trapline stops at, reads, changes and times the messages inside a running Linux process.
#![deny(missing_docs)]

#[allow(dead_code, unused_imports)]
pub(crate) mod arch;
pub mod cli;
#[allow(dead_code, unused_imports)]
pub(crate) mod command;
#[allow(dead_code, unused_imports)]
pub(crate) mod engine;
pub(crate) mod error;
#[allow(dead_code, unused_imports)]
pub(crate) mod lang;
#[allow(dead_code, unused_imports)]
pub(crate) mod probe;
#[allow(dead_code, unused_imports)]
pub(crate) mod record;
#[allow(dead_code, unused_imports)]
pub(crate) mod repl;
#[allow(dead_code, unused_imports)]
pub(crate) mod session;
#[allow(dead_code, unused_imports)]
pub(crate) mod symbols;
