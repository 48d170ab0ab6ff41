//! Operators on values: C's promotions, arithmetic, comparisons, pointers.

use super::convert::{decay, decayed, is_known, scalar, unknown};
use super::error::Error;
use super::expr::{BinaryOp, UnaryOp};
use super::float::{self, Arithmetic, Layout};
use super::number;
use super::scope::Scope;
use super::types::{Kind, Type};
use super::value::Value;
use super::vector;

fn not_arithmetic() -> Error {
    Error::new("Argument to arithmetic operation not a number or boolean.")
}

fn integer_of(size: u64, signed: bool) -> Type {
    match (size, signed) {
        (0..=4, true) => Type::int(),
        (0..=4, false) => Type::unsigned_int(),
        (5..=8, true) => Type::long(),
        (5..=8, false) => Type::unsigned_long(),
        (_, true) => Type::integer("__int128", 16, true),
        (_, false) => Type::integer("unsigned __int128", 16, false),
    }
}

/// The type an integer has in an operation with one operand; other types stay.
pub(crate) fn promoted(ty: &Type) -> Type {
    match ty.is_integral() && ty.size() < 4 {
        true => Type::int(),
        false => ty.clone(),
    }
}

/// The type that two numbers are brought to: for integers the wider one, at least `int`,
/// unsigned where the unsigned one is as wide; with a float the (longer) float. `None` where one
/// is no number.
pub(crate) fn common(a: &Type, b: &Type) -> Option<Type> {
    match (a.is_float(), b.is_float()) {
        (true, true) => Some(if b.size() > a.size() { b } else { a }.unqualified()),
        (true, false) if b.is_integral() => Some(a.unqualified()),
        (false, true) if a.is_integral() => Some(b.unqualified()),
        (false, false) if a.is_integral() && b.is_integral() => {
            let unsigned = |t: &Type| !t.is_signed() && t.size() >= 4;
            let size = a.size().max(b.size());
            let widest = |t: &Type| t.size() == size && unsigned(t);
            Some(integer_of(size, !(widest(a) || widest(b))))
        }
        _ => None,
    }
}

/// `op value` for `+ - ~ !`.
pub(super) fn unary(
    op: UnaryOp,
    value: Value,
    scope: &dyn Scope,
    typing: bool,
) -> Result<Value, Error> {
    let ty = value.ty().clone();
    if op != UnaryOp::LogicalNot && vector::shape(&ty).is_some() {
        return vector::unary(op, value, scope, typing);
    }
    let number = ty.is_integral() || ty.is_float();
    match op {
        UnaryOp::LogicalNot => {
            return match is_known(&value, typing) || value.address().is_some_and(|_| !number) {
                true if !typing || value.contents().is_some() => {
                    let truth = value.is_true(scope)?;
                    Ok(Value::from_u64(Type::int(), u64::from(!truth)))
                }
                _ => Ok(unknown(Type::int())),
            };
        }
        UnaryOp::Plus if !number => {
            return Err(Error::new("Argument to positive operation not a number."));
        }
        UnaryOp::Neg if !number => {
            return Err(Error::new("Argument to negate operation not a number."));
        }
        UnaryOp::Not if !ty.is_integral() => {
            return Err(Error::new(
                "Argument to complement operation not an integer, boolean.",
            ));
        }
        _ => {}
    }
    let to = promoted(&ty);
    if !is_known(&value, typing) {
        return Ok(unknown(to));
    }
    let value = scalar(&value, &to, scope)?;
    if ty.is_float() && op == UnaryOp::Neg {
        // gdb computes 0 - x: there is no -0.0.
        let zero = scalar(&Value::from_u64(Type::int(), 0), &to, scope)?.bytes(scope)?;
        let bytes = value.bytes(scope)?;
        let result = float::arithmetic(Arithmetic::Sub, &zero, &bytes, &to);
        return Ok(Value::from_bytes(to, result));
    }
    if ty.is_float() {
        return Ok(value);
    }
    let number = value.as_i128(scope)? as u128;
    Ok(Value::from_u128(
        to,
        match op {
            UnaryOp::Neg => number.wrapping_neg(),
            UnaryOp::Not => !number,
            _ => number,
        },
    ))
}

