//! The auxiliary vector (getauxval(3)), as `/proc/PID/auxv` gives it.

/// `AT_PHDR`: where the program headers lie.
pub const AT_PHDR: u64 = 3;
/// `AT_BASE`: where the interpreter was loaded.
pub const AT_BASE: u64 = 7;
/// `AT_ENTRY`: the program's entry point.
pub const AT_ENTRY: u64 = 9;
/// `AT_SYSINFO_EHDR`: the vDSO.
pub const AT_SYSINFO_EHDR: u64 = 33;

/// The entries that matter to a tracer, as run-time addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Auxv {
    /// `AT_PHDR`.
    pub program_headers: Option<u64>,
    /// `AT_BASE`; `None` for a static program.
    pub interpreter: Option<u64>,
    /// `AT_ENTRY`.
    pub entry: Option<u64>,
    /// `AT_SYSINFO_EHDR`.
    pub vdso: Option<u64>,
}

impl Auxv {
    /// Reads the pairs up to `AT_NULL`.
    pub fn parse(bytes: &[u8]) -> Auxv {
        let mut auxv = Auxv::default();
        let (words, _) = bytes.as_chunks::<8>();
        for pair in words.chunks_exact(2) {
            let value = u64::from_le_bytes(pair[1]);
            let slot = match u64::from_le_bytes(pair[0]) {
                0 => break,
                AT_PHDR => &mut auxv.program_headers,
                AT_BASE => &mut auxv.interpreter,
                AT_ENTRY => &mut auxv.entry,
                AT_SYSINFO_EHDR => &mut auxv.vdso,
                _ => continue,
            };
            *slot = (value != 0).then_some(value);
        }
        auxv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_vector() {
        let auxv = Auxv::parse(&std::fs::read("/proc/self/auxv").unwrap());
        assert!(auxv.entry.is_some() && auxv.program_headers.is_some());
        assert_eq!(Auxv::parse(&[9, 0, 0]), Auxv::default());
    }
}
