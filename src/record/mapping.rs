//! A memory file that two processes map.

use std::ffi::CString;
use std::fs::File;
use std::io;

use std::sync::atomic::AtomicU64;

use memmap2::MmapRaw;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// What makes a memory file keep its length.
const LENGTH: SealFlag = SealFlag::F_SEAL_SHRINK
    .union(SealFlag::F_SEAL_GROW)
    .union(SealFlag::F_SEAL_SEAL);

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
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = File::from(memfd_create(name.as_c_str(), flags)?);
        file.set_len(bytes as u64)?;
        fcntl(&file, FcntlArg::F_ADD_SEALS(LENGTH))?;
        Mapping::open(file, bytes)
    }

    /// Maps a memory file that must hold at least `bytes`, and cannot get shorter: whoever touched what is
    /// missing would die of SIGBUS.
    pub fn open(file: File, bytes: usize) -> io::Result<Mapping> {
        let seals = SealFlag::from_bits_truncate(fcntl(&file, FcntlArg::F_GET_SEALS)?);
        if !seals.contains(SealFlag::F_SEAL_SHRINK) {
            return Err(io::Error::other("the shared memory could get shorter"));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_keeps_its_length() {
        let mapping = Mapping::create("length", 8192).unwrap();
        assert!(mapping.file().set_len(4096).is_err());
        assert!(mapping.file().set_len(16384).is_err());
        let again = Mapping::open(mapping.file().try_clone().unwrap(), 8192).unwrap();
        assert_eq!(again.len(), 8192);
        let path = std::env::temp_dir().join(format!("trapline-{}-length", std::process::id()));
        std::fs::write(&path, vec![0; 8192]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(Mapping::open(file, 8192).is_err());
    }
}
