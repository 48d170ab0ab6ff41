//! A string in the target as gdb shows it: escapes, runs, and what cannot be decoded.

use std::sync::OnceLock;

use super::Scope;

/// gdb's `print elements` (and its `print characters`): what is fetched of a string at most.
pub(crate) const PRINT_MAX: usize = 200;
/// gdb's `print repeats`: longer runs are counted.
const REPEATS: usize = 10;

/// Which bytes are text. gdb takes it from the locale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    /// The locales C and POSIX.
    Ascii,
    /// The others that are in use.
    Utf8,
}

impl Charset {
    /// What the environment variables of the locale say (locale(7)), asked once.
    pub(crate) fn of_environment() -> Charset {
        static CHARSET: OnceLock<Charset> = OnceLock::new();
        *CHARSET.get_or_init(Charset::ask_environment)
    }

    fn ask_environment() -> Charset {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL")
            .or_else(|| set("LC_CTYPE"))
            .or_else(|| set("LANG"));
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") {
            Charset::Utf8
        } else {
            Charset::Ascii
        }
    }
}

/// What one step of decoding gave.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Char(char),
    /// Bytes that are no character.
    Invalid,
    /// The string ends inside a character.
    Incomplete,
}

/// What was fetched of a string in memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Fetched {
    /// The bytes, the closing zero included if it was met.
    pub bytes: Vec<u8>,
    /// The memory ended before the string did.
    pub failed: bool,
}

/// Reads as much of `wanted` bytes as there is.
pub(crate) fn read_available(scope: &dyn Scope, address: u64, wanted: usize) -> Vec<u8> {
    let mut buffer = vec![0; wanted];
    while let Err(error) = scope.read(address, &mut buffer) {
        let readable = error.address.wrapping_sub(address);
        match usize::try_from(readable) {
            Ok(readable) if readable < buffer.len() => buffer.truncate(readable),
            _ => buffer.clear(),
        }
        if buffer.is_empty() {
            break;
        }
    }
    buffer
}

/// Fetches up to [`PRINT_MAX`] characters of `width` bytes, up to and with the first zero.
pub(crate) fn fetch(scope: &dyn Scope, address: u64, width: usize) -> Fetched {
    let mut fetched = Fetched::default();
    while fetched.bytes.len() < PRINT_MAX * width {
        let wanted = (8 * width).min(PRINT_MAX * width - fetched.bytes.len());
        let at = address.wrapping_add(fetched.bytes.len() as u64);
        let chunk = read_available(scope, at, wanted);
        let whole = chunk.len() / width * width;
        for unit in chunk[..whole].chunks(width) {
            fetched.bytes.extend_from_slice(unit);
            if unit.iter().all(|byte| *byte == 0) {
                return fetched;
            }
        }
        if chunk.len() < wanted {
            fetched.failed = true;
            break;
        }
    }
    fetched
}

/// What stands in front of the quotes of a string whose characters have a type of this name, or
/// only a width.
pub(crate) fn prefix(name: Option<&str>, width: usize) -> &'static str {
    match (name, width) {
        (Some("wchar_t"), _) => "L",
        (Some("char16_t"), _) | (None, 2) => "u",
        (Some("char32_t"), _) | (None, 4) => "U",
        _ => "",
    }
}

/// What gdb's `x/s` and `print (char *)` show for the string at `address`, and how many bytes of
/// it were taken.
pub(crate) fn text_at(
    scope: &dyn Scope,
    address: u64,
    width: usize,
    prefix: &str,
    charset: Charset,
) -> (String, u64) {
    let fetched = fetch(scope, address, width);
    let zero = |unit: &[u8]| unit.iter().all(|byte| *byte == 0);
    let ended = fetched.bytes.rchunks(width).next().is_some_and(zero);
    let behind = address.wrapping_add(fetched.bytes.len() as u64);
    let next = read_available(scope, behind, width);
    let cut = !ended && next.len() == width && !zero(&next);
    let mut text = String::new();
    if !fetched.failed || !fetched.bytes.is_empty() {
        text = quoted(&fetched.bytes, width, prefix, cut, charset);
    }
    if fetched.failed {
        text.push_str(&format!(
            "<error: Cannot access memory at address {address:#x}>"
        ));
    }
    (text, fetched.bytes.len() as u64)
}

