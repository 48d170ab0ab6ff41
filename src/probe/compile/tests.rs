//! What programs do, compared with what the evaluator says.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::hostile::{hostile, lines};
use crate::lang::Unreadable;
use crate::lang::body::parse_body;
use crate::lang::examine::ExamineState;
use crate::lang::scope::Special;
use crate::lang::script::{FullNames, read};
use crate::lang::statement::{Context, Flow, run_body};
use crate::lang::{SymbolKind, evaluate, parse};
use crate::probe::interpret::{Machine, Outcome, check, run};
use crate::probe::program::Fault;

const DATA: u64 = 0x1000;
const SIZE: usize = 0x400;

/// A thread with some memory; a scope for the evaluator and a machine for programs.
#[derive(Clone)]
pub(super) struct World {
    pub(super) memory: Vec<u8>,
    pub(super) registers: Registers,
    variables: HashMap<String, Value>,
    history: Vec<Value>,
    /// Only these bytes can be read, where it is a record's snapshot.
    recorded: Option<HashMap<u64, u8>>,
    shared: HashMap<u16, u64>,
    kept: Vec<(u64, Vec<u8>)>,
    pub(super) way: WayOut,
    /// The expressions of `$_entry`, and what they were in the call that ended.
    pub(super) entries: Vec<Expr>,
    pub(super) left: Option<Values>,
    /// Of what was kept, what the record has.
    recalled: Values,
    calls: HashMap<(u64, u64), Values>,
    pub(super) delayed: u64,
}

pub(super) type Values = HashMap<u16, u64>;

impl World {
    pub(super) fn new() -> World {
        let mut registers = Registers::default();
        registers.set(Register::Rdi, DATA);
        registers.set(Register::Rsi, DATA + 0x40);
        registers.set(Register::Rdx, 0x8000_0000_0000_0010);
        registers.set(Register::Rcx, 0xffff_ffff_ffff_fffe);
        registers.set(Register::Rax, 0x1122_3344_8566_f788);
        registers.set(Register::Rsp, DATA + 0x200);
        registers.set(Register::Rip, 0x40_0000);
        let mut memory: Vec<u8> = (0..SIZE).map(|i| (i * 37 + 11) as u8).collect();
        memory[..12].copy_from_slice(b"Hello World\0");
        memory[0x40..0x48].copy_from_slice(&DATA.to_le_bytes());
        World {
            memory,
            registers,
            variables: HashMap::new(),
            history: Vec::new(),
            recorded: None,
            shared: HashMap::new(),
            kept: Vec::new(),
            way: WayOut::None,
            entries: Vec::new(),
            left: None,
            recalled: Values::new(),
            calls: HashMap::new(),
            delayed: 0,
        }
    }

    fn offset(address: u64, length: usize) -> Result<usize, u64> {
        for at in 0..length as u64 {
            let byte = address.wrapping_add(at);
            if !(DATA..DATA + SIZE as u64).contains(&byte) {
                return Err(byte);
            }
        }
        Ok((address - DATA) as usize)
    }

    fn get(&self, address: u64, length: usize) -> Result<&[u8], u64> {
        match length {
            0 => Ok(&[]),
            _ => Self::offset(address, length).map(|at| &self.memory[at..at + length]),
        }
    }

    /// What the front has of a hit: the registers and what the program kept.
    pub(super) fn snapshot(&self, before: &World, names: &Shared) -> World {
        let mut recorded = HashMap::new();
        for (address, bytes) in &self.kept {
            for (at, byte) in bytes.iter().enumerate() {
                recorded.entry(address + at as u64).or_insert(*byte);
            }
        }
        let mut snapshot = before.clone();
        for (name, (index, ty)) in &names.0 {
            let value = before.shared.get(index).copied().unwrap_or(0);
            snapshot
                .variables
                .insert(name.clone(), Value::from_u64(ty.clone(), value));
        }
        snapshot.recorded = Some(recorded);
        snapshot.left = Some(self.recalled.clone());
        snapshot
    }
}

