//! Other tools at our places: who has changed the code there, and who came after us.

use std::fs::File;

use super::images::Images;
use super::{Session, Target};
use crate::arch::{Hook, INT3, hook};
use crate::engine::uprobe;

/// At most so many places are looked at when a target is left.
const PLACES: usize = 1000;

/// Who has changed the code at an address, where memory holds `found`.
pub(super) fn owner(images: &Images, address: u64, found: &[u8]) -> String {
    let first = found.first();
    if first == images.code(address).first() {
        return "memory there is not what the file holds".into();
    }
    if first == Some(&INT3) {
        let who = match Uprobes::new(images).has(address) {
            true => {
                "a uprobe of the kernel's is there already (perf, ftrace and bpftrace set such)"
            }
            false => {
                "an int3 is there already, another debugger's or tracer's, or a uprobe's for this process"
            }
        };
        return who.into();
    }
    let to = match hook(found, address) {
        Some(Hook::To(to)) => place(images, to),
        Some(Hook::Elsewhere) => "an address in memory".into(),
        None => return "memory there is not what the file holds".into(),
    };
    format!("a jump to {to} is there, another tool's hook (Frida and others set such)")
}

fn place(images: &Images, address: u64) -> String {
    match images.place_name(address) {
        name if name.is_empty() => format!("{address:#x} in memory of no module"),
        name => format!("{address:#x} <{name}>"),
    }
}

/// The uprobes for all processes that the kernel has in the modules of one.
struct Uprobes<'a> {
    images: &'a Images,
    /// The module that was looked at last: places come module by module.
    file: Option<(usize, File)>,
}

impl Uprobes<'_> {
    fn new(images: &Images) -> Uprobes<'_> {
        Uprobes { images, file: None }
    }

    /// Whether there is one at an address.
    fn has(&mut self, address: u64) -> bool {
        let Some(index) = self.images.modules.module_at(address) else {
            return false;
        };
        let loaded = &self.images.modules.loaded()[index];
        let offset = loaded.module.elf().offset_of(loaded.bias.file(address).0);
        if self.file.as_ref().is_none_or(|(of, _)| *of != index) {
            let file = File::open(loaded.module.path());
            self.file = file.ok().map(|file| (index, file));
        }
        matches!((offset, &self.file), (Some((offset, _)), Some((_, file))) if uprobe::is_at(file, offset))
    }
}

impl Session {
    /// Complains about the places of a target where another tool has come after us, while we still
    /// have our int3s there: the kernel gives a uprobe every hit, and takes the int3 out with it.
    pub(super) fn tell_foreign(&mut self, index: usize) {
        let Some(target) = self.targets.get(index) else {
            return;
        };
        let armed = target
            .sites
            .iter()
            .filter(|(_, site)| site.armed.is_some() && !site.lost);
        let mut uprobes = Uprobes::new(&target.images);
        let mut lines = Vec::new();
        for (address, _) in armed.take(PLACES) {
            let what = match uprobes.has(*address) {
                true => {
                    "a uprobe of the kernel's (perf, ftrace or bpftrace) was set over the int3 at"
                }
                false if self.int3_is_gone(target, *address) => {
                    "another tool (a uprobe that came and went does that) took out the int3 at"
                }
                false => continue,
            };
            let place = place(&target.images, *address);
            lines.push(format!(
                "warning: {what} {place}: the hits since then are not counted."
            ));
        }
        lines.iter().for_each(|line| self.output.complain(line));
    }

    /// The program's own byte is where our int3 should be.
    fn int3_is_gone(&self, target: &Target, address: u64) -> bool {
        let original = target.images.code(address).first().copied();
        let now = self
            .keeper
            .as_ref()
            .and_then(|keeper| keeper.raw_byte(target.id, address));
        now.is_some() && now == original && now != Some(INT3)
    }
}
