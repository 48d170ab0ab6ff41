//! Command text as a tree: lines, and the blocks that lines make (`if … else … end` and its kin).
//!
//! What counts as a line, a block and an error is gdb's: `\` at the end joins lines before anything
//! else is looked at, `#` starts a comment only where a command could start, and a file that ends
//! inside a block closes it. The brace form of a probe's body is rewritten into the same lines, so
//! that there is one tree.

use std::fmt;
use std::sync::Arc;

use super::braces::Braces;

/// How deep blocks may be nested.
pub const MAX_DEPTH: usize = 100;

/// Where a line was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file's name as the user gave it, or what stands for it (`-ex`, a prompt).
    pub file: Arc<str>,
    /// 1-based.
    pub line: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One line of text without the blanks around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The text.
    pub text: String,
    /// Where it began.
    pub at: Position,
}

/// A command with everything that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// One line.
    Simple(Line),
    /// `if CONDITION … [else …] end`.
    If {
        /// The expression's text.
        condition: Line,
        /// Run when it is not zero.
        then: Vec<Node>,
        /// Run when it is zero.
        otherwise: Vec<Node>,
    },
    /// `while CONDITION … end`.
    While {
        /// The expression's text.
        condition: Line,
        /// What is repeated.
        body: Vec<Node>,
    },
    /// `commands [N…] … end`.
    Commands {
        /// What followed the word.
        arguments: Line,
        /// The commands.
        body: Vec<Node>,
    },
    /// `define NAME … end`.
    Define {
        /// What followed the word.
        name: Line,
        /// The commands.
        body: Vec<Node>,
    },
    /// `document NAME … end`.
    Document {
        /// What followed the word.
        name: Line,
        /// The lines as they are.
        text: Vec<String>,
    },
    /// `python … end` (also guile): recognised, never run.
    Foreign {
        /// The language's command.
        line: Line,
    },
    /// `loop_break`, in a block.
    LoopBreak(Line),
    /// `loop_continue`, in a block.
    LoopContinue(Line),
}

impl Node {
    /// Where it begins.
    pub fn at(&self) -> &Position {
        match self {
            Node::Simple(line) | Node::LoopBreak(line) | Node::LoopContinue(line) => &line.at,
            Node::If { condition, .. } | Node::While { condition, .. } => &condition.at,
            Node::Commands { arguments, .. } => &arguments.at,
            Node::Define { name, .. } | Node::Document { name, .. } => &name.at,
            Node::Foreign { line } => &line.at,
        }
    }
}

/// A line that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct ScriptError {
    /// Where.
    pub at: Position,
    /// gdb's words where gdb has some.
    pub message: String,
}

impl ScriptError {
    pub(super) fn new(at: &Position, message: impl Into<String>) -> ScriptError {
        ScriptError {
            at: at.clone(),
            message: message.into(),
        }
    }
}

/// Turns the first word of a line, which may be an abbreviation, into a command's full name.
pub trait Resolver {
    /// The full name and the rest of the line without leading blanks; `None` for a word that is
    /// no command or an ambiguous one.
    fn resolve<'a>(&self, line: &'a str) -> Option<(&'static str, &'a str)>;

    /// The commands that a line stands for which calls a command of the user's, its arguments put
    /// in; `None` for every other line.
    fn expand(&self, line: &str) -> Option<Vec<Node>> {
        let _ = line;
        None
    }
}

/// The commands that the reader itself must know, by their full names (and `py`).
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub struct FullNames;

#[cfg(test)]
impl Resolver for FullNames {
    fn resolve<'a>(&self, line: &'a str) -> Option<(&'static str, &'a str)> {
        const NAMES: &[&str] = &[
            "if", "while", "commands", "define", "document", "python", "guile", "trace", "silent",
            "print", "output", "printf", "echo", "x", "set", "hexdump", "continue", "inspect",
            "call",
        ];
        let (word, rest) = split_word(line);
        let name = NAMES.iter().find(|name| **name == word)?;
        Some((name, rest))
    }
}

/// The leading word of a command line as gdb delimits it, and what follows without its leading
/// blanks.
pub fn split_word(line: &str) -> (&str, &str) {
    let line = line.trim_start_matches([' ', '\t']);
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.'))
        .unwrap_or(line.len());
    (&line[..end], line[end..].trim_start_matches([' ', '\t']))
}

/// What one more line led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// A complete command.
    Node(Node),
    /// The command goes on in the next line.
    More,
    /// A blank or a comment.
    Nothing,
}

