//! Symbol names for people: C++ (Itanium ABI) and Rust (legacy and v0), in gdb's wording.
//!
//! `cpp_demangle` and `rustc-demangle` read the names; what they word otherwise than the demangler
//! of gdb is brought in line here: the special names (`vtable for`, `non-virtual thunk to`, …),
//! clones, the types of literals, pointers to members, function types, the stream and string
//! abbreviations. Names and texts are bounded: a hostile name costs what a long name costs.

mod rust;
mod wording;

use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

use super::name::Name;
use super::table::NAME_LIMIT;
pub(super) use wording::operator_length;
use wording::{forwarded_pack, reword};

/// A longer text is not produced; the mangled name stands instead.
const TEXT_LIMIT: usize = 1 << 18;
/// Nesting of a name; real ones stay below 100, and this fits a thread's small stack.
const DEPTH_LIMIT: u32 = 192;

/// Whether a name can be a mangled one.
pub fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R") || name.starts_with(b"__Z")
}

/// Whether it is a name of Rust's, by either scheme.
pub fn is_rust(name: &str) -> bool {
    name.starts_with("_R") || rust::is_legacy(name)
}

/// The text of a mangled name, `None` if it is not one.
pub fn demangle(name: &str) -> Option<String> {
    demangle_as(name, Form::Whole)
}

/// The text without the return type that templates bear: what a person types to name a function.
pub fn demangle_for_lookup(name: &str) -> Option<String> {
    demangle_as(name, Form::NoReturn)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    NoReturn,
}

fn demangle_as(name: &str, form: Form) -> Option<String> {
    if name.len() > NAME_LIMIT || !name.is_ascii() && !name.starts_with("_Z") {
        return None;
    }
    if is_rust(name) {
        return rust::text(name, form);
    }
    let (mangled, clones) = split_clones(name.strip_prefix("_Z")?);
    let mut text = encoding(mangled, form, 0)?;
    for clone in clones {
        write!(text, " [clone {clone}]").ok()?;
    }
    Some(text)
}

/// A text that refuses to grow without end.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > TEXT_LIMIT {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The suffixes that compilers put behind a mangled name for its clones: `.cold`, `.isra.0`.
fn split_clones(mangled: &str) -> (&str, Vec<&str>) {
    let Some(start) = mangled.find('.') else {
        return (mangled, Vec::new());
    };
    let (name, mut rest) = mangled.split_at(start);
    let mut clones = Vec::new();
    while !rest.is_empty() {
        let bytes = rest.as_bytes();
        let word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
        if bytes[0] != b'.' || !bytes.get(1).is_some_and(word) {
            return (mangled, Vec::new());
        }
        let mut end = 1 + bytes[1..].iter().take_while(|byte| word(byte)).count();
        while bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            end += 1 + bytes[end + 1..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
        }
        clones.push(&rest[..end]);
        rest = &rest[end..];
    }
    (name, clones)
}

/// The special names, by their two letters.
const SPECIAL: [(&str, &str, bool); 11] = [
    ("TV", "vtable for ", true),
    ("TT", "VTT for ", true),
    ("TI", "typeinfo for ", true),
    ("TS", "typeinfo name for ", true),
    ("TF", "typeinfo fn for ", true),
    ("TH", "TLS init function for ", false),
    ("TW", "TLS wrapper function for ", false),
    ("GV", "guard variable for ", false),
    ("GTt", "transaction clone for ", false),
    ("GTn", "non-transaction clone for ", false),
    ("TA", "template parameter object for ", true),
];

/// An encoding, without the leading `_Z`.
fn encoding(mangled: &str, form: Form, depth: u32) -> Option<String> {
    // A thunk to a guard variable of a thunk makes no sense already.
    if depth > 4 {
        return None;
    }
    if let Some((words, target)) = thunk_target(mangled) {
        return Some(format!("{words}{}", encoding(target, form, depth + 1)?));
    }
    for (letters, words, is_type) in SPECIAL {
        if let Some(rest) = mangled.strip_prefix(letters) {
            let text = match is_type {
                true => type_text(mangled, letters)?,
                false => encoding(rest, Form::NoReturn, depth + 1)?,
            };
            return Some(format!("{words}{text}"));
        }
    }
    // gdb names the function around a local name without its return type.
    let local = mangled.starts_with('Z');
    let text = parse(
        &format!("_Z{mangled}"),
        if local { Form::NoReturn } else { form },
    )?;
    if mangled.starts_with("TC") {
        return Some(swap_construction_vtable(&text));
    }
    let text = reword(&text);
    let pack = ["DpOT_", "DpOT0_", "DpOT1_", "DpOT2_"]
        .iter()
        .any(|letters| mangled.ends_with(letters));
    if pack {
        forwarded_pack(text.clone()).or(Some(text))
    } else {
        Some(text)
    }
}

