//! The reference interpreter of a probe's program. Engines that translate are tested against it.

use super::program::{Binary, Bytes, Fault, Op, Program, Special, Unary, Unavailable, V, Width};
use crate::arch::Register;
use crate::lang::functions;

/// What a program works on: one stopped thread, and the record that is being made.
pub trait Machine {
    /// Reads memory; all or nothing. `Err` is the first address that could not be read.
    fn read(&mut self, address: u64, buf: &mut [u8]) -> Result<(), u64>;
    /// Writes memory; all or nothing. `Err` is the first address that could not be written.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), u64>;
    /// A general register.
    fn register(&self, register: Register) -> u64;
    /// Changes a general register.
    fn set_register(&mut self, register: Register, value: u64);
    /// A shared convenience variable.
    fn variable(&mut self, variable: u16) -> u64;
    /// Changes a shared convenience variable.
    fn set_variable(&mut self, variable: u16, value: u64);
    /// A fact about the hit.
    fn special(&mut self, what: Special) -> u64;
    /// A call of `function` begins, with its return address at the stack pointer.
    fn enter(&mut self, function: u64);
    /// Keeps a value of that call.
    fn remember(&mut self, function: u64, index: u16, value: u64);
    /// A call of `function` ends, with its return address at the stack pointer.
    fn leave(&mut self, function: u64);
    /// What the call that ended had kept; it goes into the record too.
    fn recall(&mut self, index: u16) -> Result<u64, Unavailable>;
    /// Counts the hit; `false` ends the program here (an ignore count).
    fn hit(&mut self) -> bool;
    /// Reads as much as there is of so many bytes.
    fn available(&mut self, address: u64, most: usize) -> Vec<u8>;
    /// The thread's name.
    fn comm(&mut self) -> Vec<u8>;
    /// Whether this hit is one of those that are looked at.
    fn sample(&mut self, of: u32, all: u32) -> bool;
    /// The thread is held before it goes on.
    fn delay(&mut self, ns: u64);
    /// Puts bytes that were loaded into the record.
    fn keep(&mut self, address: u64, bytes: &[u8]);
    /// Reads `length` bytes into the record, and as much as is readable when not all is; `Err`
    /// when not even the first byte is.
    fn capture(&mut self, address: u64, length: u64, maximum: u32) -> Result<(), u64>;
    /// Reads a string into the record; gives the address behind it. Unreadable memory is no fault
    /// (gdb shows it as the string's text): nothing is kept, and the address is given back.
    fn capture_string(&mut self, address: u64, maximum: u32, unit: Width) -> u64;
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The condition was true and no ignore count took it.
    pub hit: bool,
    /// The number of the body's command that was reached last.
    pub command: u16,
    /// What stopped it before its end.
    pub fault: Option<Fault>,
}

/// The most values a program may use.
pub const MAX_VALUES: usize = 1024;

/// The most instructions a program may have.
pub const MAX_OPS: usize = 8192;

/// Why a program is refused before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Over [`MAX_OPS`] or [`MAX_VALUES`].
    #[error("the program is too long")]
    TooLong,
    /// A value's number is not below the program's count.
    #[error("op {0} names a value that does not exist")]
    Value(usize),
    /// A literal's number is not below the program's count.
    #[error("op {0} names a literal that does not exist")]
    Literal(usize),
    /// A jump goes backwards or behind the end.
    #[error("op {0} jumps backwards or out of the program")]
    Jump(usize),
}

/// Checks what the interpreter relies on: values exist, jumps go forward and stay inside.
pub fn check(program: &Program) -> Result<(), Malformed> {
    if program.ops.len() > MAX_OPS || usize::from(program.values) > MAX_VALUES {
        return Err(Malformed::TooLong);
    }
    for (at, op) in program.ops.iter().enumerate() {
        let values = operands(op);
        if values.iter().flatten().any(|v| v.0 >= program.values) {
            return Err(Malformed::Value(at));
        }
        let wrong = |bytes: &Bytes| match bytes {
            Bytes::Literal(number) => usize::from(*number) >= program.literals.len(),
            Bytes::Memory(_) | Bytes::Comm => false,
        };
        if texts(op).iter().flatten().any(wrong) {
            return Err(Malformed::Literal(at));
        }
        if let Op::Jump { target } | Op::JumpIfZero { target, .. } = op
            && (usize::from(*target) <= at || usize::from(*target) > program.ops.len())
        {
            return Err(Malformed::Jump(at));
        }
    }
    Ok(())
}

/// What an op compares or reads as a text.
fn texts(op: &Op) -> [Option<Bytes>; 2] {
    match *op {
        Op::Same { a, b, .. } => [Some(a), Some(b)],
        Op::StringLength { of, .. } | Op::Decimal { of, .. } => [Some(of), None],
        _ => [None; 2],
    }
}

