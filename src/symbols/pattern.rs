//! Which functions a pattern means: a piece of the name, or `/REGEX/` on the demangled name.
//!
//! To demangle half a million names takes seconds. A word of an identifier stands in the mangled name
//! literally, so what does not contain the pattern's word is not demangled.

use memchr::memmem::Finder;
use regex::Regex;
use regex_syntax::hir::{Hir, HirKind};

use super::table::{Symbol, SymbolTable, unversioned};

/// A pattern over the names of symbols.
#[derive(Debug, Clone)]
pub struct Pattern {
    kind: Kind,
    /// What each name contains, mangled, that the pattern can match.
    word: Option<Finder<'static>>,
}

#[derive(Debug, Clone)]
enum Kind {
    All,
    Piece(String),
    Regex(Regex),
}

impl Pattern {
    /// Every name.
    pub fn all() -> Pattern {
        Pattern {
            kind: Kind::All,
            word: None,
        }
    }

    /// `/REGEX/`, or a piece of the name.
    pub fn parse(text: &str) -> Result<Pattern, regex::Error> {
        match regex_text(text) {
            Some(regex) => Pattern::regex(regex),
            None => Ok(Pattern::piece(text)),
        }
    }

    /// Names that contain `text`, demangled or as the linker knows them.
    pub fn piece(text: &str) -> Pattern {
        Pattern {
            word: longest_word([text]),
            kind: Kind::Piece(text.to_string()),
        }
    }

    /// Demangled names in which the regular expression matches.
    pub fn regex(text: &str) -> Result<Pattern, regex::Error> {
        let regex = Regex::new(text)?;
        let mut needed = Vec::new();
        if let Ok(hir) = regex_syntax::parse(text) {
            needed_literals(&hir, &mut needed);
        }
        Ok(Pattern {
            kind: Kind::Regex(regex),
            word: longest_word(needed.iter().map(String::as_str)),
        })
    }

    /// The demangled name of the symbol, if the pattern matches it.
    pub fn display(&self, table: &SymbolTable, symbol: &Symbol) -> Option<String> {
        let linkage = unversioned(table.name_bytes(symbol), symbol.origin);
        if let Some(word) = &self.word {
            word.find(linkage)?;
        }
        let display = table.display_name(symbol);
        let fits = match &self.kind {
            Kind::All => true,
            Kind::Piece(text) => {
                display.contains(text)
                    || std::str::from_utf8(linkage).is_ok_and(|l| l.contains(text))
            }
            Kind::Regex(regex) => regex.is_match(&display),
        };
        fits.then_some(display)
    }
}

/// The expression between the slashes of `/REGEX/`.
pub fn regex_text(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('/')?.strip_suffix('/')?;
    (!inner.is_empty()).then_some(inner)
}

