//! `LOCATION%return`: the ways out of a function, and what was at its entry.

use std::sync::Arc;

use super::Session;
use super::breakpoint::{Location, Probe};
use super::images::{Images, Unresolved};
use super::plan::Returns;
use super::sites::location;
use super::view::Names;
use crate::arch::{self, ExitKind, FileAddress, Register};
use crate::engine::protocol::{Reason, Tid};
use crate::error::{Error, fail};
use crate::lang::scope::WayOut as Way;
use crate::symbols::Loaded;

/// Registers of a caller.
pub struct Caller {
    /// Where it goes on.
    pub pc: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Its frame pointer, if the function has saved it.
    pub frame: Option<u64>,
}

/// A function whose ways out are known.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its first instruction: a run-time address, or the file's before there is a process.
    pub entry: u64,
    /// Its name, demangled.
    pub name: String,
    /// All of its code, that which was moved away too: start and length.
    pub parts: Vec<(u64, u64)>,
    /// Jumps through tables of places inside, which are left out.
    pub tables: usize,
    /// Jumps that may leave and cannot be looked at.
    pub left_out: Vec<(u64, &'static str)>,
    /// A jump goes to its first instruction, so that passes there are not calls alone.
    pub starts_again: bool,
}

/// How a place leaves its function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayOut {
    /// By what.
    pub kind: ExitKind,
    /// Which function.
    pub function: Arc<Function>,
}

impl WayOut {
    /// What expressions can ask there.
    pub fn way(&self) -> Way {
        crate::probe::compile::way_out(self.kind)
    }

    /// What a list of places says behind the address.
    pub fn remark(&self) -> Option<&'static str> {
        match self.kind {
            ExitKind::Return => None,
            ExitKind::Jump => Some("a jump; $_retval is not available"),
            ExitKind::Conditional(_) => Some("a conditional jump; $_retval is not available"),
            ExitKind::Indirect(_) => {
                Some("a jump, looked at where it goes; $_retval is not available")
            }
        }
    }
}

impl Function {
    /// What is not looked at, for the list of probes.
    pub fn remarks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match self.tables {
            0 => {}
            1 => lines.push(format!(
                "{}: 1 jump through a table stays inside and is left out",
                self.name
            )),
            n => lines.push(format!(
                "{}: {n} jumps through tables stay inside and are left out",
                self.name
            )),
        }
        for (address, why) in &self.left_out {
            lines.push(format!(
                "{}: the jump at {address:#x} is left out: {why}",
                self.name
            ));
        }
        lines
    }
}

