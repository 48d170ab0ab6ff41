//! What can stand at a place in a line, as the command's own usage line says it: the prompt's
//! completion and hints come from the help texts and cannot disagree with them.

use super::interpreter::Action;
use super::table::{Entry, Table, split};
use super::top::{INFO, TOP};
use super::{catch, settings, top};

/// What a place takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// One of these words.
    Word(String),
    /// The name of a command.
    Command,
    /// A place in the program, and a condition behind it.
    Location,
    /// An expression.
    Expression,
    /// A file.
    File,
    /// The number of a breakpoint.
    Breakpoint,
    /// The number of a thread.
    Thread,
    /// A register without its `$`.
    Register,
}

/// The place behind the words of a line that are complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where in the line what follows the command's name begins.
    pub begins: usize,
    /// What can stand there.
    pub expected: Vec<Expected>,
    /// The usage of what follows the command's name.
    pub usage: String,
}

/// The tables of sub-commands.
fn below(name: &str) -> Option<&'static Table<Action>> {
    match name {
        "catch" => Some(&catch::CATCH),
        "info" => Some(&INFO),
        "set" => Some(&settings::SET),
        "show" => Some(&settings::SHOW),
        "tcatch" => Some(&catch::TCATCH),
        "maintenance" => Some(&top::MAINT),
        _ => None,
    }
}

/// What can stand at the end of `line`, whose last word is being typed. `None`: its command is
/// not known.
pub fn expected(line: &str) -> Option<Place> {
    let (word, rest) = split(line);
    if !has_ended(line, word, rest) {
        return Some(Place {
            begins: line.len() - line.trim_start().len(),
            expected: vec![Expected::Command],
            usage: String::new(),
        });
    }
    let entry = TOP.find(word).ok()?;
    if let Some(table) = below(entry.name) {
        return Some(below_place(table, entry, line, rest));
    }
    Some(place(entry.name, entry, line, rest))
}

/// The word is complete: something follows, if only a blank.
fn has_ended(line: &str, word: &str, rest: &str) -> bool {
    !word.is_empty() && (!rest.is_empty() || line.ends_with(char::is_whitespace))
}

/// The place in the arguments of a command with others below it, which have names of one word or
/// of several.
fn below_place(
    table: &'static Table<Action>,
    above: &'static Entry<Action>,
    line: &str,
    rest: &str,
) -> Place {
    let mut words = Vec::new();
    let mut left = rest;
    loop {
        let (word, behind) = split(left);
        if !has_ended(left, word, behind) {
            break;
        }
        words.push(word);
        left = behind;
        let full = words.join(" ");
        if let Some(entry) = table.exact(&full) {
            let longer = table.entries.iter().any(|e| {
                let rest = e.name.strip_prefix(entry.name);
                rest.is_some_and(|rest| rest.starts_with(' '))
            });
            if !longer {
                let name = format!("{}{}", table.prefix, entry.name);
                return place(&name, entry, line, left);
            }
        }
    }
    let before = words.join(" ");
    let mut expected: Vec<Expected> = next_words(table, &before)
        .into_iter()
        .map(Expected::Word)
        .collect();
    if words.len() == 1
        && let Ok(entry) = table.find(&before)
        && !entry.name.contains(' ')
    {
        // An abbreviation of one word.
        let name = format!("{}{}", table.prefix, entry.name);
        return place(&name, entry, line, left);
    }
    if above.name == "set" && words.is_empty() {
        expected.push(Expected::Expression);
    }
    if above.name == "set" && expected.is_empty() {
        expected.push(Expected::Expression);
    }
    let usage = usage(above.name, above.help);
    Place {
        begins: line.len() - left.len(),
        expected,
        usage: if words.is_empty() {
            usage
        } else {
            String::new()
        },
    }
}

/// The words that can follow the words of `before` in names of several words.
fn next_words(table: &Table<Action>, before: &str) -> Vec<String> {
    let mut list: Vec<String> = table
        .entries
        .iter()
        .filter_map(|entry| {
            let rest = match before {
                "" => entry.name,
                before => entry.name.strip_prefix(before)?.strip_prefix(' ')?,
            };
            Some(rest.split(' ').next()?.to_string())
        })
        .collect();
    list.sort_unstable();
    list.dedup();
    list
}

