//! The keeper process.
