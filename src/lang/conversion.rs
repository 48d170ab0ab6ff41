//! C's output conversions (printf(3)): flags, width, precision.

/// The flag characters of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags {
    /// `#`
    pub alternate: bool,
    /// `0`
    pub zero: bool,
    /// `-`
    pub left: bool,
    /// ` `
    pub space: bool,
    /// `+`
    pub plus: bool,
}

/// One conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conversion {
    /// The flags.
    pub flags: Flags,
    /// The minimum width, 0 for none.
    pub width: usize,
    /// The precision, if there is a point.
    pub precision: Option<usize>,
    /// `d i u o x X c s p e f g E G`
    pub letter: char,
}

/// Widths and precisions are cut to this: nobody reads more, and a script must not eat the memory.
const WIDTH_MAX: usize = u16::MAX as usize;

impl Conversion {
    /// `%d` and its kin of the low `bytes` of `value`.
    pub(crate) fn integer(&self, value: u64, bytes: u8) -> String {
        let shift = 64 - 8 * u32::from(bytes.clamp(1, 8));
        let unsigned = value << shift >> shift;
        let (negative, magnitude) = match self.letter {
            'd' | 'i' => {
                let signed = (value << shift) as i64 >> shift;
                (signed < 0, signed.unsigned_abs())
            }
            _ => (false, unsigned),
        };
        let mut digits = match self.letter {
            'o' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            _ => magnitude.to_string(),
        };
        if magnitude == 0 && self.precision == Some(0) {
            digits.clear();
        }
        if let Some(precision) = self.precision {
            digits = left_padded(digits, precision.min(WIDTH_MAX), '0');
        }
        let prefix = match self.letter {
            'd' | 'i' => self.sign(negative),
            'x' if self.flags.alternate && magnitude != 0 => "0x",
            'X' if self.flags.alternate && magnitude != 0 => "0X",
            'o' if self.flags.alternate && !digits.starts_with('0') => "0",
            _ => "",
        };
        self.padded(prefix, digits, self.precision.is_none())
    }

    /// `%p`: as glibc, `(nil)` for 0.
    pub(crate) fn pointer(&self, value: u64) -> String {
        match value {
            0 => self.padded("", "(nil)".into(), false),
            _ => self.padded("0x", format!("{value:x}"), false),
        }
    }

    /// `%s` and `%c`: the precision cuts.
    pub(crate) fn string(&self, bytes: &[u8]) -> Vec<u8> {
        let bytes = &bytes[..bytes.len().min(self.precision.unwrap_or(usize::MAX))];
        let padding = vec![b' '; self.width.min(WIDTH_MAX).saturating_sub(bytes.len())];
        match self.flags.left {
            true => [bytes, &padding].concat(),
            false => [&padding, bytes].concat(),
        }
    }

    /// `%e %f %g` and the capital ones.
    pub(crate) fn float(&self, value: f64) -> String {
        let sign = self.sign(value.is_sign_negative());
        let magnitude = value.abs();
        let precision = self.precision.unwrap_or(6).min(WIDTH_MAX);
        let mut text = match self.letter {
            _ if value.is_nan() => "nan".into(),
            _ if value.is_infinite() => "inf".into(),
            'e' | 'E' => self.exponential(magnitude, precision),
            'g' | 'G' => self.general(magnitude, precision.max(1)),
            _ => self.pointed(format!("{magnitude:.precision$}")),
        };
        if self.letter.is_ascii_uppercase() {
            text.make_ascii_uppercase();
        }
        self.padded(sign, text, value.is_finite())
    }

