//! x87, SSE and AVX registers out of an XSAVE area in the standard format (Intel SDM volume 1,
//! chapter 13), by gdb's names.

use std::ops::Range;

/// Where the upper halves of the ymm registers begin (CPUID leaf 13, component 2; the same on
/// every processor in the standard format).
const YMM_HIGH: usize = 576;

/// Which components the area holds.
const XSTATE_BV: Range<usize> = 512..520;

/// The bytes of a register; `None` for a name that is none or a component that is not there.
pub fn register(area: &[u8], name: &str) -> Option<Vec<u8>> {
    let bytes = |from: usize, length: usize| area.get(from..from + length).map(<[u8]>::to_vec);
    let word = |from: usize| Some(vec![*area.get(from)?, *area.get(from + 1)?, 0, 0]);
    let number = |prefix: &str, count: usize| {
        let digits = name.strip_prefix(prefix)?;
        digits.parse::<usize>().ok().filter(|n| *n < count)
    };
    if let Some(n) = number("st", 8) {
        return bytes(32 + 16 * n, 10);
    }
    if let Some(n) = number("xmm", 16) {
        return bytes(160 + 16 * n, 16);
    }
    if let Some(n) = number("ymm", 16) {
        let mut value = bytes(160 + 16 * n, 16)?;
        let present = area.get(XSTATE_BV)?.first()? & 4 != 0;
        // A component in its initial state is not saved; its registers are zero.
        let high = bytes(YMM_HIGH + 16 * n, 16)?;
        value.extend(if present { high } else { vec![0; 16] });
        return Some(value);
    }
    match name {
        "fctrl" => word(0),
        "fstat" => word(2),
        "ftag" => Some(full_tag(area)?.to_le_bytes().to_vec()),
        "fop" => word(6),
        "fioff" => bytes(8, 4),
        "fiseg" => word(12),
        "fooff" => bytes(16, 4),
        "foseg" => word(20),
        "mxcsr" => bytes(24, 4),
        _ => None,
    }
}

/// The two-bit tags (SDM volume 1, 8.1.7) from the abridged ones and the registers.
fn full_tag(area: &[u8]) -> Option<u32> {
    let abridged = *area.get(4)?;
    let top = usize::from(*area.get(3)? >> 3 & 7);
    let mut tags = 0u32;
    for physical in 0..8 {
        let tag = if abridged >> physical & 1 == 0 {
            3
        } else {
            let at = 32 + 16 * ((physical + 8 - top) % 8);
            let value = area.get(at..at + 10)?;
            let exponent = u16::from_le_bytes([value[8], value[9]]) & 0x7fff;
            let zero = value[..8].iter().all(|b| *b == 0);
            match exponent {
                0 if zero => 1,
                0 | 0x7fff => 2,
                _ if value[7] & 0x80 == 0 => 2,
                _ => 0,
            }
        };
        tags |= tag << (2 * physical);
    }
    Some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_where_the_manual_says() {
        let mut area = vec![0u8; 832];
        area[0] = 0x7f;
        area[1] = 3;
        area[160 + 16] = 7;
        area[YMM_HIGH + 16] = 9;
        assert_eq!(register(&area, "fctrl"), Some(vec![0x7f, 3, 0, 0]));
        assert_eq!(register(&area, "ftag"), Some(vec![0xff, 0xff, 0, 0]));
        assert_eq!(register(&area, "ymm1").map(|v| (v[0], v[16])), Some((7, 0)));
        area[512] = 4;
        assert_eq!(register(&area, "ymm1").map(|v| (v[0], v[16])), Some((7, 9)));
        assert_eq!(register(&area, "xmm16"), None);
        assert_eq!(register(&area[..100], "xmm1"), None);
    }
}
