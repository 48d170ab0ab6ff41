//! Names to symbols, without an index of demangled names.
//!
//! A mangled name contains its identifiers literally, each behind its length: `ns::func` can only be
//! a symbol whose mangled name contains `4func`. So the string table is searched for that with
//! `memmem`, and only what it finds is demangled and compared. A search through 500,000 names costs
//! some milliseconds and no memory beyond the order of the names.

use memchr::memmem;

use super::demangle;
use super::name::Name;
use super::table::{Origin, Symbol, SymbolKind, SymbolTable, unversioned};

/// Symbols whose linkage name is `name`, with `@VERSION` or `@@VERSION` behind it or not.
///
/// Without a version the default one is taken where there are several.
pub fn linkage<'a>(table: &'a SymbolTable, name: &str) -> Vec<&'a Symbol> {
    let (base, version) = match name.split_once('@') {
        Some((base, version)) if !base.is_empty() => (base, Some(version.trim_start_matches('@'))),
        _ => (name, None),
    };
    if base.is_empty() {
        return Vec::new();
    }
    let mut found = named_exactly(table, base.as_bytes());
    match version {
        Some(version) => {
            found.retain(|symbol| table.version(symbol).is_some_and(|(own, _)| own == version))
        }
        None => {
            let default =
                |symbol: &&Symbol| table.version(symbol).is_none_or(|(_, default)| default);
            let defined = |symbol: &&Symbol| symbol.kind != SymbolKind::Undefined;
            if found
                .iter()
                .any(|symbol| default(symbol) && defined(symbol))
            {
                found.retain(|symbol| default(symbol) || !defined(symbol));
            }
        }
    }
    found
}

fn named_exactly<'a>(table: &'a SymbolTable, base: &[u8]) -> Vec<&'a Symbol> {
    let named = |symbol: &&Symbol| {
        let name = table.name_bytes(symbol);
        name == base || unversioned(name, symbol.origin) == base
    };
    if let Some(candidates) = table.named_like(base) {
        return candidates.filter(named).collect();
    }
    let finder = memmem::Finder::new(base);
    let mut found = Vec::new();
    for at in finder.find_iter(&table.names) {
        let behind = table.names.get(at + base.len());
        if matches!(behind, Some(0 | b'@')) {
            // Symbols may point into the middle of a string: the linker merges tails.
            found.extend(starting_at(table, at as u32).filter(named));
        }
    }
    found
}

fn starting_at(table: &SymbolTable, offset: u32) -> impl Iterator<Item = &Symbol> {
    let order = table.by_name();
    let start = order.partition_point(|&index| table.symbols[index as usize].name < offset);
    order[start..]
        .iter()
        .map(|&index| &table.symbols[index as usize])
        .take_while(move |symbol| symbol.name == offset)
}

/// Defined symbols of the wanted kinds that a typed name means.
pub fn find<'a>(
    table: &'a SymbolTable,
    name: &str,
    wanted: impl Fn(SymbolKind) -> bool,
) -> Vec<&'a Symbol> {
    let exact: Vec<&Symbol> = linkage(table, name)
        .into_iter()
        .filter(|symbol| wanted(symbol.kind) && symbol.origin != Origin::Synthetic)
        .collect();
    // A mangled name means exactly that symbol.
    if !exact.is_empty() && demangle::is_mangled(name.as_bytes()) {
        return exact;
    }
    let mut found = exact;
    if let Some(typed) = Name::parse(name) {
        for symbol in candidates(table, &typed) {
            if wanted(symbol.kind)
                && symbol.origin != Origin::Synthetic
                && means(table, &typed, symbol)
            {
                found.push(symbol);
            }
        }
    }
    if found.is_empty() && name.contains(" for ") {
        found.extend(special(table, name).filter(|symbol| wanted(symbol.kind)));
    }
    found
}

/// What the compiler makes beside the program's own names: `vtable for ns::A`.
fn special<'a>(table: &'a SymbolTable, name: &str) -> impl Iterator<Item = &'a Symbol> {
    table.all().iter().filter(move |symbol| {
        let linkage = table.name_bytes(symbol);
        (linkage.starts_with(b"_ZT") || linkage.starts_with(b"_ZG"))
            && symbol.origin != Origin::Synthetic
            && table.display_name(symbol) == name
    })
}

/// Whether the typed name matches the symbol's demangled one. The cold halves of functions are left out.
fn means(table: &SymbolTable, typed: &Name, symbol: &Symbol) -> bool {
    let linkage = table.linkage_name(symbol);
    if is_cold(&linkage) {
        return false;
    }
    let Some(text) = demangle::demangle_for_lookup(&linkage) else {
        return false;
    };
    // Rust's names are typed without their hashes, or copied with them from what was printed.
    if demangle::is_rust(&linkage)
        && demangle::demangle(&linkage)
            .and_then(|printed| Name::parse(&printed))
            .is_some_and(|printed| typed.matches(&printed))
    {
        return true;
    }
    let text = [
        "non-virtual thunk to ",
        "virtual thunk to ",
        "covariant return thunk to ",
    ]
    .iter()
    .find_map(|words| text.strip_prefix(words))
    .unwrap_or(&text);
    Name::parse(text).is_some_and(|full| typed.matches(&full))
}

