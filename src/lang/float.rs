//! Floating-point numbers in the formats that registers and memory hold.
//!
//! Up to 8 bytes they are computed with the machine's own doubles. x87's 80 bits are computed
//! here, on 64-bit significands, since Rust has no type for them.

use super::big::Big;
use super::types::{Kind, Type};

/// How the bits of a number are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Half,
    Bfloat,
    Single,
    Double,
    X87,
}

impl Layout {
    pub(super) fn of(ty: &Type) -> Option<Layout> {
        if *ty.kind() != Kind::Float {
            return None;
        }
        Some(match ty.size() {
            2 if ty.own_name().is_some_and(|n| n.contains("bfloat")) => Layout::Bfloat,
            2 => Layout::Half,
            4 => Layout::Single,
            8 => Layout::Double,
            10 | 16 => Layout::X87,
            _ => return None,
        })
    }

    /// Bits of the exponent, bits of the fraction as stored, digits that gdb prints.
    fn shape(self) -> (u32, u32, usize) {
        match self {
            Layout::Half => (5, 10, 5),
            Layout::Bfloat => (8, 7, 4),
            Layout::Single => (8, 23, 9),
            Layout::Double => (11, 52, 17),
            Layout::X87 => (15, 64, 21),
        }
    }
}

/// A number taken apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Real {
    Nan {
        negative: bool,
        fraction: u64,
    },
    Infinite {
        negative: bool,
    },
    /// `mantissa` times 2 to the power of `exponent`; zero has the mantissa 0.
    Finite {
        negative: bool,
        mantissa: u64,
        exponent: i32,
    },
}

/// Takes the bytes of a number apart.
pub(super) fn decode(bytes: &[u8], layout: Layout) -> Real {
    let mut wide = [0u8; 16];
    let n = bytes.len().min(10);
    wide[..n].copy_from_slice(&bytes[..n]);
    let bits = u128::from_le_bytes(wide);
    let (exponent_bits, fraction_bits, _) = layout.shape();
    let fraction = (bits & ((1 << fraction_bits) - 1)) as u64;
    let biased = (bits >> fraction_bits) as i32 & ((1 << exponent_bits) - 1);
    let negative = bits >> (fraction_bits + exponent_bits) & 1 == 1;
    let explicit = layout == Layout::X87;
    let scale = fraction_bits as i32 - i32::from(explicit);
    let bias = (1 << (exponent_bits - 1)) - 1;
    if biased == (1 << exponent_bits) - 1 {
        let plain = if explicit { fraction << 1 } else { fraction };
        return match plain {
            0 => Real::Infinite { negative },
            _ => Real::Nan { negative, fraction },
        };
    }
    let hidden = if explicit || biased == 0 {
        0
    } else {
        1u64 << fraction_bits
    };
    Real::Finite {
        negative,
        mantissa: fraction | hidden,
        exponent: biased.max(1) - bias - scale,
    }
}

/// The nearest double.
pub(super) fn to_f64(bytes: &[u8], layout: Layout) -> f64 {
    let sign = |negative: bool| if negative { -1.0 } else { 1.0 };
    match layout {
        Layout::Double => {
            let mut raw = [0u8; 8];
            let n = bytes.len().min(8);
            raw[..n].copy_from_slice(&bytes[..n]);
            f64::from_le_bytes(raw)
        }
        _ => match decode(bytes, layout) {
            Real::Nan { negative, .. } => f64::NAN.copysign(sign(negative)),
            Real::Infinite { negative } => f64::INFINITY.copysign(sign(negative)),
            Real::Finite {
                negative,
                mantissa,
                exponent,
            } => scale(mantissa as f64, exponent).copysign(sign(negative)),
        },
    }
}

/// `value` times 2 to the power of `exponent`, in steps that do not overflow early.
fn scale(mut value: f64, mut exponent: i32) -> f64 {
    while exponent > 1000 && value.is_finite() && value != 0.0 {
        value *= 2f64.powi(1000);
        exponent -= 1000;
    }
    while exponent < -1000 && value != 0.0 {
        value *= 2f64.powi(-1000);
        exponent += 1000;
    }
    value * 2f64.powi(exponent.clamp(-1000, 1000))
}

