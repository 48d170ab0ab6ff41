//! Locations to places, over all modules of a process.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::HashSet;
use std::path::Path;

use super::location::Location;
use super::modules::{Loaded, Modules};
use super::pattern::Pattern;
use super::place::{Place, ResolveError};
use super::table::{Symbol, SymbolKind};
use super::{ifunc, lookup, nearest};
use crate::arch::FileAddress;

/// Places, each once.
#[derive(Default)]
struct Places {
    list: Vec<Place>,
    known: HashSet<(usize, FileAddress)>,
}

impl Places {
    fn add(&mut self, module: usize, address: FileAddress, place: impl FnOnce() -> Place) {
        if self.known.insert((module, address)) {
            self.list.push(place());
        }
    }
}

impl Modules {
    /// Every place that a location means.
    pub fn resolve(&self, location: &Location) -> Result<Vec<Place>, ResolveError> {
        match location {
            Location::Function { module, name } => self.resolve_function(module.as_deref(), name),
            Location::Pattern { module, regex } => self.resolve_pattern(module.as_deref(), regex),
            Location::Address { module, address } => {
                let index = self.named(module)?[0];
                Ok(vec![self.place_at(
                    index,
                    FileAddress(*address),
                    *address,
                )?])
            }
            Location::Offset { module, offset } => {
                let index = self.named(module)?[0];
                let address = self.loaded[index].module.elf().address_of(*offset);
                let address = address.ok_or_else(|| self.outside(index, *offset))?;
                Ok(vec![self.place_at(index, FileAddress(address), *offset)?])
            }
            Location::Line { text } => Err(ResolveError::NoLines { text: text.clone() }),
        }
    }

    fn resolve_function(
        &self,
        module: Option<&str>,
        name: &str,
    ) -> Result<Vec<Place>, ResolveError> {
        let among = self.among(module)?;
        let mut places = Places::default();
        for &index in &among {
            self.places_in(index, name, &mut places);
        }
        match places.list.is_empty() {
            true => Err(self.no_function(&among, name)),
            false => Ok(places.list),
        }
    }

    fn resolve_pattern(
        &self,
        module: Option<&str>,
        regex: &str,
    ) -> Result<Vec<Place>, ResolveError> {
        let mut places = Places::default();
        self.each_match(module, regex, |index, symbol| {
            self.take(index, symbol, &mut places)
        })?;
        match places.list.is_empty() {
            true => Err(ResolveError::NoFunction {
                name: format!("/{regex}/"),
                nearest: Vec::new(),
            }),
            false => Ok(places.list),
        }
    }

    /// The functions that a pattern matches, each address once: the linker's name and the demangled one. That
    /// of an indirect function is its own, not its implementation's.
    pub fn matching(
        &self,
        module: Option<&str>,
        regex: &str,
    ) -> Result<Vec<(String, String)>, ResolveError> {
        let mut names = Vec::new();
        self.each_match(module, regex, |index, symbol| {
            let table = self.loaded[index].module.symbols();
            names.push((
                index,
                symbol.address,
                table.linkage_name(symbol).into_owned(),
                table.display_name(symbol),
            ));
        })?;
        names.dedup_by_key(|(index, address, ..)| (*index, *address));
        Ok(names
            .into_iter()
            .map(|(_, _, linkage, display)| (linkage, display))
            .collect())
    }

    fn each_match(
        &self,
        module: Option<&str>,
        regex: &str,
        mut visit: impl FnMut(usize, &Symbol),
    ) -> Result<(), ResolveError> {
        let among = self.among(module)?;
        // The modules keep what they have matched: there may be nothing to compile.
        let pattern = LazyCell::new(|| Pattern::regex(regex));
        for &index in &among {
            let module = &self.loaded[index].module;
            let found = module
                .matching(regex, || pattern.as_ref())
                .map_err(|error| ResolveError::BadPattern {
                    why: error.to_string(),
                })?;
            for &found in found.iter() {
                visit(index, &module.symbols().all()[found as usize]);
            }
        }
        Ok(())
    }

    fn places_in(&self, index: usize, name: &str, places: &mut Places) {
        let loaded = &self.loaded[index];
        let module = &loaded.module;
        let table = module.symbols();
        for symbol in module.find(name, SymbolKind::is_code) {
            let address = FileAddress(symbol.address);
            let linkage = table.linkage_name(symbol);
            let exactly = linkage == name;
            if module.in_plt(address)
                || !exactly && (lookup::is_cold(&linkage) || module.is_passing_thunk(symbol))
            {
                continue;
            }
            self.take(index, symbol, places);
        }
    }

