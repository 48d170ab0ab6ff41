//! What would change the program, found in the text alone: no process is needed, and no symbol.
//!
//! `--read-only` refuses it before anything is touched. Convenience variables are not the program's.

use super::script::{Line, Node, Resolver, split_word};
use super::statement::{Statement, parse_statement};
use super::{AnyName, Expr, parse};

/// The first line of a body that would change the program.
pub(crate) fn first_change<'n>(nodes: &'n [Node], resolver: &dyn Resolver) -> Option<&'n Line> {
    nodes.iter().find_map(|node| match node {
        Node::Simple(line) => is_change(&line.text, resolver).then_some(line),
        Node::If {
            condition,
            then,
            otherwise,
        } => head(condition)
            .or_else(|| first_change(then, resolver))
            .or_else(|| first_change(otherwise, resolver)),
        Node::While { condition, body } => head(condition).or_else(|| first_change(body, resolver)),
        Node::Commands { body, .. } => first_change(body, resolver),
        // What a command of one's own does is looked at when it is used.
        Node::Define { .. } | Node::Document { .. } | Node::Foreign { .. } => None,
        Node::LoopBreak(_) | Node::LoopContinue(_) => None,
    })
}

fn head(condition: &Line) -> Option<&Line> {
    expression_changes(&condition.text).then_some(condition)
}

/// Whether evaluating a text would change the program.
pub(crate) fn expression_changes(text: &str) -> bool {
    parse(text, &AnyName::plain()).is_ok_and(|expr| changes(&expr))
}

/// Whether one command would change the program.
fn is_change(line: &str, resolver: &dyn Resolver) -> bool {
    let (name, arguments) = resolver.resolve(line).unwrap_or_else(|| split_word(line));
    match parse_statement(name, arguments, &AnyName::plain()) {
        Ok(Some(statement)) => statement_changes(&statement),
        // `set count = 1`: a variable of the program.
        Ok(None) if name == "set" => {
            let (_, rest) = split_word(arguments);
            rest.starts_with('=') && !rest.starts_with("==")
        }
        Ok(None) => matches!(name, "kill" | "signal" | "queue-signal"),
        Err(_) => false,
    }
}

/// A function that is skipped or held up is changed as well.
fn statement_changes(statement: &Statement) -> bool {
    let mut found = matches!(statement, Statement::Return(_) | Statement::Delay(_));
    statement.expressions(&mut |expr| found |= changes(expr));
    found
}

/// Whether an expression assigns to memory or a register anywhere.
fn changes(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= match part {
            Expr::Assign(to, _) | Expr::AssignOp(_, to, _) | Expr::IncDec(_, to) => {
                !is_variable(to)
            }
            _ => false,
        }
    });
    found
}

/// A convenience variable or a part of one. What an index goes through may be a pointer.
fn is_variable(target: &Expr) -> bool {
    match target {
        Expr::Variable(_) => true,
        Expr::Member(whole, _) => is_variable(whole),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{FullNames, Position, read};
    use super::*;

    fn first(text: &str) -> Option<String> {
        let at = Position {
            file: "t".into(),
            line: 1,
        };
        let nodes = read(at, text, &FullNames).unwrap();
        first_change(&nodes, &FullNames).map(|line| line.text.clone())
    }

    #[test]
    fn what_changes_the_program_is_found() {
        for line in [
            "set $rdi = 1",
            "set var counter = 1",
            "set counter = 1",
            "set counter=1",
            "set {char}($rsi+3) = 0x61",
            "set *(int*)$sp += 1",
            "print counter++",
            "print $rax = 3",
            "print $n + ($rip = 4)",
            "print $p[0] = 1",
            "print $p->x = 1",
            "output ($x = 1), ($eflags |= 1)",
            "printf \"%d\", $rdi--",
            "x/4xb counter = 4",
            "call ns::var = 1",
            "hexdump $rsi, $rdx = 4",
            "set $n = ($xmm0.v4_int32[0] = 1)",
            "print *$n = 4",
            "return",
            "return $rdi + 1",
            "delay 5ms",
        ] {
            assert_eq!(first(line).as_deref(), Some(line));
        }
    }

    #[test]
    fn what_only_looks_is_not() {
        for line in [
            "set $n = $n + 1",
            "set var $n = counter",
            "print $n++",
            "print counter == 1",
            "print true",
            "set pagination off",
            "set width 0",
            "x/s $rsi+30",
            "printf \"%d = 3\\n\", counter",
            "echo $rdi = 3\\n",
            "print (",
            "nosuch = 3",
        ] {
            assert_eq!(first(line), None, "{line}");
        }
    }

    #[test]
    fn blocks_are_looked_into() {
        assert_eq!(
            first("if $n\nwhile 1\nset $rdi = 2\nend\nend").as_deref(),
            Some("set $rdi = 2")
        );
        assert_eq!(first("while $rdi = 2\nend").as_deref(), Some("$rdi = 2"));
        assert_eq!(
            first("if 1\nelse\nset $rsi++\nend").as_deref(),
            Some("set $rsi++")
        );
        assert!(expression_changes("f(1) || $rdi = 3"));
        assert!(!expression_changes("$rdi == 3"));
    }
}
