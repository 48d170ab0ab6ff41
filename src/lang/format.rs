//! gdb's text of a value.

use super::error::Error;
use super::float::{self, Layout};
use super::number;
use super::scope::Scope;
use super::strings::{self, Charset};
use super::types::{Flag, Kind, Member, Type};
use super::value::Value;

/// gdb's `print elements`: how many elements or characters are shown.
pub(crate) const MOST_ELEMENTS: usize = 200;
/// gdb's `print repeats`: more equal elements in a row than this are shown as one.
pub(crate) const MOST_REPEATS: usize = 10;
/// As deep as aggregates may be nested.
const MOST_DEPTH: usize = 50;

/// What `print` shows behind `$1 = `: with the type in front of pointers. `letter` is the format
/// letter of `print/x`.
pub(crate) fn print_value(
    value: &Value,
    letter: Option<char>,
    scope: &dyn Scope,
) -> Result<String, Error> {
    let text = output_value(value, letter, scope)?;
    let plain = matches!(letter, None | Some('s' | 'r'));
    Ok(match value.ty().kind() {
        Kind::Pointer(to) if plain && !is_plain_char(value.ty(), to) => {
            format!("({}) {text}", value.ty())
        }
        _ => text,
    })
}

/// A `char *` shows what it points to; its type goes without saying.
fn is_plain_char(pointer: &Type, to: &Type) -> bool {
    pointer.own_name().is_none() && to.own_name() == Some("char")
}

/// As [`print_value`] without the type in front of a pointer: how elements and members look.
fn output_value(value: &Value, letter: Option<char>, scope: &dyn Scope) -> Result<String, Error> {
    let printer = Printer {
        letter: letter.filter(|l| *l != 'r'),
        scope,
    };
    // A function has no bytes that matter, unless a format asks for them.
    let lazy = matches!(value.ty().kind(), Kind::Function { .. } | Kind::Unknown)
        && matches!(printer.letter, None | Some('s'));
    let bytes = match lazy {
        true => [].as_slice().into(),
        false => value.bytes(scope)?,
    };
    let mut out = String::new();
    printer.value(&mut out, &bytes, value.ty(), value.address(), 0)?;
    Ok(out)
}

/// One scalar by a format letter: what `print/x` shows for `bytes` of type `ty`; `size` is the
/// size letter of `x` (`b h w g`): with one, `x` and `t` show all digits.
pub(crate) fn format_scalar(
    bytes: &[u8],
    ty: &Type,
    letter: char,
    size: Option<char>,
    scope: &dyn Scope,
) -> Result<String, Error> {
    let unconvertible = || Error::new("Value can't be converted to integer.");
    let padded = size.is_some();
    let number = || match ty.kind() {
        Kind::Function { .. } => Err(unconvertible()),
        _ => number::to_i128(bytes, ty),
    };
    Ok(match letter {
        'd' => number::extend(bytes, true).to_string(),
        'u' => (number::extend(bytes, false) as u128).to_string(),
        'x' if !padded => format!("{:#x}", number::extend(bytes, false)),
        'x' | 'z' => {
            let width = 2 * bytes.len();
            format!("0x{:0width$x}", number::extend(bytes, false))
        }
        'o' => match number::extend(bytes, false) {
            0 => "0".to_owned(),
            number => format!("0{number:o}"),
        },
        't' => {
            let width = if padded { 8 * bytes.len() } else { 1 };
            format!("{:0width$b}", number::extend(bytes, false))
        }
        'c' => {
            let byte = number()? as u8;
            let signed = ty.is_signed();
            let value = if signed {
                i64::from(byte as i8)
            } else {
                i64::from(byte)
            };
            let shown = strings::character(&[byte], "", Charset::of_environment());
            format!("{value} {shown}")
        }
        'a' => {
            let address = number()? as u64;
            format!("{address:#x}{}", linkage_symbolic(address, scope))
        }
        'f' => {
            let layout = Layout::of(ty).or(match bytes.len() {
                4 => Some(Layout::Single),
                8 => Some(Layout::Double),
                16 => Some(Layout::X87),
                _ => None,
            });
            match layout {
                Some(layout) => float::text(bytes, layout),
                None => number::extend(bytes, ty.is_signed()).to_string(),
            }
        }
        _ => {
            let printer = Printer {
                letter: None,
                scope,
            };
            let mut out = String::new();
            printer.value(&mut out, bytes, ty, None, 0)?;
            out
        }
    })
}

