//! Object files and their symbols: ELF, names, demangling, mappings, modules, places.
//!
//! A [`module::Module`] is one file; [`Modules`] are all of a process, with where they are loaded. Names go
//! to places with [`Modules::resolve`], addresses to names with [`Modules::symbol_at`].

mod auxv;
pub(crate) mod catalog;
mod debugfile;
mod demangle;
mod elf;
mod frames;
mod ifunc;
pub(crate) mod listing;
mod load;
mod location;
mod lookup;
mod maps;
mod module;
mod modules;
mod name;
mod nearest;
mod pattern;
mod place;
mod plt;
mod resolve;
mod table;
#[cfg(test)]
mod tests;
mod thunk;

pub use auxv::Auxv;
pub use debugfile::DebugDirectories;
pub use demangle::demangle;
pub use elf::ElfError;
pub use location::{Location, split_module};
pub use maps::{Backing, parse as parse_maps};
pub use modules::{Loaded, Modules, memory_of};
pub use nearest::functions as nearest_functions;
pub use pattern::{Pattern, basic_regex, regex_text};
pub use place::{Named, Place, ResolveError};
pub use resolve::is_library;
pub use table::SymbolKind;
