//! Conversions between types: C's casts and decays, with gdb's additions.

use super::error::Error;
use super::float::{self, Layout};
use super::number;
use super::place;
use super::scope::Scope;
use super::types::{Kind, Type};
use super::value::{Place, Value};

/// A value of which only the type is known.
pub(super) fn unknown(ty: Type) -> Value {
    Value::lazy(ty, Place::None)
}

/// Whether the bytes can be had: when only types are asked for, nothing is read.
pub(super) fn is_known(value: &Value, typing: bool) -> bool {
    !typing || value.contents().is_some()
}

/// Arrays become pointers to their first element, functions pointers to themselves.
pub(super) fn decay(value: Value) -> Result<Value, Error> {
    let to = match value.ty().kind() {
        Kind::Array {
            element,
            vector: false,
            ..
        } => element.pointer(),
        Kind::Function { .. } => value.ty().pointer(),
        _ => return Ok(value),
    };
    match value.address() {
        Some(address) => Ok(Value::from_u64(to, address)),
        None => Err(needs_process()),
    }
}

/// gdb would put the array into the program's memory; here nothing is called there.
fn needs_process() -> Error {
    Error::new("evaluation of this expression requires the target program to be active")
}

/// The type that [`decay`] gives.
pub(super) fn decayed(ty: &Type) -> Type {
    match ty.kind() {
        Kind::Array {
            element,
            vector: false,
            ..
        } => element.pointer(),
        Kind::Function { .. } => ty.pointer(),
        _ => ty.clone(),
    }
}

/// The part of a value from byte `offset` on, as `ty`.
pub(super) fn part(value: &Value, ty: Type, offset: u64) -> Value {
    let contents = value.contents().and_then(|bytes| {
        let from = usize::try_from(offset).ok()?;
        let to = from.checked_add(ty.size() as usize)?;
        bytes.get(from..to).map(Into::into)
    });
    value.part(ty, place::advance(value.place(), offset), contents)
}

fn is_scalar(ty: &Type) -> bool {
    ty.is_float() || ty.is_pointer() || ty.is_integral() && !matches!(ty.kind(), Kind::Flags(_))
}

/// `(ty) value`.
pub(super) fn cast(
    value: Value,
    ty: &Type,
    scope: &dyn Scope,
    typing: bool,
) -> Result<Value, Error> {
    if value.ty().unqualified() == ty.unqualified() {
        return Ok(value.with_type(ty.clone()));
    }
    if let Some(resized) = open_array(&value, ty)? {
        return Ok(resized);
    }
    let value = match value.ty().kind() {
        Kind::Array { vector: false, .. } if matches!(ty.kind(), Kind::Array { .. }) => value,
        _ => decay(value)?,
    };
    let from = value.ty().clone();
    if is_scalar(ty) && is_scalar(&from) {
        let legal = !(ty.is_pointer() && from.is_float() || ty.is_float() && from.is_pointer());
        if legal {
            return match is_known(&value, typing) {
                true => scalar(&value, ty, scope),
                false => Ok(unknown(ty.clone())),
            };
        }
    }
    if *ty.kind() == Kind::Void {
        return Ok(Value::void());
    }
    if from.size() == ty.size() && *from.kind() != Kind::Unknown {
        return Ok(value.with_type(ty.clone()));
    }
    match value.address() {
        Some(address) => Ok(Value::at(ty.clone(), address)),
        None => Err(Error::new("Invalid cast.")),
    }
}

/// `(char[]) x`: as many elements as fit.
fn open_array(value: &Value, ty: &Type) -> Result<Option<Value>, Error> {
    let Kind::Array {
        element,
        count: None,
        vector: false,
    } = ty.kind()
    else {
        return Ok(None);
    };
    let (size, each) = (value.ty().size(), element.size());
    if each == 0 {
        return Ok(None);
    }
    if !size.is_multiple_of(each) {
        return Err(Error::new(
            "array element type size does not divide object size in cast",
        ));
    }
    Ok(Some(value.with_type(element.array(size / each))))
}

/// A number as another type of number.
pub(super) fn scalar(value: &Value, ty: &Type, scope: &dyn Scope) -> Result<Value, Error> {
    let bytes = value.bytes(scope)?;
    if *ty.kind() == Kind::Bool {
        let truth = value.is_true(scope)?;
        return Ok(Value::from_u64(ty.clone(), u64::from(truth)));
    }
    let from = Layout::of(value.ty());
    if ty.is_float() {
        let converted = match from {
            Some(layout) => float::convert(&bytes, layout, ty),
            None => {
                let signed = value.ty().is_signed();
                float::from_integer(number::extend(&bytes, signed), ty)
            }
        };
        return Ok(Value::from_bytes(ty.clone(), converted));
    }
    let number = number::to_i128(&bytes, value.ty())?;
    Ok(Value::from_u128(ty.clone(), number as u128))
}
