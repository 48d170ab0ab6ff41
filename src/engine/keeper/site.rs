//! Sites and their patches: which byte of the target is ours, and what was there before.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::memory::Memory;
use super::prefetch::Plan;
use crate::arch::{Displaced, INT3, Slot};
use crate::engine::protocol::{Failure, SiteId, SiteProbe, SiteSpec};
use crate::probe::interpret;

/// What the keeper knows of one address that has, or had, an int3.
#[derive(Clone)]
pub struct Site {
    /// The front's number.
    pub id: SiteId,
    /// Run-time address.
    pub address: u64,
    /// The byte below the int3.
    pub original: u8,
    /// The instruction that the int3 hides.
    pub displaced: Displaced,
    /// Its bytes and, as far as the front told, those behind it.
    code: Vec<u8>,
    /// A thread that stands behind a byte of 0xCC may be at an instruction of its own there, so
    /// that only the kernel's word tells a hit (one-byte instructions, prefixes).
    pub doubtful: bool,
    /// The slot, once some thread has come by.
    pub slot: Option<PlacedSlot>,
    /// In number order; empty when the site is not armed.
    pub probes: Vec<SiteProbe>,
    /// The int3 is in the text.
    pub armed: bool,
    /// Its code was unmapped, and other memory may be there.
    gone: bool,
    /// Its `ret` is done for the thread.
    pub by_hand: bool,
    /// How long a thread that its first probe stopped waits for the front.
    patience: Option<Duration>,
    /// What all its programs will read.
    pub plan: Plan,
}

fn patience(milliseconds: u32) -> Option<Duration> {
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds.into()))
}

impl Site {
    /// How long a thread that `probe` stopped waits for the front; `None`: as long as it takes.
    pub fn patience(&self, probe: u16) -> Option<Duration> {
        let first = self.probes.first().is_some_and(|it| it.probe == probe);
        self.patience.filter(|_| first)
    }

    /// True if our int3 is at the site. Where the code is known to be gone, a copy of the memory
    /// may still have it, in front of all that we know of the code; other sites' int3s may be among
    /// that. `Err`: the unreadable address.
    fn is_there(&self, memory: &Memory) -> Result<bool, u64> {
        let known = if self.gone { self.code.len() } else { 1 };
        let mut now = vec![0; known];
        memory.read(self.address, &mut now)?;
        let mut rest = now.iter().zip(&self.code).skip(1);
        Ok(now.first() == Some(&INT3) && rest.all(|(now, code)| now == code || *now == INT3))
    }

    /// The program's bytes from `address` on are changed.
    fn overwritten(&mut self, address: u64, bytes: &[u8]) {
        let mut code = self.code.clone();
        for (at, byte) in (self.address..).zip(&mut code) {
            let offset = at.checked_sub(address).map(|offset| offset as usize);
            if let Some(new) = offset.and_then(|offset| bytes.get(offset)) {
                *byte = *new;
            }
        }
        self.original = code.first().copied().unwrap_or(self.original);
        // What is no instruction yet may be in the middle of being written.
        if code != self.code
            && let Ok(displaced) = Displaced::decode(&code, self.address)
        {
            self.doubtful = is_doubtful(&displaced, self.original);
            self.displaced = displaced;
            // A thread that is in the old slot comes out of it all the same.
            self.slot = None;
        }
        self.code = code;
    }
}

/// A slot in the target's memory.
#[derive(Debug, Clone)]
pub struct PlacedSlot {
    /// Where it is.
    pub address: u64,
    /// What it holds.
    pub code: Slot,
}

impl PlacedSlot {
    /// True if a copy of the memory has the slot, where it is written if only its page is there.
    fn is_in(&self, memory: &Memory) -> bool {
        let code = &self.code.code;
        let mut now = vec![0; code.len()];
        let read = memory.read(self.address, &mut now).is_ok();
        read && (now == *code || memory.write_text(self.address, code).is_ok())
    }
}

