//! The prompt.

mod complete;
pub(crate) mod input;
mod prompt;
mod remote;
mod screen;

pub(crate) use prompt::terminal_size;
pub(crate) use screen::Screen;

use std::time::Duration;

use crate::command::{Interpreter, Names, running};
use crate::error::Error;
use crate::lang::script::{Read, Reader};
use crate::session::events;
use complete::Words;
use input::{Input, Next, Piped, Plain};
use prompt::Editor;
use remote::Remote;

/// Where lines come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A terminal that can move its cursor.
    Terminal,
    /// One that can only show text.
    Dumb,
    /// No terminal.
    Pipe,
}

/// Opens standard input for lines.
pub(crate) fn open(kind: Kind) -> Result<Box<dyn Input>, Error> {
    let make = move || -> Result<remote::Parts, Error> {
        Ok(match kind {
            Kind::Pipe => (Box::new(Piped), None),
            Kind::Dumb => (Box::new(Plain), None),
            Kind::Terminal => {
                let mut editor = Editor::new()?;
                let printer = editor.printer();
                (Box::new(editor), printer)
            }
        })
    };
    Ok(Box::new(Remote::start(kind, make)?))
}

/// How long a wish to end, or a program that runs in the background, waits to be looked at.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_BACKGROUND: Duration = Duration::from_millis(1);

/// Reads commands and runs them until the end of the input or `quit`.
pub(crate) fn run(interpreter: &mut Interpreter) {
    let names = interpreter.names.clone();
    let mut reader = Reader::new("stdin", &names);
    while interpreter.quit.is_none() {
        interpreter.session.output.flush();
        if interpreter.session.output.is_closed() || events::must_end() {
            return;
        }
        if let Err(error) = step(interpreter, &mut reader) {
            complain(interpreter, &error);
        }
    }
}

fn complain(interpreter: &mut Interpreter, error: &Error) {
    if !error.message.is_empty() {
        interpreter.session.output.complain(&error.message);
    }
}

/// One line, or several that were pasted.
fn step(interpreter: &mut Interpreter, reader: &mut Reader<'_>) -> Result<(), Error> {
    let open = reader.open();
    let prompt = match open {
        0 => "(trapline) ".to_string(),
        open => format!("{}>", " ".repeat(open - 1)),
    };
    // What came while something else was done is over.
    events::interrupted();
    let Some(next) = next_line(interpreter, &prompt) else {
        return Ok(());
    };
    match next? {
        Next::Line(lines) => {
            for line in lines.split('\n') {
                if let Err(error) = take(interpreter, reader, line) {
                    complain(interpreter, &error);
                }
                if interpreter.quit.is_some() {
                    break;
                }
            }
            Ok(())
        }
        Next::Interrupted => {
            if open > 0 {
                reader.abandon();
            }
            Err(Error::new("Quit"))
        }
        Next::End => {
            if let Ok(Some(node)) = reader.finish() {
                interpreter.top(&node, true)?;
            }
            if interpreter.terminal.is_terminal() {
                interpreter.print("quit\n");
            }
            if running::confirm_quit(interpreter)? {
                interpreter.quit = Some(0);
            }
            Ok(())
        }
    }
}

/// Waits for a line; a program that runs in the background is served meanwhile. `None`: this
/// process is to end.
fn next_line(interpreter: &mut Interpreter, prompt: &str) -> Option<Result<Next, Error>> {
    if interpreter.terminal.completes() {
        let words = words(interpreter);
        interpreter.terminal.learn(words);
    }
    let screen = interpreter.terminal.screen();
    if interpreter.session.background {
        interpreter.session.output.set_screen(screen);
    }
    interpreter.terminal.begin(prompt);
    let next = loop {
        let wait = match interpreter.session.background {
            true => LOOK_BACKGROUND,
            false => LOOK,
        };
        if let Some(next) = interpreter.terminal.ready(wait) {
            break Some(next);
        }
        if events::must_end() || interpreter.session.output.is_closed() {
            break None;
        }
        if interpreter.session.background
            && let Err(error) = interpreter.serve()
        {
            complain(interpreter, &error);
        }
        if interpreter.quit.is_some() {
            break None;
        }
        interpreter.session.flush_in_time();
    };
    interpreter.session.output.set_screen(None);
    next
}

