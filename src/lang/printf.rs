//! `printf "FORMAT", ARGUMENTS…`: gdb's reading of the format, C's conversions.

use std::io::Write;

use super::conversion::{Conversion, Flags};
use super::examine::Failure;
use super::{Error, Expr, Kind, Place, Scope, Value, evaluate, parse_argument};

/// A piece of a format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// Text as it is.
    Literal(Vec<u8>),
    /// What takes an argument.
    Argument(Conversion, Class),
}

/// What kind of argument a conversion takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// An integer of this many bytes.
    Integer(u8),
    /// `%c`
    Char,
    /// `%lc`
    WideChar,
    /// `%s`
    String,
    /// `%ls`
    WideString,
    /// `%p`
    Pointer,
    /// `%f` and its kin; the `long double` ones too.
    Float,
}

/// A parsed `printf`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Printf {
    /// The format.
    pub pieces: Vec<Piece>,
    /// As many as there are [`Piece::Argument`]s.
    pub arguments: Vec<Expr>,
}

/// The longest string in memory that `%s` prints; gdb goes on to the end of the memory.
pub(crate) const STRING_MAX: usize = 64 * 1024;

impl Printf {
    /// Reads what follows the word `printf`.
    pub(crate) fn parse(text: &str, scope: &dyn Scope) -> Result<Printf, Error> {
        let blanks = [' ', '\t'];
        let text = text.trim_start_matches(blanks);
        if text.is_empty() {
            return Err(Error::new(
                "Argument required (format-control string and values to print).",
            ));
        }
        let Some(text) = text.strip_prefix('"') else {
            return Err(Error::new("Bad format string, missing '\"'."));
        };
        let (format, rest) = unescape(text)?;
        let pieces = split(&format)?;
        let Some(rest) = rest.strip_prefix('"') else {
            return Err(Error::new("Bad format string, non-terminated '\"'."));
        };
        let rest = rest.trim_start_matches(blanks);
        let mut rest = match rest.strip_prefix(',') {
            Some(rest) => rest.trim_start_matches(blanks),
            None if rest.is_empty() => rest,
            None => return Err(Error::new("Invalid argument syntax")),
        };
        let mut arguments = Vec::new();
        while !rest.is_empty() {
            let (argument, used) = parse_argument(rest, scope)?;
            arguments.push(argument);
            rest = rest.get(used..).unwrap_or_default();
            rest = rest.strip_prefix(',').unwrap_or(rest);
            if used == 0 && !rest.is_empty() {
                return Err(Error::new("Invalid argument syntax"));
            }
        }
        let wanted = pieces
            .iter()
            .filter(|piece| matches!(piece, Piece::Argument(..)))
            .count();
        if arguments.len() != wanted {
            return Err(Error::new(
                "Wrong number of arguments for specified format-string",
            ));
        }
        Ok(Printf { pieces, arguments })
    }

    /// Prints. All arguments are evaluated before the first piece is printed.
    pub(crate) fn run(&self, scope: &mut dyn Scope, out: &mut dyn Write) -> Result<(), Failure> {
        let mut values = Vec::new();
        for argument in &self.arguments {
            values.push(evaluate(argument, scope)?);
        }
        let mut values = values.iter();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.write_all(text)?,
                Piece::Argument(conversion, class) => {
                    let Some(value) = values.next() else { break };
                    out.write_all(&format_argument(conversion, *class, value, scope)?)?;
                }
            }
        }
        Ok(())
    }
}

fn format_argument(
    conversion: &Conversion,
    class: Class,
    value: &Value,
    scope: &dyn Scope,
) -> Result<Vec<u8>, Error> {
    match class {
        Class::Integer(bytes) => Ok(conversion
            .integer(to_long(value, scope)?, bytes)
            .into_bytes()),
        Class::Char => Ok(match to_long(value, scope)? as u8 {
            // gdb's output ends at the zero that C would print.
            0 => conversion.string(b""),
            byte => conversion.string(&[byte]),
        }),
        Class::WideChar => {
            if value.ty().own_name() != Some("wchar_t") {
                return Err(Error::new(match scope.has_symbols() {
                    true => "expected wchar_t argument for %lc",
                    false => "No type named wchar_t.",
                }));
            }
            let c = char::from_u32(to_long(value, scope)? as u32).unwrap_or('?');
            Ok(conversion.string(c.to_string().as_bytes()))
        }
        Class::String => string_argument(conversion, 1, value, scope),
        Class::WideString => string_argument(conversion, 4, value, scope),
        Class::Pointer => Ok(conversion.pointer(to_long(value, scope)?).into_bytes()),
        Class::Float => Ok(conversion.float(to_double(value, scope)?).into_bytes()),
    }
}

