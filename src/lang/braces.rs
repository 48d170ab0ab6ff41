//! The brace form: `LOCATION [in TARGET] [if EXPR] [{ COMMAND; if E { … } else { … } }]`.
//!
//! `;` separates commands like a new line, outside quotes, parentheses and braces. A body is
//! rewritten into gdb's lines (`if E`, …, `else`, …, `end`) and read by [`script`](super::script).

use super::rate::Rate;
use super::script::{MAX_DEPTH, Node, Position, Read, Reader, Resolver, ScriptError, split_word};

/// A probe as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeText {
    /// Where to hook in.
    pub location: String,
    /// `in TARGET`.
    pub target: Option<String>,
    /// `if EXPR`.
    pub condition: Option<String>,
    /// `sample RATE`.
    pub sample: Option<Rate>,
    /// The commands in braces; `None` where there were no braces.
    pub body: Option<Vec<Node>>,
}

/// Whether `text` has more `{` than `}`, so that the next line belongs to it.
pub fn is_open(text: &str) -> bool {
    Braces::of(text).are_open()
}

/// The braces of a text that comes line by line.
#[derive(Debug)]
pub struct Braces {
    open: Vec<char>,
    braces: usize,
}

impl Braces {
    /// Those of a text.
    pub fn of(text: &str) -> Braces {
        Braces::at_end(Scan::behind_regex(text))
    }

    /// The text goes on with `more`. No quote crosses a line.
    pub fn go_on(self, more: &str) -> Braces {
        Braces::at_end(Scan {
            open: self.open,
            braces: self.braces,
            ..Scan::new(more)
        })
    }

    fn at_end(mut scan: Scan) -> Braces {
        scan.by_ref().for_each(drop);
        Braces {
            open: scan.open,
            braces: scan.braces,
        }
    }

    /// See [`is_open`].
    pub fn are_open(&self) -> bool {
        self.braces > 0
    }
}

/// Where the `/REGEX/` or `LIB:/REGEX/` ends that a location begins with; 0 where it begins with none.
///
/// The slash that ends it stands before a blank, a `{`, a `%` or the end: names hold few slashes, and
/// bodies and conditions may hold many.
pub fn regex_end(text: &str) -> usize {
    let lead = text.len() - text.trim_start().len();
    let rest = &text[lead..];
    let word = rest.split(char::is_whitespace).next().unwrap_or_default();
    let open = match word.find([':', '`']) {
        _ if word.starts_with('/') && !is_path(word) => 0,
        Some(colon) if word[colon + 1..].starts_with('/') => colon + 1,
        _ => return 0,
    };
    let ends =
        |behind: Option<char>| behind.is_none_or(|c| c.is_whitespace() || matches!(c, '{' | '%'));
    rest.char_indices()
        .skip_while(|(at, _)| *at < open + 2)
        .find(|(at, c)| *c == '/' && ends(rest[at + 1..].chars().next()))
        .map_or(0, |(at, _)| lead + at + 1)
}

/// `/lib/x.so:name`, and not `/a:b/`.
fn is_path(word: &str) -> bool {
    word.split_once(':')
        .is_some_and(|(path, _)| path[1..].contains('/'))
        || word.matches('/').count() > 2
}

/// Reads a probe. `at` is where `text` begins.
pub fn parse_probe(
    text: &str,
    at: &Position,
    resolver: &dyn Resolver,
) -> Result<ProbeText, ScriptError> {
    if is_open(text) {
        return Err(ScriptError::new(at, "The closing `}' is missing."));
    }
    let trimmed = text.trim_end();
    let group = body_group(trimmed);
    let head = group.map_or(trimmed, |start| &trimmed[..start]);
    let body = match group {
        None => None,
        Some(start) => {
            let inner = &trimmed[start + 1..trimmed.len() - 1];
            let begins = later(at, &trimmed[..start]);
            Some(parse_body(inner, &begins, resolver)?)
        }
    };
    let (head, sample) = split_sample(head);
    let (head, condition) = split_at_keyword(head, "if");
    let (location, target) = split_process(head);
    let location = location.trim();
    if location.is_empty() {
        return Err(ScriptError::new(at, "A probe needs a location."));
    }
    if target.is_some_and(|target| target.is_empty()) {
        let message = "`in' needs a process: its id, its program's name, or /REGEX/.";
        return Err(ScriptError::new(at, message));
    }
    let owned = |text: &str| text.trim().to_string();
    Ok(ProbeText {
        location: location.into(),
        target: target.map(owned),
        condition: condition.map(owned),
        sample,
        body,
    })
}