/// All sites of one address space. A disarmed site is kept: a thread may still have its trap
/// queued or stand in its slot, and a site that is armed again finds its slot.
#[derive(Default, Clone)]
pub struct Sites {
    by_address: HashMap<u64, Site>,
    by_id: HashMap<SiteId, u64>,
    /// Slot start to site.
    slots: BTreeMap<u64, u64>,
    /// The addresses of the armed ones, in order: what lies near is looked for at each hit.
    armed: BTreeSet<u64>,
}

impl Sites {
    /// The site at an address.
    pub fn get(&self, address: u64) -> Option<&Site> {
        self.by_address.get(&address)
    }

    /// The site at an address.
    pub fn get_mut(&mut self, address: u64) -> Option<&mut Site> {
        self.by_address.get_mut(&address)
    }

    /// Arms a site or gives an armed one new probes. One whose int3 is no more there (its code was
    /// unmapped and mapped again) is armed anew.
    pub fn arm(&mut self, memory: &Memory, spec: SiteSpec) -> Result<(), Failure> {
        for probe in &spec.probes {
            interpret::check(&probe.program).map_err(|_| Failure::Malformed)?;
        }
        if let Some(site) = self.by_address.get_mut(&spec.address)
            && site.armed
            && memory.has_int3(spec.address)
        {
            self.by_id.insert(spec.id, spec.address);
            site.id = spec.id;
            site.by_hand = spec.by_hand;
            site.patience = patience(spec.patience_ms);
            site.plan = Plan::new(&spec.probes, &site.displaced);
            site.probes = spec.probes;
            return Ok(());
        }
        self.arm_new(memory, spec)
    }

    fn arm_new(&mut self, memory: &Memory, spec: SiteSpec) -> Result<(), Failure> {
        let address = spec.address;
        let mut found = vec![0; spec.code.len()];
        memory
            .read(address, &mut found)
            .map_err(|address| Failure::Memory { address })?;
        self.mask(address, &mut found);
        if found.is_empty() || found != spec.code {
            return Err(Failure::Foreign { address, found });
        }
        let displaced = Displaced::decode(&found, address).map_err(|why| Failure::Instruction {
            address,
            why: why.to_string(),
        })?;
        memory
            .write_text(address, &[INT3])
            .map_err(|address| Failure::Memory { address })?;
        // What a slot was made of may be gone from there since.
        let old = self.by_address.remove(&address);
        let slot = old.filter(|old| old.code == found).and_then(|old| old.slot);
        self.by_id.insert(spec.id, address);
        self.by_address.insert(
            address,
            Site {
                id: spec.id,
                address,
                original: found[0],
                doubtful: is_doubtful(&displaced, found[0]),
                plan: Plan::new(&spec.probes, &displaced),
                displaced,
                code: found,
                slot,
                probes: spec.probes,
                armed: true,
                gone: false,
                by_hand: spec.by_hand,
                patience: patience(spec.patience_ms),
            },
        );
        self.armed.insert(address);
        Ok(())
    }

    /// Takes a site's int3 out, unless its code is `gone`. Unknown numbers are no error: an exec
    /// may have come between.
    pub fn disarm(&mut self, memory: &Memory, id: SiteId, gone: bool) -> Result<(), Failure> {
        let Some(address) = self.by_id.remove(&id) else {
            return Ok(());
        };
        if gone {
            if let Some(site) = self.by_address.get_mut(&address) {
                site.armed = false;
                site.gone = true;
                site.probes.clear();
            }
            self.armed.remove(&address);
            return Ok(());
        }
        self.take_out(memory, address)
            .map_err(|address| Failure::Memory { address })
    }

    /// Puts the original byte back, if it is still our int3 that stands there.
    pub fn take_out(&mut self, memory: &Memory, address: u64) -> Result<(), u64> {
        let Some(site) = self.by_address.get_mut(&address) else {
            return Ok(());
        };
        if !site.armed {
            return Ok(());
        }
        site.armed = false;
        site.probes.clear();
        self.armed.remove(&address);
        match site.is_there(memory) {
            Ok(true) => memory.write_text(address, &[site.original]),
            Ok(false) => Ok(()),
            Err(at) => Err(at),
        }
    }