/// As gdb's `value_as_long`: floats are truncated, arrays and functions are their address.
fn to_long(value: &Value, scope: &dyn Scope) -> Result<u64, Error> {
    value.as_u64(scope)
}

fn string_argument(
    conversion: &Conversion,
    width: usize,
    value: &Value,
    scope: &dyn Scope,
) -> Result<Vec<u8>, Error> {
    let bytes = match value.ty().kind() {
        // A literal, or an array in a convenience variable, is not in the target.
        Kind::Array { .. } if !matches!(value.place(), Place::Memory(_)) => {
            let bytes = value.bytes(scope)?;
            let end = bytes
                .chunks(width)
                .position(|unit| unit.iter().all(|byte| *byte == 0));
            bytes[..end.map_or(bytes.len(), |end| end * width)].to_vec()
        }
        _ => match to_long(value, scope)? {
            0 => return Ok(conversion.string(b"(null)")),
            address => read_string(address, width, scope)?,
        },
    };
    if width == 1 {
        return Ok(conversion.string(&bytes));
    }
    let units = bytes
        .chunks_exact(4)
        .map(|unit| u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]));
    let text: String = units
        .map(|unit| char::from_u32(unit).unwrap_or('?'))
        .collect();
    Ok(conversion.string(text.as_bytes()))
}

/// The bytes up to the first zero character.
fn read_string(address: u64, width: usize, scope: &dyn Scope) -> Result<Vec<u8>, Error> {
    const CHUNK: usize = 64;
    let mut bytes = Vec::new();
    while bytes.len() < STRING_MAX {
        let at = address.wrapping_add(bytes.len() as u64);
        let chunk = super::strings::read_available(scope, at, CHUNK * width);
        let zero = |unit: &[u8]| unit.iter().all(|byte| *byte == 0);
        if let Some(end) = chunk.chunks_exact(width).position(zero) {
            bytes.extend_from_slice(&chunk[..end * width]);
            return Ok(bytes);
        }
        if chunk.len() < CHUNK * width {
            return Err(Error::Memory(at.wrapping_add(chunk.len() as u64)));
        }
        bytes.extend_from_slice(&chunk);
    }
    bytes.extend_from_slice(b"...");
    Ok(bytes)
}

/// The number that a float conversion prints. An integer of a float's size is taken for its bits,
/// as gdb does.
fn to_double(value: &Value, scope: &dyn Scope) -> Result<f64, Error> {
    let ty = value.ty();
    let scalar = ty.is_integral() || ty.is_pointer() || ty.is_float();
    match (ty.size(), scalar) {
        (4 | 8 | 16, true) => float_of(&value.bytes(scope)?),
        (10, true) if ty.is_float() => float_of(&value.bytes(scope)?),
        (2, true) if ty.is_float() => half_of(&value.bytes(scope)?),
        (_, true) => Ok(value.as_i128(scope)? as f64),
        _ => Err(Error::new("Invalid floating value found in program.")),
    }
}

fn half_of(bytes: &[u8]) -> Result<f64, Error> {
    let bits = match bytes {
        [low, high] => u16::from_le_bytes([*low, *high]),
        _ => return Err(Error::new("Invalid floating value found in program.")),
    };
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let mantissa = f64::from(bits & 0x3ff);
    Ok(sign
        * match bits >> 10 & 0x1f {
            0 => mantissa * 2f64.powi(-24),
            0x1f if mantissa == 0.0 => f64::INFINITY,
            0x1f => f64::NAN,
            exponent => (1024.0 + mantissa) * 2f64.powi(i32::from(exponent) - 25),
        })
}

