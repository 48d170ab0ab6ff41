//! gdb's text of a value.

use super::error::Error;
use super::scope::Scope;
use super::types::Type;
use super::value::Value;

/// What `print` shows behind `$1 = `: with the type in front of pointers. `letter` is the format
/// letter of `print/x`.
pub(crate) fn print_value(
    value: &Value,
    letter: Option<char>,
    scope: &dyn Scope,
) -> Result<String, Error> {
    let _ = (value, letter, scope);
    Err(Error::new("not yet"))
}

/// One scalar by a format letter: what `print/x` shows for `bytes` of type `ty`; `size` is the
/// size letter of `x` (`b h w g`), which decides the number of digits of `z` and `t`.
pub(crate) fn format_scalar(
    bytes: &[u8],
    ty: &Type,
    letter: char,
    size: Option<char>,
    scope: &dyn Scope,
) -> Result<String, Error> {
    let _ = (bytes, ty, letter, size, scope);
    Err(Error::new("not yet"))
}

/// What `<symbol+offset>` looks like for an address: ` <main+4>` with the blank, or nothing.
pub(crate) fn symbolic(address: u64, scope: &dyn Scope) -> String {
    match scope.symbol_at(address) {
        Some((name, 0)) => format!(" <{name}>"),
        Some((name, offset)) => format!(" <{name}+{offset}>"),
        None => String::new(),
    }
}
