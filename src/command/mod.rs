//! The commands that a person types: one [`table`] that the prompt, scripts, `help` and completion
//! share, and what each command does.

mod breakpoints;
mod catch;
mod data;
mod display;
mod eaten;
pub(crate) mod expect;
mod gdb_names;
mod help;
mod info;
pub(crate) mod interpreter;
mod lists;
pub(crate) mod probes;
mod rbreak;
pub(crate) mod read_only;
mod returning;
pub(crate) mod running;
mod save;
mod settings;
mod shell;
mod signals;
pub(crate) mod source;
pub(crate) mod table;
pub(crate) mod top;
mod user;
mod watch;

pub(crate) use interpreter::Interpreter;
pub(crate) use user::Names;
