//! Object files and their symbols: ELF, names, demangling, mappings, modules, places.
//!
//! A [`Module`] is one file; [`Modules`] are all of a process, with where they are loaded. Names go
//! to places with [`Modules::resolve`], addresses to names with [`Modules::symbol_at`].

mod auxv;
mod demangle;
mod elf;
mod ifunc;
mod load;
mod location;
mod lookup;
mod maps;
mod module;
mod modules;
mod name;
mod nearest;
mod place;
mod plt;
mod resolve;
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
pub use modules::{Loaded, Modules, ReadMemory, Unreadable};
pub use place::{Found, Named, Place, ResolveError};
pub use table::{Binding, Symbol, SymbolKind, SymbolTable};
