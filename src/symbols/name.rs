//! Names as people type them, compared with demangled names the way gdb compares them.
//!
//! A name is a path of components, each with template arguments or not, the last with parameters
//! or not. What is typed matches a name whose *last* components it equals (gdb's wild matching):
//! `func` finds `ns::func(int)`, never `func2`. Template arguments, parameters and qualifiers that
//! were not typed match any; spaces, `[abi:…]` tags and the place of `const` mean nothing.

use super::demangle::operator_length;

/// One component of a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Component {
    /// `method`, `~Class`, `operator()`, `(anonymous namespace)`, `{lambda(int)#1}`.
    pub name: String,
    /// `<int>`, canonical.
    pub arguments: Option<String>,
    /// `(int, char)`, canonical.
    pub parameters: Option<String>,
    /// `const`, `&` behind the parameters.
    pub qualifiers: String,
}

/// A name taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Outermost first.
    pub path: Vec<Component>,
    /// Began with `::`: matches the whole path only.
    pub rooted: bool,
}

/// Names with more components than this are not taken apart.
const PATH_LIMIT: usize = 256;

impl Name {
    /// Takes a name apart: one that a person typed, or a demangled one without its return type.
    pub fn parse(text: &str) -> Option<Name> {
        let text = text.split(" [clone").next().unwrap_or(text);
        let text = without_crate_hashes(without_spaces(text));
        let (rooted, mut rest) = match text.strip_prefix("::") {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let mut path: Vec<Component> = Vec::new();
        loop {
            let (mut component, behind) = component(rest)?;
            if path.is_empty() && component.name.is_empty() {
                // Rust's `<str>::trim`.
                component.name = component.arguments.take()?;
            }
            match path.last_mut() {
                // Rust's `foo::<u32>`.
                Some(last) if component.name.is_empty() && last.arguments.is_none() => {
                    last.arguments = component.arguments;
                }
                _ if component.name.is_empty() => return None,
                _ => path.push(component),
            }
            match behind.strip_prefix("::") {
                _ if path.len() > PATH_LIMIT => return None,
                Some(behind) => rest = behind,
                None if behind.is_empty() => break,
                None => return None,
            }
        }
        Some(Name { path, rooted })
    }

    /// Whether this, as typed, names `other`.
    pub fn matches(&self, other: &Name) -> bool {
        let Some(skipped) = other.path.len().checked_sub(self.path.len()) else {
            return false;
        };
        if self.rooted && skipped != 0 {
            return false;
        }
        self.path
            .iter()
            .zip(&other.path[skipped..])
            .all(|(typed, full)| {
                let given = |typed: &Option<String>, full: &Option<String>| {
                    typed.is_none() || typed == full
                };
                typed.name == full.name
                    && given(&typed.arguments, &full.arguments)
                    && given(&typed.parameters, &full.parameters)
                    && (typed.qualifiers.is_empty() || typed.qualifiers == full.qualifiers)
            })
    }

    /// The last component's name.
    pub fn base(&self) -> &str {
        self.path.last().map_or("", |component| &component.name)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.') || byte >= 0x80
}

/// Spaces stay only where they part two words.
fn without_spaces(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut space = false;
    for c in text.chars() {
        if c.is_ascii_whitespace() {
            space = true;
            continue;
        }
        let word = |c: char| !c.is_ascii() || is_word(c as u8);
        if space && word(c) && out.ends_with(word) {
            out.push(' ');
        }
        space = false;
        out.push(c);
    }
    out
}

/// `core[c5f2e3a1]::fmt`, as Rust's names are printed, without the crate's hash.
fn without_crate_hashes(mut text: String) -> String {
    let mut from = 0;
    while let Some(end) = text[from..].find("]::").map(|at| from + at) {
        from = end + 1;
        let hash = text[..end].rfind('[').filter(|open| {
            text[..*open].ends_with(is_word_char)
                && text[open + 1..end].bytes().all(|b| b.is_ascii_hexdigit())
        });
        if let Some(open) = hash {
            text.replace_range(open..=end, "");
            from = open;
        }
    }
    text
}

/// The component at the start, and what follows it.
fn component(text: &str) -> Option<(Component, &str)> {
    let bytes = text.as_bytes();
    let mut end = name_length(text)?;
    let mut component = Component {
        name: text[..end].to_string(),
        ..Component::default()
    };
    while text[end..].starts_with("[abi:") {
        end += text[end..].find(']')? + 1;
    }
    if bytes.get(end) == Some(&b'<') {
        let close = matching(bytes, end)?;
        component.arguments = Some(types(&text[end..=close]));
        end = close + 1;
    }
    while text[end..].starts_with("[abi:") {
        end += text[end..].find(']')? + 1;
    }
    if bytes.get(end) == Some(&b'(') {
        let close = matching(bytes, end)?;
        component.parameters = Some(types(&text[end..=close]));
        end = close + 1;
        let rest = &text[end..];
        let length = rest.find("::").unwrap_or(rest.len());
        component.qualifiers = rest[..length].to_string();
        let known = component
            .qualifiers
            .replace("const", "")
            .replace("volatile", "")
            .replace(['&', ' '], "");
        known.is_empty().then_some(())?;
        end += length;
    }
    Some((component, &text[end..]))
}

/// The length of a component's name. 0 for bare template arguments.
fn name_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if let Some(length) = operator_name_length(text) {
        return Some(length);
    }
    match *bytes.first()? {
        b'<' if text.starts_with("<impl") || text.contains(" as ") => Some(matching(bytes, 0)? + 1),
        b'<' => Some(0),
        b'(' | b'{' => Some(matching(bytes, 0)? + 1),
        first => {
            let start = usize::from(first == b'~');
            // A word, never two: a space would be a return type's.
            let length = bytes[start..]
                .iter()
                .take_while(|byte| is_word(**byte))
                .count();
            (length > 0).then_some(start + length)
        }
    }
}

fn operator_name_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("operator")?;
    let first = *rest.as_bytes().first()?;
    if is_word(first) {
        return None;
    }
    if let Some(length) = operator_length(text, 0, text.as_bytes()) {
        return Some(length);
    }
    if first == b' ' || first == b'"' {
        for word in [" new[]", " delete[]"] {
            if rest.starts_with(word) {
                return Some("operator".len() + word.len());
            }
        }
        // A conversion: up to the parameters. `operator""_x` ends there too.
        let length = top_level(rest, b'(').unwrap_or(rest.len());
        return Some("operator".len() + length);
    }
    let length = rest
        .bytes()
        .take_while(|byte| b"+-*/%^&|~!=".contains(byte))
        .count();
    (length > 0).then_some("operator".len() + length)
}