/// A double as the bytes of a type.
pub(super) fn from_f64(value: f64, ty: &Type) -> Vec<u8> {
    let bits = value.to_bits();
    let negative = bits >> 63 == 1;
    let mut bytes = match ty.size() {
        4 => (value as f32).to_le_bytes().to_vec(),
        8 => value.to_le_bytes().to_vec(),
        _ => match decode(&value.to_le_bytes(), Layout::Double) {
            Real::Nan { fraction, .. } => pack_x87(negative, 0x7fff, 1 << 63 | fraction << 11),
            Real::Infinite { .. } => pack_x87(negative, 0x7fff, 1 << 63),
            Real::Finite {
                mantissa, exponent, ..
            } => round_x87(negative, u128::from(mantissa), exponent, false),
        },
    };
    bytes.resize(ty.size() as usize, 0);
    bytes
}

/// An integer as the bytes of a type.
pub(super) fn from_integer(value: i128, ty: &Type) -> Vec<u8> {
    match ty.size() {
        10 | 16 => {
            let mut bytes = round_x87(value < 0, value.unsigned_abs(), 0, false);
            bytes.resize(ty.size() as usize, 0);
            bytes
        }
        4 => (value as f32).to_le_bytes().to_vec(),
        _ => from_f64(value as f64, ty),
    }
}

/// Cut to an integer, as a C cast does.
pub(super) fn to_integer(bytes: &[u8], layout: Layout) -> i128 {
    match decode(bytes, layout) {
        Real::Finite {
            negative,
            mantissa,
            exponent,
        } => {
            let wide = u128::from(mantissa);
            let size = match exponent {
                0..=63 => wide << exponent,
                -127..=-1 => wide >> -exponent,
                64.. if wide != 0 => u128::MAX,
                _ => 0,
            };
            let size = size.min(i64::MAX as u128) as i128;
            if negative { -size } else { size }
        }
        _ => i128::from(i64::MIN),
    }
}

/// Between two floating-point formats.
pub(super) fn convert(bytes: &[u8], from: Layout, ty: &Type) -> Vec<u8> {
    match (from, Layout::of(ty)) {
        (_, to) if to == Some(from) => {
            let mut out = bytes[..bytes.len().min(10)].to_vec();
            out.resize(ty.size() as usize, 0);
            out
        }
        _ => from_f64(to_f64(bytes, from), ty),
    }
}

/// The four operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

/// `a op b` in the type `ty`, which both have been converted to.
pub(super) fn arithmetic(op: Arithmetic, a: &[u8], b: &[u8], ty: &Type) -> Vec<u8> {
    let layout = Layout::of(ty).unwrap_or(Layout::Double);
    let nan = [a, b]
        .into_iter()
        .find(|n| matches!(decode(n, layout), Real::Nan { .. }));
    if let Some(nan) = nan {
        return quieted(nan, layout);
    }
    if layout == Layout::X87
        && let Some(bytes) = arithmetic_x87(op, decode(a, layout), decode(b, layout))
    {
        let mut bytes = bytes;
        bytes.resize(ty.size() as usize, 0);
        return bytes;
    }
    let (a, b) = (to_f64(a, layout), to_f64(b, layout));
    let result = match op {
        Arithmetic::Add => a + b,
        Arithmetic::Sub => a - b,
        Arithmetic::Mul => a * b,
        Arithmetic::Div => a / b,
    };
    // The processor's answer to an invalid operation has its sign bit set.
    let invalid = result.is_nan() && !a.is_nan() && !b.is_nan();
    from_f64(
        if invalid {
            f64::NAN.copysign(-1.0)
        } else {
            result
        },
        ty,
    )
}

