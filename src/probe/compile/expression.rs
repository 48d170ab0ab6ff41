//! Expressions of integers and pointers.

use crate::arch::{self, Argument, Register};
use crate::lang::{BinaryOp, Expr, IncDec, Kind, Type, UnaryOp, evaluate, short_form};
use crate::probe::program::{Binary, Op, Unary, V, Width};

use super::place::{Place, Where};
use super::{Compiler, Reason, words};

/// A value and its type; the value is extended to 64 bits as the type says.
#[derive(Debug, Clone)]
pub(super) struct Number {
    pub v: V,
    pub ty: Type,
}

/// The width and sign of an integer or pointer.
pub(super) fn scalar(ty: &Type) -> Result<(Width, bool), Reason> {
    let fits = ty.is_integral() || matches!(ty.kind(), Kind::Pointer(_));
    Width::from_bytes(ty.size() as usize)
        .filter(|_| fits)
        .map(|width| (width, ty.is_signed()))
        .ok_or_else(|| match ty.kind() {
            Kind::Void => "a void value is used".into(),
            Kind::Float => "floating point is computed by the front".into(),
            _ => format!("values of type `{ty}' are computed by the front"),
        })
}

impl Compiler<'_> {
    /// An expression for what it changes.
    pub(super) fn effect(&mut self, expr: &Expr) -> Result<(), Reason> {
        self.number(expr).map(drop)
    }

    /// A condition: a value that is zero or not.
    pub(super) fn truth(&mut self, expr: &Expr) -> Result<V, Reason> {
        Ok(self.decayed(expr)?.v)
    }

    /// A number; arrays and functions become pointers.
    fn decayed(&mut self, expr: &Expr) -> Result<Number, Reason> {
        let ty = self.type_of(expr)?;
        let target = match ty.kind() {
            Kind::Array {
                element,
                vector: false,
                ..
            } => element,
            Kind::Function { .. } => &ty,
            _ => return self.number(expr),
        };
        Ok(Number {
            v: self.own_address(expr)?,
            ty: target.pointer(),
        })
    }

    /// Lowers an integer or pointer.
    pub(super) fn number(&mut self, expr: &Expr) -> Result<Number, Reason> {
        match expr {
            Expr::Integer { value, ty } => {
                scalar(ty)?;
                let v = self.constant(*value as u64)?;
                Ok(Number { v, ty: ty.clone() })
            }
            Expr::Variable(name) => self.variable(name),
            Expr::Register(_) | Expr::At(..) | Expr::Index(..) | Expr::Unary(UnaryOp::Deref, _) => {
                let place = self.place(expr)?;
                self.fetch(&place)
            }
            Expr::Symbol { name, .. } => match self.type_of(expr)?.kind() {
                Kind::Function { .. } => self.decayed(expr),
                _ => Err(format!(
                    "'{name}' has unknown type; cast it to its declared type"
                )),
            },
            Expr::Argument(number) => self.argument(*number, expr),
            Expr::Retval => self.retval(),
            Expr::Entry(_) => self.recall(expr),
            Expr::Special(what) => {
                let what = *what;
                let v = self.emit(|to| Op::Special { to, what })?;
                Ok(Number {
                    v,
                    ty: self.type_of(expr)?,
                })
            }
            Expr::Unary(op, operand) => self.unary(*op, operand, expr),
            Expr::Binary(BinaryOp::LogicalAnd | BinaryOp::LogicalOr, ..) => self.logical(expr),
            Expr::Binary(op, a, b) => self.binary(*op, a, b, expr),
            Expr::Assign(to, from) => {
                let from = self.decayed(from)?;
                self.assign(to, from)
            }
            Expr::AssignOp(op, to, by) => {
                let place = self.variable_or_place(to)?;
                let old = self.fetch(&place)?;
                let by = self.decayed(by)?;
                let sum = Expr::Binary(*op, to.clone(), Box::new(placeholder(&by.ty)));
                let ty = self.type_of(&sum)?;
                let new = self.arithmetic(*op, old, by, ty)?;
                self.put(&place, new)
            }
            Expr::IncDec(how, operand) => self.step(*how, operand),
            Expr::Conditional(condition, a, b) => self.conditional(condition, a, b, expr),
            Expr::Comma(a, b) => {
                self.effect(a)?;
                self.number(b)
            }
            Expr::Cast(ty, operand) | Expr::Reinterpret(ty, operand) => {
                self.type_of(expr)?;
                let number = self.decayed(operand)?;
                self.convert(number, ty)
            }
            Expr::SizeOf(_) | Expr::AlignOf(_) => {
                let value = evaluate(expr, &mut self.scope).map_err(words)?;
                let ty = value.ty().clone();
                let v = self.constant(value.as_u64(&self.scope).map_err(words)?)?;
                Ok(Number { v, ty })
            }
            Expr::Internal(function, arguments) => self.internal(*function, arguments, expr),
            Expr::HistoryBack(_) | Expr::HistoryNumber(_) => {
                Err("the value history is the front's".into())
            }
            Expr::Call(..) => Err("functions of the target are not called".into()),
            Expr::Float { .. } => Err("floating point is computed by the front".into()),
            Expr::String { .. } | Expr::Fact(_) | Expr::Array(_) | Expr::Repeat(..) => {
                Err("arrays are computed by the front".into())
            }
            Expr::Member(..) | Expr::Arrow(..) => Err("members are computed by the front".into()),
            Expr::Type(_) => Err("Attempt to use a type name as an expression".into()),
        }
    }

    /// A variable, or what its name is short for as long as nobody has set it.
    fn variable(&mut self, name: &str) -> Result<Number, Reason> {
        if let ("_" | "__", Some(examined)) = (name, self.examined.clone()) {
            let address = examined.address;
            if name == "_" {
                return Ok(Number {
                    v: address,
                    ty: examined.ty.pointer(),
                });
            }
            if examined.value {
                let at = Where::Memory(address);
                return self.fetch(&Place {
                    at,
                    ty: examined.ty,
                });
            }
        }
        match (self.scope.variable_type(name), short_form(name)) {
            (Some(ty), _) => self.fetch(&Place {
                at: Where::Variable(name.into()),
                ty,
            }),
            (None, Some(Expr::Retval)) if self.out.is_none() => {
                Err(format!("${name} is void so far"))
            }
            (None, Some(meant)) => self.number(&meant),
            (None, None) => Err(format!("${name} is void so far")),
        }
    }

    /// The place of something that is changed: an unset variable is no place to read from.
    fn variable_or_place(&mut self, expr: &Expr) -> Result<Place, Reason> {
        if let Expr::Variable(name) = expr
            && self.scope.variable_type(name).is_none()
        {
            return Err(format!("${name} is void so far"));
        }
        self.place(expr)
    }

    fn argument(&mut self, number: u32, expr: &Expr) -> Result<Number, Reason> {
        if !self.entry {
            return Err("arguments are in their places at a function's entry only".into());
        }
        let ty = self.type_of(expr)?;
        let above = match arch::argument(number) {
            None => return Err("arguments are counted from 1".into()),
            Some(Argument::Register(register)) => {
                let v = self.emit(|to| Op::Register { to, register })?;
                return Ok(Number { v, ty });
            }
            Some(Argument::Stack(above)) => self.constant(above)?,
        };
        let register = Register::Rsp;
        let stack = self.emit(|to| Op::Register { to, register })?;
        let at = Where::Memory(self.wide(Binary::Add, stack, above)?);
        self.fetch(&Place { at, ty })
    }

    /// Cut to `width` and extended.
    pub(super) fn cut(&mut self, from: V, width: Width, signed: bool) -> Result<V, Reason> {
        if width == Width::W8 {
            return Ok(from);
        }
        self.emit(|to| Op::Extend {
            to,
            from,
            width,
            signed,
        })
    }

    /// A conversion between integers and pointers.
    pub(super) fn convert(&mut self, number: Number, ty: &Type) -> Result<Number, Reason> {
        let (from_width, from_signed) = scalar(&number.ty)?;
        let (width, signed) = scalar(ty)?;
        let wider = width.bytes() > from_width.bytes();
        let v = if *ty.kind() == Kind::Bool {
            let no = self.is_zero(number.v, from_width)?;
            self.is_zero(no, Width::W8)?
        } else if (wider && (signed || !from_signed))
            || (width == from_width && signed == from_signed)
        {
            number.v
        } else {
            self.cut(number.v, width, signed)?
        };
        Ok(Number { v, ty: ty.clone() })
    }

    fn is_zero(&mut self, a: V, width: Width) -> Result<V, Reason> {
        self.emit(|to| Op::Unary {
            to,
            op: Unary::IsZero,
            a,
            width,
            signed: false,
        })
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr, expr: &Expr) -> Result<Number, Reason> {
        let ty = self.type_of(expr)?;
        match op {
            UnaryOp::AddressOf => {
                let v = self.own_address(operand)?;
                Ok(Number { v, ty })
            }
            UnaryOp::LogicalNot => {
                let number = self.decayed(operand)?;
                let v = self.is_zero(number.v, Width::W8)?;
                Ok(Number { v, ty })
            }
            UnaryOp::Plus => {
                let number = self.number(operand)?;
                self.convert(number, &ty)
            }
            UnaryOp::Neg | UnaryOp::Not => {
                let op = if op == UnaryOp::Neg {
                    Unary::Neg
                } else {
                    Unary::Not
                };
                let number = self.number(operand)?;
                let a = self.convert(number, &ty)?.v;
                let (width, signed) = scalar(&ty)?;
                let v = self.emit(|to| Op::Unary {
                    to,
                    op,
                    a,
                    width,
                    signed,
                })?;
                Ok(Number { v, ty })
            }
            UnaryOp::Deref => {
                let place = self.place(expr)?;
                self.fetch(&place)
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr, expr: &Expr) -> Result<Number, Reason> {
        let ty = self.type_of(expr)?;
        let a = self.decayed(a)?;
        let b = self.decayed(b)?;
        self.arithmetic(op, a, b, ty)
    }

    /// `a op b`, whose type is `ty`.
    fn arithmetic(
        &mut self,
        op: BinaryOp,
        a: Number,
        b: Number,
        ty: Type,
    ) -> Result<Number, Reason> {
        let pointers = (a.ty.is_pointer(), b.ty.is_pointer());
        let sum = if op == BinaryOp::Sub {
            Binary::Sub
        } else {
            Binary::Add
        };
        let pointed = |pointer: &Type| match pointer.target() {
            Some(to) if *to.kind() == Kind::Unknown => {
                Err(format!("the size of `{to}' is not known"))
            }
            Some(to) => Ok(to.size()),
            None => Ok(1),
        };
        match (op, pointers) {
            (BinaryOp::Add | BinaryOp::Sub, (true, false)) => {
                let v = self.scaled(a.v, sum, b.v, pointed(&a.ty)?)?;
                Ok(Number { v, ty })
            }
            (BinaryOp::Add, (false, true)) => {
                let v = self.scaled(b.v, sum, a.v, pointed(&b.ty)?)?;
                Ok(Number { v, ty })
            }
            (BinaryOp::Sub, (true, true)) => {
                let difference = self.wide(Binary::Sub, a.v, b.v)?;
                let b = self.constant(pointed(&a.ty)?)?;
                let v = self.emit(|to| Op::Binary {
                    to,
                    op: Binary::Div,
                    a: difference,
                    b,
                    width: Width::W8,
                    signed: true,
                })?;
                Ok(Number { v, ty })
            }
            _ => self.integers(op, a, b, ty),
        }
    }

    fn integers(&mut self, op: BinaryOp, a: Number, b: Number, ty: Type) -> Result<Number, Reason> {
        let lowered = lower_op(op)?;
        let compares = matches!(
            op,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        );
        let common = match compares {
            false => ty.clone(),
            // Pointers compare as addresses.
            true if a.ty.is_pointer() || b.ty.is_pointer() => Type::unsigned_long(),
            true => self.common(&a.ty, &b.ty)?,
        };
        let (width, signed) = scalar(&common)?;
        let shifts = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        let a = self.convert(a, &common)?.v;
        let b = match shifts {
            true => self.shift_count(b)?,
            false => self.convert(b, &common)?.v,
        };
        let v = self.emit(|to| Op::Binary {
            to,
            op: lowered,
            a,
            b,
            width,
            signed,
        })?;
        Ok(Number { v, ty })
    }

    /// A count that is still too large after it was cut to 32 bits, if it is too large.
    fn shift_count(&mut self, count: Number) -> Result<V, Reason> {
        let (width, _) = scalar(&count.ty)?;
        if width != Width::W8 {
            return Ok(count.v);
        }
        let most = self.constant(63)?;
        let large = self.wide(Binary::Gt, count.v, most)?;
        let bit = self.constant(64)?;
        let bit = self.wide(Binary::Mul, large, bit)?;
        self.wide(Binary::Or, count.v, bit)
    }

    /// The type that two integers are converted to.
    fn common(&self, a: &Type, b: &Type) -> Result<Type, Reason> {
        let sum = Expr::Binary(
            BinaryOp::Add,
            Box::new(placeholder(a)),
            Box::new(placeholder(b)),
        );
        self.type_of(&sum)
    }

    fn logical(&mut self, expr: &Expr) -> Result<Number, Reason> {
        let Expr::Binary(op, a, b) = expr else {
            return Err("no operator".into());
        };
        let ty = self.type_of(expr)?;
        let result = self.value()?;
        let a = self.truth(a)?;
        let no = self.is_zero(a, Width::W8)?;
        let decided = match op {
            BinaryOp::LogicalAnd => a,
            _ => no,
        };
        let out = self.jump_if_zero(decided)?;
        let b = self.truth(b)?;
        let no = self.is_zero(b, Width::W8)?;
        self.op(Op::Unary {
            to: result,
            op: Unary::IsZero,
            a: no,
            width: Width::W8,
            signed: false,
        })?;
        let end = self.jump()?;
        self.land(out);
        let value = u64::from(*op == BinaryOp::LogicalOr);
        self.op(Op::Const { to: result, value })?;
        self.land(end);
        Ok(Number { v: result, ty })
    }

    fn conditional(
        &mut self,
        condition: &Expr,
        a: &Expr,
        b: &Expr,
        expr: &Expr,
    ) -> Result<Number, Reason> {
        let _ = self.type_of(expr)?;
        let result = self.value()?;
        let condition = self.truth(condition)?;
        let to_b = self.jump_if_zero(condition)?;
        let a = self.decayed(a)?;
        self.copy(result, a.v)?;
        let end = self.jump()?;
        self.land(to_b);
        let b = self.decayed(b)?;
        self.copy(result, b.v)?;
        self.land(end);
        // gdb does not convert the branches to one type.
        match a.ty == b.ty {
            true => Ok(Number {
                v: result,
                ty: a.ty,
            }),
            false => Err(format!(
                "the branches of `?:' have the types `{}' and `{}'",
                a.ty, b.ty
            )),
        }
    }

    pub(super) fn copy(&mut self, to: V, from: V) -> Result<(), Reason> {
        self.op(Op::Extend {
            to,
            from,
            width: Width::W8,
            signed: false,
        })?;
        Ok(())
    }

    fn assign(&mut self, to: &Expr, from: Number) -> Result<Number, Reason> {
        if let Expr::Variable(name) = to {
            // An assigned variable takes its type from the value.
            let place = Place {
                at: Where::Variable(name.clone()),
                ty: from.ty.clone(),
            };
            self.put(&place, from)
        } else {
            let place = self.place(to)?;
            self.put(&place, from)
        }
    }

    /// Converts to the place's type, stores, and gives what was stored.
    fn put(&mut self, place: &Place, from: Number) -> Result<Number, Reason> {
        let place = match &place.at {
            Where::Variable(_) => &Place {
                ty: from.ty.clone(),
                ..place.clone()
            },
            _ => place,
        };
        let number = self.convert(from, &place.ty)?;
        self.store(place, number.v)?;
        Ok(number)
    }

    fn step(&mut self, how: IncDec, operand: &Expr) -> Result<Number, Reason> {
        let place = self.variable_or_place(operand)?;
        let old = self.fetch(&place)?;
        let op = if how.decrement {
            BinaryOp::Sub
        } else {
            BinaryOp::Add
        };
        let one = Number {
            v: self.constant(1)?,
            ty: Type::int(),
        };
        let sum = Expr::Binary(
            op,
            Box::new(operand.clone()),
            Box::new(placeholder(&one.ty)),
        );
        let ty = self.type_of(&sum)?;
        let new = self.arithmetic(op, old.clone(), one, ty)?;
        let new = self.put(&place, new)?;
        Ok(if how.post { old } else { new })
    }
}

/// Some expression of this type, to ask for the type of an operation on it.
fn placeholder(ty: &Type) -> Expr {
    Expr::Integer {
        value: 0,
        ty: ty.clone(),
    }
}

fn lower_op(op: BinaryOp) -> Result<Binary, Reason> {
    Ok(match op {
        BinaryOp::Add => Binary::Add,
        BinaryOp::Sub => Binary::Sub,
        BinaryOp::Mul => Binary::Mul,
        BinaryOp::Div => Binary::Div,
        BinaryOp::Rem => Binary::Rem,
        BinaryOp::BitAnd => Binary::And,
        BinaryOp::BitOr => Binary::Or,
        BinaryOp::BitXor => Binary::Xor,
        BinaryOp::Shl => Binary::Shl,
        BinaryOp::Shr => Binary::Shr,
        BinaryOp::Eq => Binary::Eq,
        BinaryOp::Ne => Binary::Ne,
        BinaryOp::Lt => Binary::Lt,
        BinaryOp::Le => Binary::Le,
        BinaryOp::Gt => Binary::Gt,
        BinaryOp::Ge => Binary::Ge,
        BinaryOp::LogicalAnd | BinaryOp::LogicalOr => return Err("no plain operator".into()),
    })
}