impl Scope for World {
    fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), Unreadable> {
        if let Some(recorded) = &self.recorded {
            for (at, byte) in buf.iter_mut().enumerate() {
                let address = address.wrapping_add(at as u64);
                *byte = *recorded.get(&address).ok_or(Unreadable { address })?;
            }
            return Ok(());
        }
        let bytes = self
            .get(address, buf.len())
            .map_err(|address| Unreadable { address })?;
        buf.copy_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ScopeError> {
        let at = Self::offset(address, bytes.len()).map_err(|address| Unreadable { address })?;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
        if let Some(recorded) = &mut self.recorded {
            for (at, byte) in bytes.iter().enumerate() {
                recorded.insert(address + at as u64, *byte);
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
        let (address, kind) = match name {
            "data" => (DATA, SymbolKind::Data),
            "f" => (DATA + 0x300, SymbolKind::Text),
            _ => return None,
        };
        Some(Symbol {
            address,
            size: 16,
            kind,
        })
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

    fn special(&self, what: Special) -> Option<u64> {
        Some(what as u64 + 1000)
    }

    fn fact(&self, what: Fact) -> Option<String> {
        Some(match what {
            Fact::Comm => "a thread".into(),
            Fact::Func => "a::b(int)".into(),
            Fact::Probe => "a::b".into(),
        })
    }

    fn way_out(&self) -> WayOut {
        self.way
    }

    fn at_entry(&self, expr: &Expr) -> Result<u64, Unavailable> {
        if self.way == WayOut::None {
            return Err(Unavailable::Entry);
        }
        let index = self.entries.iter().position(|kept| kept == expr);
        let index = index.ok_or(Unavailable::EntryNotKept)? as u16;
        let left = self.left.as_ref().ok_or(Unavailable::EntryUnknown)?;
        left.get(&index).copied().ok_or(Unavailable::EntryFault)
    }
}

impl Machine for World {
    fn read(&mut self, address: u64, buf: &mut [u8]) -> Result<(), u64> {
        buf.copy_from_slice(self.get(address, buf.len())?);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), u64> {
        let at = Self::offset(address, bytes.len())?;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn register(&self, register: Register) -> u64 {
        self.registers.get(register)
    }

    fn set_register(&mut self, register: Register, value: u64) {
        self.registers.set(register, value);
    }

    fn variable(&mut self, variable: u16) -> u64 {
        self.shared.get(&variable).copied().unwrap_or(0)
    }

    fn set_variable(&mut self, variable: u16, value: u64) {
        self.shared.insert(variable, value);
    }

    fn special(&mut self, what: Special) -> u64 {
        what as u64 + 1000
    }

    fn enter(&mut self, function: u64) {
        let sp = self.registers.sp();
        self.calls.insert((function, sp), Values::new());
    }

    fn remember(&mut self, function: u64, index: u16, value: u64) {
        let sp = self.registers.sp();
        let call = self.calls.get_mut(&(function, sp));
        if let Some(call) = call {
            call.insert(index, value);
        }
    }

    fn leave(&mut self, function: u64) {
        self.left = self.calls.remove(&(function, self.registers.sp()));
    }

    fn recall(&mut self, index: u16) -> Result<u64, Unavailable> {
        let left = self.left.as_ref().ok_or(Unavailable::EntryUnknown)?;
        let value = *left.get(&index).ok_or(Unavailable::EntryFault)?;
        self.recalled.insert(index, value);
        Ok(value)
    }

    fn hit(&mut self) -> bool {
        true
    }

    fn available(&mut self, address: u64, most: usize) -> Vec<u8> {
        let readable = (0..=most).rev().find(|n| self.get(address, *n).is_ok());
        self.get(address, readable.unwrap_or(0)).unwrap().to_vec()
    }

    fn comm(&mut self) -> Vec<u8> {
        b"a thread\0".to_vec()
    }

    fn sample(&mut self, _: u32, _: u32) -> bool {
        true
    }

    fn delay(&mut self, ns: u64) {
        self.delayed += ns;
    }

    fn keep(&mut self, address: u64, bytes: &[u8]) {
        self.kept.push((address, bytes.to_vec()));
    }

    fn capture(&mut self, address: u64, length: u64, maximum: u32) -> Result<(), u64> {
        let wanted = length.min(maximum.into()) as usize;
        let readable = (0..=wanted)
            .rev()
            .find(|n| self.get(address, *n).is_ok())
            .unwrap_or(0);
        if readable == 0 && wanted > 0 {
            return Err(address);
        }
        let bytes = self.get(address, readable).unwrap().to_vec();
        self.kept.push((address, bytes));
        Ok(())
    }

    fn capture_string(&mut self, address: u64, maximum: u32, unit: Width) -> u64 {
        let unit = unit.bytes();
        let mut taken = Vec::new();
        while taken.len() < maximum as usize * unit {
            let Ok(bytes) = self.get(address + taken.len() as u64, unit) else {
                break;
            };
            taken.extend_from_slice(bytes);
            if bytes.iter().all(|byte| *byte == 0) {
                break;
            }
        }
        let end = address + taken.len() as u64;
        self.kept.push((address, taken));
        end
    }
}

#[derive(Default)]
pub(super) struct Shared(HashMap<String, (u16, Type)>);

impl Variables for Shared {
    fn share(&mut self, name: &str, ty: &Type) -> Option<u16> {
        let next = self.0.len() as u16;
        let (index, known) = self
            .0
            .entry(name.into())
            .or_insert_with(|| (next, ty.clone()));
        (known == ty).then_some(*index)
    }
}

pub(super) fn commands(text: &str, scope: &World) -> Vec<Command> {
    let at = Position {
        file: "t".into(),
        line: 1,
    };
    parse_body(&read(at, text, &FullNames).unwrap(), &FullNames, scope).unwrap()
}

fn compiled(text: &str, world: &World, shared: &mut Shared) -> Result<Program, NotCompiled> {
    let body = commands(text, world);
    let source = Source {
        condition: None,
        body: &body,
        continues: true,
        entry: true,
        sample: None,
        out: None,
    };
    compile(&source, world, shared)
}

pub(super) fn print_body(body: &[Command], scope: &mut World) -> (String, Option<(u16, String)>) {
    let mut out = Vec::new();
    let mut state = ExamineState::default();
    let mut context = Context {
        scope,
        out: &mut out,
        state: &mut state,
        disassemble: &|bytes, _, _| bytes.first().map(|byte| (1, format!("op {byte:#x}"))),
    };
    let ended = run_body(body, &mut context, &mut |_, _| Ok(Flow::Next));
    let error = ended
        .err()
        .map(|(index, failure)| (index, failure.to_string()));
    (String::from_utf8_lossy(&out).into_owned(), error)
}

/// Runs a body as the engine and the front do, and as the prompt does: text, error, memory,
/// registers and variables must agree. Gives the text.
fn both_ways(text: &str) -> String {
    let world = World::new();
    let mut shared = Shared::default();
    let program =
        compiled(text, &world, &mut shared).unwrap_or_else(|error| panic!("{text}: {error}"));
    let (text, told_later) = agree(text, &program, &world, &shared);
    assert!(!told_later, "{text}");
    text
}

/// Gives the text, and whether it ends in an error of showing a value: the front shows it later, so that
/// the program has gone on behind it.
fn agree(text: &str, program: &Program, world: &World, shared: &Shared) -> (String, bool) {
    check(program).unwrap();
    assert!(!program.to_string().is_empty());
    let mut machine = world.clone();
    let outcome = run(program, &mut machine, &mut Vec::new());
    let body = commands(text, world);
    let mut live = world.clone();
    let (direct, error) = print_body(&body, &mut live);
    let mut snapshot = machine.snapshot(world, shared);
    let (replayed, replay_error) = print_body(&body, &mut snapshot);
    assert_eq!(replayed, direct, "{text}\n{program}");
    assert_eq!(replay_error, error, "{text}\n{program}");
    if let (None, Some((_, error))) = (outcome.fault, &error) {
        return (direct + error, true);
    }
    assert_eq!(machine.memory, live.memory, "{text}\n{program}");
    assert_eq!(machine.registers, live.registers, "{text}\n{program}");
    for (name, (index, _)) in &shared.0 {
        if let Some(value) = live.variables.get(name) {
            let expected = value.as_i128(&live).unwrap() as u64;
            assert_eq!(
                machine.shared.get(index),
                Some(&expected),
                "${name} in {text}\n{program}"
            );
        }
    }
    let fault = error.as_ref().map(|(index, _)| *index);
    assert_eq!(
        outcome.fault.map(|_| outcome.command),
        fault,
        "{text}\n{program}"
    );
    match error {
        Some((_, error)) => (direct + &error, false),
        None => (direct, false),
    }
}

/// The bodies of the test above this one, and what is like them.
const WORDS: &[&str] = &[
    "print",
    "print/x",
    "x/s",
    "x/4xb",
    "x/2i",
    "x/-3dh",
    "output",
    "printf \"%d|%s\\n\",",
    "hexdump",
    "echo",
    "set",
    "set $n =",
    "if",
    "else",
    "end",
    "silent",
    "continue",
    "delay 1ms",
    "return",
    "$rdi",
    "$rsi",
    "$rdx",
    "$eax",
    "$ah",
    "$n",
    "$_",
    "$__",
    "$_arg2",
    "$_retval",
    "$_entry($rdi)",
    "$_comm",
    "$_strlen(",
    "$_streq(",
    "$_memeq(",
    "$_atoi(",
    "$_be32(",
    "$_random(7)",
    "data",
    "f",
    "{char}",
    "*(int*)",
    "(char*)",
    "(long)",
    "(unsigned char)",
    "*(char(*)[5])",
    "@",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<<",
    ">>",
    "==",
    "<",
    "&&",
    "||",
    "?",
    ":",
    "!",
    "~",
    "&",
    ",",
    "(",
    ")",
    "1",
    "8",
    "-1",
    "0x1000",
    "0x13fe",
    "0xffffffffffffffff",
    "'a'",
    "\"Hello\"",
    "1.5",
    "=",
    "+=",
    "++",
    "\n",
];

hostile!(
    fuzz_bodies,
    lines(&["tests/corpus/print.txt", "tests/corpus/statements.txt", "tests/corpus/printf.txt", "tests/corpus/x.txt"]),
    { words: WORDS },
    |input| {
        let text = String::from_utf8_lossy(input);
        let world = World::new();
        let at = Position { file: "t".into(), line: 1 };
        let Ok(nodes) = read(at, &text, &FullNames) else { return };
        let Ok(body) = parse_body(&nodes, &FullNames, &world) else { return };
        let source = Source {
            condition: None,
            body: &body,
            continues: true,
            entry: true,
            sample: None,
            out: None,
        };
        let mut shared = Shared::default();
        let Ok(program) = compile(&source, &world, &mut shared) else {
            return;
        };
        check(&program).unwrap();
        // Only the keeper leaves a function.
        if !text.contains("return") {
            agree(&text, &program, &world, &shared);
        }
    }
);

/// Programs as the front sends them.
fn encoded() -> Vec<Vec<u8>> {
    let bodies = [
        "x/s $rdi\nset {char}($rdi+1)=0x61\nx/3i $rdi",
        "if {char}$rdi == 'H'\n print 1\nelse\n print $_strlen($rdi)\nend\nset $n = 3\nset $n = $n + 1",
        "print $_streq($_comm, \"a\")\nprint $_memeq($rdi, \"Hello\", 5)\nprint $_atoi($rdi, 3)\ndelay 1ms",
        "printf \"%s %5.2f\\n\", (char*)$rdi, *(double*)($rdi+8)\nprint 5 / *(char*)$rsi\nset $eax = -1",
    ];
    let world = World::new();
    let encode = |text: &&str| {
        let program = compiled(text, &world, &mut Shared::default()).unwrap();
        postcard::to_stdvec(&program).unwrap()
    };
    bodies.iter().map(encode).collect()
}

hostile!(fuzz_programs, encoded(), { cases: 2000 }, |input| {
    let Ok(program) = postcard::from_bytes::<Program>(input) else { return };
    let text = program.to_string();
    if check(&program).is_ok() {
        // Values that no call has kept are none of the interpreter's concern.
        let mut world = World::new();
        world.way = WayOut::Return;
        run(&program, &mut world, &mut Vec::new());
    }
    assert_eq!(postcard::from_bytes(&postcard::to_stdvec(&program).unwrap()), Ok(program), "{text}");
});

#[test]
fn bodies_print_and_change_the_same_from_a_record() {
    for text in [
        "x/s $rdi\nx/47xb $rdi\nset {char}($rdi+1)=0x61\nx/s $rdi",
        "x/2s $rdi\nx/3xg $rsi\nx/2dh $rsi+3\nx/c $rdi\nx/3f $rdi\nx/3i $rdi",
        "print *(char(*)[5])$rdi\nprint (char*)$rdi\nprint/x *(int*)$rdi@4\noutput *(double*)$rdi",
        "printf \"%s %d %c %5.2f %p\\n\", (char*)$rdi, *(int*)($rdi+4), {char}$rdi, *(double*)($rdi+8), $rsi",
        "printf \"%s|%s\\n\", 0, *(char**)$rsi",
        "set $n = 3\nset $n = $n + 4\nset $n++\nprint $n\nset $m = $n * 2\nprintf \"%d\\n\", $m",
        "if {char}$rdi == 'H'\n print 1\n if $rdx < 0\n echo neg\\n\n else\n print/x $rdx\n end\nelse\n print 2\nend\nprint 3",
        "if *(int*)$rsi && *(char*)$rdi\n x/4xb $rsi\nend\nif 0 || {short}$rdi > 1\n x/2xb $rdi\nend",
        "set $n = 5\noutput/x *(unsigned char*)$rdi@$n\nprint *(char*)$rsi@($rcx & 7)+1",
        "hexdump $rdi, 20\nhexdump $rsi, $rcx & 0x1f\nhexdump $rdi, 0",
        "set $eax = -1\nset $ah = 3\nset $al++\nprint $rax\nprint $eax\nprint $ah",
        "print $_arg1\nprint $arg2\nprint $_arg7\nprint $_arg8",
        "print $_be16($rdi)\nprint/x $_be32($rdi+2)\nprint/x $_be64($rdi+3)",
        "x/3xb $rdi\nprint $_\nprint $__\nx/2dw $_\nprint/x $__",
        "print &data\nprint (char*)&data+2\nprint *(char*)&data\nprint f\nprint (long)f + 2\nx/2xb f+8\noutput f\nprint &f\nprintf \"%p\", f",
        "print ((int*)$rdi)[2]\nprint ((short*)$rdi)[-0]\nprint sizeof(long)\nprint *((char*)$rdi+4)",
        "print $rdi ? 5 : 6\nprint 1 == 2 ? 'a' : 'b'\nprint (1, 2)\nprint -(char)200\nprint ~$eax",
        "set *(int*)$rdi += 5\nset {short}($rdi+8) <<= 3\nprint ++*(char*)($rdi+1)\nx/12xb $rdi",
        "x/-4xb $rsi\nx/0xb 0\nx/2xh $rsi",
        "print 1.5 + *(double*)$rdi\nprint (float)*(int*)$rsi\nprint *(float*)$rdi < 2",
        "print $_streq($rdi, \"Hello World\")\nprint $_streq(\"Hello\", (char*)$rdi)\nprint $_strlen($rdi)",
        "print $_memeq($rdi, $rsi, 3)\nprint $_memeq($rdi, \"Hello\", 5)\nprint $_memeq($rdi, \"Hello\", 7)",
        "print $_memeq(1, 2, 0)\nif $_streq(*(char**)$rsi, $rdi)\nx/s $rdi\nend\nprint $_strlen(\"abc\")",
        "print $_atoi(\"-12x\")\nprint $_atoi($rdi)\nprint $_atoi($rdi+1, 3)\nprint $_random(7) < 7\nprint $_random()",
        "print $_comm\nprintf \"%s %s %s\\n\", $_comm, $_func, $_probe\nprint $_streq($_comm, \"a thread\") + $_streq($_func, \"x\")",
        "set $n = $_random(1000)\nprint $n\nprint $n + $_random()",
        // What ends a body.
        "print $_strlen(8)\nset {char}$rdi = 1",
        "print $_strlen(0x13f0)\nset {char}$rdi = 1",
        "print $_streq(8, \"abc\")\nset {char}$rdi = 1",
        "print $_memeq(0x13fc, 0x13f0, 8)\nset {char}$rdi = 1",
        "print $_memeq($rdi, $rsi, 70000)\nset {char}$rdi = 1",
        "print $_atoi(0)\nset {char}$rdi = 1",
        "print 5 % $_random(1)\nset {char}$rdi = 1",
        "print 1\nx/xb 0\nprint 2\nset {char}$rdi = 1",
        "x/4xw 0x13f8\nset {char}$rdi = 1",
        "print *(long*)8\nset {char}$rdi = 1",
        "printf \"%d %s\\n\", 1, 5\nset {char}$rdi = 1",
        "hexdump 0x13f0, 64\nset {char}$rdi = 1",
        "set {int}0x13fe = 1\nset {char}$rdi = 1",
        "print 5 / (*(char*)$rdi - 'H')\nset {char}$rdi = 1",
        "print *(int*)0@3",
        // What does not.
        "x/s 0\nprint (char*)1\nset {char}$rdi = 1",
        "printf \"%s\\n\", 0x13f0\nset {char}$rdi = 1",
    ] {
        both_ways(text);
    }
    // Strings up to, at and over the limit of what is shown.
    for at in 0..60 {
        let at = DATA + 0x48 + 5 * at;
        both_ways(&format!(
            "x/3s {at}\nx/2sh {at}\nx/sw {at}\nprint (char*){at}\nprintf \"%s\", {at}"
        ));
    }
}

#[test]
fn what_needs_the_front_says_why() {
    let world = World::new();
    for (text, reason) in [
        ("print 1\nbt", "`bt' is done by the front"),
        ("print $xmm0", "$xmm0 is a vector register"),
        ("print $1", "History has not yet reached $1."),
        ("print $nosuch", "$nosuch is void so far"),
        (
            "set {double}$rdi = 1.5",
            "floating point is computed by the front",
        ),
        ("while 1\nend", "a loop has no bound"),
        (
            "print $_regex($rdi, \"H.*\")",
            "regular expressions are matched by the front",
        ),
        ("x/2xb", "what an earlier `x' left decides the address"),
        ("x $rdi", "what an earlier `x' left decides the format"),
        ("print $_", "$_ is void so far"),
        (
            "x/s $rdi\nif $rdi\nx/xb $rdi\nend\nprint $_",
            "$_ is void so far",
        ),
        (
            "x/100000xb $rdi",
            "100000 bytes are more than what a record holds",
        ),
        (
            "silent",
            "`silent' is a command only in front of all others",
        ),
        (
            "continue 3",
            "`continue' with a count changes the breakpoint",
        ),
    ] {
        let error = compiled(text, &world, &mut Shared::default()).unwrap_err();
        assert_eq!(error.reason, reason, "{text}");
        assert!(error.at.is_some());
    }
    let error = compiled(
        "print 1\nif 1\nprint 2\nbt\nend",
        &world,
        &mut Shared::default(),
    )
    .unwrap_err();
    assert_eq!(
        (error.statement, error.at.map(|at| at.line)),
        (Some(3), Some(4))
    );
}

#[test]
fn a_breakpoint_is_compiled_only_if_it_continues() {
    let world = World::new();
    for (text, compiles) in [
        ("print 1\ncontinue\nbt", true),
        ("print 1", false),
        ("if $rdi\ncontinue\nelse\nprint 1\ncontinue\nend", true),
        ("if $rdi\ncontinue\nend", false),
    ] {
        let body = commands(text, &world);
        let condition = parse("*(int*)$rdi != 5", &world).unwrap();
        let source = Source {
            condition: Some(&condition),
            body: &body,
            continues: false,
            entry: false,
            sample: None,
            out: None,
        };
        let program = compile(&source, &world, &mut Shared::default());
        assert_eq!(program.is_ok(), compiles, "{text}");
        if let Ok(program) = program {
            check(&program).unwrap();
            let mut machine = world.clone();
            let outcome = run(&program, &mut machine, &mut Vec::new());
            assert!(outcome.hit && outcome.fault.is_none());
            assert!(machine.kept.is_empty(), "a condition keeps nothing");
        }
    }
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0u64..300).prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| format!("{n:#x}")),
        any::<i32>().prop_map(|n| format!("({n})")),
        prop::sample::select(vec![
            "$rdi",
            "$rsi",
            "$rdx",
            "$rcx",
            "$eax",
            "$ax",
            "$al",
            "$ah",
            "$eflags",
            "'a'",
            "$_arg2",
            "$_tid",
            "$_now",
            "$_retval",
            "$_entry($rdi)"
        ])
        .prop_map(String::from),
        (
            0u64..0x3f8,
            prop::sample::select(vec![
                "char",
                "unsigned char",
                "short",
                "unsigned short",
                "int",
                "unsigned int",
                "long",
                "unsigned long",
                "char*",
                "int*"
            ])
        )
            .prop_map(|(at, ty)| format!("{{{ty}}}{:#x}", DATA + at)),
        (0u64..0x3f8).prop_map(|at| format!("$_be32({:#x})", DATA + at)),
        (0u64..0x408).prop_map(|at| format!("$_strlen({:#x})", DATA + at)),
        (0u64..0x408).prop_map(|at| format!("$_atoi({:#x}, 3)", DATA + at)),
        (0u64..0x408, 0u64..0x408, 0u64..20).prop_map(|(a, b, n)| format!(
            "$_memeq({:#x}, {:#x}, {n})",
            DATA + a,
            DATA + b
        )),
        (0u64..0x408).prop_map(|at| format!("$_streq({:#x}, \"Hello World\")", DATA + at)),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let op = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=",
            "&&", "||",
        ]);
        let ty = prop::sample::select(vec![
            "char",
            "unsigned char",
            "short",
            "unsigned short",
            "int",
            "unsigned int",
            "long",
            "unsigned long",
            "bool",
        ]);
        prop_oneof![
            (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (
                prop::sample::select(vec!["-", "~", "!", "+"]),
                inner.clone()
            )
                .prop_map(|(op, a)| format!("{op}({a})")),
            (ty, inner.clone()).prop_map(|(ty, a)| format!("({ty})({a})")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(c, a, b)| format!("({c} ? {a} : {b})")),
        ]
    })
}