/// `bytes` as a string literal; a closing zero is not shown unless the string goes on (`cut`).
pub(crate) fn quoted(
    bytes: &[u8],
    width: usize,
    prefix: &str,
    cut: bool,
    charset: Charset,
) -> String {
    let mut bytes = bytes;
    if !cut && bytes.len() >= width && bytes[bytes.len() - width..].iter().all(|byte| *byte == 0) {
        bytes = &bytes[..bytes.len() - width];
    }
    let mut writer = Writer {
        out: prefix.into(),
        width,
        charset,
        escaped: false,
    };
    if bytes.is_empty() {
        writer.out.push_str("\"\"");
        return writer.out;
    }
    let whole = writer.runs(bytes);
    if cut || !whole {
        writer.out.push_str("...");
    }
    writer.out
}

/// One character between single quotes, as gdb shows it behind its number.
pub(crate) fn character(unit: &[u8], prefix: &str, charset: Charset) -> String {
    let mut writer = Writer {
        out: format!("{prefix}'"),
        width: unit.len().max(1),
        charset,
        escaped: false,
    };
    let piece = match writer.decode(unit) {
        (piece @ Piece::Char(_), _) => piece,
        _ => Piece::Invalid,
    };
    writer.character(&piece, unit, '\'');
    writer.out.push('\'');
    writer.out
}

struct Writer {
    out: String,
    width: usize,
    charset: Charset,
    /// The last thing was a hexadecimal escape, which a digit behind it would change.
    escaped: bool,
}

impl Writer {
    /// Writes up to [`PRINT_MAX`] characters, a run that begins within them whole; false if there
    /// were more.
    fn runs(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        let (mut open, mut first, mut written) = (false, true, 0);
        while !rest.is_empty() && written < PRINT_MAX {
            let (piece, length) = self.next(rest);
            let raw = match piece {
                Piece::Incomplete => &rest[rest.len() - length..],
                _ => &rest[..length],
            };
            let mut count = 1;
            if piece != Piece::Incomplete {
                while rest[count * length..].starts_with(raw)
                    && self.next(&rest[count * length..]).0 == piece
                {
                    count += 1;
                }
            }
            written += count;
            rest = match piece {
                Piece::Incomplete => &[],
                _ => &rest[count * length..],
            };
            let single = piece != Piece::Incomplete && count <= REPEATS;
            if open && !single {
                self.out.push('"');
            }
            if !(first || open && single) {
                self.out.push_str(", ");
            }
            first = false;
            if single {
                if !open {
                    self.out.push('"');
                }
                (0..count).for_each(|_| self.character(&piece, raw, '"'));
            } else if piece == Piece::Incomplete {
                self.out.push_str("<incomplete sequence ");
                self.character(&piece, raw, '\0');
                self.out.push('>');
            } else {
                self.out.push('\'');
                self.character(&piece, raw, '"');
                self.out.push_str(&format!("' <repeats {count} times>"));
            }
            open = single;
        }
        if open {
            self.out.push('"');
        }
        rest.is_empty()
    }

    /// The next piece of `bytes`, which are not empty, and its length. gdb loses the character in
    /// front of an incomplete one: its converter reports the error instead.
    fn next(&self, bytes: &[u8]) -> (Piece, usize) {
        let (piece, length) = self.decode(bytes);
        let rest = &bytes[length..];
        match piece {
            Piece::Char(_) if !rest.is_empty() && self.decode(rest).0 == Piece::Incomplete => {
                (Piece::Incomplete, rest.len())
            }
            _ => (piece, length),
        }
    }

    /// The first character of `bytes`, which are not empty, and its length.
    fn decode(&self, bytes: &[u8]) -> (Piece, usize) {
        let width = self.width.min(bytes.len());
        match width {
            4 => {
                let code = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                (char::from_u32(code).map_or(Piece::Invalid, Piece::Char), 4)
            }
            2 => {
                let unit = |at: usize| {
                    bytes
                        .get(at..at + 2)
                        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                };
                let units = [unit(0), unit(2)];
                match units[0] {
                    Some(high) if (0xd800..0xdc00).contains(&high) => match units[1] {
                        None => (Piece::Incomplete, bytes.len()),
                        Some(low) => match char::decode_utf16([high, low]).next() {
                            Some(Ok(c)) => (Piece::Char(c), 4),
                            _ => (Piece::Invalid, 2),
                        },
                    },
                    Some(unit) => (
                        char::from_u32(unit.into()).map_or(Piece::Invalid, Piece::Char),
                        2,
                    ),
                    None => (Piece::Incomplete, bytes.len()),
                }
            }
            _ if bytes[0] < 0x80 => (Piece::Char(bytes[0].into()), 1),
            _ if self.charset == Charset::Ascii => (Piece::Invalid, 1),
            _ => decode_utf8(bytes),
        }
    }

