//! What a site's programs will read, as far as registers alone tell it: one system call reads it
//! all before they run.

use std::collections::HashMap;

use crate::arch::{Displaced, Register, Registers};
use crate::engine::protocol::SiteProbe;
use crate::probe::program::{Binary, Bytes, Op, Program, V, Width};

/// No more than this is read ahead for one op.
const MOST: u64 = 2048;

/// How much of a string is read ahead.
const STRING: u64 = 64;

/// No more ranges than this are read ahead.
const RANGES: usize = 32;

/// A value that is a register plus a constant (or the constant alone), cut to a width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Linear {
    register: Option<Register>,
    add: u64,
    width: Width,
    signed: bool,
}

impl Linear {
    fn value(&self, registers: &Registers) -> u64 {
        let base = self.register.map_or(0, |register| registers.get(register));
        self.width.extend(base.wrapping_add(self.add), self.signed)
    }

    fn constant(value: u64) -> Linear {
        Linear {
            register: None,
            add: value,
            width: Width::W8,
            signed: false,
        }
    }
}

/// One range that will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    address: Linear,
    length: Linear,
    most: u64,
    /// Ends with its page, since what is behind may not be readable.
    in_page: bool,
}

/// What is read ahead at a site.
#[derive(Debug, Default, Clone)]
pub struct Plan {
    ranges: Vec<Range>,
}

impl Plan {
    /// The plan for a site with these probes. A first instruction that pushes adds the word at
    /// rsp, which tells a hit from a thread that has passed.
    pub fn new(probes: &[SiteProbe], displaced: &Displaced) -> Plan {
        let mut plan = Plan::default();
        if displaced.is_push_register().is_some() {
            let stack = Linear {
                register: Some(Register::Rsp),
                ..Linear::constant(0)
            };
            plan.add(stack, Linear::constant(8), 8, false);
        }
        for probe in probes {
            plan.program(&probe.program);
        }
        plan
    }

    /// The ranges for these registers: address and length.
    pub fn ranges<'a>(
        &'a self,
        registers: &'a Registers,
    ) -> impl Iterator<Item = (u64, usize)> + 'a {
        self.ranges.iter().filter_map(|range| {
            let address = range.address.value(registers);
            let mut length = range.length.value(registers).min(range.most);
            if range.in_page {
                length = length.min(4096 - address % 4096);
            }
            // A length that is negative or absurd is not read ahead; the program decides.
            let fits = (1..=MOST).contains(&length) && address.checked_add(length).is_some();
            fits.then_some((address, length as usize))
        })
    }

    fn add(&mut self, address: Linear, length: Linear, most: u64, in_page: bool) {
        let range = Range {
            address,
            length,
            most,
            in_page,
        };
        if self.ranges.len() < RANGES && !self.ranges.contains(&range) {
            self.ranges.push(range);
        }
    }

    fn text(&mut self, bytes: Bytes, known: &Known) {
        if let Bytes::Memory(address) = bytes
            && let Some(address) = known.value(address)
        {
            self.add(address, Linear::constant(STRING), STRING, true);
        }
    }

    fn program(&mut self, program: &Program) {
        let mut known = Known {
            values: vec![None; usize::from(program.values)],
            variables: HashMap::new(),
            written: Vec::new(),
        };
        for op in &program.ops {
            match *op {
                Op::Load { address, width, .. } => {
                    let length = Linear::constant(width.bytes() as u64);
                    if let Some(address) = known.value(address) {
                        self.add(address, length, 8, false);
                    }
                }
                Op::Capture {
                    address,
                    length,
                    maximum,
                } => {
                    if let (Some(address), Some(length)) =
                        (known.value(address), known.value(length))
                    {
                        self.add(address, length, u64::from(maximum).min(MOST), false);
                    }
                }
                Op::Same { a, b, .. } => {
                    for bytes in [a, b] {
                        self.text(bytes, &known);
                    }
                }
                Op::StringLength { of, .. } | Op::Decimal { of, .. } => self.text(of, &known),
                Op::CaptureString { address, .. } => self.text(Bytes::Memory(address), &known),
                _ => {}
            }
            known.follow(op);
        }
    }
}

/// What is known of a program's values. Where two paths write one value the later one counts: a
/// wrong guess costs a read and nothing else.
struct Known {
    values: Vec<Option<Linear>>,
    /// Convenience variables that the program has set.
    variables: HashMap<u16, Option<Linear>>,
    /// Registers that the program has set.
    written: Vec<Register>,
}

impl Known {
    fn value(&self, v: V) -> Option<Linear> {
        self.values.get(usize::from(v.0)).copied().flatten()
    }

    /// Notes what an op does.
    fn follow(&mut self, op: &Op) {
        match *op {
            Op::SetRegister { register, .. } => self.written.push(register),
            Op::SetVariable { variable, from } => {
                self.variables.insert(variable, self.value(from));
            }
            _ => {}
        }
        if let Some((to, linear)) = self.result(op)
            && let Some(place) = self.values.get_mut(usize::from(to.0))
        {
            *place = linear;
        }
    }

