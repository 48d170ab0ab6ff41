//! The commands that a person types: one [`table`] that the prompt, scripts, `help` and completion
//! share, and what each command does.

mod breakpoints;
mod data;
mod eaten;
pub(crate) mod expect;
mod help;
mod info;
pub(crate) mod interpreter;
pub(crate) mod probes;
mod rbreak;
pub(crate) mod read_only;
mod returning;
pub(crate) mod running;
mod settings;
pub(crate) mod table;
pub(crate) mod top;

pub(crate) use interpreter::Interpreter;
pub(crate) use top::NAMES;
