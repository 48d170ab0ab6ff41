//! What a site's programs will read, as far as registers alone tell it: one system call reads it
//! all before they run.

use crate::arch::{Displaced, Register, Registers};
use crate::engine::protocol::SiteProbe;
use crate::probe::program::{Binary, Op, Program, V, Width};

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
#[derive(Debug, Default)]
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

    fn program(&mut self, program: &Program) {
        let mut values: Vec<Option<Linear>> = vec![None; usize::from(program.values)];
        let mut written = Vec::new();
        for op in &program.ops {
            match *op {
                Op::SetRegister { register, .. } => written.push(register),
                Op::Register { register, .. } if written.contains(&register) => {}
                Op::Load { address, width, .. } => {
                    let length = Linear::constant(width.bytes() as u64);
                    if let Some(address) = value(&values, address) {
                        self.add(address, length, 8, false);
                    }
                }
                Op::Capture {
                    address,
                    length,
                    maximum,
                } => {
                    if let (Some(address), Some(length)) =
                        (value(&values, address), value(&values, length))
                    {
                        self.add(address, length, u64::from(maximum).min(MOST), false);
                    }
                }
                Op::CaptureString { address, .. } => {
                    if let Some(address) = value(&values, address) {
                        self.add(address, Linear::constant(STRING), STRING, true);
                    }
                }
                _ => {}
            }
            if let Some((to, linear)) = linear(op, &values, &written)
                && let Some(place) = values.get_mut(usize::from(to.0))
            {
                // Where two paths write one value the later one counts: a wrong guess costs a
                // read and nothing else.
                *place = linear;
            }
        }
    }
}

fn value(values: &[Option<Linear>], v: V) -> Option<Linear> {
    values.get(usize::from(v.0)).copied().flatten()
}

/// The value an op makes, if it makes one.
fn linear(op: &Op, values: &[Option<Linear>], written: &[Register]) -> Option<(V, Option<Linear>)> {
    Some(match *op {
        Op::Const { to, value } => (to, Some(Linear::constant(value))),
        Op::Register { to, register } => {
            let known = !written.contains(&register);
            let linear = Linear {
                register: Some(register),
                ..Linear::constant(0)
            };
            (to, known.then_some(linear))
        }
        Op::Extend {
            to,
            from,
            width,
            signed,
        } => {
            let from = value(values, from);
            let whole = width == Width::W8;
            (
                to,
                if whole {
                    from
                } else {
                    from.and_then(|v| cut(v, width, signed))
                },
            )
        }
        Op::Binary {
            to,
            op,
            a,
            b,
            width,
            signed,
        } => {
            let sum = sum(op, value(values, a), value(values, b));
            (to, sum.and_then(|sum| cut(sum, width, signed)))
        }
        Op::Variable { to, .. }
        | Op::Special { to, .. }
        | Op::Load { to, .. }
        | Op::Unary { to, .. } => (to, None),
        Op::CaptureString { end, .. } => (end, None),
        _ => return None,
    })
}

/// `linear` cut to a width: right for a narrower or equal one, unknown for a wider one.
fn cut(linear: Linear, width: Width, signed: bool) -> Option<Linear> {
    if linear.register.is_none() {
        let value = linear.value(&Registers::default());
        return Some(Linear::constant(width.extend(value, signed)));
    }
    (width.bytes() <= linear.width.bytes()).then_some(Linear {
        width,
        signed,
        ..linear
    })
}

fn sum(op: Binary, a: Option<Linear>, b: Option<Linear>) -> Option<Linear> {
    let (a, b) = (a?, b?);
    match op {
        Binary::Add if b.register.is_none() => Some(Linear {
            add: a.add.wrapping_add(b.add),
            ..a
        }),
        Binary::Add if a.register.is_none() => Some(Linear {
            add: b.add.wrapping_add(a.add),
            ..b
        }),
        Binary::Sub if b.register.is_none() => Some(Linear {
            add: a.add.wrapping_sub(b.add),
            ..a
        }),
        _ => None,
    }
}
