//! What a user's command is given: `$argc`, `$arg0` and so on, put into its lines as text.

use super::script::{Line, Node};

/// The arguments of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Splits at blanks outside quotes; quotes and backslashes stay part of the argument.
    pub fn split(text: &str) -> Arguments {
        let mut list = Vec::new();
        let mut argument: Option<String> = None;
        let mut quote = None;
        let mut escaped = false;
        for c in text.chars() {
            if matches!(c, ' ' | '\t') && quote.is_none() && !escaped {
                list.extend(argument.take());
                continue;
            }
            match (quote, c) {
                _ if escaped => escaped = false,
                (_, '\\') => escaped = true,
                (Some(q), c) if q == c => quote = None,
                (None, '"' | '\'') => quote = Some(c),
                _ => {}
            }
            argument.get_or_insert_default().push(c);
        }
        list.extend(argument);
        Arguments(list)
    }

    /// A line with the arguments in it; the error is the number of one that was not given.
    pub fn fill(&self, line: &str) -> Result<String, usize> {
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find("$arg") {
            let behind = &rest[at + 4..];
            let digits = behind.len()
                - behind
                    .trim_start_matches(|c: char| c.is_ascii_digit())
                    .len();
            if digits > 0 {
                let number = behind[..digits].parse().unwrap_or(usize::MAX);
                let argument = self.0.get(number).ok_or(number)?;
                out.push_str(&rest[..at]);
                out.push_str(argument);
                rest = &behind[digits..];
            } else if let Some(behind) = behind.strip_prefix('c') {
                out.push_str(&rest[..at]);
                out.push_str(&self.0.len().to_string());
                rest = behind;
            } else {
                out.push_str(&rest[..at + 4]);
                rest = behind;
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn fill_line(&self, line: &Line) -> Option<Line> {
        Some(Line {
            text: self.fill(&line.text).ok()?,
            at: line.at.clone(),
        })
    }

    /// A body with the arguments in it; `None` where one is missing. The bodies that it gives to
    /// breakpoints and commands keep theirs.
    pub fn fill_body(&self, body: &[Node]) -> Option<Vec<Node>> {
        body.iter().map(|node| self.fill_node(node)).collect()
    }

    fn fill_node(&self, node: &Node) -> Option<Node> {
        Some(match node {
            Node::Simple(line) => Node::Simple(self.fill_line(line)?),
            Node::If {
                condition,
                then,
                otherwise,
            } => Node::If {
                condition: self.fill_line(condition)?,
                then: self.fill_body(then)?,
                otherwise: self.fill_body(otherwise)?,
            },
            Node::While { condition, body } => Node::While {
                condition: self.fill_line(condition)?,
                body: self.fill_body(body)?,
            },
            other => other.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        Arguments::split(text).0
    }

    #[test]
    fn arguments_are_split_at_blanks_outside_quotes() {
        assert_eq!(list(" 1  2*3 "), ["1", "2*3"]);
        assert_eq!(list("\"a b\" 'c d'"), ["\"a b\"", "'c d'"]);
        assert_eq!(list("a\\ b c"), ["a\\ b", "c"]);
        assert_eq!(list("it's one"), ["it's one"]);
        assert!(list("  ").is_empty());
    }

    #[test]
    fn a_line_is_filled() {
        let arguments = Arguments::split("1 $rdi+2");
        let fill = |line| arguments.fill(line);
        assert_eq!(
            fill("p $arg0 + $arg1*$argc").as_deref(),
            Ok("p 1 + $rdi+2*2")
        );
        assert_eq!(fill("p $arg2"), Err(2));
        assert_eq!(
            fill("p $args $argument $"),
            Ok("p $args $argument $".into())
        );
        assert_eq!(fill("p $arg99999999999999999999"), Err(usize::MAX));
    }
}
