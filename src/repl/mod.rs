//! The prompt.

pub(crate) mod input;
mod prompt;

pub(crate) use prompt::{Editor, terminal_size};

use crate::command::{Interpreter, Names, running};
use crate::error::Error;
use crate::lang::script::{Read, Reader};
use input::Next;

/// Reads commands and runs them until the end of the input or `quit`.
pub(crate) fn run(interpreter: &mut Interpreter) {
    let names = interpreter.names.clone();
    let mut reader = Reader::new("stdin", &names);
    while interpreter.quit.is_none() {
        interpreter.session.output.flush();
        if interpreter.session.output.is_closed() || crate::session::events::must_end() {
            return;
        }
        if let Err(error) = step(interpreter, &mut reader)
            && !error.message.is_empty()
        {
            interpreter.session.output.complain(&error.message);
        }
    }
}

/// One line.
fn step(interpreter: &mut Interpreter, reader: &mut Reader<'_>) -> Result<(), Error> {
    let open = reader.depth();
    let prompt = if open == 0 {
        "(trapline) ".to_string()
    } else {
        format!("{}>", " ".repeat(open - 1))
    };
    // What came while something else was done is over.
    crate::session::events::interrupted();
    let line = match interpreter.terminal.line(&prompt)? {
        Next::Line(line) => line,
        Next::Interrupted => {
            if open > 0 {
                reader.abandon();
            }
            return Err(Error::new("Quit"));
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
            return Ok(());
        }
    };
    let line = if open == 0 {
        again(interpreter, line)
    } else {
        line
    };
    match reader.line(&line) {
        Ok(Read::Node(node)) => interpreter.top(&node, true),
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

/// What Enter does after a line: `x` goes on behind what it showed, `continue` and `thread` are
/// done again, what starts or ends something is not.
fn repeated(names: &Names, line: &str) -> Option<String> {
    use crate::lang::script::Resolver;
    let Some((name, arguments)) = names.resolve(line) else {
        // A command of the user's.
        return names.find(line).is_ok().then(|| line.into());
    };
    match name {
        "run" | "start" | "attach" | "commands" | "define" | "document" | "kill" | "quit"
        | "detach" | "delete" | "source" | "if" | "while" => None,
        // The format stays, the address is the one behind.
        "x" => Some(match arguments.strip_prefix('/') {
            Some(_) | None => "x".into(),
        }),
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
        assert_eq!(repeated(&names, "run"), None);
    }
}