/// A location, and the process in which alone it is looked for: `LOCATION in TARGET`.
pub fn split_process(text: &str) -> (&str, Option<&str>) {
    let (location, target) = split_at_keyword(text, "in");
    (location.trim_end(), target.map(str::trim))
}

/// Splits off `sample RATE` at the end. Anything else of that name is the program's.
fn split_sample(head: &str) -> (&str, Option<Rate>) {
    let split = head.trim_end().rsplit_once(" sample ");
    match split.and_then(|(head, rate)| Some((head, Rate::parse(rate)?))) {
        Some((head, rate)) => (head, Some(rate)),
        None => (head, None),
    }
}

/// Reads the inside of a body's braces.
pub fn parse_body(
    text: &str,
    at: &Position,
    resolver: &dyn Resolver,
) -> Result<Vec<Node>, ScriptError> {
    let mut lines = Vec::new();
    flatten(text, at, 0, &mut lines)?;
    let mut reader = Reader::starting_at(at.clone(), resolver);
    let mut nodes = Vec::new();
    for (position, line) in lines {
        reader.go_to(position);
        if let Read::Node(node) = reader.line(&line)? {
            nodes.push(node);
        }
    }
    nodes.extend(reader.finish()?);
    Ok(nodes)
}

/// `at`, moved on by the newlines in `text`.
fn later(at: &Position, text: &str) -> Position {
    let newlines = text.bytes().filter(|byte| *byte == b'\n').count();
    Position {
        file: at.file.clone(),
        line: at
            .line
            .saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX)),
    }
}

/// The characters outside quotes, each with its byte offset and how deep in parentheses, brackets
/// and braces it stands (an opening one counts as outside of itself, a closing one too).
struct Scan<'t> {
    text: &'t str,
    position: usize,
    open: Vec<char>,
    /// How many of them are braces.
    braces: usize,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Scan<'t> {
        Scan {
            text,
            position: 0,
            open: Vec::new(),
            braces: 0,
        }
    }

    /// The same behind the regular expression that a location begins with.
    fn behind_regex(text: &'t str) -> Scan<'t> {
        Scan {
            position: regex_end(text),
            ..Scan::new(text)
        }
    }

    /// The length of the quoted text that starts at the current character; `None` where its end is
    /// missing (`don't`), which makes the quote a character like others.
    fn quoted(&self, quote: char) -> Option<usize> {
        let rest = &self.text[self.position..];
        let mut escaped = false;
        for (offset, c) in rest.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '\n' => return None,
                _ if c == quote => return Some(offset + 1),
                _ => {}
            }
        }
        None
    }
}

impl Iterator for Scan<'_> {
    type Item = (usize, char, usize);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let c = self.text[self.position..].chars().next()?;
            let start = self.position;
            if (c == '"' || c == '\'')
                && let Some(length) = self.quoted(c)
            {
                self.position += length;
                continue;
            }
            if c == '\\' {
                self.position += 1;
                self.position += self.text[self.position..]
                    .chars()
                    .next()
                    .map_or(0, char::len_utf8);
                continue;
            }
            self.position += c.len_utf8();
            let depth = self.open.len();
            match c {
                '(' | '[' | '{' => {
                    self.open.push(c);
                    self.braces += usize::from(c == '{');
                    return Some((start, c, depth));
                }
                ')' if self.open.last() == Some(&'(') => drop(self.open.pop()),
                ']' if self.open.last() == Some(&'[') => drop(self.open.pop()),
                // What is left open inside braces ends with them.
                '}' if self.braces > 0 => {
                    let brace = self.open.iter().rposition(|open| *open == '{');
                    self.open.truncate(brace.unwrap_or_default());
                    self.braces -= 1;
                }
                _ => {}
            }
            return Some((start, c, self.open.len()));
        }
    }
}