/// `a op b`, but for `&&` and `||`.
pub(super) fn binary(
    op: BinaryOp,
    a: Value,
    b: Value,
    scope: &dyn Scope,
    typing: bool,
) -> Result<Value, Error> {
    use BinaryOp::*;
    match op {
        Eq | Ne | Lt | Le | Gt | Ge => return compare(op, a, b, scope, typing),
        Add | Sub => {
            if let Some(result) = pointer_math(op, &a, &b, scope, typing)? {
                return Ok(result);
            }
        }
        _ => {}
    }
    if vector::shape(a.ty()).is_some() || vector::shape(b.ty()).is_some() {
        return vector::binary(op, a, b, scope, typing);
    }
    let to = common(a.ty(), b.ty()).ok_or_else(not_arithmetic)?;
    if to.is_integral() && to.size() > 8 {
        return Err(Error::new(
            "That operation is not available on integers of more than 8 bytes.",
        ));
    }
    if to.is_float() {
        return float_binary(op, a, b, to, scope, typing);
    }
    let shift = matches!(op, Shl | Shr);
    let to = if shift { promoted(a.ty()) } else { to };
    if !(is_known(&a, typing) && is_known(&b, typing)) {
        return Ok(unknown(to));
    }
    let left = scalar(&a, &to, scope)?.as_i128(scope)?;
    if shift {
        let count = b.as_i128(scope)?;
        return Ok(Value::from_u128(
            to.clone(),
            shifted(op, left, count, &to, scope),
        ));
    }
    let right = scalar(&b, &to, scope)?.as_i128(scope)?;
    let (x, y) = (left as u128, right as u128);
    let result = match op {
        Add => x.wrapping_add(y),
        Sub => x.wrapping_sub(y),
        Mul => x.wrapping_mul(y),
        Div | Rem if right == 0 && typing => return Ok(unknown(to)),
        Div | Rem if right == 0 => return Err(Error::DivisionByZero),
        Div => left.wrapping_div(right) as u128,
        Rem => left.wrapping_rem(right) as u128,
        BitAnd => x & y,
        BitOr => x | y,
        _ => x ^ y,
    };
    Ok(Value::from_u128(to, result))
}

/// A count that is negative or too large shifts everything out, with a warning.
fn shifted(op: BinaryOp, left: i128, count: i128, to: &Type, scope: &dyn Scope) -> u128 {
    let word = if op == BinaryOp::Shl { "left" } else { "right" };
    let out = match op {
        BinaryOp::Shr if left < 0 => u128::MAX,
        _ => 0,
    };
    if count < 0 {
        scope.warn(&format!("{word} shift count is negative"));
        return out;
    }
    if count >= 8 * i128::from(to.size()) {
        scope.warn(&format!("{word} shift count >= width of type"));
        return out;
    }
    match op {
        BinaryOp::Shl => (left as u128) << count,
        _ if to.is_signed() => (left >> count) as u128,
        _ => (left as u128) >> count,
    }
}

fn float_binary(
    op: BinaryOp,
    a: Value,
    b: Value,
    to: Type,
    scope: &dyn Scope,
    typing: bool,
) -> Result<Value, Error> {
    let arithmetic = match op {
        BinaryOp::Add => Arithmetic::Add,
        BinaryOp::Sub => Arithmetic::Sub,
        BinaryOp::Mul => Arithmetic::Mul,
        BinaryOp::Div => Arithmetic::Div,
        _ => {
            return Err(Error::new(
                "Integer-only operation on floating point number.",
            ));
        }
    };
    if !(is_known(&a, typing) && is_known(&b, typing)) {
        return Ok(unknown(to));
    }
    let a = scalar(&a, &to, scope)?.bytes(scope)?;
    let b = scalar(&b, &to, scope)?.bytes(scope)?;
    let result = float::arithmetic(arithmetic, &a, &b, &to);
    Ok(Value::from_bytes(to, result))
}

/// How far `p + 1` is from `p`.
fn step(pointer: &Type) -> Result<u64, Error> {
    let Some(target) = pointer.target() else {
        return Ok(1);
    };
    match (target.kind(), target.size()) {
        (Kind::Void | Kind::Function { .. }, _) => Ok(1),
        (_, 0) => {
            let name = match target.own_name() {
                Some(name) => format!(" \"{name}\""),
                None => "s".to_owned(),
            };
            Err(Error::new(format!(
                "Cannot perform pointer math on incomplete type{name}, \
                 try casting to a known type, or void *."
            )))
        }
        (_, size) => Ok(size),
    }
}

/// `p + n`, `n + p`, `p - n`, `p - q`; `None` where no pointer is involved.
fn pointer_math(
    op: BinaryOp,
    a: &Value,
    b: &Value,
    scope: &dyn Scope,
    typing: bool,
) -> Result<Option<Value>, Error> {
    let (from, with) = (decayed(a.ty()), decayed(b.ty()));
    match (from.is_pointer(), with.is_pointer()) {
        (true, true) if op == BinaryOp::Sub => {
            if from.target().map(Type::size) != with.target().map(Type::size) {
                return Err(Error::new(
                    "First argument of `-' is a pointer and second argument is neither\n\
                     an integer nor a pointer of the same type.",
                ));
            }
            let size = i128::from(step(&from)?);
            let (a, b) = (decay(a.clone())?, decay(b.clone())?);
            if !(is_known(&a, typing) && is_known(&b, typing)) {
                return Ok(Some(unknown(Type::long())));
            }
            let distance = i128::from(a.as_u64(scope)?.wrapping_sub(b.as_u64(scope)?) as i64);
            Ok(Some(Value::from_u64(
                Type::long(),
                (distance / size) as u64,
            )))
        }
        (true, false) if with.is_integral() => {
            add_to_pointer(a, b, op == BinaryOp::Sub, scope, typing).map(Some)
        }
        (false, true) if from.is_integral() && op == BinaryOp::Add => {
            add_to_pointer(b, a, false, scope, typing).map(Some)
        }
        (true, _) | (_, true) => Err(not_arithmetic()),
        _ => Ok(None),
    }
}

