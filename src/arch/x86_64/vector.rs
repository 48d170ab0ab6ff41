//! The x87, SSE, AVX and AVX-512 registers by gdb's names, in the area that
//! `PTRACE_GETREGSET` with `NT_X86_XSTATE` fills.
//!
//! The area has the XSAVE instruction's standard format (SDM vol. 1, 13.4): 512 bytes of FXSAVE,
//! a header of 64 bytes, then the components where CPUID leaf 0xD says.

use std::arch::x86_64::__cpuid_count;

/// What gdb takes a vector register for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VectorClass {
    /// `st0`: 80-bit extended precision, 10 bytes.
    X87,
    /// `fctrl` and its kin: `int`.
    Int,
    /// `mxcsr`: `i386_mxcsr`, 4 bytes, see [`super::names::MXCSR`].
    Mxcsr,
    /// `xmm0`: `union vec128`.
    Xmm,
    /// `ymm0`: `union builtin_type_vec256i`.
    Ymm,
    /// `zmm0`: `union builtin_type_vec512i`.
    Zmm,
    /// `ymm0h`: `uint128_t`, the upper half.
    YmmHigh,
    /// `k0`: `uint64_t`.
    Mask,
}

/// The bytes of one register out of an XSAVE area, little-endian; `None` for other names, and if
/// the area or the processor has no such register.
pub fn vector_register(name: &str, area: &[u8]) -> Option<Vec<u8>> {
    let (class, number) = parse(name)?;
    let area = Area { bytes: area };
    match class {
        VectorClass::X87 => area.take(ST + 16 * number, 10),
        VectorClass::Int => area.control(CONTROL[number]),
        VectorClass::Mxcsr => area.take(24, 4),
        VectorClass::Xmm => area.wide(number, 16),
        VectorClass::Ymm => area.wide(number, 32),
        VectorClass::Zmm => area.wide(number, 64),
        VectorClass::YmmHigh => Some(area.wide(number, 32)?.split_off(16)),
        VectorClass::Mask => area.component(Component::Masks, 8 * number, 8),
    }
}

/// gdb's names of the x87 control registers.
const CONTROL: [&str; 8] = [
    "fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop",
];

fn parse(name: &str) -> Option<(VectorClass, usize)> {
    if name == "mxcsr" {
        return Some((VectorClass::Mxcsr, 0));
    }
    if let Some(index) = CONTROL.iter().position(|control| *control == name) {
        return Some((VectorClass::Int, index));
    }
    let families = [
        ("st", VectorClass::X87, 8),
        ("xmm", VectorClass::Xmm, 32),
        ("ymm", VectorClass::Ymm, 32),
        ("zmm", VectorClass::Zmm, 32),
        ("k", VectorClass::Mask, 8),
    ];
    families.iter().find_map(|(prefix, class, count)| {
        let number = name.strip_prefix(prefix)?;
        if let (VectorClass::Ymm, Some(number)) = (class, number.strip_suffix('h')) {
            return Some((VectorClass::YmmHigh, index(number, *count)?));
        }
        Some((*class, index(number, *count)?))
    })
}

/// A decimal number below `count`, as gdb writes it: no leading zeros.
fn index(text: &str, count: usize) -> Option<usize> {
    let number: usize = text.parse().ok()?;
    (number < count && number.to_string() == text).then_some(number)
}

/// Where the x87 registers begin.
const ST: usize = 32;
/// Where the xmm registers begin.
const XMM: usize = 160;
/// Where the mask of the components in use (XSTATE_BV) is.
const IN_USE: usize = 512;

/// Components of the XSAVE area that have no fixed place, by number.
#[derive(Clone, Copy)]
enum Component {
    /// The upper halves of ymm0 to ymm15.
    YmmHigh = 2,
    Masks = 5,
    /// The upper halves of zmm0 to zmm15.
    ZmmHigh = 6,
    /// zmm16 to zmm31.
    Zmm16 = 7,
}

struct Area<'a> {
    bytes: &'a [u8],
}

