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
pub use elf::ElfError;
pub use location::Location;
pub use maps::parse as parse_maps;
pub use modules::{Loaded, Modules, Named, Place, ResolveError};
pub use table::SymbolKind;
