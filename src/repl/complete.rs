//! What Tab offers: the words that can stand where the cursor is.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::command::expect::{Expected, Place, expected};
use crate::command::table::split;
use crate::command::top::TOP;
use crate::lang::braces;
use crate::symbols::catalog::{Catalog, Matches, Wanted};

/// gdb's `max-completions`.
const MOST: usize = 200;
/// How long Tab waits for names that are still being read.
const PATIENCE: Duration = Duration::from_millis(40);

/// What is known where the line is typed, which is not where commands run.
#[derive(Clone, Default)]
pub struct Words {
    /// Commands that the user has defined.
    pub commands: Vec<String>,
    /// Numbers of breakpoints.
    pub breakpoints: Vec<String>,
    /// Numbers of threads.
    pub threads: Vec<String>,
    /// Convenience variables without their `$`.
    pub variables: Vec<String>,
    /// Named probes.
    pub probes: Vec<String>,
    /// Symbols.
    pub catalog: Arc<Catalog>,
}

/// Something to choose from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// What stands in the line then.
    pub text: String,
    /// What is listed, where that is something else.
    pub shown: Option<String>,
}

impl Candidate {
    fn word(text: impl Into<String>) -> Candidate {
        Candidate {
            text: text.into(),
            shown: None,
        }
    }
}

/// Where the words begin that can stand at the end of `line`, and those words.
pub fn complete(line: &str, words: &Words) -> (usize, Vec<Candidate>) {
    let (start, mut list) = anywhere(line, words);
    list.sort_unstable();
    list.dedup();
    (start, list)
}

fn anywhere(line: &str, words: &Words) -> (usize, Vec<Candidate>) {
    if let Some(begun) = body_of_trace(line) {
        let (start, list) = anywhere(&line[begun..], words);
        return (begun + start, list);
    }
    let Some(place) = expected(line) else {
        return (line.len(), Vec::new());
    };
    let helped = matches!(split(line), (word, _) if is_help(word));
    if helped && place.expected == [Expected::Command] && place.usage.is_empty() {
        return by_kind(line, &place, words);
    }
    if helped && place.begins > 0 && place.expected.contains(&Expected::Command) {
        let (start, mut list) = anywhere(&line[place.begins..], words);
        // Behind a command's name there are its sub-commands and nothing that it would take.
        list.retain(|candidate| !candidate.text.starts_with(['$', '*']));
        return (place.begins + start, list);
    }
    by_kind(line, &place, words)
}

fn is_help(word: &str) -> bool {
    TOP.find(word).is_ok_and(|entry| entry.name == "help")
}

/// Where the command begins that is typed inside of the braces of a `trace`.
fn body_of_trace(line: &str) -> Option<usize> {
    let (word, _) = split(line);
    let is_trace = TOP.find(word).is_ok_and(|entry| entry.name == "trace");
    if !is_trace || !braces::is_open(line) {
        return None;
    }
    let at = line.rfind(['{', ';', '\n'])? + 1;
    // In `{char}` the brace is a cast's.
    (!line[at..].contains('}')).then_some(at)
}

fn by_kind(line: &str, place: &Place, words: &Words) -> (usize, Vec<Candidate>) {
    let last = line.rfind([' ', '\t', ',']).map_or(0, |at| at + 1);
    let last = last.max(place.begins);
    let begun = &line[last..];
    let mut list = Vec::new();
    let of = |list: &[String]| -> Vec<Candidate> {
        let fits = list.iter().filter(|word| word.starts_with(begun));
        fits.map(|word| Candidate::word(word.clone())).collect()
    };
    for kind in &place.expected {
        match kind {
            Expected::Word(word) if word.starts_with(begun) => list.push(Candidate::word(word)),
            Expected::Word(_) => {}
            Expected::Command => {
                list.extend(TOP.complete(begun).into_iter().map(Candidate::word));
                list.extend(of(&words.commands));
            }
            Expected::Breakpoint => list.extend(of(&words.breakpoints)),
            Expected::Thread => list.extend(of(&words.threads)),
            Expected::Register => {
                let names = crate::lang::registers::names();
                let fits = names.filter(|name| name.starts_with(begun));
                list.extend(fits.map(Candidate::word));
            }
            Expected::File => return files(line, place.begins),
            Expected::Location => return location(line, place.begins, words),
            Expected::Expression => {
                let (start, more) = expression(line, place.begins, words);
                if start != last && list.is_empty() {
                    return (start, more);
                }
                if start == last {
                    list.extend(more);
                }
            }
        }
    }
    (last, list)
}

