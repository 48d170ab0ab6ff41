//! The names of all modules in the order that completion needs them, made in the background.
//!
//! A name is found by each of its components: `Class::method` begins inside `ns::Class::method(int)`,
//! as a location may. An entry is a position in one text that holds all names, so that half a
//! million names are some tens of megabytes, and what begins with a word is a range.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::demangle::demangle_for_lookup;
use super::lookup::is_cold;
use super::module::Module;
use super::modules::Modules;
use super::table::{Origin, Symbol};
use crate::arch::FileAddress;

/// A longer name is not offered; nobody types its beginning.
const LONGEST: usize = 4096;

/// Which names are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// What a breakpoint can stand on, with its parameters.
    Functions,
    /// What an expression can name, without parameters.
    Values,
}

/// Names that begin with a word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches {
    /// In order, each once.
    pub names: Vec<String>,
    /// There are more; the last one of all is the last of `names`, so that what all have in common
    /// is what these have in common.
    pub more: bool,
}

/// One module's names.
#[derive(Debug, Default)]
struct Names {
    /// Each ends with a NUL.
    text: Vec<u8>,
    functions: Vec<u32>,
    data: Vec<u32>,
}

struct Part {
    module: Arc<Module>,
    /// The base name of its file.
    file: String,
    names: Option<Arc<Names>>,
}

#[derive(Default)]
struct State {
    parts: Vec<Part>,
    working: bool,
}

/// The names of all modules.
#[derive(Default)]
pub struct Catalog {
    state: Mutex<State>,
    done: Condvar,
}

impl Catalog {
    /// Says which modules there are now, and begins to read the names of those that are new.
    pub fn set(self: &Arc<Catalog>, modules: &Modules) {
        let mut state = self.lock();
        let same = |part: &Part, module: &Arc<Module>| Arc::ptr_eq(&part.module, module);
        let loaded = modules.loaded();
        let unchanged = loaded.len() == state.parts.len()
            && loaded
                .iter()
                .zip(&state.parts)
                .all(|(l, p)| same(p, &l.module));
        if unchanged {
            return;
        }
        let old = std::mem::take(&mut state.parts);
        state.parts = loaded
            .iter()
            .map(|loaded| Part {
                module: loaded.module.clone(),
                file: loaded.name(),
                names: old
                    .iter()
                    .find(|part| same(part, &loaded.module))
                    .and_then(|part| part.names.clone()),
            })
            .collect();
        if !state.working && state.parts.iter().any(|part| part.names.is_none()) {
            state.working = true;
            let catalog = self.clone();
            thread::spawn(move || catalog.work());
        }
    }

    /// The base names of the modules' files.
    pub fn files(&self) -> Vec<String> {
        self.lock()
            .parts
            .iter()
            .map(|part| part.file.clone())
            .collect()
    }

