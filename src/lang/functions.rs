//! The language's own functions on the program's memory: `$_streq` and its kin.
//!
//! gdb's take a `char *`, an array of characters or a literal; here an integer is an address too,
//! since that is what registers are.

use regex::bytes::RegexBuilder;

use super::eval::Evaluator;
use super::expr::Internal;
use super::strings::read_available;
use super::{Error, Expr, Kind, Place, Scope, Type, Value};
use crate::lang::scope::{Special, Unavailable};
use crate::record::wire::Fault;

/// The most that is looked at of a string, or compared.
pub(crate) const MOST: usize = 64 * 1024;

/// The most characters of a number.
pub(crate) const DIGITS: u64 = 64;

/// How much is read at a time: pieces end with their page, behind which nothing may be.
const PIECE: u64 = 64;

/// Reads as much as there is of so many bytes at an address.
pub(crate) type Available<'a> = &'a mut dyn FnMut(u64, usize) -> Vec<u8>;

/// Something to compare: a literal, or memory.
pub(crate) enum Bytes {
    /// With the zero behind it.
    Here(Vec<u8>),
    /// In the program.
    At(u64),
}

impl Bytes {
    /// How much there is from `offset` on, if that is known.
    fn left(&self, offset: u64) -> Option<u64> {
        match self {
            Bytes::Here(bytes) => Some((bytes.len() as u64).saturating_sub(offset)),
            Bytes::At(_) => None,
        }
    }

    /// At most so much of it from `offset` on; a fault if not one byte is there.
    fn piece(&self, offset: u64, most: u64, read: Available) -> Result<Vec<u8>, Fault> {
        match self {
            Bytes::Here(bytes) => {
                let rest = bytes.get(offset as usize..).unwrap_or_default();
                Ok(rest[..rest.len().min(most as usize)].to_vec())
            }
            Bytes::At(address) => {
                let at = address.wrapping_add(offset);
                let piece = read(at, (PIECE - at % PIECE).min(most) as usize);
                match piece.is_empty() && most > 0 {
                    true => Err(Fault::Memory(at)),
                    false => Ok(piece),
                }
            }
        }
    }
}

/// Whether two strings are equal (`length` is `None`), or that many bytes. Neither is read behind
/// the first difference or the end.
pub(crate) fn same(
    a: &Bytes,
    b: &Bytes,
    length: Option<u64>,
    read: Available,
) -> Result<bool, Fault> {
    let all = length.unwrap_or(MOST as u64);
    if all > MOST as u64 {
        return Err(Fault::Unavailable(Unavailable::TooLong));
    }
    let mut offset = 0;
    while offset < all {
        let left = [a.left(offset), b.left(offset)];
        let most = left.into_iter().flatten().fold(all - offset, u64::min);
        if most == 0 {
            // A literal ends here, and nothing that is compared with it does.
            return Ok(false);
        }
        let (x, y) = (a.piece(offset, most, read)?, b.piece(offset, most, read)?);
        let common = x.len().min(y.len());
        for (x, y) in x[..common].iter().zip(&y[..common]) {
            if x != y {
                return Ok(false);
            }
            if length.is_none() && *x == 0 {
                return Ok(true);
            }
        }
        offset += common as u64;
    }
    match length {
        Some(_) => Ok(true),
        None => Err(Fault::Unavailable(Unavailable::TooLong)),
    }
}

/// The bytes of a string up to its zero.
pub(crate) fn string(of: &Bytes, read: Available) -> Result<Vec<u8>, Fault> {
    let mut text = Vec::new();
    while text.len() < MOST {
        let piece = of.piece(text.len() as u64, PIECE, read)?;
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&piece[..end]);
            return Ok(text);
        }
        text.extend_from_slice(&piece);
    }
    Err(Fault::Unavailable(Unavailable::TooLong))
}