/// Names of functions, quoted or not, in one library or in all; behind `if` an expression.
fn location(line: &str, begins: usize, words: &Words) -> (usize, Vec<Candidate>) {
    let text = &line[begins..];
    if let Some(at) = text.rfind(" if ") {
        return expression(line, begins + at + 4, words);
    }
    if text.starts_with('*') {
        return expression(line, begins + 1, words);
    }
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let begins = begins + quote.map_or(0, char::len_utf8);
    let text = &line[begins..];
    let mut list = Vec::new();
    let colon = library_end(text);
    let (file, start) = match colon {
        Some(at) => (Some(&text[..at]), begins + at + 1),
        None => (None, begins),
    };
    let probes = words.probes.iter().filter(|name| name.starts_with(text));
    let probes: Vec<Candidate> = probes.map(|name| Candidate::word(name.clone())).collect();
    if !text.is_empty() && !probes.is_empty() && colon.is_some() {
        return (begins, probes);
    }
    if !text.is_empty() {
        list.extend(probes);
    }
    if file.is_none() && !text.is_empty() {
        let files = words.catalog.files().into_iter();
        let fits = files.filter(|file| file.starts_with(text));
        list.extend(fits.map(|file| Candidate::word(format!("{file}:"))));
    }
    let typed = &line[start..];
    let found = match typed.starts_with("_Z") || typed.starts_with("_R") {
        true => words.catalog.mangled(typed, file, MOST),
        false => words
            .catalog
            .beginning(Wanted::Functions, typed, file, MOST, PATIENCE),
    };
    let end = quote.map_or(String::new(), String::from);
    add_names(&mut list, found, typed, &end);
    (start, list)
}

/// Where the colon behind a library's name is.
fn library_end(text: &str) -> Option<usize> {
    let at = text.find([':', '`'])?;
    let single = !text[at + 1..].starts_with(':') && !text[..at].contains(['(', '<']);
    single.then_some(at)
}

fn add_names(list: &mut Vec<Candidate>, found: Matches, typed: &str, end: &str) {
    let more = found.more;
    list.extend(
        found
            .names
            .into_iter()
            .map(|name| Candidate::word(name + end)),
    );
    if more {
        list.push(Candidate {
            // What all names begin with stays what is common.
            text: common(list).unwrap_or(typed).to_string(),
            shown: Some("*** List may be truncated, max-completions reached. ***".into()),
        });
    }
}

/// What all begin with.
fn common(list: &[Candidate]) -> Option<&str> {
    let first = list.first()?.text.as_str();
    let length = list.iter().fold(first.len(), |length, other| {
        let same = first.bytes().zip(other.text.bytes());
        length.min(same.take_while(|(a, b)| a == b).count())
    });
    (0..=length).rev().find_map(|length| first.get(..length))
}

/// The names that an expression can hold: what begins with `$`, and symbols.
fn expression(line: &str, begins: usize, words: &Words) -> (usize, Vec<Candidate>) {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '~');
    let typed = &line[begins..];
    let start = begins + typed.trim_end_matches(part).len();
    let word = &line[start..];
    if let Some(before) = line[..start].strip_suffix('$')
        && before.len() >= begins
    {
        return (start - 1, dollars(word, words));
    }
    // A number, or everything there is.
    if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
        return (start, Vec::new());
    }
    let mut list = Vec::new();
    let found = words
        .catalog
        .beginning(Wanted::Values, word, None, MOST, PATIENCE);
    add_names(&mut list, found, word, "");
    (start, list)
}

/// What follows a `$`: registers, convenience variables, what a hit has.
fn dollars(begun: &str, words: &Words) -> Vec<Candidate> {
    const HIT: &[&str] = &[
        "_arg1",
        "_arg2",
        "_now",
        "_wall",
        "_tid",
        "_pid",
        "_cpu",
        "_exitcode",
    ];
    let fixed = crate::lang::registers::names().chain(HIT.iter().copied());
    let all = fixed
        .map(str::to_string)
        .chain(words.variables.iter().cloned());
    all.filter(|name| name.starts_with(begun))
        .map(|name| Candidate::word(format!("${name}")))
        .collect()
}

/// The files that begin as typed; a directory ends in a slash.
fn files(line: &str, begins: usize) -> (usize, Vec<Candidate>) {
    let typed = &line[begins..];
    let name_at = typed.rfind('/').map_or(0, |at| at + 1);
    let (directory, begun) = typed.split_at(name_at);
    let home = directory.strip_prefix("~/").and_then(|rest| {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(rest))
    });
    let directory = match (home, directory) {
        (Some(home), _) => home,
        (None, "") => Path::new(".").to_path_buf(),
        (None, directory) => Path::new(directory).to_path_buf(),
    };
    let mut list = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // What is not UTF-8 cannot be typed.
        let Some(name) = name.to_str() else { continue };
        let hidden = name.starts_with('.') && !begun.starts_with('.');
        if name.starts_with(begun) && !hidden {
            let is_directory = entry.path().is_dir();
            let end = if is_directory { "/" } else { "" };
            list.push(Candidate::word(format!("{name}{end}")));
        }
    }
    (begins + name_at, list)
}