/// A NaN goes through an operation with its payload, and does not signal any more.
fn quieted(nan: &[u8], layout: Layout) -> Vec<u8> {
    let bit = match layout {
        Layout::X87 => 62,
        _ => layout.shape().1 - 1,
    } as usize;
    let mut bytes = nan.to_vec();
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte |= 1 << (bit % 8);
    }
    bytes
}

/// `None` where infinities, NaNs or a division by zero are involved.
fn arithmetic_x87(op: Arithmetic, a: Real, b: Real) -> Option<Vec<u8>> {
    let normal = |r: Real| match r {
        Real::Finite {
            negative,
            mantissa,
            exponent,
        } => {
            let shift = if mantissa == 0 {
                0
            } else {
                mantissa.leading_zeros()
            };
            Some((negative, mantissa << shift, exponent - shift as i32))
        }
        _ => None,
    };
    let (a_negative, a, a_exponent) = normal(a)?;
    let (b_negative, b, b_exponent) = normal(b)?;
    let negative = a_negative != b_negative;
    match op {
        Arithmetic::Mul => {
            let product = u128::from(a) * u128::from(b);
            Some(round_x87(negative, product, a_exponent + b_exponent, false))
        }
        Arithmetic::Div => {
            let divisor = u128::from(b);
            let high = (u128::from(a) << 64).checked_div(divisor)?;
            let rest = (u128::from(a) << 64) % divisor;
            let quotient = (high << 32) | ((rest << 32) / divisor);
            let sticky = !(rest << 32).is_multiple_of(divisor);
            Some(round_x87(
                negative,
                quotient,
                a_exponent - b_exponent - 96,
                sticky,
            ))
        }
        Arithmetic::Add | Arithmetic::Sub => {
            let b_negative = b_negative != (op == Arithmetic::Sub);
            let exponent = match (a, b) {
                (0, _) => b_exponent,
                (_, 0) => a_exponent,
                _ => a_exponent.max(b_exponent),
            };
            let align = |negative: bool, mantissa: u64, at: i32| {
                let wide = u128::from(mantissa) << 62;
                let by = exponent.saturating_sub(at).clamp(0, 127) as u32;
                let cut = wide >> by;
                let cut = cut | u128::from(by > 0 && cut << by != wide);
                if negative {
                    -(cut as i128)
                } else {
                    cut as i128
                }
            };
            let sum = align(a_negative, a, a_exponent) + align(b_negative, b, b_exponent);
            Some(round_x87(sum < 0, sum.unsigned_abs(), exponent - 62, false))
        }
    }
}

fn pack_x87(negative: bool, biased: u16, mantissa: u64) -> Vec<u8> {
    let mut bytes = mantissa.to_le_bytes().to_vec();
    bytes.extend((u16::from(negative) << 15 | biased).to_le_bytes());
    bytes
}

/// `mantissa * 2^exponent` to the nearest 80-bit number, ties to even; `sticky` says that there
/// was more below.
fn round_x87(negative: bool, mantissa: u128, exponent: i32, sticky: bool) -> Vec<u8> {
    if mantissa == 0 {
        return pack_x87(negative, 0, 0);
    }
    let bits = 128 - mantissa.leading_zeros() as i32;
    let least = -16382 - 63;
    // How many low bits go: those beyond 64, and those below the smallest number.
    let drop = (bits - 64).max(least - exponent);
    let (mut kept, mut at) = match drop {
        ..=0 => (mantissa << (-drop).min(127), exponent + drop),
        1..=127 => (mantissa >> drop, exponent + drop),
        _ => (0, exponent + drop),
    };
    if (1..=127).contains(&drop) {
        let rest = mantissa & ((1 << drop) - 1);
        let half = 1u128 << (drop - 1);
        let up = rest > half || rest == half && (sticky || kept & 1 == 1);
        kept += u128::from(up);
        if kept >> 64 != 0 {
            kept >>= 1;
            at += 1;
        }
    }
    let biased = at + 63 + 16383;
    let normal = kept >> 63 & 1 == 1;
    match biased {
        32767.. => pack_x87(negative, 0x7fff, 1 << 63),
        1.. if normal => pack_x87(negative, biased as u16, kept as u64),
        _ => pack_x87(negative, 0, kept as u64),
    }
}