    /// The place of a symbol, or those of what an indirect function chooses.
    fn take(&self, index: usize, symbol: &Symbol, places: &mut Places) {
        if symbol.kind == SymbolKind::Ifunc {
            self.implementations(index, symbol, places);
        } else {
            let address = FileAddress(symbol.address);
            places.add(index, address, || self.place(index, symbol, address));
        }
    }

    /// Where the calls of an indirect function end: the implementation that the process has chosen,
    /// or all that it may choose.
    fn implementations(&self, index: usize, resolver: &Symbol, places: &mut Places) {
        let loaded = &self.loaded[index];
        let chosen = loaded.chosen.get(&resolver.address);
        let chosen = chosen.and_then(|runtime| self.place_of(*runtime));
        let found = match chosen.filter(|place| place.kind != SymbolKind::Ifunc) {
            Some(place) => vec![place],
            None => ifunc::choices(&loaded.module, resolver)
                .into_iter()
                .filter_map(|address| self.place_at(index, address, address.0).ok())
                .collect(),
        };
        for mut place in found {
            // Symbols of implementations are local, and stripped ones are usual.
            if place.function.0 != place.address {
                place.function = (place.address, 0);
                place.named = Some((index, *resolver));
            }
            place.kind = SymbolKind::Function;
            places.add(place.module, place.address, || place);
        }
    }

    /// Functions whose names say that they implement an indirect one: `__strlen_avx2`.
    fn named_like(&self, among: &[usize], name: &str) -> Vec<String> {
        const MOST: usize = 8;
        let (own, clones) = (format!("__{name}_"), format!("{name}."));
        let tables = among
            .iter()
            .map(|&index| self.loaded[index].module.symbols());
        let names = tables.flat_map(|table| {
            let code = table.all().iter().filter(|symbol| symbol.kind.is_code());
            code.map(|symbol| table.linkage_name(symbol))
        });
        names
            .filter(|other| other.starts_with(&own) || other.starts_with(&clones))
            .take(MOST)
            .map(|name| name.into_owned())
            .collect()
    }

    fn place(&self, index: usize, symbol: &Symbol, address: FileAddress) -> Place {
        let loaded = &self.loaded[index];
        Place {
            module: index,
            address,
            runtime: address.runtime(loaded.bias),
            function: (FileAddress(symbol.address), loaded.module.extent(symbol)),
            named: Some((index, *symbol)),
            kind: symbol.kind,
        }
    }

