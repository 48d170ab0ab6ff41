//! Tokens of an expression, one at a time: an error names the place that was reached.

use super::error::Error;

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// The end: of the text, at a closing parenthesis that was never opened, at the word `if`,
    /// at a comma where arguments are parsed.
    End,
    /// A number as written.
    Number(String),
    /// A character literal; the prefix is `L`, `u`, `U` or empty.
    Char { value: u32, prefix: &'static str },
    /// A string literal.
    String {
        text: Vec<u32>,
        prefix: &'static str,
    },
    /// A word.
    Name(String),
    /// A name in single quotes.
    Quoted(String),
    /// `$` and what follows it.
    Dollar(String),
    /// An operator.
    Punct(&'static str),
}

/// Longest first.
const OPERATORS: [&str; 46] = [
    "<<=", ">>=", "->*", "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "->",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::", ".*", "+", "-", "*", "/", "%", "&", "|",
    "^", "~", "!", "<", ">", "=", "?", ":", ",", "(", ")", "[", "]", "@",
];

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Where the current token begins.
    pub(super) start: usize,
    /// A comma outside parentheses ends the expression.
    comma_ends: bool,
    depth: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, comma_ends: bool) -> Lexer<'a> {
        Lexer {
            text,
            at: 0,
            start: 0,
            comma_ends,
            depth: 0,
        }
    }

    /// The text from byte `from` on.
    pub(super) fn rest(&self, from: usize) -> &'a str {
        self.text.get(from..).unwrap_or("")
    }

    /// Goes to byte `at`, a place behind a token.
    pub(super) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn next(&mut self) -> Result<Token, Error> {
        let rest = self.rest(self.at);
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        self.start = self.at + blank;
        let rest = self.rest(self.start);
        let Some(first) = rest.chars().next() else {
            self.at = self.start;
            return Ok(Token::End);
        };
        let second = rest.as_bytes().get(1).copied().unwrap_or(0);
        match first {
            '0'..='9' => self.number(rest),
            '.' if second.is_ascii_digit() => self.number(rest),
            '"' => self.string(rest, ""),
            '\'' => self.character(rest, ""),
            'L' if second == b'"' => self.string(&rest[1..], "L"),
            'u' if second == b'"' => self.string(&rest[1..], "u"),
            'U' if second == b'"' => self.string(&rest[1..], "U"),
            'L' if second == b'\'' => self.character(&rest[1..], "L"),
            'u' if second == b'\'' => self.character(&rest[1..], "u"),
            'U' if second == b'\'' => self.character(&rest[1..], "U"),
            c if c == '_' || c == '$' || c.is_ascii_alphabetic() => self.word(rest),
            '{' | '}' => {
                self.at = self.start + 1;
                Ok(Token::Punct(if first == '{' { "{" } else { "}" }))
            }
            _ => self.operator(rest, first),
        }
    }

    fn operator(&mut self, rest: &str, first: char) -> Result<Token, Error> {
        let known = OPERATORS.iter().find(|o| rest.starts_with(**o));
        let known: &'static str = match known {
            Some(operator) => operator,
            None if first == '.' => ".",
            None => {
                return Err(Error::new(format!(
                    "Invalid character '{first}' in expression."
                )));
            }
        };
        self.at = self.start;
        match known {
            "(" | "[" => self.depth += 1,
            ")" | "]" => match self.depth.checked_sub(1) {
                Some(depth) => self.depth = depth,
                None => return Ok(Token::End),
            },
            "," if self.comma_ends && self.depth == 0 => return Ok(Token::End),
            _ => {}
        }
        self.at = self.start + known.len();
        Ok(Token::Punct(known))
    }

    fn word(&mut self, rest: &str) -> Result<Token, Error> {
        let len = rest
            .find(|c: char| !(c == '_' || c == '$' || c.is_ascii_alphanumeric()))
            .unwrap_or(rest.len());
        let word = &rest[..len];
        if word == "if" {
            self.at = self.start;
            return Ok(Token::End);
        }
        self.at = self.start + len;
        Ok(match word.strip_prefix('$') {
            Some(name) => Token::Dollar(name.to_owned()),
            None => Token::Name(word.to_owned()),
        })
    }

    /// A number goes as far as letters, digits and the points and signs of one floating-point
    /// number go; whether it makes sense is seen later.
    fn number(&mut self, rest: &str) -> Result<Token, Error> {
        let bytes = rest.as_bytes();
        let hex = matches!(bytes, [b'0', b'x' | b'X', ..]);
        let (mut dot, mut exponent) = (false, false);
        let mut len = if hex { 2 } else { 0 };
        while let Some(&byte) = bytes.get(len) {
            let after_exponent = len > 0
                && matches!(
                    (hex, bytes[len - 1]),
                    (false, b'e' | b'E') | (true, b'p' | b'P')
                );
            match byte {
                b'e' | b'E' if !hex && !exponent => (dot, exponent) = (true, true),
                b'p' | b'P' if hex && !exponent => (dot, exponent) = (true, true),
                b'+' | b'-' if exponent && after_exponent => {}
                b'.' if !dot => dot = true,
                b if b.is_ascii_alphanumeric() => {}
                _ => break,
            }
            len += 1;
        }
        self.at = self.start + len;
        Ok(Token::Number(rest[..len].to_owned()))
    }

    /// The characters up to the closing quote and how many bytes they took.
    fn quoted(rest: &str, quote: char) -> Result<Option<(Vec<u32>, usize)>, Error> {
        let mut text = Vec::new();
        let mut at = quote.len_utf8();
        loop {
            let Some(c) = rest[at..].chars().next() else {
                return Ok(None);
            };
            at += c.len_utf8();
            match c {
                c if c == quote => return Ok(Some((text, at))),
                '\\' => {
                    let (value, len) = escape(&rest[at..])?;
                    text.push(value);
                    at += len;
                }
                c if c.is_ascii() => text.push(c as u32),
                c => text.extend(c.to_string().bytes().map(u32::from)),
            }
        }
    }

    fn string(&mut self, rest: &str, prefix: &'static str) -> Result<Token, Error> {
        let (text, len) = Self::quoted(rest, '"')?
            .ok_or_else(|| Error::new("Unterminated string in expression."))?;
        self.at = self.start + prefix.len() + len;
        Ok(Token::String { text, prefix })
    }

    fn character(&mut self, rest: &str, prefix: &'static str) -> Result<Token, Error> {
        // A name is looked for in between the quotes as it stands, without escapes.
        let closing = rest[1..].find('\'').map(|at| at + 1);
        match (Self::quoted(rest, '\''), closing) {
            (Ok(Some((text, len))), _) => {
                self.at = self.start + prefix.len() + len;
                match (text.as_slice(), prefix) {
                    ([], _) => Err(Error::new(
                        "A character constant must contain at least one character.",
                    )),
                    ([value], _) => Ok(Token::Char {
                        value: *value,
                        prefix,
                    }),
                    ([_, _, _, ..], "") => Ok(Token::Quoted(rest[1..len - 1].to_owned())),
                    _ => Err(Error::new("Invalid character constant.")),
                }
            }
            (Ok(None), _) => Err(Error::new("Unmatched single quote.")),
            (Err(error), _) => Err(error),
        }
    }
}

