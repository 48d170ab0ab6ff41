//! Number literals: gdb's suffixes and the types they get.

use super::error::Error;
use super::expr::Expr;
use super::float;
use super::types::{Kind, Type};

fn invalid(text: &str) -> Error {
    Error::new(format!("Invalid number \"{text}\"."))
}

/// An integer or floating-point literal.
pub(super) fn number(text: &str) -> Result<Expr, Error> {
    let lower = text.to_ascii_lowercase();
    let hex = lower.starts_with("0x");
    let is_float = match hex {
        true => lower.contains(['.', 'p']),
        false => lower.contains('.') || (lower.contains('e') && !lower.starts_with("0b")),
    };
    if is_float {
        return floating(text, &lower);
    }
    let (value, ty) = integer(text)?;
    Ok(Expr::Integer {
        value: value as i128,
        ty,
    })
}

fn floating(text: &str, lower: &str) -> Result<Expr, Error> {
    let hex = lower.starts_with("0x");
    let (digits, ty) = match lower.as_bytes().last() {
        Some(b'f') if !hex || lower.contains('p') => (
            &lower[..lower.len() - 1],
            Type::named("float", 4, Kind::Float),
        ),
        Some(b'l') => (
            &lower[..lower.len() - 1],
            Type::named("long double", 16, Kind::Float),
        ),
        _ => (lower, Type::double()),
    };
    let bytes = float::parse(digits, &ty).ok_or_else(|| invalid(text))?;
    Ok(Expr::Float { bytes, ty })
}

/// The value of an integer literal and its type.
pub(super) fn integer(text: &str) -> Result<(u64, Type), Error> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', _, ..] => (16, &lower[2..]),
        [b'0', b'b', _, ..] => (2, &lower[2..]),
        [b'0', b't' | b'd', _, ..] => (10, &lower[2..]),
        [b'0', second, ..] if second.is_ascii_alphanumeric() && !matches!(second, b'u' | b'l') => {
            (8, &lower[1..])
        }
        _ => (10, lower.as_str()),
    };
    let end = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    // gdb takes any number of either letter.
    let unsigned = suffix.contains('u');
    let long = suffix.matches('l').count();
    if digits.is_empty() || !suffix.trim_matches(['u', 'l']).is_empty() {
        return Err(invalid(text));
    }
    let value = u64::from_str_radix(digits, radix)
        .map_err(|_| Error::new("Numeric constant too large."))?;
    Ok((value, integer_type(value, radix == 10, unsigned, long)))
}

/// C's rule: the first type that holds the value; unsigned ones only with `u`, or where the
/// literal is not decimal. A decimal one that no signed type holds is `unsigned long`.
fn integer_type(value: u64, decimal: bool, unsigned: bool, long: usize) -> Type {
    let signed_too = !unsigned;
    let unsigned_too = unsigned || !decimal;
    if long == 0 {
        if signed_too && value <= i32::MAX as u64 {
            return Type::int();
        }
        if unsigned_too && value <= u32::MAX as u64 {
            return Type::unsigned_int();
        }
    }
    let signed = signed_too && value <= i64::MAX as u64;
    let name = match (long, signed) {
        (2.., true) => "long long",
        (2.., false) => "unsigned long long",
        (_, true) => "long",
        (_, false) => "unsigned long",
    };
    Type::integer(name, 8, signed)
}
