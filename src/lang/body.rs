//! From the tree of a script to the statements of a body.

use super::script::{Line, Node, Resolver, split_word};
use super::statement::{Command, Statement, parse_statement};
use super::{Error, Expr, Scope, parse};

/// The most commands of one body.
pub(crate) const MAX_COMMANDS: u16 = 10_000;

/// Makes statements of a body's lines. What is wrong in a line becomes an error of that line when
/// it runs.
pub(crate) fn parse_body(
    nodes: &[Node],
    resolver: &dyn Resolver,
    scope: &dyn Scope,
) -> Result<Vec<Command>, Error> {
    let mut builder = Builder {
        next: 0,
        resolver,
        scope,
    };
    builder.body(nodes)
}

/// Whether a body begins with `silent`, which is then no command; gives the rest.
pub(crate) fn strip_silent(body: &[Node]) -> (bool, &[Node]) {
    match body {
        [Node::Simple(line), rest @ ..] if line.text == "silent" => (true, rest),
        _ => (false, body),
    }
}

/// The expressions of `$_entry` in a condition and a body, each once.
pub(crate) fn entries(condition: Option<&Expr>, body: &[Command]) -> Vec<Expr> {
    let mut found: Vec<Expr> = Vec::new();
    let mut look = |expr: &Expr| {
        expr.walk(&mut |part| {
            if let Expr::Entry(inner) = part
                && !found.contains(inner)
            {
                found.push((**inner).clone());
            }
        });
    };
    condition.into_iter().for_each(&mut look);
    for command in body {
        command.statement.expressions(&mut |expr| look(expr));
    }
    found
}

struct Builder<'a> {
    next: u16,
    resolver: &'a dyn Resolver,
    scope: &'a dyn Scope,
}

impl Builder<'_> {
    fn body(&mut self, nodes: &[Node]) -> Result<Vec<Command>, Error> {
        nodes.iter().map(|node| self.command(node)).collect()
    }

    fn command(&mut self, node: &Node) -> Result<Command, Error> {
        let index = self.next;
        if index >= MAX_COMMANDS {
            return Err(Error::new(format!(
                "A body has at most {MAX_COMMANDS} commands."
            )));
        }
        self.next += 1;
        let statement = match node {
            Node::Simple(line) => self.simple(line),
            Node::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = parse(&condition.text, self.scope);
                let (then, otherwise) = (self.body(then)?, self.body(otherwise)?);
                match condition {
                    Ok(condition) => Statement::If {
                        condition,
                        then,
                        otherwise,
                    },
                    Err(error) => Statement::Invalid(error),
                }
            }
            Node::While { condition, body } => {
                let condition = parse(&condition.text, self.scope);
                let body = self.body(body)?;
                match condition {
                    Ok(condition) => Statement::While { condition, body },
                    Err(error) => Statement::Invalid(error),
                }
            }
            Node::LoopBreak(_) => Statement::Break,
            Node::LoopContinue(_) => Statement::Next,
            Node::Foreign { .. } => {
                Statement::Invalid(Error::new("Python scripting is not supported."))
            }
            Node::Commands { .. } | Node::Define { .. } | Node::Document { .. } => {
                Statement::Invalid(Error::new(
                    "Blocks that define something cannot stand in a body.",
                ))
            }
        };
        Ok(Command {
            index,
            at: node.at().clone(),
            statement,
        })
    }

    fn simple(&self, line: &Line) -> Statement {
        let (name, arguments) = match self.resolver.resolve(&line.text) {
            Some(resolved) => resolved,
            None => split_word(&line.text),
        };
        match parse_statement(name, arguments, self.scope) {
            Ok(Some(statement)) => statement,
            Ok(None) => Statement::Other(line.text.clone()),
            Err(error) => Statement::Invalid(error),
        }
    }
}