    /// Takes every int3 out of `memory`, which may be a forked child's copy; the table is kept. A
    /// site that was taken out since may still be in a copy that was made before.
    pub fn clean(&self, memory: &Memory) {
        for site in self.by_address.values() {
            if site.is_there(memory) == Ok(true) {
                // A text page that went away with its library has nothing to be put back.
                let _ = memory.write_text(site.address, &[site.original]);
            }
        }
    }

    /// Makes `memory`, a forked child's copy, what the table says: the child was made a moment ago,
    /// and sites may have been armed and taken out and slots written since.
    pub fn fit(&mut self, memory: &Memory) {
        let addresses: Vec<u64> = self.by_address.keys().copied().collect();
        let found = memory.bytes_at(&addresses);
        for (address, now) in addresses.into_iter().zip(found) {
            let Some(site) = self.by_address.get_mut(&address) else {
                continue;
            };
            let byte = match (site.armed, now) {
                (true, Some(now)) if now == site.original => Some(INT3),
                (false, Some(INT3)) if site.is_there(memory) == Ok(true) => Some(site.original),
                _ => None,
            };
            if let Some(byte) = byte {
                let _ = memory.write_text(address, &[byte]);
            }
            site.slot.take_if(|slot| !slot.is_in(memory));
        }
    }

    /// The addresses of all armed sites.
    pub fn armed_addresses(&self) -> Vec<u64> {
        self.armed.iter().copied().collect()
    }

    /// Notes where a site's slot was placed.
    pub fn place(&mut self, address: u64, slot: PlacedSlot) {
        if let Some(site) = self.by_address.get_mut(&address) {
            self.slots.insert(slot.address, address);
            site.slot = Some(slot);
        }
    }

    /// The site in whose slot an address is, and the offset in the slot.
    pub fn in_slot(&self, address: u64) -> Option<(&Site, u64)> {
        let (start, site) = self.slots.range(..=address).next_back()?;
        let site = self.by_address.get(site)?;
        let length = site.slot.as_ref()?.code.code.len() as u64;
        (address - start < length).then_some((site, address - start))
    }

    /// Shows the program's own bytes where `bytes`, read from `address`, has int3s of ours.
    pub fn mask(&self, address: u64, bytes: &mut [u8]) {
        for site in self.within(address, bytes.len()) {
            bytes[(site.address - address) as usize] = site.original;
        }
    }

    /// Keeps the bytes that are written over sites, and gives what is to be written instead. A
    /// site whose instruction is changed by that gets a new slot.
    pub fn overwrite(&mut self, address: u64, bytes: &mut [u8]) {
        let end = address.saturating_add(bytes.len() as u64);
        let near = address.saturating_sub(INSTRUCTION_MAX)..end;
        let near: Vec<u64> = self.armed.range(near).copied().collect();
        if near.is_empty() {
            return;
        }
        let new = bytes.to_vec();
        for at in near {
            let Some(site) = self.by_address.get_mut(&at) else {
                continue;
            };
            site.overwritten(address, &new);
            if let Some(offset) = site.address.checked_sub(address)
                && let Some(byte) = bytes.get_mut(offset as usize)
            {
                *byte = INT3;
            }
        }
    }

    fn within(&self, address: u64, length: usize) -> impl Iterator<Item = &Site> {
        let end = address.saturating_add(length as u64);
        let near = self.armed.range(address..end);
        near.filter_map(|address| self.by_address.get(address))
    }
}

/// No x86 instruction is longer.
const INSTRUCTION_MAX: u64 = 15;

/// See [`Site::doubtful`]; `first` is the instruction's first byte.
fn is_doubtful(displaced: &Displaced, first: u8) -> bool {
    displaced.length() == 1 || is_prefix(first)
}

fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3)
}