fn place(name: &str, entry: &Entry<Action>, line: &str, rest: &str) -> Place {
    let usage = usage(name, entry.help);
    // A format is part of the command.
    let behind_name = !line[..line.len() - rest.len()].ends_with(char::is_whitespace);
    let rest = match rest.strip_prefix('/').filter(|_| behind_name) {
        Some(format) => match format.find(char::is_whitespace) {
            Some(end) => format[end..].trim_start(),
            None => {
                return Place {
                    begins: line.len(),
                    expected: Vec::new(),
                    usage: String::new(),
                };
            }
        },
        None => rest,
    };
    Place {
        begins: line.len() - rest.len(),
        expected: kinds(name, &usage),
        usage,
    }
}

/// What stands behind the name in the first line of a command's usage.
fn usage(name: &str, help: &str) -> String {
    let line = help
        .lines()
        .find_map(|line| line.strip_prefix("Usage: "))
        .unwrap_or_default();
    let rest = line.strip_prefix(name).unwrap_or_default();
    // The slash and its letters are part of the name.
    let rest = match rest.strip_prefix("[/") {
        Some(letters) => letters.split_once(']').map_or("", |(_, rest)| rest),
        None => rest,
    };
    rest.trim().to_string()
}

/// What a usage's words stand for.
fn kinds(name: &str, usage: &str) -> Vec<Expected> {
    let mut kinds = Vec::new();
    let words = usage.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    for word in words.filter(|word| !word.is_empty()) {
        let kind = match (word, name) {
            ("LOCATION", "disable" | "enable") => continue,
            ("LOCATION", _) => Expected::Location,
            ("EXPRESSION" | "ADDRESS" | "CONDITION" | "COUNT" | "LENGTH", _) => {
                Expected::Expression
            }
            ("FILE" | "PROGRAM" | "DIRECTORY", _) => Expected::File,
            ("COMMAND", "alias" | "help") => Expected::Command,
            ("NAME", "info registers") => Expected::Register,
            ("N", "thread") => Expected::Thread,
            ("N", "continue" | "show values") => continue,
            ("N", _) => Expected::Breakpoint,
            ("if", _) => continue,
            (word, _) if word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') => {
                Expected::Word(word.to_string())
            }
            _ => continue,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.contains(&Expected::Location) {
        // Its condition comes behind it.
        kinds.retain(|kind| *kind == Expected::Location);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use Expected::*;

    fn kinds_at(line: &str) -> Vec<Expected> {
        expected(line)
            .map(|place| place.expected)
            .unwrap_or_default()
    }

    #[test]
    fn the_usage_says_what_comes() {
        for (line, kinds) in [
            ("", vec![Command]),
            ("  br", vec![Command]),
            ("break ", vec![Location]),
            ("b ns::", vec![Location]),
            ("tbreak f", vec![Location]),
            ("print ", vec![Expression]),
            ("p/x $r", vec![Expression]),
            ("p/", vec![]),
            ("x/4xb ", vec![Expression]),
            ("file /us", vec![File]),
            ("delete ", vec![Breakpoint]),
            ("thread ", vec![Thread]),
            ("info registers r", vec![Register]),
            ("i r ", vec![Register]),
            ("info breakpoints ", vec![Breakpoint]),
            ("help ", vec![Command]),
            ("echo ", vec![]),
            ("nosuch ", vec![]),
        ] {
            assert_eq!(kinds_at(line), kinds, "{line}");
        }
    }

    #[test]
    fn words_of_usages_and_sub_commands_are_offered() {
        let word = |text: &str| Word(text.into());
        assert!(kinds_at("info ").contains(&word("breakpoints")));
        assert!(kinds_at("set ").contains(&word("pagination")));
        assert!(kinds_at("set ").contains(&Expression));
        assert!(kinds_at("show pag").contains(&word("pagination")));
        assert_eq!(
            kinds_at("enable "),
            [word("once"), word("delete"), word("count"), Breakpoint]
        );
        for line in ["source ", "source /tmp/a"] {
            assert_eq!(kinds_at(line), [word("-s"), word("-v"), File], "{line}");
        }
    }

    #[test]
    fn arguments_begin_behind_the_name() {
        let begins = |line: &str| expected(line).map(|place| place.begins);
        assert_eq!(begins("break f(in"), Some(6));
        assert_eq!(begins("  b  f"), Some(5));
        assert_eq!(begins("info registers  ri"), Some(16));
        assert_eq!(begins("set var $"), Some(8));
    }
}
