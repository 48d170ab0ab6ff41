//! Places: what can be assigned to, or has an address.

use crate::arch::Register;
use crate::lang::registers::Home;
use crate::lang::{Expr, Kind, Type, UnaryOp};
use crate::probe::program::{Binary, Op, V, Width};

use super::expression::{Number, scalar};
use super::{Compiler, Reason};

/// Where an expression's value lives.
#[derive(Debug, Clone)]
pub(super) enum Where {
    /// At the address in this value.
    Memory(V),
    /// In a general register, from this byte on.
    Register(Register, u8),
    /// In a convenience variable.
    Variable(String),
}

/// A place and the type of what is there.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub at: Where,
    pub ty: Type,
}

impl Compiler<'_> {
    /// The place of an expression that has one.
    pub(super) fn place(&mut self, expr: &Expr) -> Result<Place, Reason> {
        let at = match expr {
            Expr::Register(view) => match view.home {
                Home::General { register, offset } => Where::Register(register, offset),
                Home::Vector => return Err(format!("${} is a vector register", view.name)),
            },
            Expr::Variable(name) => Where::Variable(name.clone()),
            Expr::Retval => self.retval_place()?,
            Expr::At(_, address) | Expr::Unary(UnaryOp::Deref, address) => {
                Where::Memory(self.address(address)?)
            }
            Expr::Index(base, index) => {
                let base_address = self.address(base)?;
                let element = self.type_of(expr)?;
                let index = self.number(index)?;
                Where::Memory(self.scaled(base_address, Binary::Add, index.v, element.size())?)
            }
            Expr::Symbol { symbol, .. } => Where::Memory(self.constant(symbol.address)?),
            _ => return Err("this is not at one place".into()),
        };
        Ok(Place {
            at,
            ty: self.type_of(expr)?,
        })
    }

    /// What an expression gives where an address is wanted: arrays and functions give their own.
    pub(super) fn address(&mut self, expr: &Expr) -> Result<V, Reason> {
        let ty = self.type_of(expr)?;
        if matches!(ty.kind(), Kind::Array { .. } | Kind::Function { .. }) {
            return self.own_address(expr);
        }
        Ok(self.number(expr)?.v)
    }

    /// The address of what an expression stands for.
    pub(super) fn own_address(&mut self, expr: &Expr) -> Result<V, Reason> {
        match self.place(expr)?.at {
            Where::Memory(address) => Ok(address),
            _ => Err("this has no address".into()),
        }
    }

    /// `base OP index * size`.
    pub(super) fn scaled(&mut self, base: V, op: Binary, index: V, size: u64) -> Result<V, Reason> {
        let offset = match size {
            1 => index,
            _ => {
                let size = self.constant(size)?;
                self.wide(Binary::Mul, index, size)?
            }
        };
        self.wide(op, base, offset)
    }

    /// A 64-bit operation without sign.
    pub(super) fn wide(&mut self, op: Binary, a: V, b: V) -> Result<V, Reason> {
        self.emit(|to| Op::Binary {
            to,
            op,
            a,
            b,
            width: Width::W8,
            signed: false,
        })
    }

    /// What is at a place now.
    pub(super) fn fetch(&mut self, place: &Place) -> Result<Number, Reason> {
        let (width, signed) = scalar(&place.ty)?;
        let v = match &place.at {
            Where::Memory(address) => self.load(*address, width, signed)?,
            Where::Register(register, offset) => {
                let register = *register;
                let whole = self.emit(|to| Op::Register { to, register })?;
                let part = match offset {
                    0 => whole,
                    offset => {
                        let bits = self.constant(8 * u64::from(*offset))?;
                        self.wide(Binary::Shr, whole, bits)?
                    }
                };
                self.cut(part, width, signed)?
            }
            Where::Variable(name) => {
                let variable = self.shared(name, &place.ty)?;
                self.emit(|to| Op::Variable { to, variable })?
            }
        };
        Ok(Number {
            v,
            ty: place.ty.clone(),
        })
    }

    /// Puts a number, converted already, at a place.
    pub(super) fn store(&mut self, place: &Place, from: V) -> Result<(), Reason> {
        match &place.at {
            Where::Memory(address) => {
                let (width, _) = scalar(&place.ty)?;
                let address = *address;
                self.op(Op::Store {
                    address,
                    from,
                    width,
                })?;
            }
            Where::Register(register, offset) => {
                self.set_register(*register, *offset, &place.ty, from)?
            }
            Where::Variable(name) => {
                let variable = self.shared(name, &place.ty)?;
                self.op(Op::SetVariable { variable, from })?;
                self.scope.learn(name, place.ty.clone());
            }
        }
        Ok(())
    }

    /// Changes a register or some of its bytes, the others stay (gdb keeps them even for `$eax`).
    fn set_register(
        &mut self,
        register: Register,
        offset: u8,
        ty: &Type,
        from: V,
    ) -> Result<(), Reason> {
        let (width, _) = scalar(ty)?;
        let mut whole = from;
        if width != Width::W8 {
            let shift = 8 * u32::from(offset);
            let mask = (u64::MAX >> (64 - 8 * width.bytes() as u32)) << shift;
            let low = self.cut(from, width, false)?;
            let bits = self.constant(shift.into())?;
            let moved = self.wide(Binary::Shl, low, bits)?;
            let old = self.emit(|to| Op::Register { to, register })?;
            let keep = self.constant(!mask)?;
            let rest = self.wide(Binary::And, old, keep)?;
            whole = self.wide(Binary::Or, rest, moved)?;
        }
        self.op(Op::SetRegister {
            register,
            from: whole,
        })?;
        Ok(())
    }

    fn shared(&mut self, name: &str, ty: &Type) -> Result<u16, Reason> {
        self.variables
            .share(name, ty)
            .ok_or_else(|| format!("${name} is no integer of one type"))
    }
}
