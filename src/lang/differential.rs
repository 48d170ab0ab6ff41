//! The corpus `tests/corpus/print.txt`, in gdb and here, on the same program: before it runs and
//! at a stop, in C and in C++. Neither is compiled with debug info.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind as ElfKind};

use super::scope::{Scope, ScopeError, Symbol, SymbolKind, Unreadable};
use super::{Value, evaluate, parse, print_value, type_of};
use crate::arch::{Register, Registers};

#[derive(serde::Deserialize)]
struct Answers {
    state: Option<State>,
    main: u64,
    answers: Vec<(String, String)>,
}

#[derive(serde::Deserialize)]
struct State {
    registers: Vec<u64>,
    vectors: HashMap<String, Option<String>>,
    memory: Vec<u64>,
}

/// Address, name for the linker, name as shown.
type Named = (u64, String, String, Symbol);

/// A program as gdb left it.
struct Snapshot {
    memory: Vec<(u64, Vec<u8>)>,
    registers: Option<Registers>,
    vectors: HashMap<String, Vec<u8>>,
    symbols: Vec<Named>,
    sections: Vec<(u64, u64)>,
    variables: HashMap<String, Value>,
    history: Vec<Value>,
    warnings: RefCell<String>,
}

impl Scope for Snapshot {
    fn has_symbols(&self) -> bool {
        self.registers().is_some() && super::library_has_debug_info()
    }

    fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), Unreadable> {
        for (i, byte) in buf.iter_mut().enumerate() {
            let at = address.wrapping_add(i as u64);
            let found = self.memory.iter().find_map(|(first, bytes)| {
                bytes.get(usize::try_from(at.checked_sub(*first)?).ok()?)
            });
            *byte = *found.ok_or(Unreadable { address: at })?;
        }
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ScopeError> {
        if self.registers.is_none() {
            return Err(Unreadable { address }.into());
        }
        for (i, byte) in bytes.iter().enumerate() {
            let at = address.wrapping_add(i as u64);
            let found = self.memory.iter_mut().find_map(|(first, bytes)| {
                bytes.get_mut(usize::try_from(at.checked_sub(*first)?).ok()?)
            });
            *found.ok_or(Unreadable { address: at })? = *byte;
        }
        Ok(())
    }

    fn registers(&self) -> Option<&Registers> {
        self.registers.as_ref()
    }

    fn set_register(&mut self, register: Register, value: u64) -> Result<(), ScopeError> {
        let registers = self.registers.as_mut().ok_or(ScopeError::NoRegisters)?;
        registers.set(register, value);
        Ok(())
    }

    fn vector_register(&self, name: &str) -> Option<Vec<u8>> {
        self.vectors.get(name).cloned()
    }

    fn symbol(&self, name: &str) -> Option<Symbol> {
        let bare = |full: &str| full.split('(').next() == Some(name);
        let by = |f: &dyn Fn(&Named) -> bool| self.symbols.iter().find(|s| f(s)).map(|s| s.3);
        by(&|s| s.1 == name || s.2 == name).or_else(|| by(&|s| bare(&s.2)))
    }

    fn symbol_at(&self, address: u64) -> Option<(String, u64)> {
        self.sections
            .iter()
            .find(|(first, last)| (*first..*last).contains(&address))?;
        let before = self.symbols.iter().filter(|s| s.0 <= address);
        let nearest = before.max_by_key(|s| s.0)?;
        if nearest.3.size != 0 && address - nearest.0 >= nearest.3.size {
            return None;
        }
        Some((nearest.2.clone(), address - nearest.0))
    }

    fn linkage_symbol_at(&self, address: u64) -> Option<(String, u64)> {
        let (name, offset) = self.symbol_at(address)?;
        let found = self
            .symbols
            .iter()
            .rfind(|s| s.2 == name && s.0 == address - offset)?;
        Some((found.1.clone(), offset))
    }

    fn variable(&self, name: &str) -> Option<Value> {
        self.variables.get(name).cloned()
    }

    fn set_variable(&mut self, name: &str, value: Value) -> Result<(), ScopeError> {
        self.variables.insert(name.to_owned(), value);
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

    fn warn(&self, text: &str) {
        self.warnings
            .borrow_mut()
            .push_str(&format!("warning: {text}\n"));
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn available(tool: &str) -> bool {
    Command::new(tool)
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success())
}

fn demangled(name: &str) -> String {
    if name == "_ZTVN2ns3FooE" {
        return "vtable for ns::Foo".to_owned();
    }
    let symbol = cpp_demangle::Symbol::new(name).ok();
    symbol
        .and_then(|s| s.demangle().ok())
        .unwrap_or_else(|| name.to_owned())
}

impl Snapshot {
    fn new(program: &Path, answers: &Answers, out: &Path) -> Snapshot {
        let file = std::fs::read(program).expect("the program");
        let elf = object::File::parse(&*file).expect("an ELF file");
        let main = elf
            .symbols()
            .find(|s| s.name() == Ok("main"))
            .expect("main");
        let bias = answers.main.wrapping_sub(main.address());
        let mut symbols = Vec::new();
        for symbol in elf.symbols() {
            let kind = match symbol.kind() {
                ElfKind::Text => SymbolKind::Text,
                ElfKind::Data => SymbolKind::Data,
                _ => continue,
            };
            let (Ok(name), false) = (symbol.name(), symbol.is_undefined()) else {
                continue;
            };
            let address = symbol.address().wrapping_add(bias);
            let size = symbol.size();
            let entry = Symbol {
                address,
                size,
                kind,
            };
            symbols.push((address, name.to_owned(), demangled(name), entry));
        }
        let mut memory = Vec::new();
        let mut sections = Vec::new();
        for section in elf.sections() {
            if section.address() == 0 {
                continue;
            }
            let first = section.address().wrapping_add(bias);
            sections.push((first, first + section.size()));
            let mut bytes = section.data().unwrap_or(&[]).to_vec();
            bytes.resize(section.size() as usize, 0);
            memory.push((first, bytes));
        }
        let mut registers = None;
        let mut vectors = HashMap::new();
        if let Some(state) = &answers.state {
            memory.clear();
            for first in &state.memory {
                let part = PathBuf::from(format!("{}.{first:x}", out.display()));
                memory.push((*first, std::fs::read(part).expect("a memory dump")));
            }
            let mut words = Registers::default();
            words.0.copy_from_slice(&state.registers);
            registers = Some(words);
            for (name, hex) in &state.vectors {
                if let Some(hex) = hex {
                    let byte = |i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex");
                    let bytes = (0..hex.len()).step_by(2).map(byte).collect();
                    vectors.insert(name.clone(), bytes);
                }
            }
        }
        Snapshot {
            memory,
            registers,
            vectors,
            symbols,
            sections,
            variables: HashMap::new(),
            history: Vec::new(),
            warnings: RefCell::new(String::new()),
        }
    }

    /// What `print` and `whatis` do, as far as the corpus needs it.
    fn run(&mut self, line: &str) -> Option<String> {
        self.warnings.borrow_mut().clear();
        let text = match self.try_run(line)? {
            Ok(text) => text,
            Err(error) => error.to_string(),
        };
        Some(format!("{}{text}\n", self.warnings.borrow()))
    }

    fn try_run(&mut self, line: &str) -> Option<Result<String, super::Error>> {
        if let Some(rest) = line.strip_prefix("whatis ") {
            let ty = parse(rest, self).and_then(|e| type_of(&e, self));
            return Some(ty.map(|ty| format!("type = {ty}")));
        }
        let rest = line.strip_prefix("print")?;
        let (letter, text) = match rest.as_bytes() {
            [b'/', letter, b' ', ..] if b"xduotzcafsr".contains(letter) => {
                (Some(*letter as char), &rest[2..])
            }
            [b' ', next, ..] if *next != b'/' => (None, rest),
            _ => return None,
        };
        let text = text.trim_start();
        let text = if text.is_empty() { "$" } else { text };
        Some(self.print(text, letter))
    }

    fn print(&mut self, text: &str, letter: Option<char>) -> Result<String, super::Error> {
        let expr = parse(text, self)?;
        let value = evaluate(&expr, self)?.for_history(self)?;
        let number = self.push_history(value.clone());
        let text = print_value(&value, letter, self)?;
        Ok(format!("${number} = {text}"))
    }
}

/// Compiles, asks gdb, compares; gives (equal, all).
fn compare(source: &str, compiler: &str, stop: Option<&str>) {
    if !available("gdb") || !available(compiler) {
        eprintln!("skipped: gdb and {compiler} are needed to compare with gdb");
        return;
    }
    let directory = std::env::temp_dir().join(format!(
        "trapline-print-{}-{source}-{}",
        std::process::id(),
        stop.is_some()
    ));
    std::fs::create_dir_all(&directory).expect("a directory");
    let (program, out) = (directory.join("program"), directory.join("answers"));
    let built = Command::new(compiler)
        .args(["-O0", "-o"])
        .arg(&program)
        .arg(corpus().join(source))
        .status();
    assert!(built.is_ok_and(|s| s.success()), "{compiler} failed");
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx", "-iex", "set debuginfod enabled off"]);
    gdb.env("CORPUS", corpus().join("print.txt"))
        .env("OUT", &out)
        // What is text is the locale's decision, here and there.
        .envs(std::env::var("LC_ALL").map(|locale| ("LC_ALL", locale)));
    if let Some(stop) = stop {
        gdb.args(["-ex", &format!("break {stop}"), "-ex", "run"]);
    }
    gdb.arg("-x").arg(corpus().join("ask-gdb.py")).arg(&program);
    let said = gdb.output().expect("gdb");
    let Ok(json) = std::fs::read(&out) else {
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        eprintln!("skipped: gdb gave no answers: {said}");
        return;
    };
    let answers: Answers = serde_json::from_slice(&json).expect("JSON");
    let mut snapshot = Snapshot::new(&program, &answers, &out);
    let excepted: Vec<String> = std::fs::read_to_string(corpus().join("print.txt"))
        .expect("the corpus")
        .lines()
        .filter_map(|l| l.strip_prefix("? ").map(str::to_owned))
        .collect();
    let (mut equal, mut all, mut wrong) = (0, 0, Vec::new());
    for (line, theirs) in &answers.answers {
        let Some(ours) = snapshot.run(line) else {
            continue;
        };
        all += 1;
        match without_number(&ours) == without_number(theirs) {
            true => equal += 1,
            false if excepted.contains(line) => {}
            false => wrong.push(format!("{line}\n   gdb:  {theirs}   ours: {ours}")),
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
    eprintln!(
        "{source}, stopped {}: {equal} of {all} equal",
        stop.is_some()
    );
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("")
    );
}

/// An exception may take or not take a number of the history.
fn without_number(text: &str) -> String {
    let line = |line: &str| match line.split_once(" = ") {
        Some((number, rest)) if number.starts_with('$') => rest.to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn c_before_it_runs() {
    compare("print.c", "gcc", None);
}

#[test]
fn c_stopped() {
    compare("print.c", "gcc", Some("add"));
}

#[test]
fn cpp_before_it_runs() {
    compare("print.cc", "g++", None);
}

#[test]
fn cpp_stopped() {
    compare("print.cc", "g++", Some("'ns::Foo::bar(int)'"));
}
