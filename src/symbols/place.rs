//! The answers to look-ups: places, symbols, names, and why there is none.

use super::module::ModuleError;
use super::table::{Symbol, SymbolKind};
use crate::arch::FileAddress;

/// A function's entry, or an address in a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Index into [`Modules::loaded`].
    pub module: usize,
    /// The file address of the place.
    pub address: FileAddress,
    /// The run-time address; before the program runs, the file address.
    pub runtime: u64,
    /// The file address where its function starts and how many bytes it has; the place itself and 0 where no symbol covers it.
    pub function: (FileAddress, u64),
    /// The symbol that names it and the module whose it is, for [`Modules::linkage_name`] and
    /// [`Modules::display_name`]: to demangle the names of thousands of places that nobody reads takes time.
    pub(super) named: Option<(usize, Symbol)>,
    /// What the symbol is. A place by name is never a resolver ([`SymbolKind::Ifunc`]); one by address can be.
    pub kind: SymbolKind,
}

/// A symbol for an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The run-time address; for thread-local data the offset in the thread's block.
    pub address: u64,
    /// Bytes; 0 if unknown.
    pub size: u64,
    /// What it is.
    pub kind: SymbolKind,
    /// Index into [`Modules::loaded`].
    pub module: usize,
}

/// The name that belongs to a run-time address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The linker's name, which `x/i` prints (gdb's `set print asm-demangle off`).
    pub name: String,
    /// The demangled name, which `print`, `info symbol` and banners print.
    pub display: String,
    /// Bytes from the symbol's address.
    pub offset: u64,
    /// Bytes of the symbol by the file; 0 if it does not say.
    pub size: u64,
    /// The section, `.text`.
    pub section: String,
    /// Index into [`Modules::loaded`].
    pub module: usize,
    /// What it is.
    pub kind: SymbolKind,
}

/// Why a location is nowhere. `Display` is gdb's text; [`ResolveError::hint`] says more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No symbol of that name.
    #[error("Function \"{name}\" not defined.")]
    NoFunction {
        /// The name as written.
        name: String,
        /// Names like it, the nearest first, at most five.
        nearest: Vec<String>,
    },
    /// The name belongs to something that is no code, or to an indirect function of which nothing
    /// says where its implementation is.
    #[error("Function \"{name}\" not defined.")]
    NotCode {
        /// The name as written.
        name: String,
        /// For an indirect function: symbols that may be its implementations.
        indirect: Option<Vec<String>>,
    },
    /// A module imports it, and no loaded module defines it.
    #[error("Function \"{name}\" not defined.")]
    NotLoaded {
        /// The name as written.
        name: String,
    },
    /// No loaded module of that name.
    #[error("No shared library or program \"{name}\" is loaded.")]
    NoModule {
        /// The name as written.
        name: String,
        /// Loaded modules of a similar name.
        nearest: Vec<String>,
    },
    /// The module is loaded but its file cannot be read.
    #[error("{0}")]
    Module(ModuleError),
    /// The address is no code of the module.
    #[error("{address:#x} is no address of code in {module}.")]
    OutsideCode {
        /// The module's path.
        module: String,
        /// The address or offset as written.
        address: u64,
        /// Start and end of the module's executable parts, in the same unit.
        code: Vec<(u64, u64)>,
    },
    /// The address lies in a stub that leads to another module.
    #[error("{address:#x} is a stub of the procedure linkage table of {module}.")]
    InPlt {
        /// The module's path.
        module: String,
        /// The file address.
        address: u64,
        /// The function that the stub leads to.
        function: Option<String>,
    },
    /// A regular expression that is none.
    #[error("Invalid regexp: {why}")]
    BadPattern {
        /// What is wrong with it.
        why: String,
    },
    /// A source line.
    #[error("No symbol table is loaded.  Use the \"file\" command.")]
    NoLines {
        /// The text as written.
        text: String,
    },
}

impl ResolveError {
    /// What else there is to say: the nearest names, the cure.
    pub fn hint(&self) -> Option<String> {
        match self {
            ResolveError::NoFunction { nearest, .. } | ResolveError::NoModule { nearest, .. } => {
                (!nearest.is_empty()).then(|| format!("The nearest: {}.", nearest.join(", ")))
            }
            ResolveError::NotCode {
                name,
                indirect: None,
            } => Some(format!("\"{name}\" is a variable, not a function.")),
            ResolveError::NotCode {
                name,
                indirect: Some(others),
            } => {
                let choice = if others.is_empty() {
                    "its address as *ADDRESS".to_string()
                } else {
                    format!("one of {}", others.join(", "))
                };
                Some(format!(
                    "\"{name}\" is an indirect function whose implementation is chosen at run time; use {choice}."
                ))
            }
            ResolveError::NotLoaded { name } => Some(format!(
                "\"{name}\" is imported from a shared library that is not loaded yet."
            )),
            ResolveError::OutsideCode { code, .. } => {
                let ranges: Vec<String> = code
                    .iter()
                    .map(|(start, end)| format!("{start:#x}-{end:#x}"))
                    .collect();
                (!ranges.is_empty()).then(|| format!("Its code is {}.", ranges.join(", ")))
            }
            ResolveError::InPlt { function, .. } => function
                .as_ref()
                .map(|function| format!("Use the function itself: {function}.")),
            ResolveError::NoLines { text } => Some(format!(
                "\"{text}\" is a source line, and line information is not read; use a function or *ADDRESS."
            )),
            ResolveError::Module(_) | ResolveError::BadPattern { .. } => None,
        }
    }
}