fn float_of(bytes: &[u8]) -> Result<f64, Error> {
    let wrong = || Error::new("Invalid floating value found in program.");
    Ok(match bytes.len() {
        4 => f32::from_le_bytes(bytes.try_into().map_err(|_| wrong())?).into(),
        8 => f64::from_le_bytes(bytes.try_into().map_err(|_| wrong())?),
        _ => {
            let mantissa = u64::from_le_bytes(
                bytes
                    .get(..8)
                    .and_then(|b| b.try_into().ok())
                    .ok_or_else(wrong)?,
            );
            let top = u16::from_le_bytes(
                bytes
                    .get(8..10)
                    .and_then(|b| b.try_into().ok())
                    .ok_or_else(wrong)?,
            );
            let sign = if top & 0x8000 != 0 { -1.0 } else { 1.0 };
            let exponent = i32::from(top & 0x7fff);
            sign * match exponent {
                0x7fff if mantissa << 1 == 0 => f64::INFINITY,
                0x7fff => f64::NAN,
                // Two steps: one power alone may leave the range.
                _ => {
                    mantissa as f64
                        * 2f64.powi((exponent - 16446) / 2)
                        * 2f64.powi(exponent - 16446 - (exponent - 16446) / 2)
                }
            }
        }
    })
}

/// The format without its escapes, and the rest of the text from its closing quote on.
fn unescape(text: &str) -> Result<(Vec<u8>, &str), Error> {
    let mut format = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let c = match c {
            '"' => return Ok((format, &text[at..])),
            '\\' => match chars.next() {
                None => return Ok((format, "")),
                Some((_, c @ ('\\' | '"'))) => c,
                Some((_, 'a')) => '\u{7}',
                Some((_, 'b')) => '\u{8}',
                Some((_, 'e')) => '\u{1b}',
                Some((_, 'f')) => '\u{c}',
                Some((_, 'n')) => '\n',
                Some((_, 'r')) => '\r',
                Some((_, 't')) => '\t',
                Some((_, 'v')) => '\u{b}',
                Some((_, c)) => {
                    return Err(Error::new(format!(
                        "Unrecognized escape character \\{c} in format string."
                    )));
                }
            },
            c => c,
        };
        format.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok((format, ""))
}

