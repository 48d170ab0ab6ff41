//! Whether the kernel has a uprobe at a place of a file.

use std::fs::File;
use std::os::unix::fs::FileExt;

use memmap2::MmapOptions;

use crate::arch::INT3;

const PAGE: u64 = 4096;

/// True if a uprobe that is for all processes stands at byte `offset` of a file: the kernel puts
/// its int3 into every new mapping that may be executed, and so into one of ours. One that is for
/// some other process alone is not seen.
pub fn is_at(file: &File, offset: u64) -> bool {
    let mut options = MmapOptions::new();
    options.offset(offset / PAGE * PAGE).len(PAGE as usize);
    // SAFETY: nothing looks at the mapping through a pointer, which a file that gets shorter would
    // make a fault; the kernel reads it below.
    let Ok(mapping) = (unsafe { options.map_copy_read_only(file) }) else {
        return false;
    };
    let own = File::open("/proc/self/mem");
    let byte = |of: &File, at: u64| {
        let mut byte = [0];
        of.read_exact_at(&mut byte, at).ok().map(|()| byte[0])
    };
    let address = mapping.as_ptr() as u64 + offset % PAGE;
    let mapped = own.ok().and_then(|memory| byte(&memory, address));
    mapped == Some(INT3) && byte(file, offset) != Some(INT3)
}
