//! `/proc/PID/maps` (proc_pid_maps(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What a mapping shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// A file; `deleted` if its directory entry is gone (or it never had one, as memfd).
    File {
        /// The path in the process's own root.
        path: PathBuf,
        /// The kernel wrote ` (deleted)` behind it.
        deleted: bool,
    },
    /// `[vdso]`, `[heap]`, `[stack]`, `[anon:name]`, brackets included.
    Special(String),
    /// No name.
    Anonymous,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Behind the last address.
    pub end: u64,
    /// `r`.
    pub readable: bool,
    /// `w`.
    pub writable: bool,
    /// `x`.
    pub executable: bool,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Major and minor number of the file system.
    pub device: (u32, u32),
    /// 0 where no file is behind it.
    pub inode: u64,
    /// What is mapped.
    pub backing: Backing,
}

/// All mappings, lines that are none left out.
pub fn parse(text: &[u8]) -> Vec<Mapping> {
    text.split(|byte| *byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Mapping> {
    let (range, rest) = field(line)?;
    let (permissions, rest) = field(rest)?;
    let (offset, rest) = field(rest)?;
    let (device, rest) = field(rest)?;
    let (inode, rest) = field(rest)?;
    let (start, end) = range.split_once('-')?;
    let (major, minor) = device.split_once(':')?;
    let inode: u64 = inode.parse().ok()?;
    let permission = |index| permissions.as_bytes().get(index).copied().unwrap_or(b'-');
    // The name is padded to a column; it may begin with a space of its own only behind that, which
    // no path does: paths begin with `/`.
    let name = &rest[rest.iter().take_while(|byte| **byte == b' ').count()..];
    let (start, end) = (hex(start)?, hex(end)?);
    (start < end).then_some(Mapping {
        start,
        end,
        readable: permission(0) == b'r',
        writable: permission(1) == b'w',
        executable: permission(2) == b'x',
        offset: hex(offset)?,
        device: (
            u32::from_str_radix(major, 16).ok()?,
            u32::from_str_radix(minor, 16).ok()?,
        ),
        inode,
        backing: backing(name, inode),
    })
}

/// The text up to a space, and what follows that one space.
fn field(line: &[u8]) -> Option<(&str, &[u8])> {
    let line = &line[line.iter().take_while(|byte| **byte == b' ').count()..];
    let end = line
        .iter()
        .position(|byte| *byte == b' ')
        .unwrap_or(line.len());
    let text = std::str::from_utf8(&line[..end])
        .ok()
        .filter(|text| !text.is_empty())?;
    Some((text, &line[end..]))
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn backing(name: &[u8], inode: u64) -> Backing {
    match name.first() {
        None => Backing::Anonymous,
        // A file may be called `[vdso]`, but then its path begins with `/`.
        Some(b'[') if inode == 0 => Backing::Special(String::from_utf8_lossy(name).into_owned()),
        Some(_) => {
            let (path, deleted) = match name.strip_suffix(b" (deleted)") {
                Some(path) => (path, true),
                None => (name, false),
            };
            Backing::File {
                path: PathBuf::from(OsString::from_vec(unescape(path))),
                deleted,
            }
        }
    }
}

/// The kernel writes a newline as `\012` and escapes nothing else, not even the backslash: a file
/// whose name really holds `\012` reads the same, and its identity is checked by inode later.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some(&first) = rest.first() {
        match rest.strip_prefix(b"\\012") {
            Some(behind) => {
                out.push(b'\n');
                rest = behind;
            }
            None => {
                out.push(first);
                rest = &rest[1..];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn hostile_lines() {
        let text =
            b"555555554000-555555555000 r-xp 00001000 fe:01 1234       /tmp/a b\\012c (deleted)\n\
            7fff0000-7fff1000 rw-p 00000000 00:00 0 \n\
            7fff2000-7fff3000 r-xp 00000000 00:00 0                          [vdso]\n\
            7fff4000-7fff5000 r--p 00000000 fe:01 99                         /[vdso]\n\
            junk\n\
            7fff6000-7fff7000 rw-s 00000000 00:01 7  /\xff\xfe\n";
        let maps = parse(text);
        assert_eq!(maps.len(), 5);
        assert_eq!(
            maps[0].backing,
            Backing::File {
                path: "/tmp/a b\nc".into(),
                deleted: true
            }
        );
        assert!(maps[0].executable && !maps[0].writable);
        assert_eq!(
            (maps[0].offset, maps[0].device, maps[0].inode),
            (0x1000, (0xfe, 1), 1234)
        );
        assert_eq!(maps[1].backing, Backing::Anonymous);
        assert_eq!(maps[2].backing, Backing::Special("[vdso]".into()));
        assert_eq!(
            maps[3].backing,
            Backing::File {
                path: "/[vdso]".into(),
                deleted: false
            }
        );
    }

    #[test]
    fn own_maps() {
        let text = std::fs::read("/proc/self/maps").unwrap();
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        let maps = parse(&text);
        assert_eq!(maps.len(), lines);
        let exe = std::fs::read_link("/proc/self/exe").unwrap();
        assert!(maps.iter().any(
            |map| matches!(&map.backing, Backing::File { path, .. } if path == Path::new(&exe))
        ));
    }
}
