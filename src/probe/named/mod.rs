//! Named probes: `someip:recv` stands for the places where a known stack handles a message, and says
//! what the message is there.
//!
//! They are text files ([`parse`] reads them): ours are compiled in, a user's are read from the
//! configuration directory or named on the command line. A probe has *versions* of a stack, a
//! version has *places*, and a place has *pieces*: expressions in gdb's language over what is known
//! at the function's entry. `$_msg`, `$_topic` and the like in conditions and bodies stand for these
//! expressions of the place where they are used ([`Reading`]); nothing of them is left when a body
//! is compiled.

mod parse;
mod reading;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, fail};
use crate::lang::Expr;
use crate::lang::script::Position;

pub(crate) use reading::{Reading, shown};

/// Larger files are refused, bytes.
const MOST_BYTES: u64 = 256 << 10;

/// One named probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// `ns:name`.
    pub name: String,
    /// What it is hit by.
    pub about: String,
    /// Of stacks and their versions, in the order in which they are tried.
    pub versions: Vec<Version>,
    /// Where it was written.
    pub at: Position,
    /// It comes with the program.
    pub builtin: bool,
}

/// A stack that a probe knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    /// The stack and its version, for people.
    pub title: String,
    /// The library that has the functions; any module without it.
    pub library: Option<String>,
    /// The functions.
    pub places: Vec<Place>,
}

/// A function at whose entry a message is at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// As it would be typed behind the library's name.
    pub location: String,
    /// What is known there.
    pub pieces: Arc<Pieces>,
}

impl Place {
    /// The location as it is looked up.
    pub fn spec(&self, library: Option<&str>) -> String {
        match library {
            Some(library) if self.location.starts_with('+') => {
                format!("{library}{}", self.location)
            }
            Some(library) => format!("{library}:{}", self.location),
            None => self.location.clone(),
        }
    }
}

/// What is known at one place, in the order in which the pieces may use each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// The probe's name.
    pub probe: String,
    /// The stack's version.
    pub version: String,
    /// How the message is encoded.
    pub codec: Option<String>,
    /// Only passes for which this is true are hits.
    pub when: Option<String>,
    /// The pieces.
    pub list: Vec<Piece>,
}

/// One named value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// What stands behind the `$`: `_msg.address`, `_topic`.
    pub name: String,
    /// The format letter in which it is shown.
    pub letter: Option<char>,
    /// The expression.
    pub text: String,
    /// Where it was written.
    pub at: Position,
}

impl Piece {
    /// The name as it is shown in front of the value.
    pub fn title(&self) -> &str {
        let name = self.name.strip_prefix("_msg.");
        name.unwrap_or_else(|| self.name.trim_start_matches('_'))
    }
}

/// A piece, parsed where it is used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shown {
    /// As in [`Piece`].
    pub name: String,
    /// In front of the value.
    pub title: String,
    /// The format letter.
    pub letter: Option<char>,
    /// The expression.
    pub expr: Expr,
}

/// All named probes that are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    list: Vec<Arc<Named>>,
}

const BUILTIN: [(&str, &str); 4] = [
    ("someip.probes", include_str!("builtin/someip.probes")),
    ("ros2.probes", include_str!("builtin/ros2.probes")),
    ("cyber.probes", include_str!("builtin/cyber.probes")),
    ("dds.probes", include_str!("builtin/dds.probes")),
];

impl Registry {
    /// Those that come with the program.
    pub fn builtin() -> Registry {
        let mut registry = Registry::default();
        for (file, text) in BUILTIN {
            // A test reads each of them.
            for mut named in parse::parse(file, text).unwrap_or_default() {
                named.builtin = true;
                registry.list.push(Arc::new(named));
            }
        }
        registry
    }

    /// The one with that name.
    pub fn get(&self, name: &str) -> Option<Arc<Named>> {
        self.list.iter().find(|named| named.name == name).cloned()
    }

    /// What else there is where `name` would be a named probe and none has it.
    pub fn instead_of(&self, name: &str) -> Option<String> {
        let (space, rest) = name.split_once(':')?;
        let own = |named: &&Arc<Named>| named.name.split(':').next() == Some(space);
        let names: Vec<&str> = self
            .list
            .iter()
            .filter(own)
            .map(|n| n.name.as_str())
            .collect();
        (!names.is_empty() && !rest.starts_with(':')).then(|| {
            format!(
                "There is no named probe \"{name}\"; of {space} there are {}.",
                names.join(", ")
            )
        })
    }

    /// All, the built-in ones first.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Named>> {
        self.list.iter()
    }

    /// Reads a user's file. A probe of it takes the place of a built-in one with its name.
    pub fn add_file(&mut self, path: &Path) -> Result<(), Error> {
        let shown = path.display();
        let cannot = |error| Error::new(format!("Cannot read {shown}: {error}."));
        let mut text = Vec::new();
        let mut file = File::open(path).map_err(cannot)?.take(MOST_BYTES + 1);
        file.read_to_end(&mut text).map_err(cannot)?;
        if text.len() as u64 > MOST_BYTES {
            fail!("{shown} is no file of named probes: it has more than {MOST_BYTES} bytes.");
        }
        let Ok(text) = String::from_utf8(text) else {
            fail!("{shown} is no file of named probes: it is not UTF-8 text.");
        };
        self.add(&shown.to_string(), &text)
    }

    fn add(&mut self, file: &str, text: &str) -> Result<(), Error> {
        let new = parse::parse(file, text).map_err(|error| Error::new(error.to_string()))?;
        for named in new {
            let same = self.list.iter().position(|other| other.name == named.name);
            match same.map(|index| (index, &self.list[index])) {
                Some((_, other)) if !other.builtin => fail!(
                    "{}: {} is defined at {} too: rename one of them.",
                    named.at,
                    named.name,
                    other.at
                ),
                Some((index, _)) => self.list[index] = Arc::new(named),
                None => self.list.push(Arc::new(named)),
            }
        }
        Ok(())
    }

    /// Reads `*.probes` of the user's configuration directory, in order of their names. What is wrong
    /// with one does not keep the others away.
    pub fn add_configured(&mut self) -> Vec<Error> {
        let Some(directory) = configured() else {
            return Vec::new();
        };
        // No directory, no probes.
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "probes") && path.is_file())
            .collect();
        files.sort();
        let results = files.iter().map(|file| self.add_file(file));
        results.filter_map(Result::err).collect()
    }
}

/// `$XDG_CONFIG_HOME/trapline/probes`, or the same below `~/.config`.
fn configured() -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(absolute);
    let config = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))?;
    Some(config.join("trapline/probes"))
}