/// The values that an op reads or writes.
fn operands(op: &Op) -> [Option<V>; 4] {
    let address = |bytes| match bytes {
        Bytes::Memory(v) => Some(v),
        Bytes::Literal(_) | Bytes::Comm => None,
    };
    let [a, b, c] = match *op {
        Op::Same {
            to, a, b, length, ..
        } => return [Some(to), address(a), address(b), length],
        Op::StringLength { to, of, .. } => [Some(to), address(of), None],
        Op::Decimal { to, of, most, .. } => [Some(to), address(of), Some(most)],
        Op::Sample { .. } | Op::Delay { .. } => [None; 3],
        Op::Const { to, .. }
        | Op::Recall { to, .. }
        | Op::Register { to, .. }
        | Op::Variable { to, .. }
        | Op::Special { to, .. } => [Some(to), None, None],
        Op::Load { to, address, .. } => [Some(to), Some(address), None],
        Op::Binary { to, a, b, .. } => [Some(to), Some(a), Some(b)],
        Op::Unary { to, a, .. } => [Some(to), Some(a), None],
        Op::Extend { to, from, .. } => [Some(to), Some(from), None],
        Op::Capture {
            address, length, ..
        } => [Some(address), Some(length), None],
        Op::CaptureString { end, address, .. } => [Some(end), Some(address), None],
        Op::Store { address, from, .. } => [Some(address), Some(from), None],
        Op::SetRegister { from, .. } | Op::SetVariable { from, .. } | Op::Remember { from, .. } => {
            [Some(from), None, None]
        }
        Op::JumpIfZero { condition, .. } => [Some(condition), None, None],
        Op::Enter { .. } | Op::Leave { .. } | Op::Unavailable { .. } => [None; 3],
        Op::Jump { .. } | Op::Hit | Op::Command { .. } => [None; 3],
    };
    [a, b, c, None]
}

/// Runs a program that [`check`] accepted; `values` is scratch space that is reused.
pub fn run<M: Machine>(program: &Program, machine: &mut M, values: &mut Vec<u64>) -> Outcome {
    values.clear();
    values.resize(usize::from(program.values), 0);
    let mut outcome = Outcome {
        hit: false,
        command: 0,
        fault: None,
    };
    let mut at = 0;
    while let Some(op) = program.ops.get(at) {
        at += 1;
        match step(op, program, machine, values, &mut outcome) {
            Ok(Flow::Next) => {}
            Ok(Flow::To(target)) => at = usize::from(target),
            Ok(Flow::End) => break,
            Err(fault) => {
                outcome.fault = Some(fault);
                break;
            }
        }
    }
    outcome
}

enum Flow {
    Next,
    To(u16),
    End,
}

fn step<M: Machine>(
    op: &Op,
    program: &Program,
    machine: &mut M,
    values: &mut [u64],
    outcome: &mut Outcome,
) -> Result<Flow, Fault> {
    let value = |v: V| values[usize::from(v.0)];
    let (to, result) = match *op {
        Op::Const { to, value } => (to, value),
        Op::Register { to, register } => (to, machine.register(register)),
        Op::Variable { to, variable } => (to, machine.variable(variable)),
        Op::Special { to, what } => (to, machine.special(what)),
        Op::Recall { to, index } => (to, machine.recall(index).map_err(Fault::Unavailable)?),
        Op::Load {
            to,
            address,
            width,
            signed,
            keep,
        } => {
            let mut bytes = [0; 8];
            let bytes_read = &mut bytes[..width.bytes()];
            let address = value(address);
            machine.read(address, bytes_read).map_err(Fault::Memory)?;
            if keep {
                machine.keep(address, bytes_read);
            }
            (to, width.extend(u64::from_le_bytes(bytes), signed))
        }
        Op::Binary {
            to,
            op,
            a,
            b,
            width,
            signed,
        } => (to, binary(op, value(a), value(b), width, signed)?),
        Op::Unary {
            to,
            op,
            a,
            width,
            signed,
        } => (to, unary(op, value(a), width, signed)),
        Op::Extend {
            to,
            from,
            width,
            signed,
        } => (to, width.extend(value(from), signed)),
        Op::Same { to, .. } | Op::StringLength { to, .. } | Op::Decimal { to, .. } => {
            (to, text(op, program, machine, values)?)
        }
        Op::CaptureString {
            end,
            address,
            maximum,
            unit,
        } => {
            let behind = machine.capture_string(value(address), maximum, unit);
            (end, behind)
        }
        _ => return effect(op, machine, values, outcome),
    };
    values[usize::from(to.0)] = result;
    Ok(Flow::Next)
}

