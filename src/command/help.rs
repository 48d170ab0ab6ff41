//! Lists of commands: by topic, and by what a person looks for.

use super::interpreter::{Call, Interpreter};
use super::top::{INFO, TOP};
use super::{catch, settings};
use crate::error::{Error, fail};

/// What commands are about, and which are: every command stands in one topic.
const TOPICS: &[(&str, &str, &[&str])] = &[
    (
        "breakpoints",
        "Where the program is stopped or looked at",
        &[
            "break",
            "tbreak",
            "rbreak",
            "watch",
            "rwatch",
            "awatch",
            "catch",
            "tcatch",
            "trace",
            "dprintf",
            "commands",
            "silent",
            "condition",
            "ignore",
            "enable",
            "disable",
            "delete",
            "clear",
            "save",
        ],
    ),
    (
        "data",
        "Looking at values and changing them",
        &[
            "print",
            "output",
            "printf",
            "call",
            "x",
            "hexdump",
            "echo",
            "whatis",
            "set",
            "display",
            "undisplay",
        ],
    ),
    (
        "running",
        "Starting, continuing and leaving the program",
        &[
            "run",
            "start",
            "continue",
            "inferior",
            "interrupt",
            "attach",
            "detach",
            "kill",
            "thread",
            "file",
            "quit",
            "return",
            "delay",
            "sample",
            "handle",
            "signal",
            "queue-signal",
        ],
    ),
    (
        "status",
        "What there is to know",
        &["info", "show", "help", "apropos", "maintenance"],
    ),
    (
        "scripts",
        "Commands out of commands",
        &[
            "if",
            "while",
            "source",
            "define",
            "define-prefix",
            "document",
            "alias",
            "eval",
            "dont-repeat",
            "shell",
            "make",
            "cd",
            "pwd",
            "unset",
            "python",
            "guile",
            "guile-repl",
            "python-interactive",
            "init-if-undefined",
            "loop_break",
            "loop_continue",
        ],
    ),
];

fn topic_of(name: &str) -> Option<usize> {
    TOPICS.iter().position(|(.., names)| names.contains(&name))
}

/// What `help` shows: the commands of each topic.
pub fn by_topic() -> String {
    let mut out = String::new();
    for (index, (topic, about, _)) in TOPICS.iter().enumerate() {
        out.push_str(&format!("{topic} -- {about}:\n\n{}\n", list_of(index)));
    }
    let rest: String = TOP
        .sorted()
        .filter(|entry| topic_of(entry.name).is_none())
        .map(|entry| TOP.line(entry))
        .collect();
    if !rest.is_empty() {
        out.push_str(&format!("others:\n\n{rest}\n"));
    }
    out
}

/// What `help TOPIC` shows.
pub fn topic(name: &str) -> Option<String> {
    let index = TOPICS.iter().position(|(topic, ..)| *topic == name)?;
    let about = TOPICS[index].1;
    Some(format!(
        "{about}.\n\nList of commands:\n\n{}",
        list_of(index)
    ))
}

fn list_of(topic: usize) -> String {
    let entries = TOP
        .sorted()
        .filter(|entry| topic_of(entry.name) == Some(topic));
    entries.map(|entry| TOP.line(entry)).collect()
}

/// `apropos REGEX`: the commands whose name or help it matches, in any case of letters.
pub fn apropos(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (verbose, pattern) = match call.arguments.strip_prefix("-v") {
        Some(rest) if rest.starts_with(char::is_whitespace) => (true, rest.trim_start()),
        _ => (false, call.arguments),
    };
    if pattern.is_empty() {
        fail!("REGEXP string is empty");
    }
    let builder = |pattern: &str| {
        regex::RegexBuilder::new(pattern)
            .case_insensitive(true)
            .size_limit(1 << 20)
            .build()
    };
    // What is no expression of ours (a lone parenthesis) means itself, as in gdb.
    let regex = builder(pattern)
        .or_else(|_| builder(&regex::escape(pattern)))
        .map_err(|error| Error::new(error.to_string()))?;
    let mut found: Vec<(String, String)> = Vec::new();
    for table in [&TOP, &INFO, &catch::CATCH, &settings::SET, &settings::SHOW] {
        for entry in table.sorted() {
            let names = std::iter::once(&entry.name).chain(entry.aliases);
            let named = names
                .map(|name| format!("{}{name}", table.prefix))
                .any(|name| regex.is_match(&name));
            if named || regex.is_match(entry.help) {
                let text = match verbose {
                    false => table.line(entry),
                    true => {
                        let name = format!("{}{}", table.prefix, entry.name);
                        format!("\n{name}\n{}\n", entry.help)
                    }
                };
                found.push((format!("{}{}", table.prefix, entry.name), text));
            }
        }
    }
    found.sort();
    for (_, text) in found {
        i.print(&text);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_has_two_topics() {
        for entry in TOP.entries {
            let topics = TOPICS
                .iter()
                .filter(|(.., names)| names.contains(&entry.name));
            assert!(topics.count() <= 1, "{}", entry.name);
        }
    }

    #[test]
    fn every_command_tells_how_it_is_used() {
        for table in [&TOP, &INFO, &catch::CATCH] {
            for entry in table.entries {
                let first = entry.help.lines().next().unwrap_or_default();
                assert!(first.ends_with('.'), "{}: {first}", entry.name);
            }
        }
    }
}
