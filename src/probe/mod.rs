//! What the user asked for: locations, conditions, bodies, and the program a site runs.

pub(crate) mod compile;
pub mod interpret;
mod listing;
pub(crate) mod named;
pub mod program;
