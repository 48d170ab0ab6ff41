//! Numbers in and out of bytes.

use super::error::Error;
use super::float::{self, Layout};
use super::scope::Scope;
use super::types::{Kind, Type};
use super::value::Value;

/// The number in `bytes`, extended by the type's sign.
pub(crate) fn to_i128(bytes: &[u8], ty: &Type) -> Result<i128, Error> {
    match ty.kind() {
        Kind::Float => {
            let layout = Layout::of(ty).ok_or_else(not_a_number)?;
            Ok(float::to_integer(bytes, layout))
        }
        _ if ty.is_integral() && bytes.len() > 8 => Err(Error::new(
            "That operation is not available on integers of more than 8 bytes.",
        )),
        _ if ty.is_integral() || matches!(ty.kind(), Kind::Pointer(_) | Kind::Reference(_)) => {
            Ok(extend(bytes, ty.is_signed()))
        }
        _ => Err(not_a_number()),
    }
}

fn not_a_number() -> Error {
    Error::new("Value can't be converted to integer.")
}

/// Little-endian bytes as a number.
pub(crate) fn extend(bytes: &[u8], signed: bool) -> i128 {
    let mut wide = [0u8; 16];
    let n = bytes.len().min(16);
    wide[..n].copy_from_slice(&bytes[..n]);
    if signed && n > 0 && bytes[n - 1] & 0x80 != 0 {
        wide[n..].fill(0xff);
    }
    i128::from_le_bytes(wide)
}

/// See [`Value::as_u64`].
pub(crate) fn as_address(value: &Value, scope: &dyn Scope) -> Result<u64, Error> {
    match value.ty().kind() {
        Kind::Array { vector: false, .. } | Kind::Function { .. } => {
            value.address().ok_or_else(not_a_number)
        }
        _ => Ok(value.as_i128(scope)? as u64),
    }
}

/// See [`Value::is_true`].
pub(crate) fn is_true(value: &Value, scope: &dyn Scope) -> Result<bool, Error> {
    match value.ty().kind() {
        Kind::Array { vector: false, .. } | Kind::Function { .. } => {
            Ok(super::convert::decay(value.clone())?.address() != Some(0))
        }
        Kind::Float => {
            let bytes = value.bytes(scope)?;
            let layout = Layout::of(value.ty()).ok_or_else(not_a_number)?;
            Ok(float::to_f64(&bytes, layout) != 0.0)
        }
        _ => Ok(value.bytes(scope)?.iter().any(|b| *b != 0)),
    }
}
