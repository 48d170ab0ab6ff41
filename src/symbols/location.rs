//! Places in a program as people write them: `func`, `libc.so.6:puts`, ``libc`puts``, `libfoo.so+0x1a30`.

use super::pattern::regex_text;

/// A place as written, not yet looked up. `*EXPR` is the language's, not a symbol's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A function by name, in one module or in any.
    Function {
        /// The module's name as written.
        module: Option<String>,
        /// The function's name as written.
        name: String,
    },
    /// Functions by a regular expression on their demangled names: `/REGEX/`.
    Pattern {
        /// The module's name as written.
        module: Option<String>,
        /// What stands between the slashes.
        regex: String,
    },
    /// A file address in a module: `LIB+0xOFF`.
    Address {
        /// The module's name as written.
        module: String,
        /// The file address.
        address: u64,
    },
    /// A file offset in a module, ftrace's form: `FILE:0xOFF`.
    Offset {
        /// The module's name as written.
        module: String,
        /// Bytes from the start of the file.
        offset: u64,
    },
    /// `FILE:LINE` or `LINE`; there is no line information without DWARF.
    Line {
        /// The text.
        text: String,
    },
}

impl Location {
    /// Reads a place. Every text is one: what is nothing else is a function's name.
    pub fn parse(text: &str) -> Location {
        let text = text.trim();
        if let (module, name) = split_module(text)
            && let Some(regex) = regex_text(name)
        {
            return Location::Pattern {
                module: module.map(str::to_string),
                regex: regex.to_string(),
            };
        }
        let line = || Location::Line {
            text: text.to_string(),
        };
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return line();
        }
        if let Some((module, name)) = text
            .split_once('`')
            .filter(|(module, name)| !module.is_empty() && !name.is_empty())
        {
            return Location::Function {
                module: Some(module.to_string()),
                name: name.trim().to_string(),
            };
        }
        if let Some((module, address)) = text
            .rsplit_once('+')
            .and_then(|(module, hex)| Some((module.trim(), number(hex)?)))
        {
            // `operator+0x…` is nothing; a module's name has no parentheses.
            if !module.is_empty() && !module.contains(['(', '<']) && !module.ends_with("operator") {
                return Location::Address {
                    module: module.to_string(),
                    address,
                };
            }
        }
        match single_colon(text) {
            Some((module, rest)) => match number(rest) {
                Some(offset) => Location::Offset {
                    module: module.to_string(),
                    offset,
                },
                None if rest.bytes().all(|byte| byte.is_ascii_digit()) => line(),
                None => Location::Function {
                    module: Some(module.to_string()),
                    name: rest.trim().to_string(),
                },
            },
            None => Location::Function {
                module: None,
                name: text.to_string(),
            },
        }
    }
}

/// `LIB:NAME` or ``LIB`NAME`` in its two parts, and a name alone. The slashes of a `/REGEX/` bound it.
pub fn split_module(text: &str) -> (Option<&str>, &str) {
    let parts = text
        .split_once('`')
        .filter(|(module, name)| !module.is_empty() && !name.is_empty())
        .or_else(|| single_colon(text));
    match parts {
        // In `/a:b/` the colon is the expression's; in `/lib/x.so:/b/` it is not.
        Some((module, name)) if regex_text(text).is_none() || regex_text(name).is_some() => {
            (Some(module.trim()), name.trim())
        }
        _ => (None, text),
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = text
        .trim()
        .strip_prefix("0x")
        .or_else(|| text.trim().strip_prefix("0X"))?;
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|_| !digits.starts_with('+'))
}

/// Parts the text at the first colon that is no half of `::` and stands in no brackets.
fn single_colon(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'<' | b'{' | b'[' => depth += 1,
            b')' | b'>' | b'}' | b']' => depth = depth.saturating_sub(1),
            b':' if bytes.get(at + 1) == Some(&b':') => at += 1,
            b':' if depth == 0 && at > 0 && at + 1 < bytes.len() => {
                return Some((&text[..at], &text[at + 1..]));
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let function = |module: Option<&str>, name: &str| Location::Function {
            module: module.map(str::to_string),
            name: name.to_string(),
        };
        assert_eq!(Location::parse("main"), function(None, "main"));
        assert_eq!(
            Location::parse("ns::C::n(int)"),
            function(None, "ns::C::n(int)")
        );
        assert_eq!(
            Location::parse("libc.so.6:puts"),
            function(Some("libc.so.6"), "puts")
        );
        assert_eq!(
            Location::parse("libx.so:a::b"),
            function(Some("libx.so"), "a::b")
        );
        // A name as g++ tags it.
        assert_eq!(
            Location::parse("C::read[abi:cxx11](bool)"),
            function(None, "C::read[abi:cxx11](bool)")
        );
        assert_eq!(Location::parse("libc`puts"), function(Some("libc"), "puts"));
        assert_eq!(
            Location::parse("libx.so+0x1a30"),
            Location::Address {
                module: "libx.so".into(),
                address: 0x1a30
            }
        );
        assert_eq!(
            Location::parse("libstdc++.so.6+0x10"),
            Location::Address {
                module: "libstdc++.so.6".into(),
                address: 0x10
            }
        );
        assert_eq!(
            Location::parse("libstdc++.so.6:f"),
            function(Some("libstdc++.so.6"), "f")
        );
        assert_eq!(
            Location::parse("/bin/ls:0x4000"),
            Location::Offset {
                module: "/bin/ls".into(),
                offset: 0x4000
            }
        );
        assert_eq!(
            Location::parse("a.c:12"),
            Location::Line {
                text: "a.c:12".into()
            }
        );
        let pattern = |module: Option<&str>, regex: &str| Location::Pattern {
            module: module.map(str::to_string),
            regex: regex.to_string(),
        };
        assert_eq!(
            Location::parse("/^f(o|u)+0x1$/"),
            pattern(None, "^f(o|u)+0x1$")
        );
        assert_eq!(Location::parse("/a:b/"), pattern(None, "a:b"));
        assert_eq!(
            Location::parse("libx:/a::b/"),
            pattern(Some("libx"), "a::b")
        );
        assert_eq!(
            Location::parse("/l/x.so:/b/"),
            pattern(Some("/l/x.so"), "b")
        );
        assert_eq!(Location::parse("libx`/b/"), pattern(Some("libx"), "b"));
        assert_eq!(Location::parse("12"), Location::Line { text: "12".into() });
        assert_eq!(
            Location::parse("A::operator+"),
            function(None, "A::operator+")
        );
        assert_eq!(Location::parse("operator+"), function(None, "operator+"));
    }
}
