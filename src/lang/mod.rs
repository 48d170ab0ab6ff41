//! gdb's expressions: parse, type, evaluate, print.
//!
//! [`parse`] turns text into an [`Expr`]; [`type_of`] gives its type without reading anything;
//! [`evaluate`] gives a lazy [`Value`]; [`format`] turns a value into gdb's text. What an
//! expression can reach is behind the trait [`Scope`]: a stopped thread or the record of a hit.

mod any_name;
pub(crate) mod arguments;
pub(crate) mod body;
pub(crate) mod braces;
pub(crate) mod changes;
pub(crate) mod conversion;
#[cfg(test)]
mod differential;
pub(crate) mod duration;
pub(crate) mod error;
pub(crate) mod examine;
pub(crate) mod expr;
pub(crate) mod hexdump;
pub(crate) mod printf;
pub(crate) mod scope;
pub(crate) mod script;
pub(crate) mod statement;
pub(crate) mod strings;
pub(crate) mod types;
pub(crate) mod value;
mod vector;

pub(crate) use any_name::AnyName;
pub(crate) use error::Error;
pub(crate) use expr::{BinaryOp, Expr, IncDec, Internal, UnaryOp};
pub(crate) use scope::{Scope, ScopeError, Symbol, SymbolKind, Unreadable};
pub(crate) use types::{Kind, Type};
pub(crate) use value::{Place, Value};

#[cfg(test)]
mod against_gdb;
mod assign;
mod big;
mod convert;
pub(crate) mod eval;
mod float;
pub(crate) mod format;
pub(crate) mod functions;
#[cfg(test)]
mod hostile;
mod lexer;
mod literal;
#[cfg(test)]
mod no_panic;
pub(crate) mod number;
mod operate;
pub(crate) mod parse;
mod parse_type;
pub(crate) mod place;
pub(crate) mod rate;
pub(crate) mod registers;

pub(crate) use eval::{evaluate, type_of};
pub(crate) use format::{format_scalar, linkage_symbolic, print_value};
pub(crate) use parse::{parse, parse_argument};

/// What a convenience variable that nobody has set yet stands for: `$arg1`, `$retval`, `$now` are
/// short forms of `$_arg1` and so on until a script assigns them.
pub(crate) fn short_form(name: &str) -> Option<Expr> {
    if let Some(digits) = name.strip_prefix("arg") {
        let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        return digits.parse().ok().filter(|_| plain).map(Expr::Argument);
    }
    match name {
        "retval" => Some(Expr::Retval),
        "now" => Some(Expr::Special(scope::Special::Now)),
        "wall" => Some(Expr::Special(scope::Special::Wall)),
        _ => None,
    }
}

/// Whether gdb finds the C library's debug information on this machine, on which some of its texts depend.
#[cfg(test)]
fn library_has_debug_info() -> bool {
    use crate::symbols::{DebugDirectories, Modules};
    let library = std::path::Path::new("/usr/lib/x86_64-linux-gnu/libc.so.6");
    let modules = Modules::from_program(library, &DebugDirectories::default());
    modules.is_ok_and(|modules| modules.loaded()[0].module.has_debug_info())
}