    fn exponential(&self, value: f64, precision: usize) -> String {
        let text = format!("{value:.precision$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        format!("{}e{sign}{exponent:0>2}", self.pointed(mantissa.into()))
    }

    /// C17 7.21.6.1: the style of `%e` if the exponent is below -4 or not below the precision.
    fn general(&self, value: f64, precision: usize) -> String {
        let rounded = format!("{value:.*e}", precision - 1);
        let exponent: i64 = rounded
            .split_once('e')
            .and_then(|(_, e)| e.parse().ok())
            .unwrap_or(0);
        let text = if exponent < -4 || exponent >= precision as i64 {
            self.exponential(value, precision - 1)
        } else {
            let digits = (precision as i64 - 1 - exponent) as usize;
            self.pointed(format!("{value:.digits$}"))
        };
        if self.flags.alternate {
            return text;
        }
        let (mantissa, exponent) = match text.find('e') {
            Some(at) => text.split_at(at),
            None => (text.as_str(), ""),
        };
        let mantissa = match mantissa.contains('.') {
            true => mantissa.trim_end_matches('0').trim_end_matches('.'),
            false => mantissa,
        };
        format!("{mantissa}{exponent}")
    }

    /// `#` keeps a point without digits behind it.
    fn pointed(&self, mut text: String) -> String {
        if self.flags.alternate && !text.contains('.') {
            text.push('.');
        }
        text
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.flags.plus, self.flags.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    fn padded(&self, prefix: &str, text: String, zeros: bool) -> String {
        let width = self.width.min(WIDTH_MAX);
        if self.flags.left {
            let text = prefix.to_string() + &text;
            let padding = " ".repeat(width.saturating_sub(text.len()));
            return text + &padding;
        }
        if self.flags.zero && zeros {
            return prefix.to_string()
                + &left_padded(text, width.saturating_sub(prefix.len()), '0');
        }
        left_padded(prefix.to_string() + &text, width, ' ')
    }
}

fn left_padded(text: String, width: usize, with: char) -> String {
    let missing = width.saturating_sub(text.chars().count());
    (0..missing).map(|_| with).chain(text.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(flags: &str, width: usize, precision: Option<usize>, letter: char) -> Conversion {
        Conversion {
            flags: Flags {
                alternate: flags.contains('#'),
                zero: flags.contains('0'),
                left: flags.contains('-'),
                space: flags.contains(' '),
                plus: flags.contains('+'),
            },
            width,
            precision,
            letter,
        }
    }

    #[test]
    fn integers() {
        assert_eq!(with("0", 5, None, 'd').integer(-42i64 as u64, 4), "-0042");
        assert_eq!(with("0", 8, Some(3), 'd').integer(42, 4), "     042");
        assert_eq!(with("#", 0, None, 'o').integer(255, 4), "0377");
        assert_eq!(with("#", 8, None, 'X').integer(255, 4), "    0XFF");
        assert_eq!(with("", 0, Some(0), 'u').integer(0, 4), "");
        assert_eq!(with("", 0, None, 'd').integer(70000, 2), "4464");
        assert_eq!(with("-", 8, None, 'x').integer(u64::MAX, 2), "ffff    ");
    }

    #[test]
    fn floats() {
        assert_eq!(with("", 0, None, 'e').float(12345.678), "1.234568e+04");
        assert_eq!(with("", 0, None, 'g').float(0.0001), "0.0001");
        assert_eq!(with("", 0, None, 'G').float(1e-10), "1E-10");
        assert_eq!(with("#", 0, None, 'g').float(1.0), "1.00000");
        assert_eq!(with("", 0, Some(0), 'f').float(2.5), "2");
        assert_eq!(with("#", 0, Some(0), 'f').float(3.0), "3.");
        assert_eq!(
            with("0", 10, None, 'f').float(f64::NEG_INFINITY),
            "      -inf"
        );
        assert_eq!(with("", 0, None, 'g').float(0.0), "0");
        assert_eq!(with("", 0, None, 'g').float(999_999.5), "1e+06");
    }

    #[test]
    fn a_huge_width_is_cut() {
        assert_eq!(
            with("", usize::MAX, Some(usize::MAX), 'f').float(1.0).len(),
            WIDTH_MAX + 2
        );
        assert_eq!(
            with("", usize::MAX, None, 's').string(b"a").len(),
            WIDTH_MAX
        );
    }
}
