//! The file format of named probes: a keyword a line, its text behind it; `#` begins a comment line.
//!
//! ```text
//! probe    NS:NAME            begins a probe
//! about    TEXT               what it is hit by
//! message  CODEC              how its messages are encoded
//! field    NAME[/F] EXPR      $_msg.NAME, at every place
//! value    NAME[/F] EXPR      $_NAME, at every place
//! version  TEXT               begins a stack's version; those in front are tried first
//! library  FILE               where its functions are; in any module without this line
//! at       LOCATION           begins a place: a function, or +0xOFFSET in the library
//! when     EXPR               only such passes are hits
//! address  EXPR               $_msg.address
//! length   EXPR               $_msg.length
//! topic    EXPR               $_topic
//! stamp    EXPR               $_stamp
//! ```
//!
//! `field` and `value` may also stand behind `at`, for that place alone. Indentation means nothing.

use std::sync::Arc;

use super::{Named, Piece, Pieces, Place, Reading, Version, shown};
use crate::lang::script::{Position, ScriptError};
use crate::lang::{self, AnyName, Scope};
use crate::record::text::escaped;

/// More probes in a file, versions of a probe, places of a version or pieces of a place are refused.
const MOST: usize = 200;
/// Each place has the values of its probe too; more in all places together are refused.
const MOST_PIECES: usize = 5000;
/// Longer lines are refused.
const MOST_LINE: usize = 8 << 10;

const IN_FILE: &[&str] = &["probe"];
const IN_PROBE: &[&str] = &["about", "message", "field", "value", "version", "probe"];
const IN_VERSION: &[&str] = &["library", "at", "version", "probe"];
const IN_PLACE: &[&str] = &[
    "when", "address", "length", "topic", "stamp", "field", "value", "at", "version", "probe",
];

/// `$_NAME` of the language itself.
const TAKEN: &[&str] = &[
    "msg", "topic", "stamp", "now", "wall", "tid", "pid", "comm", "cpu", "func", "probe", "retval",
    "entry", "exitcode", "siginfo", "be16", "be32", "be64", "atoi", "strlen", "streq", "memeq",
    "regex", "random", "someip",
];

/// Reads a whole file; what is wrong is told with the line and what to write instead.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Named>, ScriptError> {
    let mut reader = Reader {
        at: Position {
            file: file.into(),
            line: 0,
        },
        done: Vec::new(),
        probe: None,
        pieces: 0,
    };
    for (number, line) in text.lines().enumerate() {
        reader.at.line = u32::try_from(number + 1).unwrap_or(u32::MAX);
        reader.line(line.trim())?;
    }
    reader.end_probe()?;
    Ok(reader.done)
}

/// A place whose pieces are still coming.
struct OpenPlace {
    location: String,
    at: Position,
    when: Option<Piece>,
    pieces: Vec<Piece>,
}

/// A version whose places are still coming.
struct OpenVersion {
    title: String,
    at: Position,
    library: Option<String>,
    places: Vec<OpenPlace>,
}

/// A probe whose versions are still coming.
struct OpenProbe {
    name: String,
    at: Position,
    about: Option<String>,
    codec: Option<String>,
    shared: Vec<Piece>,
    versions: Vec<OpenVersion>,
}

struct Reader {
    at: Position,
    done: Vec<Named>,
    probe: Option<OpenProbe>,
    /// Of all places that are done.
    pieces: usize,
}