/// What the command takes, when its name has just been typed.
pub fn hint(line: &str) -> Option<String> {
    if let Some(begun) = body_of_trace(line) {
        return hint(&line[begun..]);
    }
    let place = expected(line)?;
    let fresh = place.begins == line.len() && line.ends_with(' ');
    (fresh && !place.usage.is_empty()).then_some(place.usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::hostile;

    fn words() -> Words {
        Words {
            commands: vec!["mydump".into()],
            breakpoints: vec!["1".into(), "2".into(), "12".into()],
            threads: vec!["1".into()],
            variables: vec!["counter".into()],
            probes: vec!["someip:recv".into(), "someip:send".into()],
            catalog: Arc::default(),
        }
    }

    const TYPED: [&str; 16] = [
        "tbr",
        "delete 1",
        "print $cou",
        "p 1+$rd",
        "info reg",
        "i r rd",
        "help info reg",
        "set pag",
        "break f if $r",
        "trace some",
        "b someip:s",
        "enable on",
        "trace f { hexd",
        "x/4xb ",
        "trace f { x/s $rdi; p $rd",
        "source /proc/sys/ker",
    ];

    hostile!(
        fuzz_completion,
        TYPED.map(|line| line.as_bytes().to_vec()).to_vec(),
        { words: &["trace f {", "{", "}", ";", "/x/", "'", "\"", "::", "$", "help ", "info ", "set ", "if ", "é", "\t"] },
        |input| {
            let line = String::from_utf8_lossy(input);
            let (start, list) = complete(&line, &words());
            assert!(line.is_char_boundary(start) && list.len() <= 10_000, "{start}");
            let _ = hint(&line);
        }
    );

    fn texts(line: &str) -> (usize, Vec<String>) {
        let (start, list) = complete(line, &words());
        (start, list.into_iter().map(|it| it.text).collect())
    }

    fn has(line: &str, wanted: &str) -> bool {
        texts(line).1.iter().any(|text| text == wanted)
    }

    #[test]
    fn each_kind_where_it_belongs() {
        assert_eq!(texts("tbr"), (0, vec!["tbreak".into()]));
        assert_eq!(texts("myd"), (0, vec!["mydump".into()]));
        assert_eq!(texts("delete 1"), (7, vec!["1".into(), "12".into()]));
        assert_eq!(texts("delete 2 1"), (9, vec!["1".into(), "12".into()]));
        assert_eq!(texts("print $cou"), (6, vec!["$counter".into()]));
        assert_eq!(texts("p 1+$rd"), (4, vec!["$rdi".into(), "$rdx".into()]));
        assert_eq!(texts("info reg"), (5, vec!["registers".into()]));
        assert_eq!(texts("i r rd"), (4, vec!["rdi".into(), "rdx".into()]));
        assert_eq!(texts("help info reg"), (10, vec!["registers".into()]));
        assert_eq!(texts("set pag"), (4, vec!["pagination".into()]));
        assert!(has("set $cou", "$counter"));
        assert!(has("break f if $r", "$rdi"));
        assert!(has("trace some", "someip:recv") && has("trace someip:re", "someip:recv"));
        assert_eq!(texts("b someip:s"), (2, vec!["someip:send".into()]));
        assert!(has("enable on", "once") && !has("enable on", "1"));
        assert_eq!(texts("echo a").1, [""; 0]);
        assert_eq!(texts("print 12").1, [""; 0]);
    }

    #[test]
    fn a_body_in_braces_has_commands() {
        assert_eq!(texts("trace f { hexd"), (10, vec!["hexdump".into()]));
        assert_eq!(texts("trace f { x/s $rdi; p $rd").0, 22);
        assert_eq!(texts("trace f if 1 {\n sil").1, ["silent"]);
    }

    #[test]
    fn files_are_found_in_their_directories() {
        let directory = std::env::temp_dir().join(format!("trapline-files-{}", std::process::id()));
        fs::create_dir_all(directory.join("sub dir")).unwrap();
        fs::write(directory.join("sub.gdb"), "").unwrap();
        let line = format!("source {}/sub", directory.display());
        let (start, list) = texts(&line);
        assert_eq!(start, line.len() - 3);
        assert_eq!(list, ["sub dir/", "sub.gdb"]);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn hints_come_behind_the_name_and_go() {
        assert_eq!(hint("break ").as_deref(), Some("[LOCATION] [if CONDITION]"));
        assert_eq!(hint("x/4xb ").as_deref(), Some("[ADDRESS]"));
        assert_eq!(
            hint("trace f { hexdump ").as_deref(),
            Some("ADDRESS, LENGTH")
        );
        for none in ["", "br", "break", "break f ", "nosuch "] {
            assert_eq!(hint(none), None, "{none}");
        }
    }
}
