//! `hexdump ADDR, LEN`.

use std::io::Write;

use pretty_hex::{HexConfig, config_hex};

use super::examine::Failure;
use super::strings::read_available;
use super::{Error, Scope};

/// What is shown of a longer piece of memory; the cut is said.
pub(crate) const HEXDUMP_MAX: u64 = 64 * 1024;

/// Shows memory as hexadecimal numbers and text. What can be read is shown before the error.
pub(crate) fn hexdump(
    address: u64,
    length: u64,
    scope: &dyn Scope,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let shown = length.min(HEXDUMP_MAX);
    let bytes = read_available(scope, address, shown as usize);
    let config = HexConfig {
        title: false,
        ..HexConfig::default()
    };
    if !bytes.is_empty() {
        // The dump counts its lines up from the address without a check.
        let fits = address.checked_add(HEXDUMP_MAX + 16).is_some();
        let display_offset = if fits { address as usize } else { 0 };
        let config = HexConfig {
            display_offset,
            ..config
        };
        writeln!(out, "{}", config_hex(&bytes, config))?;
    }
    if (bytes.len() as u64) < shown {
        return Err(Error::Memory(address.wrapping_add(bytes.len() as u64)).into());
    }
    if shown < length {
        writeln!(out, "... cut: {shown} of {length} bytes shown")?;
    }
    Ok(())
}
