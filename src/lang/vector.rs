//! Arithmetic on vectors, element by element.

use super::convert::{is_known, part, scalar, unknown};
use super::error::Error;
use super::expr::{BinaryOp, UnaryOp};
use super::operate;
use super::scope::Scope;
use super::types::{Kind, Type};
use super::value::Value;

/// The elements' type and how many there are, of a vector.
pub(super) fn shape(ty: &Type) -> Option<(Type, u64)> {
    match ty.kind() {
        Kind::Array {
            element,
            count: Some(count),
            vector: true,
        } => Some((element.clone(), *count)),
        _ => None,
    }
}

fn collect(
    ty: &Type,
    elements: impl Iterator<Item = Result<Value, Error>>,
    scope: &dyn Scope,
) -> Result<Value, Error> {
    let mut bytes = Vec::new();
    for element in elements {
        bytes.extend_from_slice(&element?.bytes(scope)?);
    }
    Ok(Value::from_bytes(ty.clone(), bytes))
}

/// `-v`, `~v`.
pub(super) fn unary(
    op: UnaryOp,
    value: Value,
    scope: &dyn Scope,
    typing: bool,
) -> Result<Value, Error> {
    let ty = value.ty().clone();
    let Some((element, count)) = shape(&ty).filter(|_| is_known(&value, typing)) else {
        return Ok(unknown(ty));
    };
    let value = value.fetched(scope)?;
    let each = |i| {
        let one = part(&value, element.clone(), i * element.size());
        scalar(&operate::unary(op, one, scope, false)?, &element, scope)
    };
    collect(&ty, (0..count).map(each), scope)
}

/// `v op w` for vectors of one shape, `v op n` and `n op v` for a number that fits.
pub(super) fn binary(
    op: BinaryOp,
    a: Value,
    b: Value,
    scope: &dyn Scope,
    typing: bool,
) -> Result<Value, Error> {
    let ty = if shape(a.ty()).is_some() {
        a.ty()
    } else {
        b.ty()
    }
    .clone();
    let Some((element, count)) = shape(&ty) else {
        return Ok(unknown(ty));
    };
    for other in [a.ty(), b.ty()] {
        match shape(other) {
            Some(both) if both != (element.clone(), count) => {
                return Err(Error::new(
                    "Cannot perform operation on vectors with different types",
                ));
            }
            None if !other.is_integral() && !other.is_float() => {
                return Err(Error::new(
                    "Argument to arithmetic operation not a number or boolean.",
                ));
            }
            None if other.is_float() && !element.is_float() => {
                return Err(Error::new(
                    "conversion of scalar to vector involves truncation",
                ));
            }
            _ => {}
        }
    }
    if !(is_known(&a, typing) && is_known(&b, typing)) {
        return Ok(unknown(ty));
    }
    let (a, b) = (a.fetched(scope)?, b.fetched(scope)?);
    let element_of = |value: &Value, i: u64| match shape(value.ty()) {
        Some(_) => Ok(part(value, element.clone(), i * element.size())),
        None => scalar(value, &element, scope),
    };
    let each = |i| {
        let (x, y) = (element_of(&a, i)?, element_of(&b, i)?);
        scalar(&operate::binary(op, x, y, scope, false)?, &element, scope)
    };
    collect(&ty, (0..count).map(each), scope)
}