/// The first such byte that stands in no brackets.
fn top_level(text: &str, wanted: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            byte if byte == wanted => return Some(at),
            b'<' | b'(' | b'[' | b'{' => at = matching(bytes, at)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The bracket that closes the one at `open`; `->` and operators' names are no brackets.
fn matching(bytes: &[u8], open: usize) -> Option<usize> {
    let mut stack: Vec<u8> = Vec::new();
    let mut at = open;
    while at < bytes.len() {
        if bytes[at] == b'o' && bytes[at..].starts_with(b"operator") {
            let rest = std::str::from_utf8(&bytes[at..]).ok()?;
            if let Some(length) = operator_length(rest, at, bytes) {
                at += length;
                continue;
            }
        }
        match bytes[at] {
            b'<' => stack.push(b'>'),
            b'(' => stack.push(b')'),
            b'[' => stack.push(b']'),
            b'{' => stack.push(b'}'),
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            // A comparison within parentheses.
            b'>' if stack.last() != Some(&b'>') => {}
            byte @ (b'>' | b')' | b']' | b'}') => {
                while stack.last() == Some(&b'>') && byte != b'>' {
                    stack.pop();
                }
                if stack.pop()? != byte {
                    return None;
                }
                if stack.is_empty() {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Types in a canonical form: `const` behind what it qualifies, one spelling for each integer type,
/// `std::string` in short, no `[abi:…]`.
fn types(text: &str) -> String {
    if text == "(void)" {
        return "()".to_string();
    }
    let text = text
        .replace(
            "std::char_traits<char>,std::allocator<char>>const",
            "std::char_traits<char>,std::allocator<char>> const",
        )
        .replace(
            "std::__cxx11::basic_string<char,std::char_traits<char>,std::allocator<char>>",
            "std::string",
        )
        .replace(
            "std::basic_string<char,std::char_traits<char>,std::allocator<char>>",
            "std::string",
        )
        .replace("[abi:cxx11]", "")
        .replace("(void)", "()");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let word = rest
            .bytes()
            .take_while(|byte| is_word(*byte) || *byte == b' ')
            .count();
        if word == 0 {
            let length = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let words = &rest[..word];
        rest = &rest[word..];
        let leading = words
            .strip_prefix("const ")
            .filter(|_| !out.ends_with(['>', '*', '&', ')']));
        match leading {
            Some(type_words) => {
                let tail = type_tail(rest);
                out.push_str(&integer(type_words));
                out.push_str(&types(&rest[..tail]));
                out.push_str(if out.ends_with(is_word_char) {
                    " const"
                } else {
                    "const"
                });
                rest = &rest[tail..];
            }
            None => out.push_str(&integer(words)),
        }
    }
    out
}

fn is_word_char(c: char) -> bool {
    !c.is_ascii() || is_word(c as u8)
}

/// How much of `::name<args>::name` follows the first word of a type.
fn type_tail(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        match bytes.get(at) {
            Some(b'<') => match matching(bytes, at) {
                Some(close) => at = close + 1,
                None => return at,
            },
            Some(b':') if bytes.get(at + 1) == Some(&b':') => {
                at += 2;
                at += bytes[at..]
                    .iter()
                    .take_while(|byte| is_word(**byte))
                    .count();
            }
            _ => return at,
        }
    }
}

/// `long unsigned int` and its other spellings in gdb's canonical one; other words as they are.
fn integer(words: &str) -> String {
    let (mut unsigned, mut signed, mut long, mut short, mut int, mut rest) =
        (false, false, 0, false, false, Vec::new());
    for word in words.split(' ') {
        match word {
            "unsigned" => unsigned = true,
            "signed" => signed = true,
            "long" => long += 1,
            "short" => short = true,
            "int" => int = true,
            other => rest.push(other),
        }
    }
    if !unsigned && !signed && long == 0 && !short || rest.contains(&"double") {
        return words.to_string();
    }
    if rest.first() == Some(&"char") {
        let sign = if unsigned { "unsigned" } else { "signed" };
        return [&[sign][..], &rest].concat().join(" ");
    }
    let mut out = Vec::new();
    if unsigned {
        out.push("unsigned");
    }
    match (long, short) {
        (0, true) => out.push("short"),
        (0, false) => out.push("int"),
        (1, _) => out.push("long"),
        _ => out.extend(["long", "long"]),
    }
    let _ = int;
    [out, rest].concat().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(typed: &str, full: &str) -> bool {
        Name::parse(typed)
            .unwrap_or_else(|| panic!("{typed}"))
            .matches(&Name::parse(full).unwrap_or_else(|| panic!("{full}")))
    }

    #[test]
    fn wild_matching() {
        assert!(matches("func", "ns::func(int)"));
        assert!(!matches("func", "ns::func2(int)"));
        assert!(!matches("::func", "ns::func(int)"));
        assert!(matches("::ns::func", "ns::func(int)"));
        assert!(matches("C::n", "ns::C::n(int)"));
        assert!(matches("tf", "ns::tf<int>(int)"));
        assert!(matches("tf<int>", "ns::tf<int>(int)"));
        assert!(!matches("tf<long>", "ns::tf<int>(int)"));
        assert!(matches("ns::tf< int >( int )", "ns::tf<int>(int)"));
        assert!(matches(
            "vector::push_back",
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        ));
        assert!(matches("f()", "f()"));
        assert!(matches("f(void)", "f()"));
        assert!(matches("anon", "(anonymous namespace)::anon(int)"));
        assert!(matches(
            "(anonymous namespace)::anon",
            "(anonymous namespace)::anon(int)"
        ));
        assert!(matches("method", "ns::C::method[abi:cxx11](int) const"));
        assert!(matches("method(int)", "ns::C::method(int) const"));
        assert!(!matches("method(int) const", "ns::C::method(int)"));
        assert!(matches(
            "foo",
            "main::{lambda(int)#1}::operator()(int)::foo()"
        ));
    }

    #[test]
    fn rust_names() {
        assert!(matches("<str>::trim", "<str>::trim"));
        assert!(matches("core[c5f2e3a1]::fmt::write", "core::fmt::write"));
        assert!(matches(
            "drop_in_place::<alloc[0a]::string::String>",
            "core::ptr::drop_in_place::<alloc::string::String>"
        ));
        assert!(!matches("f<[f32]>", "f<[f64]>"));
    }

    #[test]
    fn operators() {
        assert!(matches(
            "operator()",
            "main::{lambda(int)#1}::operator()(int) const"
        ));
        assert!(matches(
            "operator ()",
            "main::{lambda(int)#1}::operator()(int) const"
        ));
        assert!(matches(
            "C::operator==",
            "ns::C::operator==(ns::C const&) const"
        ));
        assert!(matches("operator bool", "ns::C::operator bool() const"));
        assert!(matches(
            "operator<<",
            "operator<< <int>(std::ostream&, int)"
        ));
        assert!(matches("operator new", "operator new(unsigned long)"));
        assert!(!matches("operator new", "operator new[](unsigned long)"));
        assert!(matches("operator->", "a::p<int>::operator->() const"));
        assert!(matches("operator+=", "a::operator+=(int)"));
        assert!(!matches("operator+", "a::operator+=(int)"));
        assert!(matches("~C", "ns::C::~C()"));
    }

    #[test]
    fn types_in_one_spelling() {
        assert!(matches(
            "f(const char *, unsigned)",
            "f(char const*, unsigned int)"
        ));
        assert!(matches(
            "f(long unsigned int, long int)",
            "f(unsigned long, long)"
        ));
        assert!(matches(
            "f(const std::vector<const int*> &)",
            "f(std::vector<int const*> const&)"
        ));
        assert!(matches(
            "f(std::string const&)",
            "f(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)"
        ));
        assert!(matches("f(const ns::A&)", "f(ns::A const&)"));
        assert!(!matches("f(char*)", "f(char const*)"));
    }
}
