//! lang

pub mod braces;
pub mod script;
