//! Debug registers: the processor itself watches up to four places of at most 8 bytes each (Intel
//! SDM volume 3, "Debug Registers").

/// How many places can be watched at once.
pub const DEBUG_SLOTS: usize = 4;

/// Where the register that says what has happened stands among the others.
pub const DEBUG_STATUS: usize = 6;

/// Where the register that says what is watched for stands among the others.
pub const DEBUG_CONTROL: usize = 7;

/// What makes the processor stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Writes.
    Write,
    /// Reads and writes; it has nothing for reads alone.
    ReadWrite,
}

/// One place that is watched: 1, 2, 4 or 8 bytes, at an address that is a multiple of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    address: u64,
    length: u64,
    access: Access,
}

/// What the debug registers of a thread are to hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DebugRegisters {
    slots: [Option<Slot>; DEBUG_SLOTS],
}

/// The debug registers do not suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

impl DebugRegisters {
    /// Adds a range of memory, in as many pieces as it takes; a piece that is watched already is
    /// shared. Nothing is added if not all of it fits. Gives the slots that watch it, a bit each.
    pub fn add(&mut self, address: u64, length: u64, access: Access) -> Result<u8, TooMany> {
        let mut slots = self.slots;
        let mut used = 0;
        for (address, length) in pieces(address, length) {
            let piece = Slot {
                address,
                length,
                access,
            };
            let same = slots.iter().position(|slot| *slot == Some(piece));
            let free = || slots.iter().position(Option::is_none);
            let at = same.or_else(free).ok_or(TooMany)?;
            slots[at] = Some(piece);
            used |= 1 << at;
        }
        self.slots = slots;
        Ok(used)
    }

    /// Nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }

    /// What the register of each slot holds: the address.
    pub fn addresses(&self) -> [u64; DEBUG_SLOTS] {
        self.slots.map(|slot| slot.map_or(0, |slot| slot.address))
    }

    /// What the control register holds: for each slot whether it is on (locally, bits 0, 2, 4, 6), what
    /// for (two bits from bit 16 on) and its length (the next two).
    pub fn control(&self) -> u64 {
        let slots = self.slots.iter().enumerate();
        slots.fold(0, |control, (at, slot)| {
            let Some(slot) = slot else {
                return control;
            };
            let access = match slot.access {
                Access::Write => 0b01,
                Access::ReadWrite => 0b11,
            };
            let length = match slot.length {
                1 => 0b00,
                2 => 0b01,
                4 => 0b11,
                _ => 0b10,
            };
            control | 1 << (at * 2) | (access | length << 2) << (16 + at * 4)
        })
    }
}

/// The slots that a status register says have stopped the thread, a bit each.
pub fn debug_hits(status: u64) -> u8 {
    (status & 0xf) as u8
}

/// A range of memory in pieces that a slot can watch.
fn pieces(address: u64, length: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = address;
    let mut left = length;
    std::iter::from_fn(move || {
        let fits = |size: &u64| *size <= left && at.is_multiple_of(*size);
        let size = [8, 4, 2, 1].into_iter().find(fits)?;
        let piece = (at, size);
        at = at.wrapping_add(size);
        left -= size;
        Some(piece)
    })
}

/// How many slots a range of memory takes.
pub fn debug_slots_for(address: u64, length: u64) -> usize {
    pieces(address, length).take(DEBUG_SLOTS + 1).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_split_where_they_must() {
        let list = |address, length| pieces(address, length).collect::<Vec<_>>();
        assert_eq!(list(0x1000, 4), [(0x1000, 4)]);
        assert_eq!(list(0x1002, 4), [(0x1002, 2), (0x1004, 2)]);
        assert_eq!(
            list(0x1001, 8),
            [(0x1001, 1), (0x1002, 2), (0x1004, 4), (0x1008, 1)]
        );
        assert_eq!(list(0x1000, 0), []);
        assert_eq!(debug_slots_for(0x1000, 1 << 40), 5);
    }

    #[test]
    fn the_control_register_is_the_processors() {
        let mut registers = DebugRegisters::default();
        assert_eq!(registers.control(), 0);
        assert_eq!(registers.add(0x1000, 4, Access::Write), Ok(0b0001));
        assert_eq!(registers.add(0x2001, 1, Access::ReadWrite), Ok(0b0010));
        assert_eq!(registers.add(0x3000, 8, Access::Write), Ok(0b0100));
        assert_eq!(registers.control(), 0x09_3d_00_15);
        assert_eq!(registers.addresses(), [0x1000, 0x2001, 0x3000, 0]);
        // The same once more takes nothing; two more do not fit, and none of them is taken.
        assert_eq!(registers.add(0x1000, 4, Access::Write), Ok(0b0001));
        assert_eq!(registers.add(0x4002, 4, Access::Write), Err(TooMany));
        assert_eq!(registers.add(0x4000, 2, Access::Write), Ok(0b1000));
        assert_eq!(registers.add(0x1000, 4, Access::ReadWrite), Err(TooMany));
    }
}