/// What follows a backslash: its value and how many bytes it takes.
fn escape(rest: &str) -> Result<(u32, usize), Error> {
    let bytes = rest.as_bytes();
    let Some(&first) = bytes.first() else {
        return Err(Error::new("Unmatched single quote."));
    };
    let digits = |from: usize, most: usize, radix: u32| {
        bytes[from..]
            .iter()
            .take(most)
            .take_while(|b| (**b as char).is_digit(radix))
            .count()
    };
    let number = |from: usize, len: usize, radix| {
        u32::from_str_radix(&rest[from..from + len], radix).unwrap_or(u32::MAX)
    };
    Ok(match first {
        b'0'..=b'7' => {
            let len = digits(0, 3, 8);
            (number(0, len, 8), len)
        }
        b'x' => match digits(1, 8, 16) {
            0 => return Err(Error::new("\\x escape without a following hex digit")),
            len => (number(1, len, 16), 1 + len),
        },
        b'u' | b'U' => match digits(1, if first == b'u' { 4 } else { 8 }, 16) {
            0 => return Err(Error::new("\\u escape without a following hex digit")),
            len => (number(1, len, 16), 1 + len),
        },
        b'a' => (7, 1),
        b'b' => (8, 1),
        b'f' => (12, 1),
        b'n' => (10, 1),
        b'r' => (13, 1),
        b't' => (9, 1),
        b'v' => (11, 1),
        b'e' => (27, 1),
        _ => {
            let c = rest.chars().next().unwrap_or('\\');
            (c as u32, c.len_utf8())
        }
    })
}