    /// The value an op makes, if it makes one.
    fn result(&self, op: &Op) -> Option<(V, Option<Linear>)> {
        Some(match *op {
            Op::Const { to, value } => (to, Some(Linear::constant(value))),
            Op::Register { to, register } => {
                let linear = Linear {
                    register: Some(register),
                    ..Linear::constant(0)
                };
                (to, (!self.written.contains(&register)).then_some(linear))
            }
            Op::Variable { to, variable } => (to, self.variables.get(&variable).copied().flatten()),
            Op::Extend {
                to,
                from,
                width,
                signed,
            } => (to, self.value(from).and_then(|v| cut(v, width, signed))),
            Op::Binary {
                to,
                op,
                a,
                b,
                width,
                signed,
            } => {
                let result = combine(op, self.value(a), self.value(b));
                (to, result.and_then(|v| cut(v, width, signed)))
            }
            Op::Special { to, .. }
            | Op::Recall { to, .. }
            | Op::Same { to, .. }
            | Op::StringLength { to, .. }
            | Op::Decimal { to, .. }
            | Op::Load { to, .. }
            | Op::Unary { to, .. } => (to, None),
            Op::CaptureString { end, .. } => (end, None),
            _ => return None,
        })
    }
}

/// `linear` cut to a width. All 64 bits of a value are cut to nothing less; what was added in a
/// narrower width cannot be told in a wider one.
fn cut(linear: Linear, width: Width, signed: bool) -> Option<Linear> {
    if linear.register.is_none() {
        let value = linear.value(&Registers::default());
        return Some(Linear::constant(width.extend(value, signed)));
    }
    if width == Width::W8 {
        return Some(linear);
    }
    (width.bytes() <= linear.width.bytes()).then_some(Linear {
        width,
        signed,
        ..linear
    })
}

/// The sums and the product that stay a register plus a constant. A sum with something narrower
/// than 64 bits does so in its own width only.
fn combine(op: Binary, a: Option<Linear>, b: Option<Linear>) -> Option<Linear> {
    let (a, b) = (a?, b?);
    let constant = |linear: &Linear| linear.register.is_none().then_some(linear.add);
    let sum = |linear: Linear, add: u64| Linear {
        add: linear.add.wrapping_add(add),
        ..linear
    };
    match (op, constant(&a), constant(&b)) {
        (Binary::Add, _, Some(add)) => Some(sum(a, add)),
        (Binary::Add, Some(add), _) => Some(sum(b, add)),
        (Binary::Sub, _, Some(add)) => Some(sum(a, add.wrapping_neg())),
        (Binary::Mul, _, Some(1)) => Some(a),
        (Binary::Mul, Some(1), _) => Some(b),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::protocol::Then;

    fn ranges(ops: Vec<Op>, registers: &Registers) -> Vec<(u64, usize)> {
        let program = Program {
            ops,
            values: 16,
            ..Program::default()
        };
        let probe = SiteProbe {
            probe: 0,
            program,
            then: Then::Continue,
        };
        let Ok(nop) = Displaced::decode(&[0x90], 0x1000) else {
            panic!("a nop is an instruction");
        };
        Plan::new(&[probe], &nop).ranges(registers).collect()
    }

    fn register(to: u16, register: Register) -> Op {
        Op::Register {
            to: V(to),
            register,
        }
    }

    fn constant(to: u16, value: u64) -> Op {
        Op::Const { to: V(to), value }
    }

    fn binary(to: u16, op: Binary, a: u16, b: u16, width: Width) -> Op {
        Op::Binary {
            to: V(to),
            op,
            a: V(a),
            b: V(b),
            width,
            signed: false,
        }
    }

    #[test]
    fn a_length_that_comes_through_a_variable_is_known() {
        let mut registers = Registers::default();
        registers.set(Register::Rsi, 0x7000);
        // Only the low half of rdx is the length.
        registers.set(Register::Rdx, 0xdead_beef_0000_0030);
        let extend = Op::Extend {
            to: V(1),
            from: V(0),
            width: Width::W4,
            signed: true,
        };
        let capture = Op::Capture {
            address: V(7),
            length: V(5),
            maximum: 65536,
        };
        let ops = vec![
            register(0, Register::Rdx),
            extend,
            constant(2, 15),
            binary(3, Binary::Sub, 1, 2, Width::W4),
            Op::SetVariable {
                variable: 9,
                from: V(3),
            },
            Op::Variable {
                to: V(4),
                variable: 9,
            },
            constant(6, 1),
            binary(5, Binary::Mul, 4, 6, Width::W8),
            register(8, Register::Rsi),
            binary(7, Binary::Add, 8, 2, Width::W8),
            capture,
        ];
        assert_eq!(ranges(ops, &registers), [(0x700f, 0x21)]);
    }

    #[test]
    fn what_the_program_changed_is_not_guessed() {
        let ops = vec![
            constant(0, 5),
            Op::SetRegister {
                register: Register::Rdi,
                from: V(0),
            },
            register(1, Register::Rdi),
            Op::Load {
                to: V(2),
                address: V(1),
                width: Width::W8,
                signed: false,
                keep: true,
            },
        ];
        assert_eq!(ranges(ops, &Registers::default()), []);
    }

    #[test]
    fn lengths_that_cannot_be_are_left_to_the_program() {
        let ops = vec![
            register(0, Register::Rsi),
            register(1, Register::Rdx),
            Op::Capture {
                address: V(0),
                length: V(1),
                maximum: 4096,
            },
        ];
        let mut registers = Registers::default();
        registers.set(Register::Rsi, u64::MAX - 3);
        registers.set(Register::Rdx, u64::MAX);
        assert_eq!(ranges(ops, &registers), []);
    }
}