/// Splits an unescaped format into its pieces.
fn split(format: &[u8]) -> Result<Vec<Piece>, Error> {
    let mut pieces = Vec::new();
    let mut literal = Vec::new();
    let mut at = 0;
    while let Some(&byte) = format.get(at) {
        at += 1;
        if byte != b'%' {
            literal.push(byte);
        } else if format.get(at) == Some(&b'%') {
            at += 1;
            literal.push(b'%');
        } else {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            let (conversion, class, used) = conversion(&format[at..])?;
            pieces.push(Piece::Argument(conversion, class));
            at += used;
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// Reads one conversion behind its `%`; gives its length.
fn conversion(text: &[u8]) -> Result<(Conversion, Class, usize), Error> {
    let mut at = 0;
    let mut flags = Flags::default();
    while let Some(flag) = text.get(at) {
        match flag {
            b'#' => flags.alternate = true,
            b'0' => flags.zero = true,
            b' ' => flags.space = true,
            b'+' => flags.plus = true,
            b'-' => flags.left = true,
            _ => break,
        }
        at += 1;
    }
    let (width, next) = number(text, at);
    at = next;
    let mut precision = None;
    if text.get(at) == Some(&b'.') {
        let (digits, next) = number(text, at + 1);
        precision = Some(digits);
        at = next;
    }
    let rest = &text[at..];
    let modifiers: &[u8] = match rest {
        [b'l', b'l', ..] => b"ll",
        [b'D', b'D', ..] => b"DD",
        [c @ (b'h' | b'l' | b'L' | b'H' | b'D' | b'z'), ..] => std::slice::from_ref(c),
        _ => b"",
    };
    at += modifiers.len();
    let letter = text.get(at).copied();
    let class = classify(letter, modifiers, &flags, precision.is_some())?;
    let conversion = Conversion {
        flags,
        width,
        precision,
        letter: letter.map_or('d', char::from),
    };
    Ok((conversion, class, at + 1))
}

/// The number at `at` (0 if there is none) and where it ends.
fn number(text: &[u8], mut at: usize) -> (usize, usize) {
    let mut number = 0usize;
    while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
        number = number
            .saturating_mul(10)
            .saturating_add(usize::from(digit - b'0'));
        at += 1;
    }
    (number, at)
}

fn classify(
    letter: Option<u8>,
    modifiers: &[u8],
    flags: &Flags,
    precision: bool,
) -> Result<Class, Error> {
    let Some(letter) = letter else {
        return Err(Error::new(
            "Incomplete format specifier at end of format string",
        ));
    };
    let longs = if modifiers.starts_with(b"l") {
        modifiers.len()
    } else {
        0
    };
    let big = modifiers == b"L";
    let short = modifiers == b"h";
    let signs = flags.space || flags.plus;
    let (class, bad) = match letter {
        b'u' | b'o' | b'x' | b'X' | b'd' | b'i' => {
            let unsigned = !matches!(letter, b'd' | b'i');
            let bytes = match (longs, short) {
                _ if modifiers == b"z" => 8,
                (0, true) => 2,
                (0, false) => 4,
                _ => 8,
            };
            let bad = big || (letter == b'u' && flags.alternate) || (unsigned && signs);
            (Class::Integer(bytes), bad)
        }
        b'c' => {
            let class = if longs == 0 {
                Class::Char
            } else {
                Class::WideChar
            };
            (
                class,
                longs > 1 || short || big || precision || flags.zero || signs,
            )
        }
        b'p' => {
            let bad =
                longs > 0 || short || big || precision || flags.alternate || flags.zero || signs;
            (Class::Pointer, bad)
        }
        b's' => {
            let class = if longs == 0 {
                Class::String
            } else {
                Class::WideString
            };
            (class, longs > 1 || short || big || flags.zero || signs)
        }
        b'e' | b'f' | b'g' | b'E' | b'G' => (Class::Float, longs > 0 || short),
        b'*' => {
            return Err(Error::new(
                "`*' not supported for precision or width in printf",
            ));
        }
        b'n' => return Err(Error::new("Format specifier `n' not supported in printf")),
        other => {
            let other = char::from(other);
            return Err(Error::new(format!(
                "Unrecognized format specifier '{other}' in printf"
            )));
        }
    };
    if bad {
        let letter = char::from(letter);
        return Err(Error::new(format!(
            "Inappropriate modifiers to format specifier '{letter}' in printf"
        )));
    }
    Ok(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_as_gdb_does() {
        let error = |text: &str| {
            let (format, rest) = match unescape(text) {
                Ok(parts) => parts,
                Err(error) => return error.to_string(),
            };
            assert!(rest.is_empty());
            split(&format).unwrap_err().to_string()
        };
        for (format, message) in [
            ("%hhd", "Unrecognized format specifier 'h' in printf"),
            ("%", "Incomplete format specifier at end of format string"),
            ("%5", "Incomplete format specifier at end of format string"),
            ("%*d", "`*' not supported for precision or width in printf"),
            ("%n", "Format specifier `n' not supported in printf"),
            (
                "%lf",
                "Inappropriate modifiers to format specifier 'f' in printf",
            ),
            (
                "%#u",
                "Inappropriate modifiers to format specifier 'u' in printf",
            ),
            ("\\?", "Unrecognized escape character \\? in format string."),
        ] {
            assert_eq!(error(format), message);
        }
        let (format, rest) = unescape("a%%\\n%5.2f\" , 1").unwrap();
        assert_eq!(rest, "\" , 1");
        let pieces = split(&format).unwrap();
        assert_eq!(pieces[0], Piece::Literal(b"a%\n".to_vec()));
        assert_eq!(pieces.len(), 2);
    }

    #[test]
    fn floats_of_every_size_are_read() {
        assert_eq!(float_of(&1.5f32.to_le_bytes()).unwrap(), 1.5);
        let mut extended = (0xc000_0000_0000_0000u64).to_le_bytes().to_vec();
        extended.extend(0x4000u16.to_le_bytes());
        assert_eq!(float_of(&extended).unwrap(), 3.0);
        assert_eq!(half_of(&0x3e00u16.to_le_bytes()).unwrap(), 1.5);
        assert!(float_of(&[0; 3]).is_err());
    }
}