/// A brace group outside any other: its first byte and the one behind it.
#[derive(Debug, Clone, Copy)]
struct Group {
    start: usize,
    end: usize,
}

fn top_groups(text: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut open = None;
    for (offset, c, depth) in Scan::behind_regex(text) {
        match c {
            '{' if depth == 0 => open = Some(offset),
            '}' if depth == 0 => {
                if let Some(start) = open.take() {
                    groups.push(Group {
                        start,
                        end: offset + 1,
                    });
                }
            }
            _ => {}
        }
    }
    groups
}

/// Where the brace group starts that ends `text`.
fn body_group(text: &str) -> Option<usize> {
    top_groups(text)
        .last()
        .filter(|group| group.end == text.len())
        .map(|group| group.start)
}

/// Splits at the first ` WORD ` that stands outside quotes and parentheses, and behind the regular
/// expression that a location may be.
fn split_at_keyword<'t>(text: &'t str, word: &str) -> (&'t str, Option<&'t str>) {
    let blank = |c: Option<char>| c.is_none_or(|c| c.is_whitespace());
    for (offset, _, depth) in Scan::behind_regex(text) {
        if depth == 0
            && text[offset..].starts_with(word)
            && blank(text[..offset].chars().next_back())
            && text[offset + word.len()..].starts_with(|c: char| c.is_whitespace() || c == '(')
        {
            return (&text[..offset], Some(&text[offset + word.len()..]));
        }
    }
    (text, None)
}

/// Appends the lines that say the same as the brace form in `text`.
fn flatten(
    text: &str,
    at: &Position,
    depth: usize,
    lines: &mut Vec<(Position, String)>,
) -> Result<(), ScriptError> {
    if depth > MAX_DEPTH {
        let message = format!("Blocks are nested more than {MAX_DEPTH} deep.");
        return Err(ScriptError::new(at, message));
    }
    let mut start = 0;
    while start < text.len() {
        let rest = &text[start..];
        let blanks = rest.len() - rest.trim_start().len();
        if blanks > 0 {
            start += blanks;
            continue;
        }
        let position = later(at, &text[..start]);
        if rest.starts_with(';') {
            start += 1;
        } else if rest.starts_with('#') {
            start += rest.find('\n').unwrap_or(rest.len());
        } else if matches!(split_word(rest).0, "if" | "while")
            && let Some(used) = flatten_block(rest, &position, depth, lines)?
        {
            start += used;
        } else {
            let end = statement_end(rest);
            let line = rest[..end].trim_end();
            if is_unbalanced(line) {
                return Err(ScriptError::new(
                    &position,
                    format!("Unbalanced parentheses in \"{line}\"."),
                ));
            }
            lines.push((position, line.replace("\\\n", "")));
            start += end;
        }
    }
    Ok(())
}

/// Where the first command of `text` ends.
fn statement_end(text: &str) -> usize {
    Scan::new(text)
        .find(|&(_, c, depth)| depth == 0 && (c == ';' || c == '\n'))
        .map_or(text.len(), |(offset, _, _)| offset)
}

fn is_unbalanced(text: &str) -> bool {
    let mut scan = Scan::new(text);
    scan.by_ref().for_each(drop);
    !scan.open.is_empty()
}

