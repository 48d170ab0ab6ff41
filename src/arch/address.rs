//! Addresses that cannot be mixed up: what a file says, where it was loaded, and what runs.
//!
//! A run-time address is a plain `u64`: registers and expressions hold nothing else. An address
//! inside an object file is a [`FileAddress`] and becomes one only through the module's
//! [`LoadBias`].

use std::fmt;

/// A virtual address as an object file states it (`st_value`, `p_vaddr`), before loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileAddress(pub u64);

/// What is added to a [`FileAddress`] of one module to get the run-time address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LoadBias(pub u64);

impl FileAddress {
    /// The run-time address under `bias`.
    pub fn runtime(self, bias: LoadBias) -> u64 {
        self.0.wrapping_add(bias.0)
    }
}

impl LoadBias {
    /// The file address that is loaded at the run-time address `address`.
    pub fn file(self, address: u64) -> FileAddress {
        FileAddress(address.wrapping_sub(self.0))
    }
}

impl fmt::LowerHex for FileAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}