/// A regular expression in the syntax of `grep`, which gdb's commands take, in that of `/REGEX/`.
///
/// There `\\(`, `\\)`, `\\{`, `\\}`, `\\|`, `\\+` and `\\?` are operators, and without the backslash they are
/// characters; a `*` that has nothing before it is one, too.
pub fn basic_regex(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len() + 8);
    let mut chars = text.chars().peekable();
    let mut begins = true;
    while let Some(c) = chars.next() {
        let began = std::mem::replace(&mut begins, false);
        match c {
            '\\' => match chars.next() {
                None => return Err("Trailing backslash".into()),
                Some(operator @ ('(' | '|')) => {
                    out.push(operator);
                    begins = true;
                }
                Some(operator @ (')' | '{' | '}' | '+' | '?')) => out.push(operator),
                Some('<') => out.push_str(r"\b{start}"),
                Some('>') => out.push_str(r"\b{end}"),
                Some(class @ ('w' | 'W' | 's' | 'S' | 'b' | 'B')) => out.extend(['\\', class]),
                Some('`') => out.push_str(r"\A"),
                Some('\'') => out.push_str(r"\z"),
                Some(other) => out.push_str(&regex::escape(&other.to_string())),
            },
            '(' | ')' | '{' | '}' | '|' | '+' | '?' => out.extend(['\\', c]),
            '*' if began => out.push_str(r"\*"),
            // Anchors only where an expression begins or ends; elsewhere they are characters.
            '^' if !began => out.push_str(r"\^"),
            '$' if !ends_here(&mut chars) => out.push_str(r"\$"),
            '[' => bracket(&mut chars, &mut out)?,
            c => out.push(c),
        }
        begins |= began && c == '^';
    }
    match Regex::new(&out) {
        Ok(_) => Ok(out),
        Err(_) if out.matches('(').count() > out.matches(')').count() => {
            Err("Unmatched ( or \\(".into())
        }
        Err(_) if out.matches('(').count() < out.matches(')').count() => {
            Err("Unmatched ) or \\)".into())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn ends_here(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let mut ahead = chars.clone();
    match ahead.next() {
        None => true,
        Some('\\') => matches!(ahead.next(), Some(')' | '|')),
        Some(_) => false,
    }
}

/// What stands between `[` and `]`: there a backslash is a character, and `[` is none of the regex crate's
/// operators but in `[:alpha:]`.
fn bracket(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    out: &mut String,
) -> Result<(), String> {
    out.push('[');
    if chars.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut first = true;
    loop {
        match chars.next() {
            None => return Err("Unmatched [ or [^".into()),
            Some(']') if !first => break,
            Some('[') if chars.peek() == Some(&':') => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            Some(c @ ('\\' | '[' | ']' | '&' | '~' | '^')) => out.extend(['\\', c]),
            Some(c) => out.push(c),
        }
        first = false;
    }
    out.push(']');
    Ok(())
}

/// The literal texts that every match contains.
fn needed_literals(hir: &Hir, out: &mut Vec<String>) {
    match hir.kind() {
        HirKind::Literal(literal) => {
            out.extend(std::str::from_utf8(&literal.0).ok().map(str::to_string));
        }
        HirKind::Capture(capture) => needed_literals(&capture.sub, out),
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            needed_literals(&repetition.sub, out);
        }
        HirKind::Concat(parts) => parts.iter().for_each(|part| needed_literals(part, out)),
        _ => {}
    }
}

/// The longest word among the texts that can only come from an identifier.
fn longest_word<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Finder<'static>> {
    let words = texts
        .into_iter()
        .flat_map(|text| text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')));
    let word = words
        .filter(|word| is_literal(word))
        .max_by_key(|word| word.len())?;
    Some(Finder::new(word).into_owned())
}

/// Whether such a word in a demangled name stands in the mangled one, too: it is none of the words of
/// the demangler itself, and no number, whose text differs.
fn is_literal(word: &str) -> bool {
    word.len() >= 3
        && !word.starts_with(|c: char| c.is_ascii_digit())
        && !word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !OWN_WORDS.contains(word)
}

/// What the demanglers write by themselves: types, keywords, the ABI's abbreviations, descriptions.
const OWN_WORDS: &str = "void wchar_t bool char signed unsigned short int long __int128 float double \
    __float128 _Float16 _Float32 _Float64 decimal32 decimal64 decimal128 half char8_t char16_t \
    char32_t auto decltype nullptr_t nullptr NULL true false this operator new delete co_await \
    typename class struct union enum template noexcept throw const volatile restrict complex \
    imaginary sizeof alignof typeid dynamic_cast static_cast const_cast reinterpret_cast lambda \
    unnamed type default arg string literal vtable for VTT typeinfo name fn construction in guard \
    variable reference temporary transaction clone non-transaction TLS init function wrapper \
    parameter object covariant return thunk to non-virtual virtual abi enable_if vendor extension \
    block_literal hidden alias java resource global constructors destructors keyed initializer \
    anonymous namespace std allocator basic_string char_traits basic_istream basic_ostream \
    basic_iostream istream ostream iostream constexpr requires concept \
    str usize isize u128 i128 f128 unsafe extern dyn impl mut closure shim";

#[cfg(test)]
mod tests {
    use super::*;

    fn word(pattern: &str) -> Option<String> {
        let pattern = Pattern::parse(pattern).unwrap();
        pattern
            .word
            .map(|finder| String::from_utf8_lossy(finder.needle()).into_owned())
    }

    #[test]
    fn grep_s_syntax() {
        for (basic, regex) in [
            ("^on_", "^on_"),
            (r"a\|b", "a|b"),
            ("a|b", r"a\|b"),
            (r"\(ab\)*c", "(ab)*c"),
            ("f(int)", r"f\(int\)"),
            ("*a", r"\*a"),
            ("^*a", r"^\*a"),
            (r"a\+b+", r"a+b\+"),
            ("a^b$c$", r"a\^b\$c$"),
            (r"^a$\|^b$", "^a$|^b$"),
            ("[^]a]", r"[^\]a]"),
            ("[[:alpha:]_]", "[[:alpha:]_]"),
            (r"[\w]", r"[\\w]"),
            (r"a\{2\}", "a{2}"),
            (r"\.", r"\."),
        ] {
            assert_eq!(basic_regex(basic).as_deref(), Ok(regex), "{basic}");
        }
        assert_eq!(basic_regex("["), Err("Unmatched [ or [^".into()));
        assert_eq!(basic_regex(r"\("), Err(r"Unmatched ( or \(".into()));
        assert_eq!(basic_regex("\\"), Err("Trailing backslash".into()));
    }

    #[test]
    fn the_word_that_a_name_must_contain() {
        assert_eq!(word("on_message").as_deref(), Some("on_message"));
        assert_eq!(
            word("proxy::on_message(int)").as_deref(),
            Some("on_message")
        );
        assert_eq!(
            word("/^vsomeip.*::on_(mess)age$/").as_deref(),
            Some("vsomeip")
        );
        assert_eq!(word("/(ab)+_message|x/"), None);
        assert_eq!(word("/(?:messages)+x/").as_deref(), Some("messages"));
        assert_eq!(word("/(messages)*/"), None);
        assert_eq!(word("/(?i)messages/"), None);
        for own in [
            "string",
            "unsigned",
            "operator",
            "face",
            "virtual thunk",
            "5ul",
            "(anon",
        ] {
            assert_eq!(word(own), None, "{own}");
        }
        assert!(Pattern::parse("/(/").is_err());
    }
}
