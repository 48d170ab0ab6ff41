//! A register whose name the shell took for one of its own variables and ate: `-ex "x/s $rsi+30"`.

use super::interpreter::Interpreter;
use super::table;
use super::top::TOP;
use crate::error::Error;
use crate::lang::script::Node;

/// What a person who used double quotes should know.
const HINT: &str = "(Was a name like $rsi eaten by the shell? Put the command in single quotes.)";

/// Commands that take an expression.
const EXPRESSIONS: &[&str] = &[
    "x", "hexdump", "print", "output", "printf", "call", "set", "if", "while",
];

/// What is left is a sign in front of nothing: `x/s +30`, `{char}(+31) = 1`, `if == 3`.
fn is_eaten(arguments: &str) -> bool {
    let expression = match arguments.strip_prefix('/') {
        Some(format) => format.trim_start_matches(|c: char| c.is_ascii_alphanumeric()),
        None => arguments,
    };
    let begins = |text: &str| {
        let offset = text.trim_start().strip_prefix('+').unwrap_or_default();
        offset
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit())
            || text.trim_start().starts_with("==")
    };
    begins(expression) || expression.split('(').skip(1).any(begins)
}

/// The same for a line with its command.
fn is_eaten_line(line: &str) -> bool {
    let (name, arguments) = table::split(line);
    let command = TOP.find(name).map(|entry| entry.name);
    command.is_ok_and(|name| EXPRESSIONS.contains(&name)) && is_eaten(arguments)
}

fn any_eaten(body: &[Node]) -> bool {
    body.iter().any(|node| match node {
        Node::Simple(line) => is_eaten_line(&line.text),
        Node::If {
            condition,
            then,
            otherwise,
        } => is_eaten(&condition.text) || any_eaten(then) || any_eaten(otherwise),
        Node::While { condition, body } => is_eaten(&condition.text) || any_eaten(body),
        _ => false,
    })
}

impl Interpreter {
    /// Hints at what may be wrong with a line of a command line or a script. Where nothing failed
    /// the wrong address was shown as if it were meant: then it is said once.
    pub fn hint(&mut self, line: &str, result: Result<(), Error>) -> Result<(), Error> {
        if !is_eaten_line(line) {
            return result;
        }
        if let Err(error) = &result {
            return Err(Error {
                message: format!("{}\n{HINT}", error.message),
                ..error.clone()
            });
        }
        let (name, _) = table::split(line);
        if TOP.find(name).is_ok_and(|entry| entry.name == "x") {
            self.hint_once();
        }
        result
    }

    /// The same for a body, which runs where nobody can be told.
    pub fn hint_body(&mut self, body: &[Node]) {
        if any_eaten(body) {
            self.hint_once();
        }
    }

    fn hint_once(&mut self) {
        if !std::mem::replace(&mut self.hinted, true) {
            self.session.output.complain(HINT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_eaten_line;

    #[test]
    fn a_register_that_the_shell_ate_is_suspected() {
        for eaten in [
            "x/s +30",
            "set {char}(+31) = 1",
            "print == 3",
            "output *(char*)(+3)",
        ] {
            assert!(is_eaten_line(eaten), "{eaten}");
        }
        for whole in [
            "x/s $rsi+30",
            "print 1 +",
            "print +main",
            "echo +3",
            "foo +3",
            "x",
        ] {
            assert!(!is_eaten_line(whole), "{whole}");
        }
    }
}