/// What is wrong, without what a terminal acts on: it may quote the file.
fn error(at: &Position, message: impl Into<String>) -> ScriptError {
    ScriptError {
        at: at.clone(),
        message: escaped(&message.into()),
    }
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), ScriptError> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.len() > MOST_LINE {
            return Err(self.error(format!("the line is longer than {MOST_LINE} bytes.")));
        }
        let (keyword, rest) = line
            .split_once(char::is_whitespace)
            .map_or((line, ""), |(keyword, rest)| (keyword, rest.trim()));
        let (known, behind) = self.known();
        if !known.contains(&keyword) {
            let everywhere = [IN_PROBE, IN_VERSION, IN_PLACE];
            let cure = match everywhere.iter().any(|known| known.contains(&keyword)) {
                true => format!("{keyword} cannot stand {behind}"),
                false => format!("{} is no keyword", quoted(keyword)),
            };
            return Err(self.error(format!("{cure}: there {} can stand.", known.join(", "))));
        }
        if rest.is_empty() {
            return Err(self.error(format!("{keyword} needs {}.", needs(keyword))));
        }
        self.keyword(keyword, rest)
    }

    fn error(&self, message: impl Into<String>) -> ScriptError {
        error(&self.at, message)
    }

    /// What may come next, and behind what.
    fn known(&self) -> (&'static [&'static str], &'static str) {
        let Some(probe) = &self.probe else {
            return (IN_FILE, "in front of the first probe");
        };
        match probe.versions.last() {
            None => (IN_PROBE, "behind probe"),
            Some(version) if version.places.is_empty() => (IN_VERSION, "behind version"),
            Some(_) => (IN_PLACE, "behind at"),
        }
    }

    fn keyword(&mut self, keyword: &str, rest: &str) -> Result<(), ScriptError> {
        if keyword == "probe" {
            self.end_probe()?;
            return self.begin_probe(rest);
        }
        let at = self.at.clone();
        let Some(probe) = &mut self.probe else {
            return Err(error(&at, "a file begins with a probe."));
        };
        let twice = |what: &str| Err(error(&at, format!("{what} is there already: remove one.")));
        let full = |what: &str| Err(error(&at, format!("there are more than {MOST} {what}.")));
        match keyword {
            "about" if probe.about.is_some() => return twice("about"),
            "about" => probe.about = Some(rest.into()),
            "message" if probe.codec.is_some() => return twice("message"),
            "message" if !is_name(rest) => {
                let text = format!(
                    "{} is no codec's name: use small letters and digits.",
                    quoted(rest)
                );
                return Err(error(&at, text));
            }
            "message" => probe.codec = Some(rest.into()),
            "version" if probe.versions.len() >= MOST => return full("versions"),
            "version" => probe.versions.push(OpenVersion {
                title: rest.into(),
                at,
                library: None,
                places: Vec::new(),
            }),
            _ => {
                let Some(version) = probe.versions.last_mut() else {
                    let piece = piece(keyword, rest, &at)?;
                    return add(&mut probe.shared, piece);
                };
                match keyword {
                    "library" if version.library.is_some() => return twice("library"),
                    "library" => version.library = Some(rest.into()),
                    "at" if version.places.len() >= MOST => return full("places"),
                    "at" => version.places.push(OpenPlace {
                        location: rest.into(),
                        at,
                        when: None,
                        pieces: Vec::new(),
                    }),
                    _ => {
                        let Some(place) = version.places.last_mut() else {
                            return Err(error(&at, "a version begins with its places."));
                        };
                        let piece = piece(keyword, rest, &at)?;
                        if keyword != "when" {
                            return add(&mut place.pieces, piece);
                        }
                        if place.when.is_some() {
                            return twice("when");
                        }
                        place.when = Some(piece);
                    }
                }
            }
        }
        Ok(())
    }

    fn begin_probe(&mut self, name: &str) -> Result<(), ScriptError> {
        let whole = name
            .split_once(':')
            .is_some_and(|(space, name)| is_name(space) && is_name(name));
        if !whole {
            return Err(self.error(format!(
                "{} is no probe's name: write NS:NAME, both of small letters, digits and _.",
                quoted(name)
            )));
        }
        if let Some(other) = self.done.iter().find(|other| other.name == name) {
            let text = format!("{name} is in line {} already: rename one.", other.at.line);
            return Err(self.error(text));
        }
        if self.done.len() >= MOST {
            return Err(self.error(format!("there are more than {MOST} probes.")));
        }
        self.probe = Some(OpenProbe {
            name: name.into(),
            at: self.at.clone(),
            about: None,
            codec: None,
            shared: Vec::new(),
            versions: Vec::new(),
        });
        Ok(())
    }

    fn end_probe(&mut self) -> Result<(), ScriptError> {
        let Some(probe) = self.probe.take() else {
            return Ok(());
        };
        if probe.versions.is_empty() {
            let text = format!(
                "{} has no version: add `version TEXT' and `at FUNCTION'.",
                probe.name
            );
            return Err(error(&probe.at, text));
        }
        let mut versions = Vec::new();
        for version in &probe.versions {
            if version.places.is_empty() {
                let text = "this version has no place: add `at FUNCTION'.";
                return Err(error(&version.at, text));
            }
            let mut places = Vec::new();
            for place in &version.places {
                let place = finish(&probe, version, place)?;
                self.pieces += place.pieces.list.len();
                if self.pieces > MOST_PIECES {
                    let text = format!("the places of a file have more than {MOST_PIECES} values.");
                    return Err(error(&probe.at, text));
                }
                places.push(place);
            }
            versions.push(Version {
                title: version.title.clone(),
                library: version.library.clone(),
                places,
            });
        }
        self.done.push(Named {
            name: probe.name,
            about: probe.about.unwrap_or_default(),
            versions,
            at: probe.at,
            builtin: false,
        });
        Ok(())
    }
}

