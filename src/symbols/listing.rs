//! What can be probed in a module, one row a symbol, in the order of addresses.

use std::ops::ControlFlow;

use super::lookup;
use super::module::Module;
use super::pattern::Pattern;
use super::table::{Symbol, SymbolKind};
use crate::arch::{FileAddress, UprobePrice, uprobe_price};

/// What a probe on the symbol meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Probed {
    /// A function.
    Function,
    /// A C++ thunk that bears a copy of the method's body: a probe on the method is here, too.
    Thunk,
    /// A C++ thunk that passes the call on to the method, which is probed instead.
    PassingThunk,
    /// The resolver of an indirect function; a probe by name goes to what it chose.
    Ifunc,
    /// The symbol has no size: it reaches to the next one.
    ZeroSize,
    /// The part of a function that the compiler moved away.
    Cold,
    /// Another module's.
    Imported,
}

impl Probed {
    /// One word, as lists show it.
    pub fn word(self) -> &'static str {
        match self {
            Probed::Function => "function",
            Probed::Thunk => "thunk",
            Probed::PassingThunk => "thunk-jump",
            Probed::Ifunc => "ifunc",
            Probed::ZeroSize => "zero-size",
            Probed::Cold => "cold",
            Probed::Imported => "imported",
        }
    }
}

/// A symbol that can be probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Demangled.
    pub name: String,
    /// As the linker knows it.
    pub linkage: String,
    /// `GLIBC_2.14`, and whether it is the default one.
    pub version: Option<(String, bool)>,
    /// `None` for what is imported.
    pub address: Option<FileAddress>,
    /// Bytes by the symbol table.
    pub size: u64,
    /// Bytes that it covers; more than `size` where that is 0.
    pub extent: u64,
    /// What it is.
    pub kind: Probed,
    /// What a uprobe on its first instruction costs; `None` where there is no code in the file.
    pub price: Option<UprobePrice>,
}

/// So many symbols are demangled by one thread before they are handed on in order.
const CHUNK: usize = 4096;
/// Code of a chunk is read in one piece up to this many bytes.
const WINDOW: u64 = 16 << 20;
/// The longest instruction.
const INSTRUCTION: u64 = 15;

/// Gives each symbol that the pattern matches to `sink`, until that has enough; how many could have matched.
pub fn list(
    module: &Module,
    pattern: &Pattern,
    sink: &mut dyn FnMut(Row) -> ControlFlow<()>,
) -> usize {
    let order = candidates(module);
    let rows = |chunk: &[u32]| rows_of(module, pattern, chunk);
    in_parallel(&order, &rows, sink);
    order.len()
}

/// The functions that the pattern matches as places: see [`Module::matching`].
pub fn matching(module: &Module, pattern: &Pattern) -> Vec<u32> {
    let table = module.symbols();
    let found = |chunk: &[u32]| -> Vec<u32> {
        let fits = |index: &u32| {
            let symbol = &table.all()[*index as usize];
            let linkage = table.linkage_name(symbol);
            !lookup::is_cold(&linkage)
                && pattern.display(table, symbol).is_some()
                && !module.is_passing_thunk(symbol)
        };
        chunk.iter().copied().filter(fits).collect()
    };
    let mut all = Vec::new();
    in_parallel(&defined(module).collect::<Vec<_>>(), &found, &mut |index| {
        all.push(index);
        ControlFlow::Continue(())
    });
    all
}