    /// The linker's name of a place of these modules, empty where there is none.
    pub fn linkage_name(&self, place: &Place) -> Cow<'_, str> {
        let named = place.named.as_ref();
        named.map_or_else(Cow::default, |(module, symbol)| {
            self.loaded[*module].module.symbols().linkage_name(symbol)
        })
    }

    /// The demangled name of a place of these modules, as gdb prints it in banners; empty where there is none.
    pub fn display_name(&self, place: &Place) -> String {
        let named = place.named.as_ref();
        named.map_or_else(String::new, |(module, symbol)| {
            self.loaded[*module].module.symbols().display_name(symbol)
        })
    }

    /// The place of a run-time address: for `*EXPR`. `None` outside of every module's code.
    pub fn place_of(&self, address: u64) -> Option<Place> {
        let index = self.module_at(address)?;
        let file = self.loaded[index].bias.file(address);
        self.place_at(index, file, address).ok()
    }

    fn place_at(
        &self,
        index: usize,
        address: FileAddress,
        written: u64,
    ) -> Result<Place, ResolveError> {
        let loaded = &self.loaded[index];
        let module = &loaded.module;
        if !module.elf().is_code(address.0) {
            return Err(self.outside(index, written));
        }
        if module.in_plt(address) {
            let function = module
                .symbol_at(address)
                .map(|(symbol, _)| module.symbols().display_name(symbol));
            let function = function.and_then(|name| name.strip_suffix("@plt").map(str::to_string));
            return Err(ResolveError::InPlt {
                module: loaded.path.display().to_string(),
                address: address.0,
                function,
            });
        }
        // A symbol without a size names all that lies behind it, other functions too.
        let named = module.symbol_at(address);
        let named = named.filter(|(symbol, offset)| {
            *offset < module.extent(symbol) || module.frames().at(address.0).is_none()
        });
        Ok(match named {
            Some((symbol, _)) => self.place(index, symbol, address),
            None => Place {
                module: index,
                address,
                runtime: address.runtime(loaded.bias),
                function: match module.function_range(address) {
                    Some(range) => (FileAddress(range.start), range.end - range.start),
                    None => (address, 0),
                },
                named: None,
                kind: SymbolKind::Label,
            },
        })
    }

    fn outside(&self, index: usize, written: u64) -> ResolveError {
        let loaded = &self.loaded[index];
        let segments = &loaded.module.elf().segments;
        let code = segments.iter().filter(|segment| segment.executable);
        ResolveError::OutsideCode {
            module: loaded.path.display().to_string(),
            address: written,
            code: code
                .map(|segment| {
                    (
                        segment.address,
                        segment.address.saturating_add(segment.memory_size),
                    )
                })
                .collect(),
        }
    }

    /// The modules that a written name means, without one all of them.
    pub fn among(&self, name: Option<&str>) -> Result<Vec<usize>, ResolveError> {
        match name {
            Some(name) => self.named(name),
            None => Ok((0..self.loaded.len()).collect()),
        }
    }

    /// The modules that a written name means: the whole path, the file's name, or that without a
    /// version or without `.so`. At least one.
    pub fn named(&self, name: &str) -> Result<Vec<usize>, ResolveError> {
        for fits in [same_path, same_file, same_library, same_stem] {
            let found: Vec<usize> = (0..self.loaded.len())
                .filter(|&index| fits(&self.loaded[index].path, name))
                .collect();
            if !found.is_empty() {
                return Ok(found);
            }
        }
        for unreadable in &self.unreadable {
            let path = &unreadable.error.path;
            if is_library(path, name) || same_stem(path, name) {
                return Err(ResolveError::Module(unreadable.error.clone()));
            }
        }
        let names: Vec<String> = self.loaded.iter().map(Loaded::name).collect();
        let nearest = nearest::nearest(name, names.iter().map(String::as_str));
        Err(ResolveError::NoModule {
            name: name.to_string(),
            nearest,
        })
    }

    fn no_function(&self, among: &[usize], name: &str) -> ResolveError {
        let name = name.to_string();
        let mut kinds = Vec::new();
        for &index in among {
            let found = self.loaded[index].module.find(&name, |_| true);
            kinds.extend(found.iter().map(|symbol| symbol.kind));
        }
        if kinds.contains(&SymbolKind::Ifunc) {
            let indirect = Some(self.named_like(among, &name));
            return ResolveError::NotCode { name, indirect };
        }
        if kinds.contains(&SymbolKind::Undefined) {
            return ResolveError::NotLoaded { name };
        }
        if kinds
            .iter()
            .any(|kind| kind.is_data() || *kind == SymbolKind::Absolute)
        {
            return ResolveError::NotCode {
                name,
                indirect: None,
            };
        }
        let tables = among
            .iter()
            .map(|&index| self.loaded[index].module.symbols());
        let nearest = nearest::functions(&name, tables);
        ResolveError::NoFunction { name, nearest }
    }
}

/// Whether a file is the library that a written name means: its whole path, its name, or that
/// without a version or without `.so`.
pub fn is_library(path: &Path, name: &str) -> bool {
    same_path(path, name) || same_file(path, name) || same_library(path, name)
}

fn same_path(path: &Path, name: &str) -> bool {
    path == Path::new(name)
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("")
}

fn same_file(path: &Path, name: &str) -> bool {
    file_name(path) == name
}

/// `libc.so` for `libc.so.6`, and for `libc-2.31.so`.
fn same_library(path: &Path, name: &str) -> bool {
    let own = file_name(path);
    let Some(end) = own.find(".so") else {
        return false;
    };
    let unversioned = &own[..end];
    let stem = unversioned
        .rsplit_once('-')
        .filter(|(_, v)| v.starts_with(|c: char| c.is_ascii_digit()))
        .map(|(stem, _)| stem);
    name.strip_suffix(".so")
        .is_some_and(|name| name == unversioned || Some(name) == stem)
        || own
            .strip_prefix(name)
            .is_some_and(|rest| name.contains(".so") && rest.starts_with('.'))
}

/// `libc` for `libc.so.6`.
fn same_stem(path: &Path, name: &str) -> bool {
    !name.is_empty() && same_library(path, &format!("{name}.so"))
}