/// Rewrites the `if` or `while` at the start of `text` if it is in brace form; gives how much of
/// the text it was.
fn flatten_block(
    text: &str,
    at: &Position,
    depth: usize,
    lines: &mut Vec<(Position, String)>,
) -> Result<Option<usize>, ScriptError> {
    let Some(group) = block_group(text) else {
        return Ok(None);
    };
    let inside = |group: Group, lines: &mut Vec<(Position, String)>| {
        let begins = later(at, &text[..group.start]);
        flatten(
            &text[group.start + 1..group.end - 1],
            &begins,
            depth + 1,
            lines,
        )
    };
    lines.push((
        at.clone(),
        text[..group.start].trim_end().replace('\n', " "),
    ));
    inside(group, lines)?;
    let mut used = group.end;
    let behind = text[used..].trim_start();
    if split_word(behind).0 == "else" && text.starts_with("if") {
        let branch = behind[4..].trim_start();
        let begins = text.len() - branch.len();
        let position = later(at, &text[..begins]);
        lines.push((position.clone(), "else".into()));
        if branch.starts_with('{') {
            let Some(other) = top_groups(branch).first().copied() else {
                return Err(ScriptError::new(&position, "The closing `}' is missing."));
            };
            let other = Group {
                start: begins + other.start,
                end: begins + other.end,
            };
            inside(other, lines)?;
            used = other.end;
        } else {
            let nested = match split_word(branch).0 {
                "if" if depth < MAX_DEPTH => flatten_block(branch, &position, depth + 1, lines)?,
                _ => None,
            };
            let Some(length) = nested else {
                return Err(ScriptError::new(
                    &position,
                    "Behind `else' comes `{' or `if EXPR {'.",
                ));
            };
            used = begins + length;
        }
    }
    lines.push((later(at, &text[..used]), "end".into()));
    Ok(Some(used))
}

/// The group that is the block of the `if` or `while` at the start of `text`, and no `{type}` of
/// its condition: a type comes where an operand is due, a block behind a complete operand.
fn block_group(text: &str) -> Option<Group> {
    let keyword = split_word(text).0.len();
    let header = &text[..statement_end(text)];
    let candidates = || {
        top_groups(header).into_iter().filter(move |group| {
            let before = header[..group.start].trim_end();
            before.len() > keyword
                && before.ends_with(|c: char| c.is_alphanumeric() || "_)]}\"'".contains(c))
        })
    };
    candidates()
        .find(|group| {
            // `(char){short}p` against `(p) { … }`.
            let behind = text[group.end..].trim_start_matches([' ', '\t']);
            !header[..group.start].trim_end().ends_with(')')
                || behind.is_empty()
                || behind.starts_with([';', '\n'])
                || split_word(behind).0 == "else"
        })
        .or_else(|| candidates().next())
}

#[cfg(test)]
mod tests {
    use super::super::script::FullNames;
    use super::*;

    fn at(line: u32) -> Position {
        Position {
            file: "-e".into(),
            line,
        }
    }

    fn lines(text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        flatten(text, &at(1), 0, &mut lines).unwrap();
        lines
            .into_iter()
            .map(|(at, text)| format!("{}:{text}", at.line))
            .collect()
    }

    #[test]
    fn a_rate_stands_behind_the_condition() {
        let at = Position {
            file: "t".into(),
            line: 1,
        };
        let read = |text: &str| parse_probe(text, &at, &FullNames).expect("a probe");
        let probe = read("f if $x > 3 sample 10% { print 1 }");
        assert_eq!(probe.condition.as_deref(), Some("$x > 3"));
        assert_eq!(probe.sample.map(|r| (r.of, r.all)), Some((10, 100)));
        let probe = read("f sample 1/5");
        assert_eq!((probe.location.as_str(), probe.body), ("f", None));
        assert!(probe.sample.is_some());
        let probe = read("f if sample == 3");
        assert_eq!(probe.condition.as_deref(), Some("sample == 3"));
        assert!(probe.sample.is_none());
    }

