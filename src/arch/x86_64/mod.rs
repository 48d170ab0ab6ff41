//! x86-64 under the System V ABI.

mod registers;

pub use registers::{Register, Registers};
