//! Times with their unit, as every command and option takes them: `10s`, `1.5ms`, `100us`.

use std::time::Duration;

/// The units, and how many nanoseconds each has.
const UNITS: &[(&str, u128)] = &[
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a number with a unit, to the nanosecond. `Err` says what is wrong with the text.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit.trim() {
        "" => return Err("a unit is missing: 10s, 500ms, 2m, 1h".into()),
        unit => UNITS.iter().find(|(name, _)| *name == unit),
    };
    let Some((_, scale)) = scale else {
        return Err(format!(
            "`{}' is no unit of time: use us, ms, s, m or h",
            unit.trim()
        ));
    };
    let nanoseconds = scaled(number, *scale).ok_or(format!("`{number}' is not a number"))?;
    u64::try_from(nanoseconds)
        .map(Duration::from_nanos)
        .map_err(|_| format!("`{text}' is too long"))
}

/// `number`, which may have a decimal point, times `scale`; saturates.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let value = |digits: &str| {
        digits.bytes().fold(0u128, |value, digit| {
            value
                .saturating_mul(10)
                .saturating_add(u128::from(digit - b'0'))
        })
    };
    // Digits below a nanosecond change nothing, however many there are.
    let fraction = &fraction[..fraction.len().min(18)];
    let part = value(fraction) * scale / 10u128.pow(fraction.len() as u32);
    Some(value(whole).saturating_mul(scale).saturating_add(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, nanoseconds) in [
            ("500ms", 500_000_000),
            ("2m", 120_000_000_000),
            ("2min", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1.5s", 1_500_000_000),
            (".25us", 250),
            ("3. s", 3_000_000_000),
            ("0.00000000099999999999999999999s", 0),
        ] {
            assert_eq!(
                duration(text),
                Ok(Duration::from_nanos(nanoseconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("10", "a unit is missing"),
            ("", "a unit is missing"),
            ("10 parsecs", "`parsecs' is no unit of time"),
            ("s", "`' is not a number"),
            ("1.2.3s", "`1.2.3' is not a number"),
            (".s", "`.' is not a number"),
            ("-1s", "no unit of time"),
            ("99999999999999999999999999999999999999999h", "is too long"),
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