/// The text of a literal without its suffix (decimal, or `0x1p3`) as the bytes of `ty`.
pub(super) fn parse(text: &str, ty: &Type) -> Option<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("0x") {
        let value = parse_hex(hex)?;
        return Some(from_f64(value, ty));
    }
    // As C's strtod an exponent without digits is left out.
    let text = match text.trim_end_matches(['+', '-']).strip_suffix('e') {
        Some(shorter) => shorter,
        None => text,
    };
    let value: f64 = text.parse().ok()?;
    match ty.size() {
        4 => Some(text.parse::<f32>().ok()?.to_le_bytes().to_vec()),
        16 => {
            let mut bytes = parse_x87(text).unwrap_or_else(|| from_f64(value, ty));
            bytes.resize(16, 0);
            Some(bytes)
        }
        _ => Some(from_f64(value, ty)),
    }
}

fn parse_hex(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once('p').unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || all.len() > 13 {
        return None;
    }
    let value = u64::from_str_radix(&all, 16).ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    Some(scale(
        value as f64,
        exponent.clamp(-5000, 5000) - 4 * fraction.len() as i32,
    ))
}

/// A decimal number to the nearest 80-bit one.
fn parse_x87(text: &str) -> Option<Vec<u8>> {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let ten = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    if whole.len() + fraction.len() > 1000 || ten.abs() > 6000 {
        return None;
    }
    let mut number = Big::from_decimal(&format!("{whole}{fraction}"))?;
    if number.is_zero() {
        return Some(pack_x87(false, 0, 0));
    }
    if ten >= 0 {
        number.multiply_power_of_ten(ten as u32);
        let (mantissa, exponent, sticky) = number.top_bits();
        return Some(round_x87(false, mantissa, exponent, sticky));
    }
    let mut divisor = Big::from_decimal("1")?;
    divisor.multiply_power_of_ten(ten.unsigned_abs());
    let (quotient, exponent, sticky) = number.divide(&divisor);
    Some(round_x87(false, quotient, exponent, sticky))
}

/// gdb's text: `%g` with as many digits as tell all numbers of the format apart.
pub(super) fn text(bytes: &[u8], layout: Layout) -> String {
    let sign = |negative: bool| if negative { "-" } else { "" };
    let digits = layout.shape().2;
    // The processor takes no number whose integer bit contradicts its exponent.
    if let (Layout::X87, [.., high, low, top]) = (layout, &bytes[..bytes.len().min(10)])
        && high & 0x80 == 0
        && (*low != 0 || top & 0x7f != 0)
    {
        return "<invalid float value>".to_owned();
    }
    match decode(bytes, layout) {
        Real::Nan { negative, fraction } => format!("{}nan({fraction:#x})", sign(negative)),
        Real::Infinite { negative } => format!("{}inf", sign(negative)),
        Real::Finite {
            negative,
            mantissa: 0,
            ..
        } => format!("{}0", sign(negative)),
        Real::Finite {
            negative,
            mantissa,
            exponent,
        } => {
            let (text, ten) = Big::digits(mantissa, exponent, digits);
            format!("{}{}", sign(negative), general(&text, ten))
        }
    }
}

/// `%g` of `D.DDD * 10^ten`.
fn general(digits: &str, ten: i32) -> String {
    let precision = digits.len() as i32;
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    if ten < -4 || ten >= precision {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let sign = if ten < 0 { '-' } else { '+' };
        return format!("{first}{point}{rest}e{sign}{:02}", ten.abs());
    }
    if ten < 0 {
        let zeros = "0".repeat((-ten - 1) as usize);
        return format!("0.{zeros}{digits}");
    }
    let whole = ten as usize + 1;
    match digits.len() > whole {
        true => format!("{}.{}", &digits[..whole], &digits[whole..]),
        false => format!("{digits:0<whole$}"),
    }
}