/// A place with all its pieces; each has to be an expression.
fn finish(
    probe: &OpenProbe,
    version: &OpenVersion,
    place: &OpenPlace,
) -> Result<Place, ScriptError> {
    if place.location.starts_with('+') && version.library.is_none() {
        let text = "an offset needs to know of what: add `library FILE' to its version.";
        return Err(error(&place.at, text));
    }
    let mut list = place.pieces.clone();
    // `address` and `length` first: the others may be fields of what is there.
    list.sort_by_key(|piece| match piece.name.as_str() {
        "_msg.address" => 0,
        "_msg.length" => 1,
        _ => 2,
    });
    for piece in &probe.shared {
        add(&mut list, piece.clone())?;
    }
    let has = |name: &str| list.iter().any(|piece| piece.name == name);
    if !has("_msg.address") && list.iter().any(|piece| piece.name.starts_with("_msg.")) {
        let text =
            "this place has a message's length or fields and not its address: add `address EXPR'.";
        return Err(error(&place.at, text));
    }
    let pieces = Arc::new(Pieces {
        probe: probe.name.clone(),
        version: version.title.clone(),
        codec: probe.codec.clone(),
        when: place.when.as_ref().map(|when| when.text.clone()),
        list,
    });
    let reading = Reading::new(pieces.clone(), false);
    let of_place = |name: &str, scope: &dyn Scope| reading.piece(name, scope);
    let check = AnyName::with_pieces(&of_place);
    shown(&pieces, &check).map_err(|why| located(&why.to_string(), &place.at))?;
    if let Some(when) = &place.when {
        lang::parse(&when.text, &check).map_err(|why| error(&when.at, why.to_string()))?;
    }
    Ok(Place {
        location: place.location.clone(),
        pieces,
    })
}

/// An error of a piece names its line already.
fn located(text: &str, at: &Position) -> ScriptError {
    let own = format!("{}:", at.file);
    let line = text
        .strip_prefix(&own)
        .and_then(|rest| rest.split_once(": "));
    match line.and_then(|(line, text)| Some((line.parse().ok()?, text))) {
        Some((line, text)) => error(
            &Position {
                file: at.file.clone(),
                line,
            },
            text,
        ),
        None => error(at, text),
    }
}

fn add(list: &mut Vec<Piece>, piece: Piece) -> Result<(), ScriptError> {
    if let Some(other) = list.iter().find(|other| other.name == piece.name) {
        let text = format!(
            "${} is in line {} already: remove one.",
            piece.name, other.at.line
        );
        return Err(error(&piece.at, text));
    }
    if list.len() >= MOST {
        return Err(error(
            &piece.at,
            format!("there are more than {MOST} values."),
        ));
    }
    list.push(piece);
    Ok(())
}

/// `EXPR`, or `NAME[/F] EXPR` of a field or value.
fn piece(keyword: &str, rest: &str, at: &Position) -> Result<Piece, ScriptError> {
    let (name, letter, text) = match keyword {
        "address" | "length" => (format!("_msg.{keyword}"), None, rest),
        "field" | "value" => {
            let (head, text) = rest
                .split_once(char::is_whitespace)
                .ok_or_else(|| error(at, format!("{keyword} needs {}.", needs(keyword))))?;
            let (name, letter) = match head.split_once('/') {
                Some((name, letter)) => (name, Some(letter)),
                None => (head, None),
            };
            let own = keyword == "value" && is_taken(name)
                || keyword == "field" && matches!(name, "address" | "length");
            if !is_name(name) || own {
                let why = if own {
                    "is the language's own"
                } else {
                    "is no name"
                };
                let text = format!(
                    "{} {why}: choose another of small letters, digits and _.",
                    quoted(name)
                );
                return Err(error(at, text));
            }
            let letter = match letter.map(|letter| (letter, letter.chars().next())) {
                None => None,
                Some((letter, Some(c))) if letter.len() == 1 && "xduotacs".contains(c) => Some(c),
                Some((letter, _)) => {
                    let text = format!("/{letter} is no format: use one of x d u o t a c s.");
                    return Err(error(at, text));
                }
            };
            let name = match keyword {
                "field" => format!("_msg.{name}"),
                _ => format!("_{name}"),
            };
            (name, letter, text.trim())
        }
        keyword => (format!("_{keyword}"), None, rest),
    };
    Ok(Piece {
        name,
        letter,
        text: text.into(),
        at: at.clone(),
    })
}

/// Words of a message: what was written, short and without what a terminal acts on.
fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    format!("\"{}\"", short.escape_debug())
}

fn needs(keyword: &str) -> &'static str {
    match keyword {
        "probe" => "a name: probe NS:NAME",
        "field" | "value" => "a name and an expression: NAME EXPR",
        "library" => "a file's name: library libx.so",
        "at" => "a location: at FUNCTION",
        "about" | "version" | "message" => "a text",
        _ => "an expression",
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn is_taken(name: &str) -> bool {
    let digits = name
        .strip_prefix("farg")
        .or_else(|| name.strip_prefix("arg"));
    TAKEN.contains(&name) || digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}