/// `foo.cold`, `foo.part.0.cold`: the part of a function that was moved away.
pub fn is_cold(linkage_name: &str) -> bool {
    linkage_name.ends_with(".cold")
        || linkage_name
            .rsplit_once(".cold.")
            .is_some_and(|(_, tail)| tail.bytes().all(|b| b.is_ascii_digit()))
}

/// Mangled symbols that contain all that the typed name's mangled form must contain.
fn candidates<'a>(table: &'a SymbolTable, typed: &Name) -> Vec<&'a Symbol> {
    let must: Vec<Vec<Needle>> = typed
        .path
        .iter()
        .filter_map(|component| needles(&component.name))
        .collect();
    let base = needles(typed.base()).unwrap_or_else(|| vec![b"_Z".to_vec(), b"_R".to_vec()]);
    let mut found: Vec<u32> = Vec::new();
    let mut last_string = usize::MAX;
    let mut starts: Vec<usize> = Vec::new();
    for needle in &base {
        for at in memmem::find_iter(&table.names, needle) {
            let start = memchr::memrchr(0, &table.names[..at]).map_or(0, |nul| nul + 1);
            if start != last_string {
                starts.push(start);
                last_string = start;
            }
        }
    }
    starts.sort_unstable();
    starts.dedup();
    let order = table.by_name();
    for start in starts {
        let name = table.name_at(start as u32);
        if !must.iter().all(|any| {
            any.iter()
                .any(|needle| memmem::find(name, needle).is_some())
        }) {
            continue;
        }
        // A mangled name that is the tail of another string is a string of its own to us.
        let end = start + name.len();
        let first =
            order.partition_point(|&index| (table.symbols[index as usize].name as usize) < start);
        for &index in &order[first..] {
            let offset = table.symbols[index as usize].name as usize;
            if offset >= end {
                break;
            }
            if matches!(table.names.get(offset..offset + 2), Some(b"_Z" | b"_R")) {
                found.push(index);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
        .into_iter()
        .map(|index| &table.symbols[index as usize])
        .collect()
}

type Needle = Vec<u8>;

/// What a mangled name contains if the component is in it: one of these. `None`: no telling.
fn needles(component: &str) -> Option<Vec<Needle>> {
    let name = component.strip_prefix('~').unwrap_or(component);
    if let Some(operator) = name
        .strip_prefix("operator")
        .filter(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    {
        return operator_codes(operator);
    }
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // The ABI's abbreviations have no letters of the name.
    const ABBREVIATED: [&str; 10] = [
        "std",
        "string",
        "allocator",
        "basic_string",
        "istream",
        "ostream",
        "iostream",
        "basic_istream",
        "basic_ostream",
        "basic_iostream",
    ];
    if name.is_empty() || !plain || ABBREVIATED.contains(&name) {
        return None;
    }
    // Rust v0 parts a name that begins with a digit or `_` from its length; the legacy scheme counts
    // the template arguments, in words, as part of the name.
    Some(vec![
        format!("{}{name}", name.len()).into_bytes(),
        format!("{}_{name}", name.len()).into_bytes(),
        format!("{name}$LT$").into_bytes(),
    ])
}

/// The two letters of an operator (Itanium ABI 5.1.3).
fn operator_codes(operator: &str) -> Option<Vec<Needle>> {
    let codes: &[&str] = match operator.trim() {
        "()" => &["cl"],
        "[]" => &["ix"],
        "new" => &["nw"],
        "new[]" => &["na"],
        "delete" => &["dl"],
        "delete[]" => &["da"],
        "~" => &["co"],
        "+" => &["pl", "ps"],
        "-" => &["mi", "ng"],
        "*" => &["ml", "de"],
        "/" => &["dv"],
        "%" => &["rm"],
        "&" => &["an", "ad"],
        "|" => &["or"],
        "^" => &["eo"],
        "=" => &["aS"],
        "+=" => &["pL"],
        "-=" => &["mI"],
        "*=" => &["mL"],
        "/=" => &["dV"],
        "%=" => &["rM"],
        "&=" => &["aN"],
        "|=" => &["oR"],
        "^=" => &["eO"],
        "<<" => &["ls"],
        ">>" => &["rs"],
        "<<=" => &["lS"],
        ">>=" => &["rS"],
        "==" => &["eq"],
        "!=" => &["ne"],
        "<" => &["lt"],
        ">" => &["gt"],
        "<=" => &["le"],
        ">=" => &["ge"],
        "<=>" => &["ss"],
        "!" => &["nt"],
        "&&" => &["aa"],
        "||" => &["oo"],
        "++" => &["pp"],
        "--" => &["mm"],
        "," => &["cm"],
        "->*" => &["pm"],
        "->" => &["pt"],
        literal if literal.starts_with('"') => &["li"],
        _ => &["cv"],
    };
    Some(codes.iter().map(|code| code.as_bytes().to_vec()).collect())
}
