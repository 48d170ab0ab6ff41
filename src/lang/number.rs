//! Numbers in and out of bytes.

use super::error::Error;
use super::scope::Scope;
use super::types::Type;
use super::value::Value;

/// The number in `bytes`, extended by the type's sign.
pub(crate) fn to_i128(bytes: &[u8], ty: &Type) -> Result<i128, Error> {
    let mut wide = [0u8; 16];
    let n = bytes.len().min(16);
    wide[..n].copy_from_slice(&bytes[..n]);
    if ty.is_signed() && n > 0 && bytes[n - 1] & 0x80 != 0 {
        wide[n..].fill(0xff);
    }
    Ok(i128::from_le_bytes(wide))
}

/// See [`Value::as_u64`].
pub(crate) fn as_address(value: &Value, scope: &dyn Scope) -> Result<u64, Error> {
    Ok(value.as_i128(scope)? as u64)
}

/// See [`Value::is_true`].
pub(crate) fn is_true(value: &Value, scope: &dyn Scope) -> Result<bool, Error> {
    Ok(value.as_i128(scope)? != 0)
}
