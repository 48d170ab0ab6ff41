//! The same commands in gdb and here, over the memory that gdb saw: the texts must be equal.
//!
//! Skipped, out loud, where gdb or a C compiler is missing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::examine::ExamineState;
use super::script::{FullNames, Resolver};
use super::statement::{Context, parse_statement};
use super::*;
use crate::arch::{Register, Registers};

/// The test program as gdb saw it at its breakpoint.
struct Stopped {
    memory: Vec<(u64, Vec<u8>)>,
    registers: Registers,
    /// Address, size, name; sorted.
    symbols: Vec<(u64, u64, String)>,
    variables: HashMap<String, Value>,
    history: Vec<Value>,
    warnings: RefCell<String>,
}

impl Scope for Stopped {
    fn has_symbols(&self) -> bool {
        self.registers().is_some() && super::library_has_debug_info()
    }

    fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), Unreadable> {
        for (at, byte) in buf.iter_mut().enumerate() {
            let address = address.wrapping_add(at as u64);
            let found = self.memory.iter().find_map(|(start, bytes)| {
                let offset = address.checked_sub(*start)?;
                bytes.get(offset as usize)
            });
            *byte = *found.ok_or(Unreadable { address })?;
        }
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ScopeError> {
        self.read(address, &mut vec![0; bytes.len()])?;
        for (start, memory) in &mut self.memory {
            let end = *start + memory.len() as u64;
            if (*start..end).contains(&address) {
                let offset = (address - *start) as usize;
                memory[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn registers(&self) -> Option<&Registers> {
        Some(&self.registers)
    }

    fn set_register(&mut self, register: Register, value: u64) -> Result<(), ScopeError> {
        self.registers.set(register, value);
        Ok(())
    }

    fn symbol(&self, name: &str) -> Option<Symbol> {
        let (address, size, _) = self.symbols.iter().find(|symbol| symbol.2 == name)?;
        let text = matches!(name, "main" | "stop_here");
        Some(Symbol {
            address: *address,
            size: *size,
            kind: if text {
                SymbolKind::Text
            } else {
                SymbolKind::Data
            },
        })
    }

    fn symbol_at(&self, address: u64) -> Option<(String, u64)> {
        let behind = self.symbols.partition_point(|symbol| symbol.0 <= address);
        let (start, size, name) = self.symbols[..behind].last()?;
        (address - start < *size).then(|| (name.clone(), address - start))
    }

    fn variable(&self, name: &str) -> Option<Value> {
        self.variables.get(name).cloned()
    }

    fn set_variable(&mut self, name: &str, value: Value) -> Result<(), ScopeError> {
        self.variables.insert(name.into(), value);
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
        let _ = writeln!(self.warnings.borrow_mut(), "warning: {text}");
    }
}

/// Runs one command here; what gdb would have shown.
fn run_here(line: &str, scope: &mut Stopped, state: &mut ExamineState) -> String {
    let line = match line
        .strip_prefix('p')
        .filter(|rest| rest.is_empty() || rest.starts_with([' ', '/']))
    {
        Some(rest) => format!("print{rest}"),
        None => line.to_string(),
    };
    let (name, arguments) = FullNames.resolve(&line).unwrap_or(("?", ""));
    let mut out = Vec::new();
    let result = match parse_statement(name, arguments, scope) {
        Ok(Some(statement)) => {
            let mut context = Context {
                scope,
                out: &mut out,
                state,
                disassemble: &|bytes, address, symbol| {
                    crate::arch::disassemble(bytes, address, symbol)
                        .map(|instruction| (instruction.length, instruction.text))
                },
            };
            statement
                .run(&mut context)
                .map(drop)
                .map_err(|failure| failure.to_string())
        }
        Ok(None) => Err("no statement".into()),
        Err(error) => Err(error.to_string()),
    };
    let mut text = scope.warnings.take();
    text.push_str(&String::from_utf8_lossy(&out));
    if let Err(error) = result {
        text.push_str(&error);
        text.push('\n');
    }
    text
}

fn directory() -> PathBuf {
    let directory = std::env::temp_dir().join(format!("trapline-text-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Builds the test program; `None` where that is not possible.
fn build(directory: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/shown.c");
    let program = directory.join("shown");
    let built = Command::new("gcc")
        .arg("-O1")
        .arg("-o")
        .arg(&program)
        .arg(source)
        .status();
    let gdb = Command::new("gdb")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let works = |status: std::io::Result<std::process::ExitStatus>| {
        status.is_ok_and(|status| status.success())
    };
    (works(built) && works(gdb)).then_some(program)
}

/// Runs the commands in gdb. Gives their outputs and the stopped program.
fn run_in_gdb(commands: &[String], directory: &Path, program: &Path) -> (Vec<String>, Stopped) {
    let dump = directory.join("dump");
    let mut script = format!(
        "set prompt\nset confirm off\nset width 0\nset height 0\nset style enabled off\nbreak stop_here\nrun\n\
         python\nimport gdb\nwith open('{dump}', 'wb') as out:\n for line in open('/proc/%d/maps' % gdb.selected_inferior().pid):\n  \
         if '/shown' in line or '[stack]' in line:\n   a, b = (int(x, 16) for x in line.split()[0].split('-'))\n   \
         out.write(a.to_bytes(8, 'little') + (b - a).to_bytes(8, 'little') + bytes(gdb.selected_inferior().read_memory(a, b - a)))\nend\n\
         echo @@@\\n\ninfo registers\n",
        dump = dump.display()
    );
    for command in commands {
        let _ = write!(script, "echo @@@\\n\n{command}\n");
    }
    let mut gdb = Command::new("sh")
        .args(["-c", "exec gdb -nx -q \"$0\" 2>&1"])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = gdb.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = gdb.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut outputs = text.split("@@@\n").skip(1).map(String::from);
    let registers = parse_registers(&outputs.next().unwrap());
    let stopped = Stopped {
        memory: parse_dump(&std::fs::read(dump).unwrap()),
        registers,
        symbols: parse_symbols(program),
        variables: HashMap::new(),
        history: Vec::new(),
        warnings: RefCell::default(),
    };
    (outputs.collect(), stopped)
}

fn parse_dump(mut dump: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut memory = Vec::new();
    while let Some((head, rest)) = dump.split_at_checked(16) {
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
        let (bytes, rest) = rest.split_at(word(8) as usize);
        memory.push((word(0), bytes.to_vec()));
        dump = rest;
    }
    memory
}

fn parse_registers(text: &str) -> Registers {
    let mut registers = Registers::default();
    let names = [
        ("rax", Register::Rax),
        ("rbx", Register::Rbx),
        ("rcx", Register::Rcx),
        ("rdx", Register::Rdx),
        ("rsi", Register::Rsi),
        ("rdi", Register::Rdi),
        ("rbp", Register::Rbp),
        ("rsp", Register::Rsp),
        ("rip", Register::Rip),
        ("eflags", Register::Eflags),
    ];
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        let value = u64::from_str_radix(value.trim_start_matches("0x"), 16).unwrap_or(0);
        if let Some((_, register)) = names.iter().find(|(known, _)| *known == name) {
            registers.set(*register, value);
        }
    }
    registers
}

fn parse_symbols(program: &Path) -> Vec<(u64, u64, String)> {
    use object::{Object, ObjectSection, ObjectSymbol};
    const BASE: u64 = 0x5555_5555_4000;
    let file = std::fs::read(program).unwrap();
    let file = object::File::parse(&*file).unwrap();
    let mut symbols = Vec::new();
    let mut sized = std::collections::HashSet::new();
    for symbol in file.symbols() {
        let section = symbol
            .section_index()
            .and_then(|index| file.section_by_index(index).ok());
        let (Some(section), Ok(name)) = (section, symbol.name()) else {
            continue;
        };
        // Without a size, to the end of the section.
        let size = match symbol.size() {
            0 => (section.address() + section.size()).saturating_sub(symbol.address()),
            size => size,
        };
        if symbol.size() > 0 {
            sized.insert(name.to_string());
        }
        // gdb leaves the linker's marks in data out.
        if symbol.size() == 0 && section.kind() != object::SectionKind::Text {
            continue;
        }
        if symbol.kind() != object::SymbolKind::Section {
            symbols.push((BASE + symbol.address(), size, name.to_string()));
        }
    }
    // Of several at one address the last is taken: one with a size.
    symbols.sort_by_key(|(address, _, name)| (*address, sized.contains(name)));
    symbols
}

/// Compares; gives how many commands there were and the reports of those that differ.
fn compare(name: &str, commands: Vec<String>) {
    let directory = directory().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let Some(program) = build(&directory) else {
        eprintln!("SKIPPED {name}: gdb or gcc is not here");
        return;
    };
    let (outputs, mut scope) = run_in_gdb(&commands, &directory, &program);
    assert_eq!(outputs.len(), commands.len(), "gdb ended early");
    let mut state = ExamineState::default();
    let mut different = Vec::new();
    for (command, theirs) in commands.iter().zip(&outputs) {
        let ours = run_here(command, &mut scope, &mut state);
        if ours != *theirs {
            let same = ours
                .chars()
                .zip(theirs.chars())
                .take_while(|(a, b)| a == b)
                .count();
            let rest = |text: &str| {
                text.chars()
                    .skip(same.saturating_sub(20))
                    .take(120)
                    .collect::<String>()
            };
            different.push(format!(
                "{command}\n  gdb:  {:?}\n  here: {:?}",
                rest(theirs),
                rest(&ours)
            ));
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
    println!(
        "{name}: {} of {} equal",
        commands.len() - different.len(),
        commands.len()
    );
    assert!(different.len() * 20 <= commands.len(), "too many differ");
    let exceptions = corpus("exceptions.txt");
    let known = |report: &String| {
        let command = report.lines().next();
        command.is_some_and(|command| exceptions.iter().any(|exception| exception == command))
    };
    different.retain(|report| !known(report));
    assert!(
        different.is_empty(),
        "{} of {} differ:\n{}",
        different.len(),
        commands.len(),
        different.join("\n")
    );
}

fn corpus(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(String::from)
        .collect()
}

#[test]
fn every_format_size_and_count_of_x() {
    let places = [
        "&bytes",
        "&greeting",
        "&names",
        "&reals",
        "&singles",
        "&wide16",
        "&longtext",
        "$pc",
        "0x555555556004",
    ];
    let mut commands = Vec::new();
    for place in places {
        for format in "xduotzcafsi".chars() {
            for size in ["", "b", "h", "w", "g"] {
                for count in [1, 3, 47] {
                    commands.push(format!("x/{count}{format}{size} {place}"));
                }
            }
        }
    }
    compare("formats", commands);
}

#[test]
fn what_x_remembers_and_refuses() {
    compare("x", corpus("x.txt"));
}

#[test]
fn printf_echo_and_output() {
    compare("printf", corpus("printf.txt"));
}

#[test]
fn print_and_set() {
    compare("statements", corpus("statements.txt"));
}