impl Area<'_> {
    fn take(&self, offset: usize, size: usize) -> Option<Vec<u8>> {
        Some(self.bytes.get(offset..offset + size)?.to_vec())
    }

    fn word(&self, offset: usize) -> Option<u16> {
        let bytes = self.bytes.get(offset..offset + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// A component that is not in use is in its initial state: zeros.
    fn component(&self, component: Component, offset: usize, size: usize) -> Option<Vec<u8>> {
        let number = component as u32;
        let place = __cpuid_count(0xd, number);
        if (offset + size) as u64 > u64::from(place.eax) {
            return None;
        }
        let bytes = self.take(place.ebx as usize + offset, size)?;
        if self.bytes.get(IN_USE)? >> number & 1 == 0 {
            return Some(vec![0; size]);
        }
        Some(bytes)
    }

    /// The low `size` bytes of a zmm register.
    fn wide(&self, number: usize, size: usize) -> Option<Vec<u8>> {
        if number >= 16 {
            return self.component(Component::Zmm16, 64 * (number - 16), size);
        }
        let mut bytes = self.take(XMM + 16 * number, 16)?;
        if size >= 32 {
            bytes.extend(self.component(Component::YmmHigh, 16 * number, 16)?);
        }
        if size >= 64 {
            bytes.extend(self.component(Component::ZmmHigh, 32 * number, 32)?);
        }
        Some(bytes)
    }

    fn control(&self, name: &str) -> Option<Vec<u8>> {
        let value = match name {
            "fctrl" => u32::from(self.word(0)?),
            "fstat" => u32::from(self.word(2)?),
            "ftag" => u32::from(self.tags()?),
            "fop" => u32::from(self.word(6)?),
            "fiseg" => u32::from(self.word(12)?),
            "foseg" => u32::from(self.word(20)?),
            "fioff" => return self.take(8, 4),
            _ => return self.take(16, 4),
        };
        Some(value.to_le_bytes().to_vec())
    }

    /// The full tag word; FXSAVE keeps only which registers are not empty (SDM vol. 1, 10.5.1.1).
    fn tags(&self) -> Option<u16> {
        let not_empty = *self.bytes.get(4)?;
        let top = usize::from(self.word(2)? >> 11 & 7);
        let mut tags = 0;
        for physical in 0..8 {
            let tag = if not_empty >> physical & 1 == 0 {
                3
            } else {
                self.tag((physical + 8 - top) % 8)?
            };
            tags |= tag << (2 * physical);
        }
        Some(tags)
    }

    /// 0 valid, 1 zero, 2 special (not a number, infinite, denormal).
    fn tag(&self, number: usize) -> Option<u16> {
        let value = self.take(ST + 16 * number, 10)?;
        let exponent = u16::from_le_bytes([value[8], value[9]]) & 0x7fff;
        let fraction = &value[..8];
        Some(match exponent {
            0 if fraction.iter().all(|byte| *byte == 0) => 1,
            0 | 0x7fff => 2,
            _ if fraction[7] & 0x80 == 0 => 2,
            _ => 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vector_class(name: &str) -> Option<VectorClass> {
        parse(name).map(|(class, _)| class)
    }

    fn area() -> Vec<u8> {
        let mut area: Vec<u8> = (0..4096).map(|i| (i % 251) as u8).collect();
        area[IN_USE] = 0xff;
        area
    }

    #[test]
    fn names_are_gdbs() {
        assert_eq!(vector_class("xmm0"), Some(VectorClass::Xmm));
        assert_eq!(vector_class("ymm31"), Some(VectorClass::Ymm));
        assert_eq!(vector_class("ymm15h"), Some(VectorClass::YmmHigh));
        assert_eq!(vector_class("k7"), Some(VectorClass::Mask));
        assert_eq!(vector_class("fioff"), Some(VectorClass::Int));
        for name in [
            "xmm32", "st8", "k8", "xmm", "xmm00", "xmm+1", "mm0", "st", "k", "xmm0h",
        ] {
            assert_eq!(vector_class(name), None, "{name}");
        }
    }

    #[test]
    fn registers_come_from_their_places() {
        let area = area();
        assert_eq!(vector_register("st1", &area).unwrap(), area[48..58]);
        assert_eq!(vector_register("xmm3", &area).unwrap(), area[208..224]);
        assert_eq!(vector_register("mxcsr", &area).unwrap(), area[24..28]);
        if is_x86_feature_detected!("avx") {
            let ymm = vector_register("ymm1", &area).unwrap();
            assert_eq!(ymm[..16], area[176..192]);
            assert_eq!(ymm[16..], area[592..608]);
            assert_eq!(vector_register("ymm1h", &area).unwrap(), area[592..608]);
        }
    }

    #[test]
    fn a_component_that_is_not_in_use_is_zero() {
        let mut area = area();
        area[IN_USE] = 3;
        if is_x86_feature_detected!("avx") {
            assert_eq!(vector_register("ymm1h", &area).unwrap(), [0; 16]);
        }
    }

    #[test]
    fn the_tag_word_is_made_from_the_registers() {
        let mut area = vec![0; 1024];
        assert_eq!(vector_register("ftag", &area).unwrap(), [0xff, 0xff, 0, 0]);
        // Physical register 7 is st(0) when the top is 7: first 0.0, then 1.0.
        area[4] = 0x80;
        area[3] = 7 << 3;
        assert_eq!(vector_register("ftag", &area).unwrap(), [0xff, 0x7f, 0, 0]);
        area[ST + 7] = 0x80;
        area[ST + 8..ST + 10].copy_from_slice(&[0xff, 0x3f]);
        assert_eq!(vector_register("ftag", &area).unwrap(), [0xff, 0x3f, 0, 0]);
    }

    proptest! {
        #[test]
        fn an_area_of_any_length_is_read(
            area in proptest::collection::vec(any::<u8>(), 0..3000),
            name in "(st|xmm|ymm|zmm|k)[0-9]{1,2}h?|ftag|fop|mxcsr",
        ) {
            if let Some(bytes) = vector_register(&name, &area) {
                prop_assert!(!bytes.is_empty() && bytes.len() <= 64);
            }
        }
    }
}
