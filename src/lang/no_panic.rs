//! Whatever is typed: an error or a text, never a panic, never a hang. And what the language adds
//! to gdb's.

use proptest::prelude::*;

use super::scope::{Scope, ScopeError, Special, Symbol, SymbolKind, Unreadable};
use super::{Error, Value, evaluate, parse, parse_argument, print_value, type_of};
use crate::arch::{Register, Registers};

/// A program of one readable page and a few registers.
pub(super) struct Small {
    registers: Registers,
    page: Vec<u8>,
    variables: Vec<(String, Value)>,
    history: Vec<Value>,
}

const PAGE: u64 = 0x1000;

impl Small {
    pub(super) fn new() -> Small {
        let mut registers = Registers::default();
        registers.set(Register::Rdi, PAGE);
        registers.set(Register::Rsi, 7);
        registers.set(Register::Rsp, PAGE + 64);
        let mut page = vec![0; 256];
        page[..16].copy_from_slice(b"\x12\x34\x56\x78\x9a\xbc\xde\xf0Hello\0\0\0");
        page[72] = 77;
        Small {
            registers,
            page,
            variables: Vec::new(),
            history: Vec::new(),
        }
    }

    fn span(&self, address: u64, len: usize) -> Result<std::ops::Range<usize>, Unreadable> {
        let from = address
            .checked_sub(PAGE)
            .and_then(|a| usize::try_from(a).ok());
        let range = from.and_then(|from| Some(from..from.checked_add(len)?));
        range
            .filter(|r| r.end <= self.page.len())
            .ok_or(Unreadable { address })
    }

    pub(super) fn print(&mut self, text: &str, letter: Option<char>) -> Result<String, Error> {
        let expr = parse(text, self)?;
        let _ = type_of(&expr, self);
        let value = evaluate(&expr, self)?.for_history(self)?;
        print_value(&value, letter, self)
    }
}

impl Scope for Small {
    fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), Unreadable> {
        let span = self.span(address, buf.len())?;
        buf.copy_from_slice(&self.page[span]);
        Ok(())
    }
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ScopeError> {
        let span = self.span(address, bytes.len())?;
        self.page[span].copy_from_slice(bytes);
        Ok(())
    }
    fn registers(&self) -> Option<&Registers> {
        Some(&self.registers)
    }
    fn set_register(&mut self, register: Register, value: u64) -> Result<(), ScopeError> {
        self.registers.set(register, value);
        Ok(())
    }
    fn vector_register(&self, name: &str) -> Option<Vec<u8>> {
        name.starts_with("xmm").then(|| (0..16).collect())
    }
    fn symbol(&self, name: &str) -> Option<Symbol> {
        let kind = match name {
            "main" | "ns::f(int)" => SymbolKind::Text,
            "data" => SymbolKind::Data,
            _ => return None,
        };
        Some(Symbol {
            address: PAGE,
            size: 8,
            kind,
        })
    }
    fn variable(&self, name: &str) -> Option<Value> {
        let found = self.variables.iter().rev().find(|(n, _)| n == name);
        found.map(|(_, v)| v.clone())
    }
    fn set_variable(&mut self, name: &str, value: Value) -> Result<(), ScopeError> {
        self.variables.push((name.to_owned(), value));
        Ok(())
    }
    fn history(&self, number: usize) -> Option<Value> {
        self.history.get(number.checked_sub(1)?).cloned()
    }
    fn history_length(&self) -> usize {
        self.history.len()
    }
    fn push_history(&mut self, value: Value) -> usize {
        self.history.push(value);
        self.history.len()
    }
    fn special(&self, what: Special) -> Option<u64> {
        (what == Special::Tid).then_some(42)
    }
}

#[track_caller]
fn shows(text: &str, letter: Option<char>, wanted: &str) {
    let ours = Small::new().print(text, letter);
    assert_eq!(ours.unwrap_or_else(|e| e.to_string()), wanted, "{text}");
}