/// `Thn16_`, `Tv0_n24_`, `Tc…`: the words, and the encoding of the function behind it.
pub fn thunk_target(mangled: &str) -> Option<(&'static str, &str)> {
    if let Some(rest) = mangled.strip_prefix("Tc") {
        return Some((
            "covariant return thunk to ",
            call_offset(call_offset(rest)?)?,
        ));
    }
    let rest = mangled.strip_prefix('T')?;
    match rest.as_bytes().first()? {
        b'h' => Some(("non-virtual thunk to ", call_offset(rest)?)),
        b'v' => Some(("virtual thunk to ", call_offset(rest)?)),
        _ => None,
    }
}

/// Skips `h <number> _` or `v <number> _ <number> _`.
fn call_offset(text: &str) -> Option<&str> {
    let number = |text: &'_ str| -> Option<usize> {
        let sign = usize::from(text.starts_with('n'));
        let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && text.as_bytes().get(sign + digits) == Some(&b'_'))
            .then_some(sign + digits + 1)
    };
    let count = match text.as_bytes().first()? {
        b'h' => 1,
        b'v' => 2,
        _ => return None,
    };
    let mut rest = &text[1..];
    for _ in 0..count {
        rest = &rest[number(rest)?..];
    }
    Some(rest)
}

/// The type that a `vtable for` and its like is about: read as the `typeinfo for` of it, which
/// `cpp_demangle` words as gdb does.
fn type_text(mangled: &str, letters: &str) -> Option<String> {
    let text = parse(
        &format!("_ZTI{}", &mangled[letters.len()..]),
        Form::NoReturn,
    )?;
    Some(reword(text.strip_prefix("typeinfo for ")?))
}

/// `cpp_demangle` prints the two types of a construction vtable the other way round.
fn swap_construction_vtable(text: &str) -> String {
    let words = "construction vtable for ";
    match text
        .strip_prefix(words)
        .and_then(|types| types.split_once("-in-"))
    {
        Some((first, second)) => format!("{words}{}-in-{}", reword(second), reword(first)),
        None => reword(text),
    }
}

fn parse(mangled: &str, form: Form) -> Option<String> {
    let text = parse_plainly(mangled, form)?;
    if !["C1I", "C2I", "C3I"]
        .iter()
        .any(|letters| mangled.contains(letters))
        || !is_constructor_template(&text)
    {
        return Some(text);
    }
    // `cpp_demangle` takes the first parameter of a constructor template for the return type that
    // other templates have: give it one to take.
    let end = name_end(mangled)?;
    parse_plainly(&format!("{}v{}", &mangled[..end], &mangled[end..]), form).or(Some(text))
}

/// `ns::Class::Class<int>(…)`.
fn is_constructor_template(text: &str) -> bool {
    let Some(name) = Name::parse(text) else {
        return false;
    };
    match &name.path[..] {
        [.., class, last] => {
            last.arguments.is_some() && (last.name == class.name || class.name == "string")
        }
        _ => false,
    }
}

/// Where the name ends and the parameters begin. A name is never the start of a longer one.
fn name_end(mangled: &str) -> Option<usize> {
    let ends = mangled.match_indices("E").map(|(at, _)| at + 1);
    // The name of a constructor template ends with its own arguments and the path's end: `EE`.
    let ends = ends.filter(|end| mangled[..*end].ends_with("EE")).take(64);
    ends.into_iter()
        .find(|end| parse_plainly(&format!("{}v", &mangled[..*end]), Form::NoReturn).is_some())
}