fn add_to_pointer(
    pointer: &Value,
    count: &Value,
    minus: bool,
    scope: &dyn Scope,
    typing: bool,
) -> Result<Value, Error> {
    let pointer = decay(pointer.clone())?;
    let size = step(pointer.ty())?;
    if !(is_known(&pointer, typing) && is_known(count, typing)) {
        return Ok(unknown(pointer.ty().clone()));
    }
    let by = (count.as_i128(scope)? as u64).wrapping_mul(size);
    let by = if minus { by.wrapping_neg() } else { by };
    let address = pointer.as_u64(scope)?.wrapping_add(by);
    Ok(Value::from_u64(pointer.ty().clone(), address))
}

fn compare(
    op: BinaryOp,
    a: Value,
    b: Value,
    scope: &dyn Scope,
    typing: bool,
) -> Result<Value, Error> {
    use std::cmp::Ordering;
    let (a, b) = (decay(a)?, decay(b)?);
    let known = is_known(&a, typing) && is_known(&b, typing);
    let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
    let pointers = (a.ty().is_pointer(), b.ty().is_pointer());
    let comparable = match pointers {
        (true, true) => true,
        (true, false) => b.ty().is_integral(),
        (false, true) => a.ty().is_integral(),
        (false, false) => common(a.ty(), b.ty()).is_some(),
    };
    if !comparable && equality && same_shape(a.ty(), b.ty()) {
        if !known {
            return Ok(unknown(Type::int()));
        }
        let same = a.bytes(scope)? == b.bytes(scope)?;
        let truth = same == (op == BinaryOp::Eq);
        return Ok(Value::from_u64(Type::int(), u64::from(truth)));
    }
    if !comparable {
        return Err(Error::new(match equality {
            true => "Invalid type combination in equality test.",
            false => "Invalid type combination in ordering comparison.",
        }));
    }
    if !known {
        return Ok(unknown(Type::int()));
    }
    let ordering = match common(a.ty(), b.ty()) {
        None => Some(a.as_u64(scope)?.cmp(&b.as_u64(scope)?)),
        Some(to) => {
            let a = scalar(&a, &to, scope)?.bytes(scope)?;
            let b = scalar(&b, &to, scope)?.bytes(scope)?;
            order(&a, &b, &to)
        }
    };
    let truth = match op {
        BinaryOp::Eq => ordering == Some(Ordering::Equal),
        BinaryOp::Ne => ordering != Some(Ordering::Equal),
        BinaryOp::Lt => ordering == Some(Ordering::Less),
        BinaryOp::Gt => ordering == Some(Ordering::Greater),
        BinaryOp::Le => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        _ => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
    };
    Ok(Value::from_u64(Type::int(), u64::from(truth)))
}

/// Aggregates and vectors of one kind and size are compared byte by byte.
fn same_shape(a: &Type, b: &Type) -> bool {
    std::mem::discriminant(a.kind()) == std::mem::discriminant(b.kind())
        && a.size() == b.size()
        && !matches!(a.kind(), Kind::Void | Kind::Unknown)
}

fn order(a: &[u8], b: &[u8], ty: &Type) -> Option<std::cmp::Ordering> {
    match Layout::of(ty) {
        Some(Layout::X87) => {
            let (a80, b80) = (float::decode(a, Layout::X87), float::decode(b, Layout::X87));
            if a80 == b80 {
                return Some(std::cmp::Ordering::Equal);
            }
            let difference = float::arithmetic(Arithmetic::Sub, a, b, ty);
            float::to_f64(&difference, Layout::X87).partial_cmp(&0.0)
        }
        Some(layout) => float::to_f64(a, layout).partial_cmp(&float::to_f64(b, layout)),
        None => {
            let (a, b) = (
                number::extend(a, ty.is_signed()),
                number::extend(b, ty.is_signed()),
            );
            match ty.is_signed() {
                true => Some(a.cmp(&b)),
                false => Some((a as u128).cmp(&(b as u128))),
            }
        }
    }
}