    fn character(&mut self, piece: &Piece, raw: &[u8], quote: char) {
        let after_escape = std::mem::take(&mut self.escaped);
        let Piece::Char(c) = *piece else {
            return self.escape(raw);
        };
        match c {
            '\u{7}' => self.out.push_str("\\a"),
            '\u{8}' => self.out.push_str("\\b"),
            '\u{c}' => self.out.push_str("\\f"),
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            '\u{b}' => self.out.push_str("\\v"),
            _ if self.is_printable(c) && !(after_escape && c.is_ascii_hexdigit()) => {
                if c == quote || c == '\\' {
                    self.out.push('\\');
                }
                self.out.push(c);
            }
            _ => self.escape(raw),
        }
    }

    fn escape(&mut self, raw: &[u8]) {
        for unit in raw.chunks(self.width) {
            let mut wide = [0; 4];
            wide[..unit.len()].copy_from_slice(unit);
            match u32::from_le_bytes(wide) {
                value @ 0..=0o777 => self.out.push_str(&format!("\\{value:03o}")),
                value => {
                    self.out.push_str(&format!("\\x{value:x}"));
                    self.escaped = true;
                }
            }
        }
    }

    fn is_printable(&self, c: char) -> bool {
        match self.charset {
            _ if c.is_ascii() => !c.is_ascii_control(),
            Charset::Ascii => false,
            Charset::Utf8 => is_printable(c),
        }
    }
}

/// As glibc's `iswprint`: all that is assigned but controls and line separators.
fn is_printable(c: char) -> bool {
    match c {
        '\u{2028}' | '\u{2029}' => false,
        // Format characters, private use and blanks, which the standard library escapes.
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}' => true,
        '\u{a0}' | '\u{1680}' | '\u{180e}' | '\u{2000}'..='\u{200f}' | '\u{202a}'..='\u{202f}' => {
            true
        }
        '\u{205f}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{3000}' | '\u{feff}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{e0020}'..='\u{e007f}' => true,
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}' => true,
        // Behind another character, since it escapes what combines at a start.
        _ => ['a', c].iter().collect::<String>().escape_debug().count() == 2,
    }
}

/// The first character of UTF-8. What the string ends in is incomplete as the C library's decoder
/// sees it, which still knows the lead bytes of five and six byte sequences.
fn decode_utf8(bytes: &[u8]) -> (Piece, usize) {
    let length = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        0xf8..=0xfb => 5,
        0xfc..=0xfd => 6,
        _ => 1,
    };
    if bytes.len() < length && bytes[1..].iter().all(|byte| byte & 0xc0 == 0x80) {
        return (Piece::Incomplete, bytes.len());
    }
    let head = &bytes[..bytes.len().min(length)];
    let decoded = std::str::from_utf8(head).ok();
    match decoded.and_then(|text| text.chars().next()) {
        Some(c) => (Piece::Char(c), c.len_utf8()),
        None => (Piece::Invalid, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        quoted(bytes, 1, "", false, Charset::Utf8)
    }

    #[test]
    fn escapes_and_runs_are_gdb_s() {
        assert_eq!(shown(b"\0"), r#""""#);
        assert_eq!(shown(b"a\"\\\n\x1b1\x7f\0"), r#""a\"\\\n\0331\177""#);
        let mut runs = vec![b'x'; 100];
        runs.extend([b'y'; 30]);
        runs.extend(b"ab");
        runs.extend([b'z'; 11]);
        assert_eq!(
            shown(&runs),
            r#"'x' <repeats 100 times>, 'y' <repeats 30 times>, "ab", 'z' <repeats 11 times>"#
        );
        assert_eq!(quoted(b"abc", 1, "", true, Charset::Utf8), r#""abc"..."#);
        assert_eq!(shown(&[0; 12]), r#"'\000' <repeats 11 times>"#);
    }

    #[test]
    fn bytes_that_are_no_text_are_numbers() {
        assert_eq!(shown("é€".as_bytes()), "\"é€\"");
        assert_eq!(
            quoted("é".as_bytes(), 1, "", false, Charset::Ascii),
            r#""\303\251""#
        );
        assert_eq!(shown(b"a\xff\xfeb"), r#""a\377\376b""#);
        assert_eq!(
            shown(b"aa\xe2\x82"),
            r#""a", <incomplete sequence \342\202>"#
        );
        let wide: Vec<u8> = [b'w' as u32, 0x1f600, 0x11_0000]
            .iter()
            .flat_map(|c| c.to_le_bytes())
            .collect();
        assert_eq!(
            quoted(&wide, 4, "U", false, Charset::Utf8),
            "U\"w😀\\x110000\""
        );
        assert_eq!(
            quoted(&[0xac, 0x20], 2, "u", false, Charset::Ascii),
            r#"u"\x20ac""#
        );
    }
}
