//! Hostile text for everything that reads some.

use std::time::Duration;

use super::body::{expand, parse_body};
use super::braces;
use super::changes::{expression_changes, first_change};
use super::examine::ExamineState;
use super::no_panic::Small;
use super::script::{FullNames, Position, read};
use super::statement::{Context, Flow, parse_statement};
use crate::hostile::{files, hostile, lines};

fn at() -> Position {
    Position {
        file: "t".into(),
        line: 1,
    }
}

const SCRIPT: &[&str] = &[
    "if 1",
    "else",
    "end",
    "while 1",
    "commands",
    "define f",
    "document f",
    "python",
    "silent",
    "loop_break",
    "loop_continue",
    "trace f { x/s $rdi; if 1 { print 2 } else { cont } }",
    "{",
    "}",
    ";",
    "\\",
    "#",
    "\"",
    "'",
    "(",
    ")",
    "\n",
    "print $rdi = 1",
    "set $x = 1",
    "else {",
    "} else",
];

/// Our scripts, and one whose lines belong to one command.
fn scripts() -> Vec<Vec<u8>> {
    let mut scripts = files(&[
        "scripts/fibon.gdb",
        "scripts/fibon.trl",
        "scripts/hallo.gdb",
        "scripts/vsomeip.gdb",
        "scripts/vsomeip-stripped.gdb",
        "scripts/someip-messages.trl",
        "scripts/ros2-callbacks.trl",
        "scripts/cyber-tail.trl",
        "scripts/vendor-offset.trl",
        "tests/scripts/bp-cmds.txt",
        "tests/scripts/commands.txt",
        "tests/scripts/setvar.txt",
    ]);
    scripts.push([b"trace f {\n".to_vec(), b"print 1\n".repeat(8000)].concat());
    scripts
}

hostile!(
    fuzz_scripts,
    scripts(),
    { words: SCRIPT },
    |input| {
        let text = String::from_utf8_lossy(input);
        match read(at(), &text, &FullNames) {
            Ok(nodes) => {
                let _ = first_change(&nodes, &FullNames);
                let nodes = expand(&nodes, &FullNames);
                let _ = parse_body(&nodes, &FullNames, &Small::new());
            }
            Err(error) => assert!(error.at.line >= 1),
        }
    }
);

hostile!(
    fuzz_probes,
    lines(&["tests/corpus/hostile/probes.txt", "tests/corpus/hostile/locations.txt"]),
    { words: SCRIPT },
    |input| {
        let text = String::from_utf8_lossy(input);
        let _ = braces::split_process(&text);
        assert!(text.is_char_boundary(braces::regex_end(&text)));
        if let Ok(probe) = braces::parse_probe(&text, &at(), &FullNames) {
            assert!(!braces::is_open(&text) && !probe.location.is_empty());
        }
    }
);

const EXPRESSION: &[&str] = &[
    "1",
    "0",
    "-1",
    "08",
    "0x7fffffffffffffff",
    "18446744073709551615",
    "1.5",
    "1e400l",
    "2.5f",
    "'a'",
    "'\\0'",
    "\"abc\"",
    "L\"x\"",
    "$rdi",
    "$al",
    "$xmm0",
    "$xmm0.v4_float",
    "$xmm0.uint128",
    "$eflags",
    "$x",
    "$1",
    "$",
    "$$",
    "$_",
    "main",
    "data",
    "(char*)",
    "(int)",
    "(float)",
    "(long double)",
    "(char[3])",
    "{int}",
    "{char[4]}",
    "sizeof(",
    "alignof(",
    "static_cast<int>(",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<<",
    ">>",
    "<",
    "==",
    "&&",
    "||",
    "!",
    "~",
    "&",
    "|",
    "^",
    "=",
    "+=",
    "<<=",
    "++",
    "--",
    "?",
    ":",
    "@",
    ".",
    "->",
    "::",
    "$_be16(",
    "$_entry(",
    "$_regex(\"",
    "int(*)[2]",
    "void(*)(int)",
    "unsigned",
    "const",
    "struct s",
    "if",
];

hostile!(
    fuzz_expressions,
    lines(&["tests/corpus/print.txt"]),
    { words: EXPRESSION, cases: 1500 },
    |input| {
        let text = String::from_utf8_lossy(input);
        let text = text.split_once(' ').map_or(&*text, |(_, expr)| expr);
        let _ = expression_changes(text);
        for letter in [None, Some('x'), Some('s'), Some('f'), Some('a'), Some('c'), Some('z')] {
            let _ = Small::new().print(text, letter);
        }
    }
);

hostile!(
    fuzz_statements,
    lines(&["tests/corpus/statements.txt", "tests/corpus/x.txt", "tests/corpus/printf.txt"]),
    {
        words: &[
            "x", "/", "-", "3", "2147483648", "99999999999999999999", "x", "d", "u", "o", "t", "z", "a", "c", "f", "s",
            "i", "b", "h", "w", "g", "$rdi", "$rdi,", "$_", "&data", "printf \"", "%d", "%5.2f", "%-*d", "%s", "%ls",
            "%lc", "%hhx", "%Lf", "%H", "%p", "%n", "%%", "%999999999d", "%.999999999s", "\\n", "\\777", "\\x", "\"",
            ", 1", ", \"a\"", ", 1.5", "print/", "output/", "set ", "echo ", "hexdump $rdi, 20", "delay 5ms", "return",
        ],
        cases: 1500,
    },
    |input| {
        let text = String::from_utf8_lossy(input);
        let mut scope = Small::new();
        let mut state = ExamineState::default();
        for line in text.lines() {
            let (name, rest) = super::script::split_word(line);
            let Ok(Some(statement)) = parse_statement(name, rest, &scope) else {
                continue;
            };
            let mut out = Bounded(0);
            let mut context = Context {
                scope: &mut scope,
                out: &mut out,
                state: &mut state,
                disassemble: &|bytes, _, _| bytes.first().map(|byte| (1, format!("op {byte:#x}"))),
            };
            assert!(!matches!(statement.run(&mut context), Ok(Flow::Again)));
        }
    }
);

/// A terminal that has had enough.
struct Bounded(usize);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        match self.0 > 16 << 20 {
            true => Err(std::io::Error::other("enough")),
            false => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

hostile!(
    fuzz_durations_and_rates,
    ["5ms", "10s", "1.5h", "10%", "1/1000", "0.5us"].map(|text| text.as_bytes().to_vec()).to_vec(),
    { words: &["1", "0", ".", "%", "/", "ms", "us", "ns", "s", "m", "h", "-", "e9", " ", "99999999999999999999"] },
    |input| {
        let text = String::from_utf8_lossy(input);
        if let Ok(duration) = super::duration::duration(&text) {
            assert!(duration < Duration::MAX);
        }
        let _ = super::rate::Rate::parse(&text);
    }
);