/// What `<symbol+offset>` looks like for an address: ` <main+4>` with the blank, or nothing.
pub(crate) fn symbolic(address: u64, scope: &dyn Scope) -> String {
    bracketed(scope.symbol_at(address))
}

/// As [`symbolic`] with mangled names, as `print/a`, `x/a` and `x/i` show them.
pub(crate) fn linkage_symbolic(address: u64, scope: &dyn Scope) -> String {
    bracketed(scope.linkage_symbol_at(address))
}

fn bracketed(symbol: Option<(String, u64)>) -> String {
    match symbol {
        Some((name, 0)) => format!(" <{name}>"),
        Some((name, offset)) => format!(" <{name}+{offset}>"),
        None => String::new(),
    }
}

/// What stands in front of the quotes of a character or string of this type.
fn text_prefix(ty: &Type) -> &'static str {
    strings::prefix(Some(ty.own_name().unwrap_or("char")), 1)
}

struct Printer<'a> {
    letter: Option<char>,
    scope: &'a dyn Scope,
}

impl Printer<'_> {
    fn value(
        &self,
        out: &mut String,
        bytes: &[u8],
        ty: &Type,
        address: Option<u64>,
        depth: usize,
    ) -> Result<(), Error> {
        if depth > MOST_DEPTH {
            out.push_str("{...}");
            return Ok(());
        }
        match ty.kind() {
            Kind::Void => out.push_str("void"),
            Kind::Unknown => out.push_str(&ty.to_string()),
            Kind::Array {
                count: None,
                element,
                ..
            } => self.pointer(out, address.unwrap_or(0), element),
            Kind::Array {
                element,
                count: Some(count),
                ..
            } => {
                self.array(out, bytes, (element, *count), address, depth)?;
            }
            Kind::Aggregate { members, .. } => {
                self.aggregate(out, bytes, members, address, depth)?;
            }
            _ => match self.letter {
                Some(letter) if letter != 's' => {
                    out.push_str(&format_scalar(bytes, ty, letter, None, self.scope)?);
                }
                _ => self.scalar(out, bytes, ty, address, depth)?,
            },
        }
        Ok(())
    }

    fn scalar(
        &self,
        out: &mut String,
        bytes: &[u8],
        ty: &Type,
        address: Option<u64>,
        depth: usize,
    ) -> Result<(), Error> {
        let number = number::extend(bytes, ty.is_signed());
        match ty.kind() {
            Kind::Char { .. } => {
                let value = if ty.is_signed() {
                    number.to_string()
                } else {
                    (number as u128).to_string()
                };
                let prefix = text_prefix(ty);
                let shown = strings::character(bytes, prefix, Charset::of_environment());
                out.push_str(&format!("{value} {shown}"));
            }
            Kind::Bool if number == 0 => out.push_str("false"),
            Kind::Bool if number == 1 => out.push_str("true"),
            Kind::Float => match Layout::of(ty) {
                Some(layout) => out.push_str(&float::text(bytes, layout)),
                None => out.push_str("<invalid float value>"),
            },
            Kind::Pointer(to) => self.pointer(out, number as u64, to),
            Kind::Reference(to) => {
                let at = number as u64;
                out.push_str(&format!("@{at:#x}: "));
                let target = Value::at(to.clone(), at).bytes(self.scope);
                match target {
                    Ok(bytes) => self.value(out, &bytes, to, Some(at), depth + 1)?,
                    Err(error) => out.push_str(&format!("<error: {error}>")),
                }
            }
            Kind::Function { .. } => {
                let at = address.unwrap_or(0);
                out.push_str(&format!("{{{ty}}} {at:#x}{}", symbolic(at, self.scope)));
            }
            Kind::Flags(flags) => out.push_str(&flags_text(number as u64, flags)),
            _ if ty.is_signed() => out.push_str(&number.to_string()),
            _ => out.push_str(&(number as u128).to_string()),
        }
        Ok(())
    }

    fn pointer(&self, out: &mut String, address: u64, to: &Type) {
        out.push_str(&format!("{address:#x}{}", symbolic(address, self.scope)));
        if address != 0 && self.is_text(to) {
            out.push(' ');
            let width = to.size().max(1) as usize;
            let charset = Charset::of_environment();
            let prefix = text_prefix(to);
            out.push_str(&strings::text_at(self.scope, address, width, prefix, charset).0);
        }
    }

    /// Whether an array of these is shown as a string.
    fn is_text(&self, element: &Type) -> bool {
        match element.kind() {
            Kind::Char { .. } => matches!(self.letter, None | Some('s')),
            Kind::Int { .. } => self.letter == Some('s') && element.size() == 1,
            _ => false,
        }
    }

    fn array(
        &self,
        out: &mut String,
        bytes: &[u8],
        (element, count): (&Type, u64),
        address: Option<u64>,
        depth: usize,
    ) -> Result<(), Error> {
        let size = element.size() as usize;
        let count = match (size, usize::try_from(count)) {
            (0, _) | (_, Err(_)) => 0,
            // A function has no bytes here, but each has an address.
            (_, Ok(count)) if bytes.is_empty() => count,
            (_, Ok(count)) => count.min(bytes.len() / size),
        };
        if self.is_text(element) && count > 0 {
            out.push_str(&strings::quoted(
                &bytes[..count * size],
                size,
                text_prefix(element),
                false,
                Charset::of_environment(),
            ));
            return Ok(());
        }
        let at = |i: usize| bytes.get(i * size..(i + 1) * size).unwrap_or(&[]);
        let function = matches!(element.kind(), Kind::Function { .. });
        out.push('{');
        let (mut i, mut shown) = (0, 0);
        while i < count && shown < MOST_ELEMENTS {
            if i != 0 {
                out.push_str(", ");
            }
            let own = address.map(|a| a.wrapping_add((i * size) as u64));
            self.value(out, at(i), element, own, depth + 1)?;
            let same = |j: &usize| at(*j) == at(i) && !function;
            let run = 1 + (i + 1..count).take_while(same).count();
            if run > MOST_REPEATS {
                out.push_str(&format!(" <repeats {run} times>"));
                i += run;
                shown += MOST_REPEATS;
            } else {
                i += 1;
                shown += 1;
            }
        }
        if i < count {
            out.push_str("...");
        }
        out.push('}');
        Ok(())
    }

    fn aggregate(
        &self,
        out: &mut String,
        bytes: &[u8],
        members: &[Member],
        address: Option<u64>,
        depth: usize,
    ) -> Result<(), Error> {
        out.push('{');
        for (i, member) in members.iter().enumerate() {
            if i != 0 {
                out.push_str(", ");
            }
            out.push_str(&format!("{} = ", member.name));
            let whole = Value::from_bytes(Type::void(), bytes);
            let part = super::eval::member_of(&whole, member);
            let own = address.map(|a| a.wrapping_add(member.bit_offset / 8));
            match part.contents() {
                Some(bytes) => self.value(out, bytes, &member.ty, own, depth + 1)?,
                None => out.push_str("<unavailable>"),
            }
        }
        out.push('}');
        Ok(())
    }
}

/// `[ ZF PF ]`
fn flags_text(number: u64, flags: &[Flag]) -> String {
    let mut out = "[".to_owned();
    for flag in flags {
        let field = number >> flag.bit & ((1u64 << flag.bits.min(63)) - 1);
        if flag.name.is_empty() || field == 0 {
            continue;
        }
        out.push_str(&match flag.bits {
            1 => format!(" {}", flag.name),
            _ => format!(" {}={field}", flag.name),
        });
    }
    out.push_str(" ]");
    out
}
