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

/// How deep calls of the user's commands are followed.
const MAX_CALLS: usize = 32;

/// A body with the user's commands replaced by what they stand for. What is too deep, too long or
/// goes on in the middle stays a call, which the front runs.
pub(crate) fn expand(body: &[Node], resolver: &dyn Resolver) -> Vec<Node> {
    let mut budget = usize::from(MAX_COMMANDS);
    expand_nodes(body, resolver, MAX_CALLS, &mut budget)
}

fn expand_nodes(
    body: &[Node],
    resolver: &dyn Resolver,
    depth: usize,
    budget: &mut usize,
) -> Vec<Node> {
    let mut out = Vec::new();
    for node in body {
        *budget = budget.saturating_sub(1);
        match node {
            Node::Simple(line) => {
                let commands = match (depth, *budget) {
                    (0, _) | (_, 0) => None,
                    _ => resolver.expand(&line.text),
                };
                match commands.filter(|commands| continues_last(commands, resolver)) {
                    Some(commands) => {
                        out.extend(expand_nodes(&commands, resolver, depth - 1, budget));
                    }
                    None => out.push(node.clone()),
                }
            }
            Node::If {
                condition,
                then,
                otherwise,
            } => out.push(Node::If {
                condition: condition.clone(),
                then: expand_nodes(then, resolver, depth, budget),
                otherwise: expand_nodes(otherwise, resolver, depth, budget),
            }),
            Node::While { condition, body } => out.push(Node::While {
                condition: condition.clone(),
                body: expand_nodes(body, resolver, depth, budget),
            }),
            other => out.push(other.clone()),
        }
    }
    out
}

/// Whether the commands let the program go on nowhere but at their end.
fn continues_last(commands: &[Node], resolver: &dyn Resolver) -> bool {
    let Some((last, before)) = commands.split_last() else {
        return true;
    };
    let last = match last {
        Node::Simple(_) => true,
        Node::If {
            then, otherwise, ..
        } => continues_last(then, resolver) && continues_last(otherwise, resolver),
        node => !continues_anywhere(node, resolver),
    };
    last && !before.iter().any(|node| continues_anywhere(node, resolver))
}

fn continues_anywhere(node: &Node, resolver: &dyn Resolver) -> bool {
    let any = |nodes: &[Node]| nodes.iter().any(|node| continues_anywhere(node, resolver));
    match node {
        Node::Simple(line) => {
            matches!(resolver.resolve(&line.text), Some(("continue", _)))
                || resolver.expand(&line.text).is_some()
        }
        Node::If {
            then, otherwise, ..
        } => any(then) || any(otherwise),
        Node::While { body, .. } => any(body),
        _ => false,
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
