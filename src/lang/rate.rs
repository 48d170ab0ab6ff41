//! How many of the hits are looked at: `10%`, `1/100`.

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// At least 1.
    pub of: u32,
    /// At least as many.
    pub all: u32,
}

impl Rate {
    /// Reads a rate; `None` for what is none.
    pub(crate) fn parse(text: &str) -> Option<Rate> {
        let (of, all) = match text.trim().split_once('/') {
            Some((of, all)) => (of.trim().parse().ok()?, all.trim().parse().ok()?),
            None => {
                let number = text.trim().strip_suffix('%')?.trim_end();
                let (whole, part) = number.split_once('.').unwrap_or((number, ""));
                let digits = part.bytes().all(|byte| byte.is_ascii_digit());
                if part.len() > 4 || !digits {
                    return None;
                }
                let whole: u32 = whole.parse().ok()?;
                let all = 10u32.pow(part.len() as u32);
                let part: u32 = if part.is_empty() {
                    0
                } else {
                    part.parse().ok()?
                };
                (whole.checked_mul(all)?.checked_add(part)?, all * 100)
            }
        };
        (1..=all).contains(&of).then_some(Rate { of, all })
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.of, self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let rate = |of, all| Some(Rate { of, all });
        assert_eq!(Rate::parse("10%"), rate(10, 100));
        assert_eq!(Rate::parse(" 0.5 %"), rate(5, 1000));
        assert_eq!(Rate::parse("1/100"), rate(1, 100));
        assert_eq!(Rate::parse("100%"), rate(100, 100));
        for wrong in [
            "0%", "101%", "0/5", "2/1", "1/0", "10", "x%", "-1%", "1.x%", "", "%",
        ] {
            assert_eq!(Rate::parse(wrong), None, "{wrong}");
        }
    }
}