#[derive(Debug)]
enum Kind {
    If { in_else: bool, then: Vec<Node> },
    While,
    Commands,
    Define,
    Document(Vec<String>),
    Foreign,
}

/// A block whose `end` has not come yet.
#[derive(Debug)]
struct Open {
    kind: Kind,
    head: Line,
    body: Vec<Node>,
}

impl Open {
    fn close(self) -> Node {
        let Open { kind, head, body } = self;
        match kind {
            Kind::If { in_else: false, .. } => Node::If {
                condition: head,
                then: body,
                otherwise: Vec::new(),
            },
            Kind::If { then, .. } => Node::If {
                condition: head,
                then,
                otherwise: body,
            },
            Kind::While => Node::While {
                condition: head,
                body,
            },
            Kind::Commands => Node::Commands {
                arguments: head,
                body,
            },
            Kind::Define => Node::Define { name: head, body },
            Kind::Document(text) => Node::Document { name: head, text },
            Kind::Foreign => Node::Foreign { line: head },
        }
    }

    /// Lines are kept as they are, blanks included.
    fn is_raw(&self) -> bool {
        matches!(self.kind, Kind::Document(_) | Kind::Foreign)
    }
}

/// Takes lines one by one and gives commands back; used by files and the prompt alike.
pub struct Reader<'r> {
    resolver: &'r dyn Resolver,
    at: Position,
    stack: Vec<Open>,
    /// Text whose next line is still to come, and where it began.
    unfinished: Option<Line>,
    /// Its braces, and how much of it they were looked for in, bytes.
    braces: Option<(Braces, usize)>,
    /// A backslash at the end of a line joins it with the next.
    joins: bool,
}

