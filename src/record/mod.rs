//! What happened, as the engines tell it: one [`wire`] record a hit, through a shared-memory
//! [`ring`], and the counters beside it.

mod mapping;
pub mod ring;
pub mod shared;
pub mod wire;

pub mod clock;
pub(crate) mod destination;
pub(crate) mod hit;
pub(crate) mod json;
pub(crate) mod sink;
pub(crate) mod text;

pub(crate) use hit::{Calls, Hit, HitFault, Message, ProbeSummary, Summary};