/// The number at an address, of at most so many characters.
pub(crate) fn number(of: &Bytes, most: u64, read: Available) -> Result<i64, Fault> {
    let most = most.min(DIGITS);
    let mut text = Vec::new();
    while (text.len() as u64) < most {
        let at = text.len() as u64;
        match of.piece(at, most - at, read) {
            Ok(piece) if piece.is_empty() => break,
            Ok(piece) => text.extend(piece),
            // What is there may be all of it.
            Err(_) if at > 0 => break,
            Err(fault) => return Err(fault),
        }
    }
    Ok(decimal(&text))
}

/// The number that a text begins with, as C's `atoi` reads it.
pub(crate) fn decimal(text: &[u8]) -> i64 {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace());
    let text = &text[start.unwrap_or(text.len())..];
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let value = digits.fold(0i64, |value, digit| {
        value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'))
    });
    if negative {
        value.wrapping_neg()
    } else {
        value
    }
}

/// The functions by their names, and how many arguments each takes at least and at most.
pub(crate) fn by_name(name: &str) -> Option<(Internal, usize, usize)> {
    Some(match name {
        "_be16" => (Internal::Be16, 1, 1),
        "_be32" => (Internal::Be32, 1, 1),
        "_be64" => (Internal::Be64, 1, 1),
        "_streq" => (Internal::Streq, 2, 2),
        "_memeq" => (Internal::Memeq, 3, 3),
        "_regex" => (Internal::Regex, 2, 2),
        "_strlen" => (Internal::Strlen, 1, 1),
        "_atoi" => (Internal::Atoi, 1, 2),
        "_random" => (Internal::Random, 0, 1),
        _ => return None,
    })
}

/// What a function gives.
pub(crate) fn result(function: Internal) -> Type {
    match function {
        Internal::Be16 => Type::integer("unsigned short", 2, false),
        Internal::Be32 => Type::unsigned_int(),
        Internal::Be64 => Type::unsigned_long(),
        Internal::Streq | Internal::Memeq | Internal::Regex | Internal::Strlen => Type::int(),
        Internal::Atoi | Internal::Random => Type::long(),
    }
}

impl Evaluator<'_> {
    pub(super) fn internal(
        &mut self,
        function: Internal,
        arguments: &[Expr],
    ) -> Result<Value, Error> {
        let ty = result(function);
        let values: Vec<Value> = arguments
            .iter()
            .map(|argument| self.value(argument))
            .collect::<Result<_, _>>()?;
        if self.typing() {
            return Ok(Value::lazy(ty, Place::None));
        }
        let scope = self.scope();
        let read: Available = &mut |address, most| read_available(scope, address, most);
        let integer = |at: usize| values.get(at).map(|value| value.as_u64(scope)).transpose();
        let bytes = |at: usize| match values.get(at) {
            Some(value) => bytes(value, scope),
            None => Err(Error::new("An argument is missing.")),
        };
        let bits = match function {
            Internal::Be16 | Internal::Be32 | Internal::Be64 => {
                let mut big = vec![0; ty.size() as usize];
                scope.read(integer(0)?.unwrap_or(0), &mut big)?;
                big.reverse();
                return Ok(Value::from_bytes(ty, big));
            }
            Internal::Streq => same(&bytes(0)?, &bytes(1)?, None, read)?.into(),
            Internal::Memeq => same(&bytes(0)?, &bytes(1)?, integer(2)?, read)?.into(),
            Internal::Strlen => string(&bytes(0)?, read)?.len() as u64,
            Internal::Atoi => number(&bytes(0)?, integer(1)?.unwrap_or(DIGITS), read)? as u64,
            Internal::Random => {
                let random = scope.special(Special::Random).unwrap_or(0);
                match integer(0)? {
                    None => random & 0x7fff_ffff,
                    Some(0) => return Err(Error::DivisionByZero),
                    Some(below) => random % below,
                }
            }
            Internal::Regex => {
                let (text, pattern) = (string(&bytes(0)?, read)?, string(&bytes(1)?, read)?);
                matches(&text, &pattern)?.into()
            }
        };
        Ok(Value::from_u64(ty, bits))
    }
}

