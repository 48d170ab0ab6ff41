//! trapline stops at, reads, changes and times the messages inside a running Linux process, with
//! gdb's commands, on unmodified binaries, at a cost that lets it stay on a live system.
//!
//! How a hit travels, and the room that each step has:
//!
//! ```text
//! text ──> lang ──> symbols ──> probe (compile) ──> engine ──> record ──> session ──> command
//! commands  parse   names       one small program    where it   what       replays     prints
//!                   places      per site             runs       happened   the body
//! ```
//!
//! - A **probe** is what somebody asked for: a location, a condition, a body of commands.
//! - A **site** is one address with the probes that are on it. There an int3 stays in the text for
//!   as long as the site is armed; a thread passes it through the site's **slot**, which holds the
//!   instruction that the int3 hides and a jump back.
//! - A **program** is a probe's condition and body, compiled for one site. It decides at the hit,
//!   collects what will be shown and changes what is to be changed; it never prints.
//! - A **record** is what a program collected. The *front* (the command that was typed) prints it
//!   afterwards by running the body again over the record.
//! - The **keeper** is the front's helper process and the ptrace parent of all targets. It leaves
//!   them as they were when the front is gone, however the front went.
//!
//! The base rooms (`arch`, `record`) know nobody; the others know the base and the rooms before
//! them. The public face of the library is the command itself:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     trapline::cli::main()
//! }
//! ```
#![deny(missing_docs)]

pub(crate) mod arch;
pub mod cli;
pub(crate) mod command;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod error;
#[cfg(test)]
pub(crate) mod hostile;
pub(crate) mod lang;
pub(crate) mod probe;
pub(crate) mod record;
pub(crate) mod repl;
pub(crate) mod session;
pub(crate) mod symbols;
