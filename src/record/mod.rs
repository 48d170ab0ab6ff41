//! What happened, as the engines tell it: one [`wire`] record a hit, through a shared-memory
//! [`ring`], and the counters beside it; and how it is written down ([`text`], [`json`]).

pub(crate) mod hit;
pub(crate) mod json;
mod mapping;
pub mod ring;
pub mod shared;
pub(crate) mod text;
pub mod wire;

pub(crate) use hit::{Hit, HitFault, ProbeSummary, Summary};
