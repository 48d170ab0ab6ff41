//! Rust's names, legacy and v0.

use std::fmt::Write;

use super::{Form, Limited};

/// `_ZN…17h<16 hex digits>E`, perhaps with a suffix that begins with a dot.
pub(super) fn is_legacy(name: &str) -> bool {
    let digits = |at: usize| {
        name.as_bytes()
            .get(at + 3..at + 19)
            .is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit))
    };
    name.starts_with("_ZN")
        && name.rfind("17h").is_some_and(|at| {
            digits(at)
                && name[at + 19..]
                    .strip_prefix('E')
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
}

/// gdb prints the hash of a legacy name and the crates' hashes of a v0 name; nobody types them.
pub(super) fn text(name: &str, form: Form) -> Option<String> {
    let mut text = Limited(String::new());
    if name.starts_with("_R") {
        let parsed = rustc_demangle::try_demangle(name.split('.').next()?).ok()?;
        if form == Form::NoReturn {
            write!(text, "{parsed:#}").ok()?;
            return Some(text.0);
        }
        write!(text, "{parsed}").ok()?;
        return Some(typed_constants(&text.0));
    }
    // What the compiler appends (`.llvm.123`) is no part of the name to gdb.
    let end = name.rfind("17h").map_or(name.len(), |at| at + 20);
    let parsed = rustc_demangle::try_demangle(name.get(..end)?).ok()?;
    match form {
        Form::Whole => write!(text, "{parsed}").ok()?,
        Form::NoReturn => write!(text, "{parsed:#}").ok()?,
    }
    Some(text.0)
}

/// `[u8; 8usize]` is `[u8; 8: usize]` to gdb.
fn typed_constants(text: &str) -> String {
    const TYPES: [&str; 12] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
    ];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[at..].bytes().take_while(u8::is_ascii_digit).count();
        let word = rest[at + digits..]
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            .count();
        let behind_word = rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            || at == 0 && out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        out.push_str(&rest[..at + digits]);
        if !behind_word && TYPES.contains(&&rest[at + digits..at + digits + word]) {
            out.push_str(": ");
        }
        out.push_str(&rest[at + digits..at + digits + word]);
        rest = &rest[at + digits + word..];
    }
    out.push_str(rest);
    out
}
