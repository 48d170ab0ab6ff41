//! The line editor: history, completion, hints.

use std::borrow::Cow;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, ExternalPrinter, Helper};

use super::complete::{self, Words};
use super::input::{Next, Source};
use super::screen::Printer;
use crate::error::Error;

/// How many lines are kept.
const HISTORY: usize = 10_000;

/// What the editor asks while a line is typed.
#[derive(Default)]
struct Assistant {
    words: Words,
    /// Hints are told from what is typed by their color only.
    hints: bool,
}

impl Helper for Assistant {}
impl Validator for Assistant {}

impl Highlighter for Assistant {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }
}

/// A hint that is read and not taken over.
struct Usage(String);

impl Hint for Usage {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for Assistant {
    type Hint = Usage;

    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<Usage> {
        if !self.hints || position < line.len() {
            return None;
        }
        complete::hint(line).map(Usage)
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, list) = complete::complete(&line[..position], &self.words);
        let pairs = list.into_iter().map(|candidate| Pair {
            display: candidate.shown.unwrap_or_else(|| candidate.text.clone()),
            replacement: candidate.text,
        });
        Ok((start, pairs.collect()))
    }
}

/// A terminal with history.
pub struct Editor {
    editor: rustyline::Editor<Assistant, DefaultHistory>,
    file: Option<PathBuf>,
}

impl Editor {
    /// With the history of earlier sessions.
    pub fn new() -> Result<Editor, Error> {
        let config = Config::builder()
            .max_history_size(HISTORY)
            .map_err(unusable)?
            .completion_type(CompletionType::List)
            // What could be listed is limited already.
            .completion_prompt_limit(usize::MAX)
            .build();
        let mut editor = rustyline::Editor::with_config(config).map_err(unusable)?;
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        editor.set_helper(Some(Assistant {
            words: Words::default(),
            hints: !no_color,
        }));
        let file = history_file();
        if let Some(file) = &file {
            // The first session has none.
            let _ = editor.load_history(file);
        }
        Ok(Editor { editor, file })
    }

    /// What prints above the line.
    pub fn printer(&mut self) -> Option<Printer> {
        let mut printer = self.editor.create_external_printer().ok()?;
        Some(Box::new(move |text| {
            // A terminal that has gone is noticed by whoever reads from it.
            let _ = printer.print(text);
        }))
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

impl Source for Editor {
    fn read(&mut self, prompt: &str) -> Result<Next, Error> {
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Next::Line(line)),
            Err(ReadlineError::Eof) => Ok(Next::End),
            Err(ReadlineError::Interrupted) => Ok(Next::Interrupted),
            Err(error) => Err(unusable(error)),
        }
    }

    fn remember(&mut self, line: &str) {
        let added = self.editor.add_history_entry(line).unwrap_or(false);
        let (true, Some(file)) = (added, &self.file) else {
            return;
        };
        if let Some(directory) = file.parent() {
            // A history that cannot be kept is no reason to stop. The directory is the user's
            // alone, as the specification wants it.
            let _ = DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory);
        }
        // Appends under a lock: what other sessions have written stays.
        let _ = self.editor.append_history(file);
    }

    fn learn(&mut self, words: Words) {
        if let Some(assistant) = self.editor.helper_mut() {
            assistant.words = words;
        }
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
