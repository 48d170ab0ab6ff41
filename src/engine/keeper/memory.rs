//! The target's memory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use super::sys;
use crate::arch::INT3;

/// As many ranges are read at once (`IOV_MAX` is 1024).
const RANGES: usize = 512;

/// One address space, by a process in it.
pub struct Memory {
    pid: i32,
    file: File,
}

impl Memory {
    /// Opens the memory of a process. An `execve` gives it a new one: open again.
    pub fn open(pid: i32) -> io::Result<Memory> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))?;
        Ok(Memory { pid, file })
    }

    /// The descriptor that the front reads through.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Reads all of `buf`; `Err` is the first address that could not be read.
    pub fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), u64> {
        let range = [sys::remote(address, buf.len())];
        let done = sys::read_vectored(self.pid, &range, buf).unwrap_or(0);
        if done == buf.len() {
            return Ok(());
        }
        // Mappings without read permission are readable this way only.
        self.read_file(address + done as u64, &mut buf[done..])
    }

    /// The bytes at these addresses; `None` for those that cannot be read.
    pub fn bytes_at(&self, addresses: &[u64]) -> Vec<Option<u8>> {
        let mut all = Vec::with_capacity(addresses.len());
        for some in addresses.chunks(RANGES) {
            let ranges: Vec<_> = some.iter().map(|at| sys::remote(*at, 1)).collect();
            let mut bytes = vec![0; some.len()];
            if sys::read_vectored(self.pid, &ranges, &mut bytes).is_ok_and(|n| n == some.len()) {
                all.extend(bytes.into_iter().map(Some));
                continue;
            }
            all.extend(some.iter().map(|at| {
                let mut byte = [0];
                self.read(*at, &mut byte).ok().map(|()| byte[0])
            }));
        }
        all
    }

    /// True if there is an int3 at an address.
    pub fn has_int3(&self, address: u64) -> bool {
        let mut now = [0];
        self.read(address, &mut now).is_ok() && now == [INT3]
    }

    fn read_file(&self, address: u64, buf: &mut [u8]) -> Result<(), u64> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], address + done as u64) {
                Ok(more) if more > 0 => done += more,
                _ => return Err(address + done as u64),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes`; `Err` is the first address that could not be written.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), u64> {
        if let Ok(done) = sys::write_vectored(self.pid, address, bytes)
            && done == bytes.len()
        {
            return Ok(());
        }
        self.write_text(address, bytes)
    }

    /// Writes through the page protection too, as a debugger must for the program's text.
    pub fn write_text(&self, address: u64, bytes: &[u8]) -> Result<(), u64> {
        let mut done = 0;
        while done < bytes.len() {
            match self.file.write_at(&bytes[done..], address + done as u64) {
                Ok(more) if more > 0 => done += more,
                _ => return Err(address + done as u64),
            }
        }
        Ok(())
    }
}
