//! What `set` and `show` know.

use std::collections::BTreeMap;

use crate::symbols::DebugDirectories;

/// The settings that gdb scripts change.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program's arguments, as a shell would read them.
    pub arguments: String,
    /// Launched programs get fixed addresses.
    pub disable_randomization: bool,
    /// Questions are asked.
    pub confirm: bool,
    /// Accepted and shown; nothing is ever paged.
    pub pagination: bool,
    /// Accepted and shown.
    pub height: Option<u32>,
    /// Accepted and shown.
    pub width: Option<u32>,
    /// `breakpoint pending`: `None` is `auto`, which asks.
    pub pending: Option<bool>,
    /// Launched programs end with the command, also where it is killed.
    pub exit_kill: bool,
    /// `compat strict`: an unreadable address ends the script, as in gdb.
    pub strict: bool,
    /// How many of the user's commands may run inside of each other.
    pub max_user_call_depth: Option<u32>,
    /// Each command of a script is shown when it runs.
    pub trace_commands: bool,
    /// Changes of a launched program's environment; `None` takes a variable out.
    pub environment: BTreeMap<String, Option<String>>,
    /// The working directory of a launched program, if it is not the front's.
    pub cwd: Option<String>,
    /// The front's own working directory was changed.
    pub moved: bool,
    /// Where the debug files of what is loaded from now on are looked for.
    pub debug_directories: DebugDirectories,
    /// What was set of the settings that are only remembered.
    pub known: BTreeMap<&'static str, String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            arguments: String::new(),
            disable_randomization: true,
            confirm: true,
            pagination: true,
            height: None,
            width: None,
            pending: None,
            exit_kill: false,
            strict: false,
            max_user_call_depth: Some(1024),
            trace_commands: false,
            environment: BTreeMap::new(),
            cwd: None,
            moved: false,
            debug_directories: DebugDirectories::default(),
            known: BTreeMap::new(),
        }
    }
}

/// Quotes words so that a shell gives them back as they are.
pub fn quote<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(quote_word).collect();
    quoted.join(" ")
}

fn quote_word(word: &str) -> String {
    if word.is_empty() {
        return "''".into();
    }
    let mut out = String::new();
    for c in word.chars() {
        match c {
            '\n' => out.push_str("'\n'"),
            c if c.is_ascii() && is_special(c) => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A character that means something to a shell.
fn is_special(c: char) -> bool {
    "\"!#$&*()\\|[]{}<>?'`~^; \t".contains(c)
}

/// The words of a text that no shell is needed for; `None` where it has quotes, redirections,
/// variables or patterns.
pub fn plain_words(text: &str) -> Option<Vec<String>> {
    let plain = |c: char| c == ' ' || c == '\t' || !(is_special(c) || c == '\n');
    text.chars()
        .all(plain)
        .then(|| text.split_ascii_whitespace().map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_wants_them() {
        assert_eq!(quote(["a", "b c", "$x", ""]), "a b\\ c \\$x ''");
        assert_eq!(plain_words(" a  -b "), Some(vec!["a".into(), "-b".into()]));
        assert_eq!(plain_words("a > b"), None);
        assert_eq!(plain_words("a\\ b"), None);
    }
}