    #[test]
    fn a_probe_is_taken_apart() {
        let probe = |text: &str| parse_probe(text, &at(1), &FullNames).unwrap();
        let p = probe(r#"A::b(int) in client if {char}$rsi == '{' { x/s $rsi; printf "};{", 1; }"#);
        assert_eq!(p.location, "A::b(int)");
        assert_eq!(p.target.as_deref(), Some("client"));
        assert_eq!(p.condition.as_deref(), Some("{char}$rsi == '{'"));
        assert_eq!(p.body.unwrap().len(), 2);
        let p = probe("/a if b/ if $rdi");
        assert_eq!(
            (p.location.as_str(), p.condition.as_deref(), p.body),
            ("/a if b/", Some("$rdi"), None)
        );
        let p = probe("*0x1234 {}");
        assert_eq!(
            (p.location.as_str(), p.condition, p.body),
            ("*0x1234", None, Some(vec![]))
        );
        assert_eq!(probe("f if(1)").condition.as_deref(), Some("(1)"));
        for (text, message) in [
            ("f { x", "-e:1: The closing `}' is missing."),
            (" { x }", "-e:1: A probe needs a location."),
            (
                "f { print (1; x }",
                "-e:1: Unbalanced parentheses in \"print (1; x\".",
            ),
            (
                "f { if 1 {x}\n else x }",
                "-e:2: Behind `else' comes `{' or `if EXPR {'.",
            ),
            (
                "f { x\n end }",
                "-e:2: This command cannot be used at the top level.",
            ),
        ] {
            assert_eq!(
                parse_probe(text, &at(1), &FullNames)
                    .unwrap_err()
                    .to_string(),
                message
            );
        }
    }

    #[test]
    fn a_regular_expression_ends_where_it_ends() {
        let probe = |text: &str| parse_probe(text, &at(1), &FullNames).unwrap();
        let p = probe(r"/^ns::f{2}\(int\)$/ if $rdi / 2 { x/s $rsi }");
        assert_eq!(p.location, r"/^ns::f{2}\(int\)$/");
        assert_eq!(p.condition.as_deref(), Some("$rdi / 2"));
        assert_eq!(p.body.map(|body| body.len()), Some(1));
        for (text, location) in [
            ("/a{/{ x/s 1 }", "/a{/"),
            ("libx.so:/it's [{]/ if 1", "libx.so:/it's [{]/"),
            ("/lib/x.so:/a b/ if 1", "/lib/x.so:/a b/"),
            ("/lib/x.so:f if $rdi / 2 == 1", "/lib/x.so:f"),
            ("/operator/=/ if 1", "/operator/=/"),
        ] {
            assert_eq!(probe(text).location, location, "{text}");
        }
        assert_eq!(regex_end("f if 1 / 2"), 0);
        assert_eq!(regex_end("/a"), 0);
        assert!(!is_open("/a{/"));
    }

    #[test]
    fn semicolons_separate_outside_quotes_and_parentheses() {
        assert_eq!(
            lines(
                r#"echo a;;print ";" ; p ';'; p f(a;b); echo don't; echo a\;b
 # it's; no command
 p "\";" "#
            ),
            [
                "1:echo a",
                r#"1:print ";""#,
                "1:p ';'",
                "1:p f(a;b)",
                "1:echo don't",
                r"1:echo a\;b",
                r#"3:p "\";""#
            ]
        );
    }

    #[test]
    fn braces_become_blocks() {
        assert_eq!(
            lines(
                "if {char}$rsi == 1 { a; b } else if (x) {\n c } else { if 1 { } }; while (char){int}p { d } e"
            ),
            [
                "1:if {char}$rsi == 1",
                "1:a",
                "1:b",
                "1:else",
                "1:if (x)",
                "2:c",
                "2:else",
                "2:if 1",
                "2:end",
                "2:end",
                "2:end",
                "2:while (char){int}p",
                "2:d",
                "2:end",
                "2:e"
            ]
        );
        assert_eq!(
            lines("if 1; a; else; b; end"),
            ["1:if 1", "1:a", "1:else", "1:b", "1:end"]
        );
        assert_eq!(lines("if (1) { a } b"), ["1:if (1)", "1:a", "1:end", "1:b"]);
    }

    #[test]
    fn depth_is_bounded() {
        let deep = format!("f {{{}{}}}", "if 1 {".repeat(5000), "}".repeat(5000));
        assert!(parse_probe(&deep, &at(1), &FullNames).is_err());
        let long = format!("f {{if 1 {{}}{}}}", " else if 1 {}".repeat(5000));
        assert!(parse_probe(&long, &at(1), &FullNames).is_err());
    }
}
