//! `--read-only`: what would change the program is refused when it is read, with its name; what a
//! text does not show is refused when it runs.

use std::path::Path;

use super::breakpoints::split_condition;
use super::interpreter::Interpreter;
use super::user::Names;
use crate::error::{Error, fail};
use crate::lang::braces;
use crate::lang::changes::{expression_changes, first_change};
use crate::lang::script::{Node, Position, Read, Reader, Resolver};

/// What is said about a command.
fn refusal(line: &str) -> Error {
    Error::new(format!(
        "`{}' would change the program, which --read-only forbids.",
        line.trim()
    ))
}

/// Refuses a probe; what does not parse fails when it is set.
pub(crate) fn check_probe(text: &str, at: &Position) -> Result<(), Error> {
    let Ok(probe) = braces::parse_probe(text, at, &Names::default()) else {
        return Ok(());
    };
    if let Some(condition) = probe.condition {
        check_expression(&condition)?;
    }
    check_body(&probe.body.unwrap_or_default())
}

/// Refuses a file of commands; what does not parse fails when it is run.
pub(crate) fn check_script(path: &Path, text: &str) -> Result<(), Error> {
    let names = Names::default();
    let mut reader = Reader::new(&path.to_string_lossy(), &names);
    let mut nodes = Vec::new();
    for line in text.lines() {
        match reader.line(line) {
            Ok(Read::Node(node)) => nodes.push(node),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    nodes.extend(reader.finish().ok().flatten());
    nodes.iter().try_for_each(check_node)
}

fn check_node(node: &Node) -> Result<(), Error> {
    if let Node::Simple(line) = node {
        match Names::default().resolve(&line.text) {
            Some(("trace", arguments)) => return check_probe(arguments, &line.at),
            Some(("break" | "tbreak" | "dprintf", arguments)) => {
                let condition = split_condition(arguments).1;
                return condition.map_or(Ok(()), check_expression);
            }
            _ => {}
        }
    }
    check_body(std::slice::from_ref(node))
}

fn check_body(body: &[Node]) -> Result<(), Error> {
    first_change(body, &Names::default()).map_or(Ok(()), |line| Err(refusal(&line.text)))
}

fn check_expression(text: &str) -> Result<(), Error> {
    match expression_changes(text) {
        true => Err(refusal(text)),
        false => Ok(()),
    }
}

impl Interpreter {
    /// Refuses a body that would change the program where that is forbidden.
    pub fn may_run(&self, body: &[Node]) -> Result<(), Error> {
        match self.session.read_only {
            true => check_body(body),
            false => Ok(()),
        }
    }

    /// The same for a condition.
    pub fn may_evaluate(&self, expression: &str) -> Result<(), Error> {
        match self.session.read_only {
            true => check_expression(expression),
            false => Ok(()),
        }
    }

    /// Refuses to end a process that was running before.
    pub fn may_kill(&self) -> Result<(), Error> {
        match self.session.target() {
            Some(target) if self.session.read_only && !target.launched => fail!(
                "Process {} is not ended: --read-only was given.",
                target.pid
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Result<(), String> {
        check_script(Path::new("t"), text).map_err(|error| error.message)
    }

    #[test]
    fn a_script_is_refused_by_its_first_change() {
        let refused = |line: &str| {
            Err(format!(
                "`{line}' would change the program, which --read-only forbids."
            ))
        };
        assert_eq!(
            script("break f\ncommands\nsilent\nset {char}($rsi) = 'a'\ncontinue\nend\n"),
            refused("set {char}($rsi) = 'a'")
        );
        assert_eq!(script("b f if $rax = 1"), refused("$rax = 1"));
        assert_eq!(
            script("trace f if $rdi == 1 {\n print 1; set $rdi = 2\n}\n"),
            refused("set $rdi = 2")
        );
        assert_eq!(script("p $n\nkill\n"), refused("kill"));
        assert_eq!(
            script("set pagination off\nset $n = 0\ntrace f { set $n = $n + 1; x/s $rsi }\nif 1\n"),
            Ok(())
        );
    }
}