/// The value by the compiled program, and by the evaluator.
fn by_both(text: &str) -> Option<(Result<u64, Fault>, Result<u64, Error>)> {
    let world = World::new();
    let expr = parse(text, &world).ok()?;
    let mut shared = Shared::default();
    let mut compiler = Compiler::new(true, None, &world, &mut shared);
    let number = compiler.number(&expr).ok()?;
    let declared = compiler.type_of(&expr).unwrap();
    assert_eq!(number.ty, declared, "{text}");
    let program = compiler.program;
    check(&program).unwrap();
    let mut values = Vec::new();
    let Outcome { fault, .. } = run(&program, &mut world.clone(), &mut values);
    let ours = match fault {
        Some(fault) => Err(fault),
        None => Ok(values[usize::from(number.v.0)]),
    };
    let mut scope = world.clone();
    let theirs = evaluate(&expr, &mut scope)
        .and_then(|value| value.as_i128(&scope))
        .map(|value| value as u64);
    Some((ours, theirs))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_compute_what_the_evaluator_computes(text in expression()) {
        match by_both(&text) {
            None => {}
            Some((Ok(ours), Ok(theirs))) => prop_assert_eq!(ours, theirs, "{}", text),
            Some((Err(Fault::DivisionByZero), Err(Error::DivisionByZero))) => {}
            Some((Err(Fault::Unavailable(ours)), Err(Error::Unavailable(theirs)))) => prop_assert_eq!(ours, theirs),
            Some((Err(Fault::Memory(ours)), Err(Error::Memory(theirs)))) => prop_assert_eq!(ours, theirs),
            Some((ours, theirs)) => prop_assert!(false, "{}: {:?} and {:?}", text, ours, theirs),
        }
    }
}

#[test]
fn most_expressions_compile() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = expression();
    let compiled = (0..300)
        .filter(|_| {
            let tree = strategy.new_tree(&mut runner).unwrap();
            by_both(&tree.current()).is_some()
        })
        .count();
    assert!(compiled > 150, "{compiled} of 300");
}
