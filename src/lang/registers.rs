//! Registers by gdb's names: where each lives and which type gdb gives it.

use crate::arch::Register;

use super::types::Type;

/// A register as an expression sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RegisterView {
    /// gdb's name, without the `$`.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// Where its bytes are.
    pub home: Home,
}

/// Where a register's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// Bytes of a general register; as many as the type has.
    General {
        /// Which one.
        register: Register,
        /// The first byte.
        offset: u8,
    },
    /// An x87, SSE or AVX register, by [`super::Scope::vector_register`].
    Vector,
}

/// The register with this name (without the `$`), if gdb knows one on x86-64.
pub(crate) fn lookup(name: &str) -> Option<RegisterView> {
    let _ = name;
    None
}