#[test]
fn what_gdb_does_not_have() {
    shows("$_be16($rdi)", Some('x'), "0x1234");
    shows("$_be32($rdi)", Some('x'), "0x12345678");
    shows("$_be64($rdi)", Some('x'), "0x123456789abcdef0");
    shows(
        "$_be32($rdi + 300)",
        None,
        "Cannot access memory at address 0x112c",
    );
    shows("$_arg1 == $rdi && $arg2 == 7", None, "1");
    shows("$_arg7", None, "77");
    shows("$arg2 = 5, $arg2 + $_arg2", None, "12");
    shows("$_tid", None, "42");
    shows("(uint16_t) -1", None, "65535");
    shows(
        "ns::f(int)",
        None,
        "{<text variable, no debug info>} 0x1000",
    );
}

#[test]
fn arguments_end_at_commas() {
    let scope = Small::new();
    let (_, used) = parse_argument("(1, 2) + $rdi, 3", &scope).expect("an argument");
    assert_eq!(used, 13);
    let (_, used) = parse_argument("*main if $rsi > 3", &scope).expect("an argument");
    assert_eq!(used, 6);
}

#[test]
fn nesting_is_bounded() {
    for text in [
        "(", "-", "!", "{1,", "sizeof ", "(int)", "1?", "*", "&", "(char(*", "$x=",
    ] {
        let _ = Small::new().print(&text.repeat(20_000), None);
    }
    for (head, tail) in [
        ("(", ")"),
        ("{", "}"),
        ("*(unsigned *(", ")"),
        ("(int(*)(", ")"),
        ("1+", "1"),
        ("1,", "1"),
        ("", "[0]"),
        ("", "->a"),
    ] {
        let text = format!("{}1{}", head.repeat(5_000), tail.repeat(5_000));
        let _ = Small::new().print(&text, None);
    }
    let _ = Small::new().print(&format!("(char{})0", "*".repeat(5_000)), None);
    let _ = Small::new().print(&format!("(int{})0", "[9]".repeat(5_000)), None);
    let _ = Small::new().print(&format!("\"{}\"", "a".repeat(60_000)), None);
    let _ = Small::new().print(&format!("0.{}l", "9".repeat(60_000)), None);
}

fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(
        "1 0 -1 08 0x7fffffffffffffff 18446744073709551615 1.5 1e400l 2.5f 'a' '\\0' \"abc\" $rdi \
         $al $xmm0 $xmm0.v4_float $xmm0.uint128 $eflags $x $1 $ $$ main data (char*) (int) (float) \
         (long double) (unsigned char) (char[3]) {int} {char[4]} sizeof( ( ) [ ] { } , + - * / % \
         << >> < > == != && || ! ~ & | ^ = += <<= ++ -- ? : @ . -> :: $_be16( 'ns::f(int)' int \
         unsigned const int(*)[2] if L\"x\" (__int128) (void) (bool)"
            .split(' ')
            .collect::<Vec<_>>(),
    );
    prop::collection::vec(word, 0..12).prop_map(|w| w.join(" "))
}

fn corpus_line() -> impl Strategy<Value = String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/print.txt");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    (
        prop::sample::select(lines),
        any::<prop::sample::Index>(),
        any::<char>(),
    )
        .prop_map(|(line, at, c)| {
            let line = line.split_once(' ').map_or("", |(_, expr)| expr);
            let mut chars: Vec<char> = line.chars().collect();
            let at = at.index(chars.len() + 1);
            match at.is_multiple_of(2) {
                true => chars.insert(at, c),
                false => chars.truncate(at),
            }
            chars.into_iter().collect()
        })
}

fn letter() -> impl Strategy<Value = Option<char>> {
    prop::option::of(prop::sample::select(
        "xduotzcafs".chars().collect::<Vec<_>>(),
    ))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "\\PC{0,40}", letter in letter()) {
        let _ = Small::new().print(&text, letter);
    }

    #[test]
    fn any_words(text in words(), letter in letter()) {
        let _ = Small::new().print(&text, letter);
    }

    #[test]
    fn changed_lines(text in corpus_line(), letter in letter()) {
        let _ = Small::new().print(&text, letter);
    }

    /// A double's text reads back as the same number.
    #[test]
    fn doubles_round_trip(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let ty = super::Type::double();
        let text = print_value(&Value::from_bytes(ty, value.to_le_bytes().as_slice()), None, &Small::new());
        prop_assert_eq!(text.ok().and_then(|t| t.parse::<f64>().ok()), Some(value));
    }
}