    /// At most `most` names that begin with `start`, in the module of that file or in all. Names
    /// that are still being read are waited for as long as `patience`, and then left out.
    pub fn beginning(
        &self,
        wanted: Wanted,
        start: &str,
        file: Option<&str>,
        most: usize,
        patience: Duration,
    ) -> Matches {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        while state.working {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let ready: Vec<Arc<Names>> = state
            .parts
            .iter()
            .filter(|part| file.is_none_or(|file| part.file == file))
            .filter_map(|part| part.names.clone())
            .collect();
        drop(state);
        select(&ready, wanted, start, most)
    }

    /// At most `most` names that begin with `start` as the linker knows them.
    pub fn mangled(&self, start: &str, file: Option<&str>, most: usize) -> Matches {
        let modules: Vec<Arc<Module>> = self
            .lock()
            .parts
            .iter()
            .filter(|part| file.is_none_or(|file| part.file == file))
            .map(|part| part.module.clone())
            .collect();
        let mut names: Vec<String> = Vec::new();
        for module in &modules {
            let table = module.symbols();
            let fits = table.all().iter().filter(|symbol| {
                symbol.kind.is_code() && table.name_bytes(symbol).starts_with(start.as_bytes())
            });
            names.extend(fits.map(|symbol| table.linkage_name(symbol).into_owned()));
        }
        let last = names.iter().max().cloned();
        cut(names, last, false, most)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the names of one module after the other until all are there.
    fn work(&self) {
        loop {
            let mut state = self.lock();
            let next = state.parts.iter().find(|part| part.names.is_none());
            let Some(module) = next.map(|part| part.module.clone()) else {
                state.working = false;
                self.done.notify_all();
                return;
            };
            drop(state);
            let names = Arc::new(Names::of(&module));
            for part in &mut self.lock().parts {
                if Arc::ptr_eq(&part.module, &module) {
                    part.names = Some(names.clone());
                }
            }
        }
    }
}

fn select(ready: &[Arc<Names>], wanted: Wanted, start: &str, most: usize) -> Matches {
    let mut names: Vec<String> = Vec::new();
    let mut last: Option<String> = None;
    let mut more = false;
    for part in ready {
        let orders: &[&[u32]] = match wanted {
            Wanted::Functions => &[&part.functions],
            Wanted::Values => &[&part.functions, &part.data],
        };
        for order in orders {
            let range = part.range(order, start);
            let shown = |at: &u32| match wanted {
                Wanted::Functions => part.name(*at).to_string(),
                Wanted::Values => without_parameters(part.name(*at)).to_string(),
            };
            let mut fresh: Vec<String> = Vec::new();
            for at in range {
                let name = shown(at);
                if fresh.last() == Some(&name) {
                    continue;
                }
                if fresh.len() > most {
                    more = true;
                    break;
                }
                fresh.push(name);
            }
            last = last.max(range.last().map(shown));
            names.extend(fresh);
        }
    }
    cut(names, last, more, most)
}

/// At most `most` of the names, in order; if there are `more`, the last one of all stands at the end.
fn cut(mut names: Vec<String>, last: Option<String>, more: bool, most: usize) -> Matches {
    names.sort_unstable();
    names.dedup();
    let more = more || names.len() > most;
    if more {
        names.truncate(most.saturating_sub(1));
        names.extend(last);
        names.dedup();
    }
    Matches { names, more }
}

impl Names {
    fn of(module: &Module) -> Names {
        let mut names = Names {
            text: vec![0],
            ..Names::default()
        };
        let table = module.symbols();
        let mut starts = Vec::new();
        let (mut functions, mut data) = (Vec::new(), Vec::new());
        for symbol in table.all() {
            let code = symbol.kind.is_code();
            if symbol.origin == Origin::Synthetic || !code && !symbol.kind.is_data() {
                continue;
            }
            if code && module.in_plt(FileAddress(symbol.address)) {
                continue;
            }
            let Some(name) = display(module, symbol) else {
                continue;
            };
            let Ok(at) = u32::try_from(names.text.len()) else {
                break;
            };
            names.text.extend_from_slice(name.as_bytes());
            names.text.push(0);
            components(&name, &mut starts);
            let list = if code { &mut functions } else { &mut data };
            list.extend(starts.drain(..).map(|start| at + start));
        }
        names.functions = names.sorted(functions);
        names.data = names.sorted(data);
        names
    }

    fn sorted(&self, list: Vec<u32>) -> Vec<u32> {
        // Most pairs differ in their first eight bytes, which are compared without looking aside.
        let mut keyed: Vec<(u64, u32)> = list.iter().map(|at| (self.key(*at), *at)).collect();
        keyed.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0)
                .then_with(|| self.name(a.1).cmp(self.name(b.1)))
        });
        keyed.dedup_by(|a, b| a.0 == b.0 && self.name(a.1) == self.name(b.1));
        keyed.into_iter().map(|(_, at)| at).collect()
    }

    fn key(&self, at: u32) -> u64 {
        let name = self.name(at).as_bytes();
        let mut bytes = [0; 8];
        let length = name.len().min(8);
        bytes[..length].copy_from_slice(&name[..length]);
        u64::from_be_bytes(bytes)
    }

    fn name(&self, at: u32) -> &str {
        let rest = self.text.get(at as usize..).unwrap_or_default();
        let end = memchr::memchr(0, rest).unwrap_or(rest.len());
        // Only whole names are put in, and components begin at characters.
        std::str::from_utf8(&rest[..end]).unwrap_or_default()
    }

    /// The part of an order that begins with `start`.
    fn range<'a>(&self, order: &'a [u32], start: &str) -> &'a [u32] {
        let from = order.partition_point(|at| self.name(*at) < start);
        let behind = order[from..].partition_point(|at| self.name(*at).starts_with(start));
        &order[from..from + behind]
    }
}

