//! Showing a hit from its record: the body runs again over what was collected.

use super::Session;
use crate::record::wire::Record;

/// How hits are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Show {
    /// As gdb does: the banner unless it is silent, and what the body prints.
    #[default]
    Gdb,
    /// One line in ftrace's shape.
    Line,
    /// One JSON object a line.
    Json,
}

impl Show {
    /// The front is `trapline trace`: no stop is ever presented.
    pub fn never_stops(self) -> bool {
        self != Show::Gdb
    }
}

impl Session {
    /// Shows one hit.
    pub fn replay(&mut self, index: usize, record: &Record) {
        let _ = (index, record);
    }
}
