//! gdb's text of characters and strings.

use super::format::{MOST_ELEMENTS, MOST_REPEATS};
use super::number;
use super::scope::Scope;
use super::types::Type;

/// What stands in front of the quote of a wide character or string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// One byte each.
    None,
    /// `wchar_t`: `L`.
    Long,
    /// `char16_t`: `u`.
    Two,
    /// `char32_t`: `U`.
    Four,
}

impl Prefix {
    /// The prefix that goes with a character type.
    pub(crate) fn of(ty: &Type) -> Prefix {
        match ty.own_name() {
            Some("wchar_t") => Prefix::Long,
            Some("char16_t") => Prefix::Two,
            Some("char32_t") => Prefix::Four,
            _ => Prefix::None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Prefix::None => "",
            Prefix::Long => "L",
            Prefix::Two => "u",
            Prefix::Four => "U",
        }
    }
}

/// One character inside quotes of the kind `quote`; what is not printable ASCII is escaped.
pub(crate) fn escaped(code: u32, quote: char) -> String {
    match code {
        7 => "\\a".to_owned(),
        8 => "\\b".to_owned(),
        9 => "\\t".to_owned(),
        10 => "\\n".to_owned(),
        11 => "\\v".to_owned(),
        12 => "\\f".to_owned(),
        13 => "\\r".to_owned(),
        0x20..=0x7e => {
            let c = code as u8 as char;
            match c == quote || c == '\\' {
                true => format!("\\{c}"),
                false => c.to_string(),
            }
        }
        _ => format!("\\{code:03o}"),
    }
}

/// `'a'`
pub(crate) fn character(code: u32, prefix: Prefix) -> String {
    format!("{}'{}'", prefix.text(), escaped(code, '\''))
}

/// The string literal for characters of `size` bytes each. One closing zero is not shown, unless
/// the string goes on (`more`), which is shown as `...`.
pub(crate) fn literal(bytes: &[u8], size: usize, prefix: Prefix, more: bool) -> String {
    let mut units: Vec<u32> = bytes
        .chunks_exact(size.max(1))
        .map(|unit| number::extend(unit, false) as u32)
        .collect();
    if !more && units.last() == Some(&0) {
        units.pop();
    }
    if units.is_empty() {
        return format!("{}\"\"", prefix.text());
    }
    let (mut out, mut quoted, mut taken) = (String::new(), false, 0);
    // A run that begins within the limit is shown whole.
    while taken < units.len() && taken < MOST_ELEMENTS {
        let code = units[taken];
        let run = units[taken..].iter().take_while(|u| **u == code).count();
        taken += run;
        if run > MOST_REPEATS {
            if quoted {
                out.push('"');
            }
            if !out.is_empty() {
                out.push_str(", ");
            }
            quoted = false;
            // gdb escapes for the string's quotes here too.
            let shown = escaped(code, '"');
            out.push_str(&format!("{}'{shown}' <repeats {run} times>", prefix.text()));
            continue;
        }
        if !quoted {
            if !out.is_empty() {
                out.push_str(", ");
            }
            out.push_str(prefix.text());
            out.push('"');
            quoted = true;
        }
        out.push_str(&escaped(code, '"').repeat(run));
    }
    if quoted {
        out.push('"');
    }
    if more || taken < units.len() {
        out.push_str("...");
    }
    out
}

/// The string at an address, as behind a `char *`: up to its zero or to the limit.
pub(crate) fn pointed_string(address: u64, element: &Type, scope: &dyn Scope) -> String {
    let size = element.size().max(1) as usize;
    let (bytes, error) = read_string(address, size, MOST_ELEMENTS, scope);
    let units = bytes.len() / size;
    let ended = units > 0
        && bytes[(units - 1) * size..units * size]
            .iter()
            .all(|b| *b == 0);
    let more = !ended && bytes.iter().take(size).any(|b| *b != 0);
    let mut out = String::new();
    if error.is_none() || !bytes.is_empty() {
        out = literal(&bytes, size, Prefix::of(element), more);
    }
    if let Some(at) = error {
        out.push_str(&format!("<error: Cannot access memory at address {at:#x}>"));
    }
    out
}

/// Up to `most` characters of `size` bytes at an address, up to and with the first zero; and the
/// address that could not be read, if that came first.
pub(crate) fn read_string(
    address: u64,
    size: usize,
    most: usize,
    scope: &dyn Scope,
) -> (Vec<u8>, Option<u64>) {
    const CHUNK: usize = 8;
    let mut bytes = Vec::new();
    while bytes.len() < most * size {
        let at = address.wrapping_add(bytes.len() as u64);
        let want = CHUNK.min(most - bytes.len() / size) * size;
        let mut chunk = vec![0; want];
        let mut failed = None;
        if scope.read(at, &mut chunk).is_err() {
            let good = chunk
                .chunks_exact_mut(size)
                .enumerate()
                .take_while(|(i, unit)| {
                    let at = at.wrapping_add((i * size) as u64);
                    let mut raw = vec![0; unit.len()];
                    scope.read(at, &mut raw).is_ok()
                })
                .count();
            chunk = vec![0; good * size];
            if good > 0 && scope.read(at, &mut chunk).is_err() {
                chunk.clear();
            }
            failed = Some(at.wrapping_add(chunk.len() as u64));
        }
        let zero = chunk
            .chunks_exact(size)
            .position(|unit| unit.iter().all(|b| *b == 0));
        if let Some(zero) = zero {
            bytes.extend_from_slice(&chunk[..(zero + 1) * size]);
            return (bytes, None);
        }
        bytes.extend_from_slice(&chunk);
        if failed.is_some() {
            return (bytes, failed);
        }
    }
    (bytes, None)
}