/// What the person at the terminal may complete.
fn words(interpreter: &mut Interpreter) -> Words {
    let session = &interpreter.session;
    if let Some(images) = session.images() {
        interpreter.catalog.set(&images.modules);
    }
    let threads = session.target().map(|target| {
        let numbers = target
            .threads
            .iter()
            .map(|thread| thread.number.to_string());
        numbers.collect()
    });
    let numbers = session.probes.iter().map(|probe| probe.number.to_string());
    Words {
        commands: interpreter.names.first_words(),
        breakpoints: numbers.collect(),
        threads: threads.unwrap_or_default(),
        variables: session.variables.names(),
        probes: session.named.iter().map(|it| it.name.clone()).collect(),
        catalog: interpreter.catalog.clone(),
    }
}

/// Takes one line.
fn take(interpreter: &mut Interpreter, reader: &mut Reader<'_>, line: &str) -> Result<(), Error> {
    let open = reader.open();
    let line = match open {
        0 => again(interpreter, line.into()),
        _ => {
            if !line.trim().is_empty() {
                interpreter.terminal.remember(line);
            }
            line.into()
        }
    };
    match reader.line(&line) {
        Ok(Read::Node(node)) => {
            let result = interpreter.top(&node, true);
            interpreter.arm_in_background();
            result
        }
        Ok(Read::More) if open == 0 && reader.depth() > 0 => {
            interpreter.introduce(&line);
            Ok(())
        }
        Ok(Read::More | Read::Nothing) => Ok(()),
        Err(error) => Err(Error::new(error.message)),
    }
}

/// An empty line on a terminal repeats the last command, where gdb repeats it.
fn again(interpreter: &mut Interpreter, line: String) -> String {
    if !interpreter.terminal.is_terminal() {
        return line;
    }
    if line.trim().is_empty() {
        return interpreter.again.clone().unwrap_or_default();
    }
    interpreter.terminal.remember(&line);
    interpreter.again = repeated(&interpreter.names, &line);
    line
}

/// What Enter does after a line: what gdb does. `x` goes on behind what it showed, `continue`
/// forgets its count; what starts, ends, deletes or defines something is not done again.
fn repeated(names: &Names, line: &str) -> Option<String> {
    use crate::lang::script::Resolver;
    let Some((name, _)) = names.resolve(line) else {
        // A command of the user's.
        return names.find(line).is_ok().then(|| line.into());
    };
    match name {
        "attach" | "commands" | "define" | "define-prefix" | "delete" | "detach" | "display"
        | "document" | "file" | "if" | "kill" | "quit" | "run" | "start" | "undisplay"
        | "while" => None,
        "continue" if line.trim_end().ends_with('&') => None,
        "x" => Some("x".into()),
        "continue" => Some("continue".into()),
        _ => Some(line.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, repeated};

    #[test]
    fn enter_repeats_what_gdb_repeats() {
        let names = Names::default();
        assert_eq!(repeated(&names, "x/4xb $rsi").as_deref(), Some("x"));
        assert_eq!(repeated(&names, "c 3").as_deref(), Some("continue"));
        assert_eq!(repeated(&names, "p 1").as_deref(), Some("p 1"));
        assert_eq!(
            repeated(&names, "source a.gdb").as_deref(),
            Some("source a.gdb")
        );
        for never in ["run", "start", "d 1", "attach 1", "commands 1", "while 1"] {
            assert_eq!(repeated(&names, never), None, "{never}");
        }
    }
}
