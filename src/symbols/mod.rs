//! Object files and their symbols: ELF, names, demangling, mappings, modules, places.
//!
//! A [`Module`] is one file; [`Modules`] are all of a process, with where they are loaded. Names go
//! to places with [`Modules::resolve`], addresses to names with [`Modules::symbol_at`].

mod auxv;
mod demangle;
mod elf;
mod load;
mod location;
mod lookup;
mod maps;
mod module;
mod modules;
mod name;
mod nearest;
mod plt;
mod table;
#[cfg(test)]
mod tests;
mod thunk;

pub use auxv::Auxv;
pub use demangle::demangle;
pub use elf::{Elf, ElfError, Section, Segment};
pub use location::Location;
pub use maps::{Backing, Mapping, parse as parse_maps};
pub use module::{Module, ModuleError};
pub use modules::{Found, Loaded, Modules, Named, Place, ReadMemory, ResolveError, Unreadable};
pub use table::{Binding, Symbol, SymbolKind, SymbolTable};