/// Runs `work` over chunks on all processors and hands the results on in order.
fn in_parallel<T: Send>(
    order: &[u32],
    work: &(dyn Fn(&[u32]) -> Vec<T> + Sync),
    sink: &mut dyn FnMut(T) -> ControlFlow<()>,
) {
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get().min(16));
    for chunks in order.chunks(CHUNK * workers) {
        let results: Vec<Vec<T>> = std::thread::scope(|scope| {
            let threads: Vec<_> = chunks
                .chunks(CHUNK)
                .map(|chunk| scope.spawn(move || work(chunk)))
                .collect();
            threads
                .into_iter()
                .map(|thread| match thread.join() {
                    Ok(results) => results,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
                .collect()
        });
        for result in results.into_iter().flatten() {
            if sink(result).is_break() {
                return;
            }
        }
    }
}

/// By address; what is imported comes last, in the order of the table.
fn candidates(module: &Module) -> Vec<u32> {
    let table = module.symbols();
    let imported = (0..table.all().len() as u32).filter(|index| {
        let symbol = &table.all()[*index as usize];
        symbol.kind == SymbolKind::Undefined && symbol.function
    });
    defined(module).chain(imported).collect()
}

/// All code but the PLT's, by address.
fn defined(module: &Module) -> impl Iterator<Item = u32> {
    let table = module.symbols();
    table.by_address().iter().copied().filter(|index| {
        let symbol = &table.all()[*index as usize];
        symbol.kind.is_code() && !module.in_plt(FileAddress(symbol.address))
    })
}

fn rows_of(module: &Module, pattern: &Pattern, chunk: &[u32]) -> Vec<Row> {
    let table = module.symbols();
    let found: Vec<(&Symbol, String)> = chunk
        .iter()
        .map(|index| &table.all()[*index as usize])
        .filter_map(|symbol| Some((symbol, pattern.display(table, symbol)?)))
        .collect();
    let code = Window::over(module, &found);
    found
        .into_iter()
        .map(|(symbol, name)| row(module, symbol, name, &code))
        .collect()
}

fn row(module: &Module, symbol: &Symbol, name: String, code: &Window<'_>) -> Row {
    let table = module.symbols();
    let linkage = table.linkage_name(symbol).into_owned();
    let kind = kind(module, symbol, &linkage);
    let defined = kind != Probed::Imported;
    let price = defined.then(|| code.at(symbol.address)).flatten();
    Row {
        name,
        version: table
            .version(symbol)
            .map(|(version, default)| (version.into_owned(), default)),
        address: defined.then_some(FileAddress(symbol.address)),
        size: symbol.size,
        extent: if defined { module.extent(symbol) } else { 0 },
        kind,
        price: price.map(|code| uprobe_price(&code, symbol.address)),
        linkage,
    }
}

fn kind(module: &Module, symbol: &Symbol, linkage: &str) -> Probed {
    match symbol.kind {
        SymbolKind::Undefined => Probed::Imported,
        SymbolKind::Ifunc => Probed::Ifunc,
        _ if lookup::is_cold(linkage) => Probed::Cold,
        _ if module.thunk_method(linkage).is_some() => match module.is_passing_thunk(symbol) {
            true => Probed::PassingThunk,
            false => Probed::Thunk,
        },
        _ if symbol.size == 0 => Probed::ZeroSize,
        _ => Probed::Function,
    }
}

/// The code around some symbols, read in one go where they lie close together.
struct Window<'m> {
    module: &'m Module,
    start: u64,
    bytes: Vec<u8>,
}

impl<'m> Window<'m> {
    fn over(module: &'m Module, found: &[(&Symbol, String)]) -> Window<'m> {
        let addresses = || {
            let defined = found.iter().filter(|(symbol, _)| symbol.kind.is_code());
            defined.map(|(symbol, _)| symbol.address)
        };
        let (start, end) = (
            addresses().min().unwrap_or(0),
            addresses().max().unwrap_or(0),
        );
        let length = (end - start).saturating_add(INSTRUCTION);
        let bytes = match length <= WINDOW {
            true => module.bytes(FileAddress(start), length).unwrap_or_default(),
            false => Vec::new(),
        };
        Window {
            module,
            start,
            bytes,
        }
    }

    /// Up to 15 bytes of code.
    fn at(&self, address: u64) -> Option<Vec<u8>> {
        let inside = address
            .checked_sub(self.start)
            .and_then(|at| self.bytes.get(at as usize..))
            .filter(|rest| !rest.is_empty());
        match inside {
            Some(rest) => Some(rest[..rest.len().min(INSTRUCTION as usize)].to_vec()),
            None => self.module.bytes(FileAddress(address), INSTRUCTION).ok(),
        }
    }
}
