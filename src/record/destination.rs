//! Where records are to go, as `-o` says it: `[FORMAT:]FILE`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::text::escaped;

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

/// What a name stands for: a file that is there by its numbers, one that is still to be made by its
/// directory and name.
#[derive(PartialEq, Eq)]
enum Home {
    There(u64, u64),
    New(PathBuf),
}

impl Destination {
    /// Whether both write to one file, which need not exist yet. What is no regular file takes any
    /// number of writers.
    pub(crate) fn is_same_file(&self, other: &Destination) -> bool {
        let home = |it: &Destination| it.path.as_deref().and_then(home);
        home(self).is_some_and(|own| home(other) == Some(own))
    }
}

fn home(path: &Path) -> Option<Home> {
    match std::fs::metadata(path) {
        Ok(there) => there
            .is_file()
            .then(|| Home::There(there.dev(), there.ino())),
        Err(_) => {
            let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
            let directory = std::fs::canonicalize(directory.unwrap_or(Path::new("."))).ok()?;
            Some(Home::New(directory.join(path.file_name()?)))
        }
    }
}

fn named(name: &[u8]) -> Result<Format, String> {
    let known = FORMATS.iter().find(|(known, ..)| known.as_bytes() == name);
    known.map(|(.., format)| *format).ok_or_else(|| {
        let name = escaped(&String::from_utf8_lossy(name));
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
            Some(ending) => {
                let ending = escaped(&ending.to_string_lossy());
                format!("the ending .{ending} is not known")
            }
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
    use crate::hostile::hostile;

    hostile!(
        fuzz_destinations,
        ["-", "jsonl:-", "hits.jsonl", "text:/tmp/a.b", "./a:b.txt"]
            .map(|text| text.as_bytes().to_vec())
            .to_vec(),
        |input| {
            if let Err(why) = Destination::parse(OsStr::from_bytes(input)) {
                assert!(
                    !why.contains(|c: char| c.is_control() && c != '\t'),
                    "{why:?}"
                );
            }
        }
    );

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
    fn one_file_is_known_by_all_its_names() {
        let same = |a: &str, b: &str| of(a).unwrap().is_same_file(&of(b).unwrap());
        let directory = std::env::temp_dir().join(format!("trapline-same-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let name = |name: &str| directory.join(name).to_str().unwrap().to_string();
        // None of them is there.
        assert!(same(&name("a.txt"), &format!("jsonl:{}", name("a.txt"))));
        assert!(same(&name("a.txt"), &name("./a.txt")));
        assert!(!same(&name("a.txt"), &name("b.txt")));
        assert!(same("no-such-file.txt", "text:./no-such-file.txt"));
        assert!(!directory.join("a.txt").exists());
        std::fs::write(directory.join("a.txt"), "").unwrap();
        std::os::unix::fs::symlink("a.txt", directory.join("c.txt")).unwrap();
        assert!(same(&name("a.txt"), &name("c.txt")));
        assert!(!same(&name("a.txt"), &name("b.txt")));
        assert!(!same("text:/dev/null", "jsonl:/dev/null"));
        assert!(!same("-", "-"));
        let _ = std::fs::remove_dir_all(directory);
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
