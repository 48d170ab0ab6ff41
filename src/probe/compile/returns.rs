//! Ways out of functions: whether a pass leaves, what is returned, and what was at the entry.

use crate::arch::{ExitKind, RETURN_VALUE, Register, Target};
use crate::lang::scope::{Unavailable, WayOut};
use crate::lang::{Expr, Type};
use crate::probe::program::{Binary, Op, Program, Unary, V, Width};

use super::expression::{Number, scalar};
use super::place::Where;
use super::{Compiler, Out, Reason};

/// Bits of `eflags` (SDM vol. 1, 3.4.3.1).
const CARRY: u64 = 1;
const PARITY: u64 = 1 << 2;
const ZERO: u64 = 1 << 6;
const SIGN: u64 = 1 << 7;
const OVERFLOW_BIT: u64 = 11;

/// Why a function is not skipped.
const NOT_AT_ENTRY: &str = "`return' skips a function at its first instruction only (*FUNCTION)";

/// What expressions can ask there.
pub(crate) fn way_out(kind: ExitKind) -> WayOut {
    match kind {
        ExitKind::Return => WayOut::Return,
        ExitKind::Jump | ExitKind::Conditional(_) | ExitKind::Indirect(_) => WayOut::Jump,
    }
}

impl Compiler<'_> {
    /// Ends the program where a pass stays in the function; where it leaves, its call ends.
    pub(super) fn leaves(&mut self, out: &Out) -> Result<(), Reason> {
        match out.kind {
            ExitKind::Return | ExitKind::Jump => {}
            ExitKind::Conditional(condition) => {
                let taken = self.condition(condition)?;
                let stays = self.jump_if_zero(taken)?;
                self.ends.push(stays);
            }
            ExitKind::Indirect(target) => {
                let to = self.target(target)?;
                for (start, length) in out.parts {
                    self.stays_within(to, *start, *length, out.function)?;
                }
            }
        }
        if matches!(out.entries, Ok([_, ..])) {
            self.op(Op::Leave {
                function: out.function,
            })?;
        }
        Ok(())
    }

    /// Ends the program for a jump to an address in a part of the function; one to its first
    /// instruction is a call in the place of this one.
    fn stays_within(
        &mut self,
        to: V,
        start: u64,
        length: u64,
        function: u64,
    ) -> Result<(), Reason> {
        let start = if start == function { start + 1 } else { start };
        let length = if start == function + 1 {
            length.saturating_sub(1)
        } else {
            length
        };
        let start = self.constant(start)?;
        let distance = self.wide(Binary::Sub, to, start)?;
        let length = self.constant(length)?;
        let outside = self.wide(Binary::Ge, distance, length)?;
        let stays = self.jump_if_zero(outside)?;
        self.ends.push(stays);
        Ok(())
    }

    /// Where an indirect jump goes.
    fn target(&mut self, target: Target) -> Result<V, Reason> {
        let (base, index, displacement) = match target {
            Target::Register(register) => return self.whole_register(register),
            Target::Memory {
                base,
                index,
                displacement,
            } => (base, index, displacement),
        };
        let mut address = self.constant(displacement)?;
        if let Some(base) = base {
            let base = self.whole_register(base)?;
            address = self.wide(Binary::Add, address, base)?;
        }
        if let Some((index, scale)) = index {
            let index = self.whole_register(index)?;
            address = self.scaled(address, Binary::Add, index, scale.into())?;
        }
        self.load(address, Width::W8, false)
    }

    fn whole_register(&mut self, register: Register) -> Result<V, Reason> {
        self.emit(|to| Op::Register { to, register })
    }

    /// 1 if a `jcc` with this condition jumps, else 0.
    fn condition(&mut self, condition: u8) -> Result<V, Reason> {
        let flags = self.whole_register(Register::Eflags)?;
        // SDM vol. 2, appendix B.1.4: the pairs of conditions; the odd one is the opposite.
        let holds = match condition >> 1 {
            0 => self.any_of(flags, 1 << OVERFLOW_BIT)?,
            1 => self.any_of(flags, CARRY)?,
            2 => self.any_of(flags, ZERO)?,
            3 => self.any_of(flags, CARRY | ZERO)?,
            4 => self.any_of(flags, SIGN)?,
            5 => self.any_of(flags, PARITY)?,
            6 => self.less(flags)?,
            _ => {
                let less = self.less(flags)?;
                let zero = self.any_of(flags, ZERO)?;
                self.wide(Binary::Or, less, zero)?
            }
        };
        match condition & 1 {
            0 => Ok(holds),
            _ => self.not(holds),
        }
    }

    /// 1 if one of these bits is set.
    fn any_of(&mut self, flags: V, bits: u64) -> Result<V, Reason> {
        let bits = self.constant(bits)?;
        let set = self.wide(Binary::And, flags, bits)?;
        let none = self.not(set)?;
        self.not(none)
    }

    /// Sign and overflow differ.
    fn less(&mut self, flags: V) -> Result<V, Reason> {
        let sign = self.any_of(flags, SIGN)?;
        let overflow = self.any_of(flags, 1 << OVERFLOW_BIT)?;
        self.wide(Binary::Ne, sign, overflow)
    }

    fn not(&mut self, a: V) -> Result<V, Reason> {
        self.emit(|to| Op::Unary {
            to,
            op: Unary::IsZero,
            a,
            width: Width::W8,
            signed: false,
        })
    }

    /// `$_retval`
    pub(super) fn retval(&mut self) -> Result<Number, Reason> {
        let Where::Register(register, _) = self.retval_place()? else {
            return Err("a return value is in a register".into());
        };
        Ok(Number {
            v: self.whole_register(register)?,
            ty: Type::long(),
        })
    }

    /// Where a return value is; a fault where there is none.
    pub(super) fn retval_place(&mut self) -> Result<Where, Reason> {
        match self.out.map(|out| way_out(out.kind)) {
            Some(WayOut::Return) => {}
            Some(WayOut::Jump) => self.unavailable(Unavailable::RetvalAtJump)?,
            Some(WayOut::None) | None => self.unavailable(Unavailable::Retval)?,
        }
        Ok(Where::Register(RETURN_VALUE, 0))
    }

    fn unavailable(&mut self, what: Unavailable) -> Result<(), Reason> {
        self.op(Op::Unavailable { what }).map(drop)
    }

    /// `return [VALUE]` at a function's first instruction: it does nothing and returns.
    pub(super) fn skip(&mut self, value: Option<&Expr>) -> Result<(), Reason> {
        if !self.entry {
            return Err(NOT_AT_ENTRY.into());
        }
        if let Some(value) = value {
            let value = self.number(value)?;
            let (width, signed) = scalar(&value.ty)?;
            let from = self.cut(value.v, width, signed)?;
            let register = RETURN_VALUE;
            self.op(Op::SetRegister { register, from })?;
        }
        let sp = self.whole_register(Register::Rsp)?;
        let back = self.emit(|to| Op::Load {
            to,
            address: sp,
            width: Width::W8,
            signed: false,
            keep: false,
        })?;
        let word = self.constant(8)?;
        let above = self.wide(Binary::Add, sp, word)?;
        for (register, from) in [(Register::Rip, back), (Register::Rsp, above)] {
            self.op(Op::SetRegister { register, from })?;
        }
        let jump = self.jump()?;
        self.ends.push(jump);
        Ok(())
    }

    /// `$_entry(EXPR)`
    pub(super) fn recall(&mut self, expr: &Expr) -> Result<Number, Reason> {
        let Expr::Entry(inner) = expr else {
            return Err("no `$_entry'".into());
        };
        let ty = self.type_of(expr)?;
        let kept = match self.out.map(|out| out.entries) {
            None => Err(Unavailable::Entry),
            Some(Err(why)) => Err(why),
            Some(Ok(kept)) => kept
                .iter()
                .position(|kept| kept == &**inner)
                .ok_or(Unavailable::EntryNotKept),
        };
        let index = match kept {
            Ok(index) => index as u16,
            Err(what) => {
                self.unavailable(what)?;
                0
            }
        };
        let v = self.emit(|to| Op::Recall { to, index })?;
        Ok(Number { v, ty })
    }

    /// What runs at the function's entry for one expression.
    pub(super) fn remember(&mut self, index: usize, out: Out) -> Result<Program, Reason> {
        let function = out.function;
        if index == 0 {
            self.op(Op::Enter { function })?;
        }
        let expr = out.entries.ok().and_then(|kept| kept.get(index));
        let expr = expr.ok_or("no such expression")?;
        let from = self.number(expr)?;
        scalar(&from.ty)?;
        let index = index as u16;
        self.op(Op::Remember {
            function,
            index,
            from: from.v,
        })?;
        Ok(std::mem::take(&mut self.program))
    }
}