/// What a value stands for where a string or memory is wanted.
fn bytes(value: &Value, scope: &dyn Scope) -> Result<Bytes, Error> {
    match value.ty().kind() {
        Kind::Array { .. } if !matches!(value.place(), Place::Memory(_)) => {
            let mut bytes = value.bytes(scope)?.to_vec();
            if bytes.last() != Some(&0) {
                bytes.push(0);
            }
            Ok(Bytes::Here(bytes))
        }
        _ => Ok(Bytes::At(value.as_u64(scope)?)),
    }
}

/// Whether a text begins with what a regular expression matches, as gdb's `$_regex` (Python's
/// `re.match`) has it.
fn matches(text: &[u8], pattern: &[u8]) -> Result<bool, Error> {
    let pattern = String::from_utf8_lossy(pattern);
    let regex = RegexBuilder::new(&format!("^(?:{pattern})"))
        .size_limit(1 << 20)
        .build()
        .map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            Error::new(format!("Bad regular expression \"{pattern}\": {last}"))
        })?;
    Ok(regex.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_by_atoi() {
        for (text, value) in [
            (&b"123"[..], 123),
            (b"  -42x", -42),
            (b"+7x8", 7),
            (b"", 0),
            (b"x1", 0),
            (b"-", 0),
            (b"1700000000123456789", 1_700_000_000_123_456_789),
        ] {
            assert_eq!(decimal(text), value, "{text:?}");
        }
    }

    /// Memory from 0x1000 on, behind which there is none.
    fn reader(memory: &[u8]) -> impl FnMut(u64, usize) -> Vec<u8> {
        move |address, most| {
            let start = (address.wrapping_sub(0x1000) as usize).min(memory.len());
            memory[start..(start + most).min(memory.len())].to_vec()
        }
    }

    #[test]
    fn nothing_is_read_behind_the_end() {
        let here = |text: &[u8]| Bytes::Here(text.to_vec());
        let at = Bytes::At;
        let memory = b"Hello\0abc";
        let mut read = reader(memory);
        assert_eq!(
            same(&at(0x1000), &here(b"Hello\0"), None, &mut read),
            Ok(true)
        );
        assert_eq!(
            same(&at(0x1000), &here(b"Help\0"), None, &mut read),
            Ok(false)
        );
        assert_eq!(
            same(&at(0x1006), &here(b"ab\0"), None, &mut read),
            Ok(false)
        );
        // Only here the difference would lie behind the memory's end.
        let fault = Err(Fault::Memory(0x1009));
        assert_eq!(same(&at(0x1006), &here(b"abc\0"), None, &mut read), fault);
        assert_eq!(
            same(&at(0x1006), &here(b"abc\0"), Some(3), &mut read),
            Ok(true)
        );
        assert_eq!(
            same(&at(0x1006), &here(b"ab"), Some(3), &mut read),
            Ok(false)
        );
        assert_eq!(string(&at(0x1000), &mut read), Ok(b"Hello".to_vec()));
        assert_eq!(string(&at(0x1006), &mut read), Err(Fault::Memory(0x1009)));
        let mut read = reader(b"17");
        assert_eq!(number(&at(0x1000), DIGITS, &mut read), Ok(17));
        assert_eq!(number(&at(0x1000), 1, &mut read), Ok(1));
        assert_eq!(
            number(&at(0x1002), 1, &mut read),
            Err(Fault::Memory(0x1002))
        );
        let mut read = reader(&[b'x'; 2 * MOST]);
        let long = Err(Fault::Unavailable(Unavailable::TooLong));
        assert_eq!(same(&at(0x1000), &at(0x1001), None, &mut read), long);
        assert_eq!(string(&at(0x1000), &mut read).map(|_| true), long);
    }

    #[test]
    fn a_regular_expression_begins_at_the_beginning() {
        assert_eq!(matches(b"abcdef", b"ab."), Ok(true));
        assert_eq!(matches(b"abcdef", b"bc"), Ok(false));
        assert_eq!(matches(b"abcdef", b"x|ab"), Ok(true));
        assert_eq!(matches(b"\xff", b"(?-u:.)"), Ok(true));
        assert!(matches(b"", b"(").is_err());
    }
}
