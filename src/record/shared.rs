//! Counters and convenience variables that front and keeper share.
//!
//! They live in one memory file that both map, so that a condition or a body can count and change
//! variables at the hit, and the front can enable, disable, ignore and show without a message.

/// How many probes can exist at one time (places are used again).
pub const PROBES: usize = 8192;

/// How many convenience variables programs can use.
pub const VARIABLES: usize = 4096;