impl<'r> Reader<'r> {
    /// A reader at line 1 of `file`.
    pub fn new(file: &str, resolver: &'r dyn Resolver) -> Reader<'r> {
        Reader::starting_at(
            Position {
                file: file.into(),
                line: 1,
            },
            resolver,
        )
    }

    /// A reader whose next line is the one at `at`.
    pub fn starting_at(at: Position, resolver: &'r dyn Resolver) -> Reader<'r> {
        Reader {
            resolver,
            at,
            stack: Vec::new(),
            unfinished: None,
            braces: None,
            joins: true,
        }
    }

    /// The same for single commands, behind which no line follows: a backslash means itself.
    pub fn not_joining(self) -> Reader<'r> {
        Reader {
            joins: false,
            ..self
        }
    }

    /// How many blocks are open (a prompt shows a `>` for each).
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    /// What was begun is given up.
    pub fn abandon(&mut self) {
        self.stack.clear();
        self.unfinished = None;
        self.braces = None;
    }

    /// The same with a line that goes on in the next one.
    pub fn open(&self) -> usize {
        self.stack.len() + usize::from(self.unfinished.is_some())
    }

    /// The next line is the one at `at`.
    pub(super) fn go_to(&mut self, at: Position) {
        self.at = at;
    }

    /// Takes the next line, without its newline.
    pub fn line(&mut self, text: &str) -> Result<Read, ScriptError> {
        let at = self.at.clone();
        self.at.line = self.at.line.saturating_add(1);
        let mut line = match self.unfinished.take() {
            Some(mut begun) => {
                begun.text.push_str(text);
                begun
            }
            None => Line {
                text: text.into(),
                at,
            },
        };
        if self.joins && line.text.ends_with('\\') {
            line.text.pop();
            self.unfinished = Some(line);
            return Ok(Read::More);
        }
        if !self.stack.last().is_some_and(Open::is_raw) && self.has_open_braces(&line.text) {
            line.text.push('\n');
            self.unfinished = Some(line);
            return Ok(Read::More);
        }
        self.whole_line(line)
    }

    /// The end of the text. A block that is still open ends here, as in gdb.
    pub fn finish(&mut self) -> Result<Option<Node>, ScriptError> {
        let mut last = None;
        if let Some(line) = self.unfinished.take() {
            if self.has_open_braces(&line.text) {
                self.braces = None;
                self.stack.clear();
                return Err(ScriptError::new(&line.at, "The closing `}' is missing."));
            }
            if let Read::Node(node) = self.whole_line(line)? {
                last = Some(node);
            }
        }
        while let Some(open) = self.stack.pop() {
            let node = open.close();
            match self.stack.last_mut() {
                Some(outer) => outer.body.push(node),
                None => last = Some(node),
            }
        }
        Ok(last)
    }

    /// Whether the next line belongs to `text`, which begins with what was asked about before: of that
    /// nothing is looked at again.
    fn has_open_braces(&mut self, text: &str) -> bool {
        if let Some((braces, looked)) = self.braces.take() {
            let braces = braces.go_on(text.get(looked..).unwrap_or_default());
            if braces.are_open() {
                self.braces = Some((braces, text.len()));
                return true;
            }
        }
        // Closed; or open after all, where a regular expression goes over lines.
        let Some(("trace", rest)) = self.resolver.resolve(text) else {
            return false;
        };
        let braces = Braces::of(rest);
        let open = braces.are_open();
        self.braces = open.then_some((braces, text.len()));
        open
    }

    fn whole_line(&mut self, line: Line) -> Result<Read, ScriptError> {
        let text = line.text.trim_matches([' ', '\t', '\r', '\n']);
        if text == "end" {
            return self.end(&line.at);
        }
        if let Some(open) = self.stack.last_mut()
            && open.is_raw()
        {
            if let Kind::Document(lines) = &mut open.kind {
                lines.push(line.text);
            }
            return Ok(Read::More);
        }
        if text.is_empty() || text.starts_with('#') {
            return Ok(if self.stack.is_empty() {
                Read::Nothing
            } else {
                Read::More
            });
        }
        if text == "else" && !self.stack.is_empty() {
            return self.otherwise(&line.at);
        }
        let line = Line {
            text: text.into(),
            at: line.at,
        };
        self.command(line)
    }

    fn command(&mut self, line: Line) -> Result<Read, ScriptError> {
        if !self.stack.is_empty() {
            match line.text.as_str() {
                "loop_break" => return Ok(self.add(Node::LoopBreak(line))),
                "loop_continue" => return Ok(self.add(Node::LoopContinue(line))),
                _ => {}
            }
        }
        let (kind, arguments) = match self.resolver.resolve(&line.text) {
            Some(("if", rest)) => (
                Kind::If {
                    in_else: false,
                    then: Vec::new(),
                },
                rest,
            ),
            Some(("while", rest)) => (Kind::While, rest),
            Some(("commands", rest)) => (Kind::Commands, rest),
            Some(("define", rest)) => (Kind::Define, rest),
            Some(("document", rest)) => (Kind::Document(Vec::new()), rest),
            Some(("python" | "python-interactive" | "guile" | "guile-repl", "")) => {
                (Kind::Foreign, line.text.as_str())
            }
            _ => return Ok(self.add(Node::Simple(line))),
        };
        if arguments.is_empty() && matches!(kind, Kind::If { .. } | Kind::While) {
            let name = if matches!(kind, Kind::While) {
                "while"
            } else {
                "if"
            };
            let message = if self.stack.is_empty() {
                format!("{name} command requires an argument.")
            } else {
                "if/while commands require arguments.".into()
            };
            self.stack.clear();
            return Err(ScriptError::new(&line.at, message));
        }
        if self.stack.len() >= MAX_DEPTH {
            self.stack.clear();
            let message = format!("Blocks are nested more than {MAX_DEPTH} deep.");
            return Err(ScriptError::new(&line.at, message));
        }
        let head = Line {
            text: arguments.into(),
            at: line.at,
        };
        self.stack.push(Open {
            kind,
            head,
            body: Vec::new(),
        });
        Ok(Read::More)
    }

    fn add(&mut self, node: Node) -> Read {
        match self.stack.last_mut() {
            Some(open) => {
                open.body.push(node);
                Read::More
            }
            None => Read::Node(node),
        }
    }

    fn end(&mut self, at: &Position) -> Result<Read, ScriptError> {
        match self.stack.pop() {
            Some(open) => Ok(self.add(open.close())),
            None => Err(ScriptError::new(
                at,
                "This command cannot be used at the top level.",
            )),
        }
    }

    fn otherwise(&mut self, at: &Position) -> Result<Read, ScriptError> {
        if let Some(open) = self.stack.last_mut()
            && let Kind::If { in_else, then } = &mut open.kind
            && !*in_else
        {
            *in_else = true;
            *then = std::mem::take(&mut open.body);
            return Ok(Read::More);
        }
        self.stack.clear();
        Err(ScriptError::new(
            at,
            "Error reading in canned sequence of commands.",
        ))
    }
}

/// Reads a whole text, up to its first error.
#[cfg(test)]
pub fn read(
    first: Position,
    text: &str,
    resolver: &dyn Resolver,
) -> Result<Vec<Node>, ScriptError> {
    let mut reader = Reader::starting_at(first, resolver);
    let mut nodes = Vec::new();
    for line in text.lines() {
        if let Read::Node(node) = reader.line(line)? {
            nodes.push(node);
        }
    }
    nodes.extend(reader.finish()?);
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Result<Vec<Node>, String> {
        let first = Position {
            file: "t.gdb".into(),
            line: 1,
        };
        read(first, text, &FullNames).map_err(|error| error.to_string())
    }

    #[test]
    fn a_body_may_have_many_lines() {
        let lines = "\n  if 1 {\n print \"}\"\n }".repeat(500);
        for (end, wanted) in [("\n}", Ok(1)), ("", Err(()))] {
            let text = format!("trace f {{{lines}{end}");
            assert_eq!(tree(&text).map(|nodes| nodes.len()).map_err(drop), wanted);
        }
    }

    /// `name@line[children]`, short enough to compare.
    fn sketch(nodes: &[Node]) -> String {
        let parts: Vec<String> = nodes
            .iter()
            .map(|node| match node {
                Node::Simple(line) => format!("{}@{}", line.text, line.at.line),
                Node::If {
                    condition,
                    then,
                    otherwise,
                } => format!(
                    "if({})@{}[{}][{}]",
                    condition.text,
                    condition.at.line,
                    sketch(then),
                    sketch(otherwise)
                ),
                Node::While { condition, body } => {
                    format!("while({})[{}]", condition.text, sketch(body))
                }
                Node::Commands { arguments, body } => {
                    format!("commands({})[{}]", arguments.text, sketch(body))
                }
                Node::Define { name, body } => format!("define({})[{}]", name.text, sketch(body)),
                Node::Document { name, text } => format!("document({}){text:?}", name.text),
                Node::Foreign { line } => format!("foreign@{}", line.at.line),
                Node::LoopBreak(_) => "loop_break".into(),
                Node::LoopContinue(_) => "loop_continue".into(),
            })
            .collect();
        parts.join("; ")
    }

    #[test]
    fn blocks_nest_and_keep_their_lines() {
        let text = "# head\nif 1\n  echo a\\\n b\n  while $i\n loop_break\n end\nelse\nif(2)\nx\nend\nend\np 1 # no comment\n";
        assert_eq!(
            sketch(&tree(text).unwrap()),
            "if(1)@2[echo a b@3; while($i)[loop_break]][if((2))@9[x@10][]]; p 1 # no comment@13"
        );
        let text = "define foo\ncommands 1 2\nsilent\nend\nend\ndocument foo\n  a\n\n# b\nend\npython\nend\npython print(1)";
        assert_eq!(
            sketch(&tree(text).unwrap()),
            "define(foo)[commands(1 2)[silent@3]]; document(foo)[\"  a\", \"\", \"# b\"]; foreign@11; python print(1)@13"
        );
    }

    #[test]
    fn the_end_of_the_text_closes_blocks() {
        assert_eq!(
            sketch(&tree("if 1\nwhile 2\nx\\").unwrap()),
            "if(1)@1[while(2)[x@3]][]"
        );
    }

    #[test]
    fn misplaced_words_are_named_with_their_line() {
        let canned = "Error reading in canned sequence of commands.";
        for (text, message) in [
            (
                "x\nend",
                "t.gdb:2: This command cannot be used at the top level.",
            ),
            ("if 1\nelse\n\nelse", &format!("t.gdb:4: {canned}")),
            ("while 1\nelse\nend", &format!("t.gdb:2: {canned}")),
            ("if", "t.gdb:1: if command requires an argument."),
            (
                "if 1\n while \nend",
                "t.gdb:2: if/while commands require arguments.",
            ),
            ("\ntrace f {\n x\n", "t.gdb:2: The closing `}' is missing."),
        ] {
            assert_eq!(tree(text).unwrap_err(), message);
        }
        assert!(
            tree(&"if 1\n".repeat(1000))
                .unwrap_err()
                .contains("t.gdb:101: Blocks are nested")
        );
        assert_eq!(sketch(&tree("else").unwrap()), "else@1");
    }

    #[test]
    fn a_trace_goes_on_until_its_brace_is_closed() {
        assert_eq!(
            sketch(&tree("trace f {\nprint 1\n}\nx").unwrap()),
            "trace f {\nprint 1\n}@1; x@4"
        );
    }
}
