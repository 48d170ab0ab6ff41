//! The commands that a person types.

pub(crate) mod table;