/// The name that a person types; `None` for what is nothing to a person.
fn display(module: &Module, symbol: &Symbol) -> Option<String> {
    let name = module.symbols().linkage_name(symbol);
    if name.is_empty() || is_cold(&name) || name.contains('\0') {
        return None;
    }
    if module.thunk_method(&name).is_some() {
        return None;
    }
    let name = demangle_for_lookup(&name).unwrap_or_else(|| name.into_owned());
    let artificial = name.contains(" for ") || name.contains(" [clone ");
    (!artificial && name.len() <= LONGEST).then_some(name)
}

/// Where the components of a name begin.
fn components(name: &str, starts: &mut Vec<u32>) {
    let bytes = name.as_bytes();
    let mut depth = 0usize;
    let mut start = 0;
    let mut at = 0;
    starts.push(0);
    while at < bytes.len() {
        let rest = &name.as_bytes()[at..];
        if at == start && rest.starts_with(b"operator") {
            return;
        }
        match bytes[at] {
            b'(' if depth == 0 && rest.starts_with(b"(anonymous namespace)") => {
                at += "(anonymous namespace)".len();
                continue;
            }
            b'(' if depth == 0 => return,
            b'(' | b'<' | b'[' | b'{' => depth += 1,
            b')' | b'>' | b']' | b'}' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && rest.starts_with(b"::") && rest.len() > 2 => {
                start = at + 2;
                starts.push(start as u32);
                at = start;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
}

/// The name in front of its parameter list.
fn without_parameters(name: &str) -> &str {
    let mut depth = 0usize;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'(' if depth == 0 && !name[at..].starts_with("(anonymous namespace)") => {
                return name[..at].trim_end();
            }
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str], data: &[&str]) -> Arc<Names> {
        let mut names = Names {
            text: vec![0],
            ..Names::default()
        };
        let mut add = |list: &[&str]| {
            let mut entries = Vec::new();
            for name in list {
                let at = names.text.len() as u32;
                names.text.extend_from_slice(name.as_bytes());
                names.text.push(0);
                let mut starts = Vec::new();
                components(name, &mut starts);
                entries.extend(starts.iter().map(|start| at + start));
            }
            entries
        };
        let (functions, data) = (add(list), add(data));
        names.functions = names.sorted(functions);
        names.data = names.sorted(data);
        Arc::new(names)
    }

    fn found(list: &[Arc<Names>], start: &str) -> Vec<String> {
        select(list, Wanted::Functions, start, 100).names
    }

    #[test]
    fn a_name_is_found_by_each_component() {
        let list = [
            names(
                &[
                    "ns::Class<a::b>::method(std::string)",
                    "ns::Class<a::b>::method(int)",
                    "(anonymous namespace)::hidden()",
                    "ns::operator<<(int, ns::X)",
                    "main",
                ],
                &["ns::counter"],
            ),
            names(&["memcpy", "main"], &[]),
        ];
        let method = |prefix: &str| {
            ["int", "std::string"].map(|p| format!("{prefix}Class<a::b>::method({p})"))
        };
        assert_eq!(found(&list, "ns::Cl"), method("ns::"));
        assert_eq!(found(&list, "Cl"), method(""));
        assert_eq!(found(&list, "meth"), ["method(int)", "method(std::string)"]);
        assert_eq!(
            found(&list, "m"),
            ["main", "memcpy", "method(int)", "method(std::string)"]
        );
        assert_eq!(found(&list, "b>"), [""; 0]);
        assert_eq!(found(&list, "string"), [""; 0]);
        assert_eq!(found(&list, "hid"), ["hidden()"]);
        assert_eq!(found(&list, "operator<"), ["operator<<(int, ns::X)"]);
        let values = select(&list, Wanted::Values, "", 100).names;
        assert!(values.contains(&"ns::counter".to_string()));
        assert!(values.contains(&"ns::Class<a::b>::method".to_string()));
    }

    #[test]
    fn what_is_left_out_does_not_change_what_all_have_in_common() {
        let many: Vec<String> = (0..500).map(|n| format!("f{n:03}()")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let list = [names(&many, &[]), names(&["g()"], &[])];
        let matches = select(&list, Wanted::Functions, "f", 10);
        assert!(matches.more);
        assert_eq!(matches.names.len(), 10);
        assert_eq!(matches.names[0], "f000()");
        assert_eq!(matches.names[9], "f499()");
        assert!(!select(&list, Wanted::Functions, "g", 10).more);
    }
}
