//! A memory file that two processes map.

use std::ffi::CString;
use std::fs::File;
use std::io;

use std::sync::atomic::AtomicU64;

use memmap2::MmapRaw;
use nix::sys::memfd::{MFdFlags, memfd_create};

/// Types that may lie in memory that another process changes: atomics, and arrays of them.
///
/// # Safety
/// Every bit pattern must be valid and every part changed only through atomics.
pub unsafe trait Shared {}

/// One memory file, mapped readable and writable.
pub struct Mapping {
    file: File,
    memory: MmapRaw,
}

impl Mapping {
    /// A new memory file of `bytes`, all zero.
    pub fn create(name: &str, bytes: usize) -> io::Result<Mapping> {
        let name = CString::new(name).map_err(io::Error::other)?;
        let file = File::from(memfd_create(name.as_c_str(), MFdFlags::MFD_CLOEXEC)?);
        file.set_len(bytes as u64)?;
        Mapping::open(file, bytes)
    }

    /// Maps a memory file that must hold at least `bytes`.
    pub fn open(file: File, bytes: usize) -> io::Result<Mapping> {
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::Error::other("the shared memory is smaller than agreed"));
        }
        let memory = memmap2::MmapOptions::new().len(bytes).map_raw(&file)?;
        Ok(Mapping { file, memory })
    }

    /// The memory file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// How many bytes are mapped.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// The memory as a `T`, which must not be larger than it.
    pub fn view<T: Shared>(&self) -> &T {
        assert!(size_of::<T>() <= self.len() && align_of::<T>() <= 4096);
        // SAFETY: the mapping is page-aligned, large enough and lives as long as `self`; `T` is
        // valid for every bit pattern and changed only through atomics.
        unsafe { &*self.memory.as_ptr().cast::<T>() }
    }

    /// The memory from byte `from` (a multiple of 8) on, as words.
    pub fn words(&self, from: usize) -> &[AtomicU64] {
        assert!(from.is_multiple_of(8) && from <= self.len());
        // SAFETY: inside the mapping, aligned, and atomics take every bit pattern.
        unsafe {
            std::slice::from_raw_parts(
                self.memory.as_ptr().add(from).cast::<AtomicU64>(),
                (self.len() - from) / 8,
            )
        }
    }
}
