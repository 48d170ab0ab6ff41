//! Whole numbers of any size, as far as decimal text of floating-point numbers needs them.

use std::cmp::Ordering;

/// Little-endian words without leading zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Big(Vec<u32>);

impl Big {
    fn from_u64(value: u64) -> Big {
        let mut big = Big(vec![value as u32, (value >> 32) as u32]);
        big.trim();
        big
    }

    /// Digits only.
    pub(super) fn from_decimal(text: &str) -> Option<Big> {
        let mut big = Big(Vec::new());
        for c in text.chars() {
            big.multiply_add(10, c.to_digit(10)?);
        }
        Some(big)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn multiply_add(&mut self, factor: u32, add: u32) {
        let mut carry = u64::from(add);
        for word in &mut self.0 {
            let wide = u64::from(*word) * u64::from(factor) + carry;
            *word = wide as u32;
            carry = wide >> 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    pub(super) fn multiply_power_of_ten(&mut self, power: u32) {
        for _ in 0..power / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10u32.pow(power % 9), 0);
    }

    /// Divides in place; gives the remainder.
    fn divide_small(&mut self, divisor: u32) -> u32 {
        let mut rest = 0u64;
        for word in self.0.iter_mut().rev() {
            let wide = rest << 32 | u64::from(*word);
            *word = (wide / u64::from(divisor)) as u32;
            rest = wide % u64::from(divisor);
        }
        self.trim();
        rest as u32
    }

    fn bits(&self) -> u32 {
        match self.0.last() {
            Some(top) => 32 * self.0.len() as u32 - top.leading_zeros(),
            None => 0,
        }
    }

    fn shift_left(&mut self, by: u32) {
        let mut carry = 0;
        let small = by % 32;
        if small != 0 {
            for word in &mut self.0 {
                let next = *word >> (32 - small);
                *word = *word << small | carry;
                carry = next;
            }
            if carry != 0 {
                self.0.push(carry);
            }
        }
        if !self.is_zero() {
            let zeros = std::iter::repeat_n(0, by as usize / 32);
            self.0.splice(0..0, zeros);
        }
    }

    fn compare(&self, other: &Big) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// `self - other`, which is not negative.
    fn subtract(&mut self, other: &Big) {
        let mut borrow = false;
        for (at, word) in self.0.iter_mut().enumerate() {
            let take = other.0.get(at).copied().unwrap_or(0);
            let (less, under) = word.overflowing_sub(take);
            let (less, under_too) = less.overflowing_sub(u32::from(borrow));
            *word = less;
            borrow = under || under_too;
        }
        self.trim();
    }

    /// The highest 96 to 127 bits, the power of two they are to be scaled by, and whether there
    /// was something below.
    pub(super) fn top_bits(&self) -> (u128, i32, bool) {
        let skipped = self.0.len().saturating_sub(3);
        let top = self.0[skipped..]
            .iter()
            .rev()
            .fold(0u128, |sum, word| sum << 32 | u128::from(*word));
        let sticky = self.0[..skipped].iter().any(|w| *w != 0);
        (top, 32 * skipped as i32, sticky)
    }

    /// `self / divisor` as at least 70 bits, their power of two, and whether something is left.
    pub(super) fn divide(mut self, divisor: &Big) -> (u128, i32, bool) {
        // Scaled so that the first step's quotient is below two.
        let mut divisor = divisor.clone();
        let (own, other) = (self.bits(), divisor.bits());
        let mut exponent = own as i32 - other as i32;
        match exponent {
            0.. => divisor.shift_left(exponent as u32),
            _ => self.shift_left(exponent.unsigned_abs()),
        }
        let mut quotient = 0u128;
        for _ in 0..72 {
            quotient <<= 1;
            if self.compare(&divisor) != Ordering::Less {
                self.subtract(&divisor);
                quotient |= 1;
            }
            self.shift_left(1);
            exponent -= 1;
        }
        (quotient, exponent + 1, !self.is_zero())
    }

    /// The first `count` decimal digits of `mantissa * 2^exponent`, rounded half to even, and the
    /// power of ten of the first.
    pub(super) fn digits(mantissa: u64, exponent: i32, count: usize) -> (String, i32) {
        let mut number = Big::from_u64(mantissa);
        let mut ten = 0i32;
        if exponent >= 0 {
            number.shift_left(exponent as u32);
        } else {
            // m / 2^n is m * 5^n / 10^n.
            for _ in 0..exponent.unsigned_abs() / 13 {
                number.multiply_add(5u32.pow(13), 0);
            }
            number.multiply_add(5u32.pow(exponent.unsigned_abs() % 13), 0);
            ten = exponent;
        }
        let mut groups = Vec::new();
        while !number.is_zero() {
            groups.push(number.divide_small(1_000_000_000));
        }
        let text: String = groups.iter().rev().map(|g| format!("{g:09}")).collect();
        let text = text.trim_start_matches('0');
        let power = ten + text.len() as i32 - 1;
        round_decimal(text, count, power)
    }
}

fn round_decimal(text: &str, count: usize, power: i32) -> (String, i32) {
    if text.len() <= count {
        return (format!("{text:0<count$}"), power);
    }
    let (kept, rest) = text.split_at(count);
    let half = rest.as_bytes()[0].cmp(&b'5');
    let more = rest[1..].bytes().any(|b| b != b'0');
    let odd = kept.as_bytes().last().is_some_and(|b| b % 2 == 1);
    let up = match half {
        Ordering::Greater => true,
        Ordering::Equal => more || odd,
        Ordering::Less => false,
    };
    if !up {
        return (kept.to_owned(), power);
    }
    let mut digits = kept.as_bytes().to_vec();
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return (String::from_utf8_lossy(&digits).into_owned(), power);
        }
        *digit = b'0';
    }
    (format!("1{}", "0".repeat(count - 1)), power + 1)
}
