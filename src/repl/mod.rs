//! The prompt.

pub(crate) mod input;
mod prompt;

pub(crate) use prompt::{Editor, terminal_size};