fn parse_plainly(mangled: &str, form: Form) -> Option<String> {
    let parsing = ParseOptions::default().recursion_limit(DEPTH_LIMIT);
    let (symbol, tail) =
        BorrowedSymbol::with_tail_and_options(mangled.as_bytes(), &parsing).ok()?;
    if !tail.is_empty() {
        return None;
    }
    let mut options = DemangleOptions::new().recursion_limit(DEPTH_LIMIT);
    if form == Form::NoReturn {
        options = options.no_return_type();
    }
    let mut text = Limited(String::new());
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn special_names_as_gdb_words_them() {
        let cases = [
            ("_ZThn16_N2ns1C1nEi", "non-virtual thunk to ns::C::n(int)"),
            (
                "_ZTv0_n24_NSoD0Ev",
                "virtual thunk to std::basic_ostream<char, std::char_traits<char> >::~basic_ostream()",
            ),
            ("_ZTVN2ns1AE", "vtable for ns::A"),
            (
                "_ZN12_GLOBAL__N_14anonEi",
                "(anonymous namespace)::anon(int)",
            ),
            ("_Z3foov.part.0.cold", "foo() [clone .part.0] [clone .cold]"),
            (
                "_ZNSsC1EOSs",
                "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string(std::basic_string<char, std::char_traits<char>, std::allocator<char> >&&)",
            ),
            (
                "_ZZ4mainENKUliE_clEi",
                "main::{lambda(int)#1}::operator()(int) const",
            ),
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt::h0123456789abcdef",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
        ];
        for (mangled, text) in cases {
            assert_eq!(demangle(mangled).as_deref(), Some(text), "{mangled}");
        }
        assert_eq!(demangle("main"), None);
        assert_eq!(demangle("_Zjunk"), None);
        assert_eq!(
            demangle_for_lookup("_ZN2ns2tfIiEET_S1_").as_deref(),
            Some("ns::tf<int>(int)")
        );
    }

    #[test]
    fn hostile_names_end() {
        let deep = format!("_Z1f{}i", "P".repeat(60_000));
        let _ = demangle(&deep);
        let nested = format!("_Z1f{}i{}", "1aI".repeat(15_000), "E".repeat(15_000));
        let _ = demangle(&nested);
        // Each parameter doubles the one before.
        let mut bomb = "_Z1fN1aI1bS0_E".to_string();
        for _ in 0..60 {
            bomb.push_str("S_IS0_S0_E");
        }
        let _ = demangle(&bomb);
        let _ = demangle(&format!("_ZN{}1aE", "9".repeat(60_000)));
        let _ = demangle(&format!("_RNvC{}3foo", "B".repeat(60_000)));
        let _ = demangle(&"_ZThn1_".repeat(9_000));
    }

    /// The share of a library's symbols that come out as `c++filt` prints them: it and gdb have the
    /// same demangler.
    fn rate(library: &str) -> Option<(usize, usize, Vec<String>)> {
        let nm = Command::new("nm")
            .args(["-D", "--defined-only", library])
            .output()
            .ok()
            .filter(|out| out.status.success())?;
        let names = String::from_utf8_lossy(&nm.stdout).into_owned();
        let names: Vec<&str> = names
            .lines()
            .filter_map(|line| line.split(' ').nth(2))
            .map(|name| name.split('@').next().unwrap_or(name))
            .filter(|name| name.starts_with("_Z"))
            .collect();
        let mut filter = Command::new("c++filt")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut input = filter.stdin.take()?;
        let text = names.join("\n") + "\n";
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let wanted = filter.wait_with_output().ok()?;
        writer.join().ok()?.ok()?;
        let wanted = String::from_utf8_lossy(&wanted.stdout).into_owned();
        let mut wrong = Vec::new();
        for (name, wanted) in names.iter().zip(wanted.lines()) {
            let got = demangle(name).unwrap_or_else(|| name.to_string());
            if got != wanted {
                wrong.push(format!("{name}\n  want {wanted}\n  got  {got}"));
            }
        }
        Some((names.len(), wrong.len(), wrong))
    }

    #[test]
    fn libraries_as_cxxfilt() {
        for (library, percent) in [
            ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 98.0),
            (
                "/usr/lib/x86_64-linux-gnu/libboost_filesystem.so.1.74.0",
                98.0,
            ),
            (
                "/usr/lib/x86_64-linux-gnu/libboost_program_options.so.1.74.0",
                98.0,
            ),
        ] {
            let Some((all, wrong, texts)) = rate(library) else {
                eprintln!("skipped {library}: no such library, nm or c++filt");
                continue;
            };
            let equal = 100.0 * (all - wrong) as f64 / all.max(1) as f64;
            eprintln!("{library}: {equal:.2} % of {all} names as c++filt");
            for text in texts.iter().take(8) {
                eprintln!("{text}");
            }
            assert!(equal >= percent, "{library}: {equal:.2} %");
        }
    }
}
