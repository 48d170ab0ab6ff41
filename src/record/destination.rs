//! Where records are to go, as `-o` says it: `[FORMAT:]FILE`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    JsonLines,
}

/// Each format by its name, with the ending of a file that needs none.
const FORMATS: &[(&str, &str, Format)] = &[
    ("jsonl", "jsonl", Format::JsonLines),
    ("text", "txt", Format::Text),
];

/// One file, or standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    /// `None`: the one of standard output, which `--json` chooses.
    pub format: Option<Format>,
    /// `None` is standard output (`-`).
    pub path: Option<PathBuf>,
}

impl Destination {
    /// Reads `[FORMAT:]FILE`; `Err` tells what would have been understood. A name with a colon in
    /// it is given with its directory: `./a:b.txt`.
    pub(crate) fn parse(text: &OsStr) -> Result<Destination, String> {
        let bytes = text.as_bytes();
        let colon = bytes.iter().position(|byte| matches!(byte, b':' | b'/'));
        let (format, name) = match colon {
            Some(at) if bytes[at] == b':' => {
                let name = OsStr::from_bytes(&bytes[at + 1..]);
                (Some(named(&bytes[..at])?), name)
            }
            _ => (None, text),
        };
        if name.is_empty() {
            return Err("a file's name is missing".into());
        }
        if name == "-" {
            return Ok(Destination { format, path: None });
        }
        let path = PathBuf::from(name);
        let format = match format {
            Some(format) => format,
            None => by_ending(&path)?,
        };
        Ok(Destination {
            format: Some(format),
            path: Some(path),
        })
    }
}

fn named(name: &[u8]) -> Result<Format, String> {
    let known = FORMATS.iter().find(|(known, ..)| known.as_bytes() == name);
    known.map(|(.., format)| *format).ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        format!("`{name}:' is no format; {}", known_formats())
    })
}

fn by_ending(path: &Path) -> Result<Format, String> {
    let ending = path.extension();
    let known = FORMATS
        .iter()
        .find(|(_, known, _)| ending == Some(OsStr::new(known)));
    known.map(|(.., format)| *format).ok_or_else(|| {
        let what = match ending {
            Some(ending) => format!("the ending .{} is not known", ending.to_string_lossy()),
            None => "a file without an ending".into(),
        };
        format!("{what}; {}", known_formats())
    })
}

/// What stands in help and complaints.
pub(crate) fn known_formats() -> String {
    let list: Vec<String> = FORMATS
        .iter()
        .map(|(name, ending, _)| format!("FILE.{ending} or {name}:FILE"))
        .collect();
    format!("use {}, and - for standard output", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Destination, String> {
        Destination::parse(OsStr::new(text))
    }

    #[test]
    fn the_ending_or_the_word_in_front_chooses() {
        use Format::{JsonLines, Text};
        for (text, format, path) in [
            ("a.jsonl", Some(JsonLines), Some("a.jsonl")),
            ("/x/b.c.txt", Some(Text), Some("/x/b.c.txt")),
            ("jsonl:a.txt", Some(JsonLines), Some("a.txt")),
            ("text:/dev/full", Some(Text), Some("/dev/full")),
            ("-", None, None),
            ("jsonl:-", Some(JsonLines), None),
            ("./a:b.txt", Some(Text), Some("./a:b.txt")),
            ("text:a:b", Some(Text), Some("a:b")),
        ] {
            let path = path.map(PathBuf::from);
            assert_eq!(of(text), Ok(Destination { format, path }), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_lists_what_is() {
        for (text, part) in [
            (
                "a.pcapng",
                "the ending .pcapng is not known; use FILE.jsonl",
            ),
            ("a", "a file without an ending; use"),
            (".txt", "a file without an ending; use"),
            ("csv:a.csv", "`csv:' is no format; use"),
            ("text:", "a file's name is missing"),
            ("", "a file's name is missing"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
