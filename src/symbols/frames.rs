//! Where functions begin and end by `.eh_frame`, which stays in a file whose symbols were stripped.

use std::collections::HashMap;
use std::ops::Range;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection};

use super::elf::{Elf, Image};
use super::load::read_section;

/// The ranges of functions, sorted by where they start; a part that was moved away has its own.
#[derive(Debug, Default)]
pub struct Frames {
    ranges: Vec<Range<u64>>,
}

impl Frames {
    /// Reads a file's. What is broken ends the list; a file without any has an empty one.
    pub fn read(image: &Image, elf: &Elf) -> Frames {
        let Some((address, bytes)) = section(image, elf) else {
            return Frames::default();
        };
        let mut ranges = entries(address, &bytes, elf);
        ranges.retain(|range| range.start < range.end && elf.in_executable_segment(range.start));
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.dedup();
        Frames { ranges }
    }

    /// The function that a file address is in.
    pub fn at(&self, address: u64) -> Option<Range<u64>> {
        let below = self.upto(address).last()?;
        below.contains(&address).then(|| below.clone())
    }

    /// Where the function before a file address ends and the next one begins, for one in none.
    pub fn between(&self, address: u64) -> Option<Range<u64>> {
        let below = self.upto(address);
        let (last, next) = (below.last()?, self.ranges.get(below.len())?);
        (last.end <= address).then_some(last.end..next.start)
    }

    /// Where the next function begins behind a file address.
    pub fn next_start(&self, address: u64) -> Option<u64> {
        let next = self.ranges.get(self.upto(address).len())?;
        Some(next.start)
    }

    fn upto(&self, address: u64) -> &[Range<u64>] {
        let end = self.ranges.partition_point(|range| range.start <= address);
        &self.ranges[..end]
    }
}

/// The section's address and bytes: by name, or without section headers by where `PT_GNU_EH_FRAME` points.
fn section(image: &Image, elf: &Elf) -> Option<(u64, Vec<u8>)> {
    if let Some(section) = elf.section(".eh_frame") {
        let bytes = read_section(image, section, "the frame table").ok()?;
        return Some((section.address, bytes));
    }
    let (header, size) = elf.frame_header?;
    let (offset, left) = elf.offset_of(header)?;
    let bytes = image
        .read(offset, size.min(left).min(16), "the frame header")
        .ok()?;
    // Version 1, and the pointer as linkers write it: relative to its own place, signed 32 bits.
    let [1, 0x1b, _, _, pointer @ ..] = bytes.as_slice() else {
        return None;
    };
    let pointer = i32::from_le_bytes(pointer.get(..4)?.try_into().ok()?);
    let address = header.wrapping_add(4).wrapping_add_signed(pointer.into());
    let (offset, left) = elf.offset_of(address)?;
    let bytes = image.read(offset, left, "the frame table").ok()?;
    Some((address, bytes))
}

fn entries(address: u64, bytes: &[u8], elf: &Elf) -> Vec<Range<u64>> {
    let mut frames = EhFrame::new(bytes, LittleEndian);
    frames.set_address_size(8);
    let start_of = |name| elf.section(name).map_or(0, |section| section.address);
    let bases = BaseAddresses::default()
        .set_eh_frame(address)
        .set_text(start_of(".text"))
        .set_got(start_of(".got"));
    let mut common = HashMap::new();
    let mut ranges = Vec::new();
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        // Thousands of functions share a description.
        let parsed = partial.parse(|frames: &EhFrame<EndianSlice<'_, _>>, bases, offset| {
            if let Some(known) = common.get(&offset) {
                return Ok(Clone::clone(known));
            }
            let fresh = frames.cie_from_offset(bases, offset)?;
            common.insert(offset, fresh.clone());
            Ok(fresh)
        });
        if let Ok(entry) = parsed {
            let start = entry.initial_address();
            ranges.push(start..start.saturating_add(entry.len()));
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_between_functions() {
        let frames = Frames {
            ranges: vec![0x10..0x20, 0x30..0x40],
        };
        assert_eq!(frames.at(0x1f), Some(0x10..0x20));
        assert_eq!(frames.at(0x20), None);
        assert_eq!(frames.between(0x20), Some(0x20..0x30));
        assert_eq!(frames.between(0x30), None);
        assert_eq!(frames.between(0x8), None);
        assert_eq!(frames.between(0x50), None);
        assert_eq!(frames.next_start(0x20), Some(0x30));
        assert_eq!(Frames::default().at(1), None);
    }
}
