//! The commands that a person types: one [`table`] that the prompt, scripts, `help` and completion
//! share, and what each command does.

mod breakpoints;
mod data;
mod info;
pub(crate) mod interpreter;
mod running;
mod settings;
pub(crate) mod table;
mod top;

pub(crate) use interpreter::Interpreter;
pub(crate) use top::NAMES;
