//! What the user asked for: locations, conditions, bodies, and the program a site runs.

pub mod interpret;
pub mod program;