/// The ops on texts.
fn text<M: Machine>(
    op: &Op,
    program: &Program,
    machine: &mut M,
    values: &[u64],
) -> Result<u64, Fault> {
    let value = |v: V| values[usize::from(v.0)];
    let bytes = |bytes: Bytes, machine: &mut M| match bytes {
        Bytes::Memory(v) => functions::Bytes::At(value(v)),
        Bytes::Literal(number) => {
            let literal = program.literals.get(usize::from(number));
            functions::Bytes::Here(literal.cloned().unwrap_or_default())
        }
        Bytes::Comm => functions::Bytes::Here(machine.comm()),
    };
    let keeps = matches!(
        op,
        Op::Same { keep: true, .. }
            | Op::StringLength { keep: true, .. }
            | Op::Decimal { keep: true, .. }
    );
    let of = texts(op).map(|of| of.map(|of| bytes(of, machine)));
    let read: functions::Available = &mut |address, most| {
        let found = machine.available(address, most);
        if keeps {
            machine.keep(address, &found);
        }
        found
    };
    Ok(match (op, of) {
        (Op::Same { length, .. }, [Some(a), Some(b)]) => {
            functions::same(&a, &b, length.map(value), read)?.into()
        }
        (Op::StringLength { .. }, [Some(of), _]) => functions::string(&of, read)?.len() as u64,
        (Op::Decimal { most, .. }, [Some(of), _]) => {
            functions::number(&of, value(*most), read)? as u64
        }
        _ => 0,
    })
}

/// The ops that change something else than a value.
fn effect<M: Machine>(
    op: &Op,
    machine: &mut M,
    values: &[u64],
    outcome: &mut Outcome,
) -> Result<Flow, Fault> {
    let value = |v: V| values[usize::from(v.0)];
    match *op {
        Op::Capture {
            address,
            length,
            maximum,
        } => machine
            .capture(value(address), value(length), maximum)
            .map_err(Fault::Memory)?,
        Op::Store {
            address,
            from,
            width,
        } => {
            let bytes = value(from).to_le_bytes();
            machine
                .write(value(address), &bytes[..width.bytes()])
                .map_err(Fault::Memory)?;
        }
        Op::SetRegister { register, from } => machine.set_register(register, value(from)),
        Op::SetVariable { variable, from } => machine.set_variable(variable, value(from)),
        Op::Enter { function } => machine.enter(function),
        Op::Remember {
            function,
            index,
            from,
        } => machine.remember(function, index, value(from)),
        Op::Leave { function } => machine.leave(function),
        Op::Unavailable { what } => return Err(Fault::Unavailable(what)),
        Op::Jump { target } => return Ok(Flow::To(target)),
        Op::JumpIfZero { condition, target } if value(condition) == 0 => {
            return Ok(Flow::To(target));
        }
        Op::Hit => {
            outcome.hit = machine.hit();
            if !outcome.hit {
                return Ok(Flow::End);
            }
        }
        Op::Sample { of, all } => {
            outcome.hit = machine.sample(of, all);
            if !outcome.hit {
                return Ok(Flow::End);
            }
        }
        Op::Delay { ns } => machine.delay(ns),
        Op::Command { index } => outcome.command = index,
        _ => {}
    }
    Ok(Flow::Next)
}

fn binary(op: Binary, a: u64, b: u64, width: Width, signed: bool) -> Result<u64, Fault> {
    let (a, b) = (width.extend(a, signed), width.extend(b, signed));
    let truth = |yes: bool| Ok(u64::from(yes));
    let result = match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::Div | Binary::Rem if b == 0 => return Err(Fault::DivisionByZero),
        Binary::Div if signed => (a as i64).wrapping_div(b as i64) as u64,
        Binary::Div => a / b,
        Binary::Rem if signed => (a as i64).wrapping_rem(b as i64) as u64,
        Binary::Rem => a % b,
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::Shl => shift_left(a, b, width),
        Binary::Shr => shift_right(a, b, width, signed),
        Binary::Eq => return truth(a == b),
        Binary::Ne => return truth(a != b),
        Binary::Lt if signed => return truth((a as i64) < b as i64),
        Binary::Le if signed => return truth(a as i64 <= b as i64),
        Binary::Gt if signed => return truth(a as i64 > b as i64),
        Binary::Ge if signed => return truth(a as i64 >= b as i64),
        Binary::Lt => return truth(a < b),
        Binary::Le => return truth(a <= b),
        Binary::Gt => return truth(a > b),
        Binary::Ge => return truth(a >= b),
    };
    Ok(width.extend(result, signed))
}

fn shift_left(a: u64, count: u64, width: Width) -> u64 {
    if count >= 8 * width.bytes() as u64 {
        return 0;
    }
    a << count
}

fn shift_right(a: u64, count: u64, width: Width, signed: bool) -> u64 {
    let all = count >= 8 * width.bytes() as u64;
    match (signed, all) {
        (true, true) => ((a as i64) >> 63) as u64,
        (true, false) => ((a as i64) >> count) as u64,
        (false, true) => 0,
        (false, false) => a >> count,
    }
}

fn unary(op: Unary, a: u64, width: Width, signed: bool) -> u64 {
    let a = width.extend(a, signed);
    let result = match op {
        Unary::Neg => a.wrapping_neg(),
        Unary::Not => !a,
        Unary::IsZero => return u64::from(a == 0),
        Unary::Swap => a.swap_bytes() >> (64 - 8 * width.bytes()),
    };
    width.extend(result, signed)
}