/// The remarks about a probe's functions, each once.
pub fn remarks(locations: &[Location]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for out in locations.iter().filter_map(|l| l.out.as_ref()) {
        for line in out.function.remarks() {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// A place without `%return`, and whether it had that.
pub fn strip(spec: &str) -> (&str, bool) {
    match spec.trim_end().strip_suffix("%return") {
        Some(place) => (place.trim_end(), true),
        None => (spec, false),
    }
}

impl Session {
    /// The ways out of the functions at these places. Those that cannot be told are complained
    /// about; an error if none can.
    pub(super) fn ways_out(
        &mut self,
        target: usize,
        addresses: Vec<u64>,
    ) -> Result<Vec<Location>, Unresolved> {
        let Some(images) = self.images_of(target) else {
            return Err(Unresolved::Bad(Error::new("No symbol table is loaded.")));
        };
        let mut locations = Vec::new();
        let mut refused = Vec::new();
        for address in addresses {
            match images.ways_out(address) {
                Ok(found) => locations.extend(found),
                Err(error) => refused.push(error),
            }
        }
        match refused.pop() {
            Some(error) if locations.is_empty() => Err(Unresolved::Bad(error)),
            last => {
                for error in refused.into_iter().chain(last) {
                    self.output.complain(&format!("warning: {error}"));
                }
                locations.sort_by_key(|location| location.address);
                locations.dedup_by_key(|location| location.address);
                Ok(locations)
            }
        }
    }

    /// What the probes where a thread stands know of a way out.
    pub(super) fn returns_at(&self, tid: Tid) -> Vec<(u16, Returns)> {
        let stands = || {
            let target = self.target()?;
            let thread = target.threads.get(tid)?;
            match thread.reason? {
                Reason::Probe { site, .. } => target.site(site, thread.pc()),
                _ => None,
            }
        };
        let plans = stands().map_or(&[][..], |site| &site.probes);
        let ways = plans
            .iter()
            .filter(|(_, plan)| plan.returns.way != Way::None);
        ways.filter_map(|(number, plan)| {
            Some((self.probes.get(*number)?.place, plan.returns.clone()))
        })
        .collect()
    }

    /// The address by which `$_func` names the function of a place.
    pub(super) fn named_by(probe: &Probe, address: u64) -> u64 {
        // A way out may be in a part that was moved away.
        Session::out_at(probe, address).map_or(address, |out| out.function.entry)
    }

    /// Where a thread stands at a probe, and the probe's place as it was typed.
    pub(super) fn site_at(&self, tid: Tid) -> Option<(u64, String)> {
        let thread = self.target()?.threads.get(tid)?;
        let Reason::Probe { probe, .. } = thread.reason? else {
            return None;
        };
        let pc = thread.pc()?;
        let probe = self.probes.at_place(probe)?;
        Some((Session::named_by(probe, pc), probe.spec.clone()))
    }

    /// What a thread's registers are in the caller of where it stands, as far as the code there
    /// proves it: at a function's first instruction, at a return, behind the prologue.
    pub fn caller(&mut self, tid: Tid) -> Result<Caller, Error> {
        let Some(registers) = self.registers(tid) else {
            fail!("No registers.");
        };
        let (pc, sp) = (registers.pc(), registers.sp());
        let target = self.need_target()?;
        let (id, offset) = (target.id, target.images.symbol_at(pc).map(|(_, o)| o));
        let code = target.images.code(pc);
        let start = offset.map(|offset| target.images.code(pc.wrapping_sub(offset)));
        let behind = start.map(|code| arch::prologue(&code) as u64);
        let frame = registers.get(Register::Rbp);
        // Where the return address is, and where the caller's frame pointer.
        let (above, saved) = match (offset, arch::returns(&code)) {
            (Some(0), _) | (_, true) => (sp, None),
            (Some(offset), _) if offset > 0 && Some(offset) == behind => {
                (frame.wrapping_add(8), Some(frame))
            }
            _ => fail!(
                "Can not force return here: the return address is known at a function's first instruction, behind its prologue and at its returns only."
            ),
        };
        let keeper = self.keeper()?;
        let mut word = |at: u64| {
            let mut bytes = [0; 8];
            let read = keeper.read(id, at, &mut bytes);
            read.map(|()| u64::from_le_bytes(bytes))
                .map_err(|at| Error::new(format!("Cannot access memory at address {at:#x}")))
        };
        Ok(Caller {
            pc: word(above)?,
            sp: above.wrapping_add(8),
            frame: saved.map(&mut word).transpose()?,
        })
    }

    /// The location of a probe at an address.
    pub(super) fn out_at(probe: &Probe, address: u64) -> Option<WayOut> {
        // There may be thousands, and they are in order.
        let locations = &probe.locations;
        let at = locations.binary_search_by_key(&address, |location| location.address);
        locations.get(at.ok()?)?.out.clone()
    }
}

/// Functions larger than this are not decoded.
const FUNCTION_MAX: u64 = 4 << 20;

impl Images {
    /// Every way out of the function around a run-time address.
    pub fn ways_out(&self, address: u64) -> Result<Vec<Location>, Error> {
        let place = self.modules.place_of(address);
        let place = place.filter(|place| place.function.1 > 0);
        let Some(place) = place else {
            fail!(
                "Cannot tell the ways out of the function at {address:#x}: no symbol says where it ends."
            );
        };
        let refuse = |why: String| {
            let name = self.modules.display_name(&place);
            Error::new(format!("Cannot tell the ways out of `{name}': {why}."))
        };
        let loaded = &self.modules.loaded()[place.module];
        let (entry, size) = place.function;
        let own = self.modules.linkage_name(&place);
        let mut parts = vec![part(loaded, entry, size).map_err(&refuse)?];
        let exits = loop {
            let exits = arch::exits(&parts).map_err(|why| refuse(why.to_string()))?;
            match cold_part(loaded, entry, &own, &exits.outside) {
                Some((start, size)) => parts.push(part(loaded, start, size).map_err(&refuse)?),
                None => break exits,
            }
        };
        if exits.exits.is_empty() {
            return Err(refuse("it has none".into()));
        }
        let name = self.modules.display_name(&place);
        let function = Arc::new(Function {
            entry: entry.runtime(loaded.bias),
            name: match name.is_empty() {
                true => self.place_name(entry.runtime(loaded.bias)),
                false => name,
            },
            parts: parts
                .iter()
                .map(|(start, code)| (*start, code.len() as u64))
                .collect(),
            tables: exits.tables.len(),
            left_out: exits.left_out,
            starts_again: exits.starts_again,
        });
        let found = exits.exits.iter().map(|exit| Location {
            out: Some(WayOut {
                kind: exit.kind,
                function: function.clone(),
            }),
            ..location(exit.address, Some(self))
        });
        Ok(found.collect())
    }
}

/// A piece of code with its run-time address.
fn part(loaded: &Loaded, start: FileAddress, size: u64) -> Result<(u64, Vec<u8>), String> {
    if size > FUNCTION_MAX {
        return Err(format!("it has {size} bytes"));
    }
    let code = loaded
        .module
        .bytes(start, size)
        .map_err(|e| e.to_string())?;
    match code.len() as u64 == size {
        true => Ok((start.runtime(loaded.bias), code)),
        false => Err("the file does not hold all of it".into()),
    }
}

/// A part of the function `own` that the compiler moved away, by where its jumps go: `NAME.cold`,
/// `NAME.cold.1`.
fn cold_part(
    loaded: &Loaded,
    entry: FileAddress,
    own: &str,
    outside: &[u64],
) -> Option<(FileAddress, u64)> {
    let module = &loaded.module;
    let table = module.symbols();
    outside.iter().find_map(|to| {
        let (symbol, offset) = module.symbol_at(loaded.bias.file(*to))?;
        let name = table.linkage_name(symbol);
        let (base, number) = name.rsplit_once(".cold")?;
        let plain = number.is_empty() || number.starts_with('.');
        // A constructor has several names, of which the part bears one.
        let same = || {
            let symbols = module.find_linkage(base);
            symbols.iter().any(|s| s.address == entry.0)
        };
        let size = table.extent(symbol, module.elf());
        let fits = plain && offset < size && (base == own || same());
        fits.then_some((FileAddress(symbol.address), size))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_stripped() {
        assert_eq!(strip("f%return"), ("f", true));
        assert_eq!(strip("n::f(int) %return "), ("n::f(int)", true));
        assert_eq!(strip("*0x10 % 3"), ("*0x10 % 3", false));
        assert_eq!(strip("freturn"), ("freturn", false));
    }
}
