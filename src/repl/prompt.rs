//! The line editor: history, completion, multi-line bodies.

use std::fs;
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};

use super::input::{Input, Next};
use crate::command::complete;
use crate::error::Error;

/// How many lines are kept.
const HISTORY: usize = 10_000;

/// Completes commands by the command table.
struct Commands;

impl Helper for Commands {}
impl Highlighter for Commands {}
impl Validator for Commands {}
impl Hinter for Commands {
    type Hint = String;
}

impl Completer for Commands {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..position];
        let start = typed.rfind(char::is_whitespace).map_or(0, |at| {
            at + typed[at..].chars().next().map_or(1, char::len_utf8)
        });
        let pairs = complete(&typed[..start], &typed[start..])
            .into_iter()
            .map(|name| Pair {
                display: name.into(),
                replacement: name.into(),
            })
            .collect();
        Ok((start, pairs))
    }
}

/// A terminal with history.
pub struct Editor {
    editor: rustyline::Editor<Commands, DefaultHistory>,
    file: Option<PathBuf>,
}

impl Editor {
    /// With the history of earlier sessions.
    pub fn new() -> Result<Editor, Error> {
        let config = Config::builder()
            .max_history_size(HISTORY)
            .map_err(unusable)?
            .completion_type(CompletionType::List)
            .build();
        let mut editor = rustyline::Editor::with_config(config).map_err(unusable)?;
        editor.set_helper(Some(Commands));
        let file = history_file();
        if let Some(file) = &file {
            // The first session has none.
            let _ = editor.load_history(file);
        }
        Ok(Editor { editor, file })
    }

    fn read(&mut self, prompt: &str) -> Result<Next, Error> {
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Next::Line(line)),
            Err(ReadlineError::Eof) => Ok(Next::End),
            Err(ReadlineError::Interrupted) => Ok(Next::Interrupted),
            Err(error) => Err(unusable(error)),
        }
    }
}

fn unusable(error: ReadlineError) -> Error {
    Error::new(format!("Cannot read from the terminal: {error}."))
}

/// `$XDG_STATE_HOME/trapline/history` (XDG base directory specification).
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("trapline/history"))
}

impl Input for Editor {
    fn line(&mut self, prompt: &str) -> Result<Next, Error> {
        self.read(prompt)
    }

    fn answer(&mut self, question: &str) -> Result<Next, Error> {
        self.read(question)
    }

    fn is_terminal(&self) -> bool {
        true
    }

    fn remember(&mut self, line: &str) {
        let added = self.editor.add_history_entry(line).unwrap_or(false);
        if !added {
            return;
        }
        let Some(file) = &self.file else {
            return;
        };
        if let Some(directory) = file.parent() {
            // A history that cannot be kept is no reason to stop.
            let _ = fs::create_dir_all(directory);
        }
        let _ = self.editor.append_history(file);
    }
}

/// Rows and columns as the environment tells them; gdb's own default otherwise.
pub fn terminal_size() -> (u16, u16) {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    (
        number("LINES").unwrap_or(24),
        number("COLUMNS").unwrap_or(80),
    )
}
