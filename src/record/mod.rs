//! Records: what was seen at a hit, and how it is written down.

pub(crate) mod hit;
pub(crate) mod json;
pub(crate) mod text;

pub(crate) use hit::{Hit, HitFault, ProbeSummary, Summary};
