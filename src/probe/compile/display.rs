//! What showing a value reads: the memory that the record must hold.

use crate::lang::examine::{INSTRUCTION_MAX, Spec, check_letter, item_type, size_bytes};
use crate::lang::printf::{Class, Piece, Printf, STRING_MAX};
use crate::lang::registers::Home;
use crate::lang::strings::PRINT_MAX;
use crate::lang::{BinaryOp, Expr, Internal, Kind, Type, UnaryOp};
use crate::probe::program::{Binary, Op, V, Width};

use super::expression::scalar;
use super::{CAPTURE_MAX, Compiler, Examined, Reason};

/// The most strings of one `x/Ns`: each is an op of its own.
const STRINGS_MAX: u32 = 64;

impl Compiler<'_> {
    /// `print` and `output`.
    pub(super) fn show(&mut self, expr: &Expr, letter: Option<char>) -> Result<(), Reason> {
        check_letter(letter).map_err(|error| error.to_string())?;
        if let Expr::Repeat(element, count) = expr {
            return self.repeated(element, count);
        }
        let ty = self.type_of(expr)?;
        if let (Kind::Pointer(to), None | Some('s')) = (ty.kind(), letter)
            && let Some(unit) = character(to)
        {
            let number = self.number(expr)?;
            return self.string(number.v, unit, true).map(drop);
        }
        self.needs(expr)
    }

    /// Records what evaluating and fetching an expression reads.
    fn needs(&mut self, expr: &Expr) -> Result<(), Reason> {
        if let Expr::Repeat(element, count) = expr {
            return self.repeated(element, count);
        }
        let ty = self.type_of(expr)?;
        if scalar(&ty).is_ok() {
            match self.number(expr) {
                Ok(_) => return Ok(()),
                // A comparison of floats is an integer that cannot be computed here.
                Err(reason) if !has_parts(expr) || draws(expr) => return Err(reason),
                Err(_) => {}
            }
        }
        match expr {
            Expr::Integer { .. } | Expr::Float { .. } | Expr::String { .. } | Expr::Fact(_) => {
                Ok(())
            }
            Expr::SizeOf(_) | Expr::AlignOf(_) => Ok(()),
            Expr::Array(elements) => elements.iter().try_for_each(|element| self.needs(element)),
            Expr::Register(view) => match view.home {
                Home::General { .. } => Ok(()),
                Home::Vector => Err(format!("${} is a vector register", view.name)),
            },
            // A function is shown as its address, but its first byte is fetched with it.
            Expr::Symbol { .. } if !matches!(ty.kind(), Kind::Function { .. }) => {
                self.number(expr).map(drop)
            }
            Expr::Symbol { .. }
            | Expr::At(..)
            | Expr::Index(..)
            | Expr::Unary(UnaryOp::Deref, _) => {
                let address = self.own_address(expr)?;
                self.capture_type(address, &ty)
            }
            Expr::Unary(
                UnaryOp::Plus | UnaryOp::Neg | UnaryOp::Not | UnaryOp::LogicalNot,
                operand,
            ) => self.needs(operand),
            Expr::Cast(_, operand) | Expr::Reinterpret(_, operand) => {
                match self.type_of(operand)?.kind() {
                    Kind::Array { .. } => self.own_address(operand).map(drop),
                    _ => self.needs(operand),
                }
            }
            Expr::Binary(BinaryOp::LogicalAnd | BinaryOp::LogicalOr, ..) => {
                Err("floating point in a condition is computed by the front".into())
            }
            Expr::Binary(_, a, b) => {
                self.needs(a)?;
                self.needs(b)
            }
            Expr::Comma(a, b) => {
                self.needs(a)?;
                self.needs(b)
            }
            Expr::Variable(name) if self.scope.variable_type(name).is_none() => {
                self.number(expr).map(drop)
            }
            _ => Err(format!("values of type `{ty}' are computed by the front")),
        }
    }

    /// `ELEMENT@COUNT`. The count may be computed at the hit, so its type says nothing about it.
    fn repeated(&mut self, element: &Expr, count: &Expr) -> Result<(), Reason> {
        let size = self.type_of(element)?.size();
        let address = self.own_address(element)?;
        let count = self.number(count)?;
        let size = self.constant(size)?;
        let length = self.wide(Binary::Mul, count.v, size)?;
        self.capture(address, length)
    }

    fn capture_type(&mut self, address: V, ty: &Type) -> Result<(), Reason> {
        if ty.size() > CAPTURE_MAX.into() {
            return Err(format!("`{ty}' is larger than what a record holds"));
        }
        let length = self.constant(ty.size())?;
        self.capture(address, length)
    }

    /// Captures memory all of which will be read: a fault if its end cannot be.
    fn capture(&mut self, address: V, length: V) -> Result<(), Reason> {
        let none = self.jump_if_zero(length)?;
        self.op(Op::Capture {
            address,
            length,
            maximum: CAPTURE_MAX,
        })?;
        let one = self.constant(1)?;
        let maximum = self.constant(CAPTURE_MAX.into())?;
        let last = self.value()?;
        self.copy(last, length)?;
        let fits = self.wide(Binary::Gt, length, maximum)?;
        let within = self.jump_if_zero(fits)?;
        self.copy(last, maximum)?;
        self.land(within);
        let end = self.wide(Binary::Add, address, last)?;
        let last = self.wide(Binary::Sub, end, one)?;
        self.probe(last)?;
        self.land(none);
        Ok(())
    }

    /// Captures what is shown of a string; gives the address behind it. Not a fault where there is
    /// no memory: that is shown as text. The `last` of several needs one character more, which
    /// tells whether the string goes on.
    fn string(&mut self, address: V, unit: Width, last: bool) -> Result<V, Reason> {
        self.emit(|end| Op::CaptureString {
            end,
            address,
            maximum: PRINT_MAX as u32 + u32::from(last),
            unit,
        })
    }

    /// The arguments of a `printf`.
    pub(super) fn printf(&mut self, printf: &Printf) -> Result<(), Reason> {
        let classes = printf.pieces.iter().filter_map(|piece| match piece {
            Piece::Argument(_, class) => Some(*class),
            Piece::Literal(_) => None,
        });
        let mut strings = Vec::new();
        for (argument, class) in printf.arguments.iter().zip(classes) {
            let ty = self.type_of(argument)?;
            let unit = match class {
                Class::String => Some(Width::W1),
                Class::WideString => Some(Width::W4),
                _ => None,
            };
            match (ty.kind(), argument) {
                (_, Expr::String { .. } | Expr::Fact(_)) => {}
                (Kind::Array { .. } | Kind::Function { .. }, _) => {
                    let address = self.own_address(argument)?;
                    strings.extend(unit.map(|unit| (address, unit)));
                }
                _ => match unit {
                    Some(unit) => strings.push((self.number(argument)?.v, unit)),
                    None => self.needs(argument)?,
                },
            }
        }
        // All arguments are evaluated before the first string is read.
        for (address, unit) in strings {
            self.whole_string(address, unit)?;
        }
        Ok(())
    }

    /// Captures a string that must be readable to its end, unless its address is zero.
    fn whole_string(&mut self, address: V, unit: Width) -> Result<(), Reason> {
        let null = self.jump_if_zero(address)?;
        self.probe(address)?;
        let end = self.emit(|end| Op::CaptureString {
            end,
            address,
            maximum: STRING_MAX as u32,
            unit,
        })?;
        let width = self.constant(unit.bytes() as u64)?;
        let last = self.wide(Binary::Sub, end, width)?;
        let last = self.emit(|to| Op::Load {
            to,
            address: last,
            width: unit,
            signed: false,
            keep: false,
        })?;
        let complete = self.jump_if_zero(last)?;
        self.probe(end)?;
        self.land(complete);
        self.land(null);
        Ok(())
    }

    /// `hexdump`.
    pub(super) fn hexdump(&mut self, address: &Expr, length: &Expr) -> Result<(), Reason> {
        let address = self.address(address)?;
        let length = self.number(length)?;
        self.capture(address, length.v)
    }

    /// `x`.
    pub(super) fn examine(
        &mut self,
        spec: Option<Spec>,
        address: Option<&Expr>,
    ) -> Result<(), Reason> {
        let Some(Spec {
            count,
            format: Some(format),
            size,
        }) = spec
        else {
            return Err("what an earlier `x' left decides the format".into());
        };
        let Some(address) = address else {
            return Err("what an earlier `x' left decides the address".into());
        };
        let (_, size) = Spec {
            count,
            format: Some(format),
            size,
        }
        .resolve(format, self.size.unwrap_or('?'));
        let address = self.address(address)?;
        match format {
            's' => self.strings(address, size.unwrap_or('b'), count)?,
            'i' => self.instructions(address, count)?,
            _ => self.items(address, size.unwrap_or('b'), count)?,
        }
        self.size = match format {
            's' => Some('b'),
            _ => size.filter(|size| *size != '?'),
        };
        let known = if count == 0 {
            None
        } else {
            self.examined.clone()
        };
        if let Some(examined) = known {
            self.scope.learn("_", examined.ty.pointer());
            if examined.value {
                self.scope.learn("__", examined.ty);
            }
        }
        Ok(())
    }

    fn strings(&mut self, address: V, size: char, count: i32) -> Result<(), Reason> {
        let unit = match size {
            'h' => Width::W2,
            'w' => Width::W4,
            _ => Width::W1,
        };
        let count =
            u32::try_from(count).map_err(|_| "strings are searched backward by the front")?;
        if count > STRINGS_MAX {
            return Err(format!("more than {STRINGS_MAX} strings"));
        }
        let letter = if size == 'g' || size == '?' {
            'b'
        } else {
            size
        };
        let mut at = address;
        for left in (0..count).rev() {
            self.examined = Some(Examined {
                address: at,
                ty: item_type('s', letter),
                value: false,
            });
            at = self.string(at, unit, left == 0)?;
        }
        Ok(())
    }

    fn instructions(&mut self, address: V, count: i32) -> Result<(), Reason> {
        self.examined = (count == 1).then(|| Examined {
            address,
            ty: item_type('i', 'b'),
            value: false,
        });
        if count <= 0 {
            return Ok(());
        }
        let length = (count as u64).saturating_mul(INSTRUCTION_MAX as u64);
        self.bounded(length)?;
        let length = self.constant(length)?;
        self.op(Op::Capture {
            address,
            length,
            maximum: CAPTURE_MAX,
        })?;
        Ok(())
    }

    fn items(&mut self, address: V, size: char, count: i32) -> Result<(), Reason> {
        let number = u64::from(count.unsigned_abs());
        // A size that is not known here is at most that of a pointer.
        let length = number * size_bytes(size);
        self.bounded(length)?;
        if number == 0 {
            return Ok(());
        }
        if size == '?' {
            if count < 0 {
                return Err("what an earlier `x' left decides the size".into());
            }
            self.examined = None;
            let length = self.constant(length)?;
            self.op(Op::Capture {
                address,
                length,
                maximum: CAPTURE_MAX,
            })?;
            return Ok(());
        }
        let bytes = self.constant(length)?;
        let start = match count < 0 {
            true => self.wide(Binary::Sub, address, bytes)?,
            false => address,
        };
        self.capture(start, bytes)?;
        let last = self.constant(length - size_bytes(size))?;
        self.examined = Some(Examined {
            address: self.wide(Binary::Add, start, last)?,
            ty: item_type('x', size),
            value: true,
        });
        Ok(())
    }

    fn bounded(&self, length: u64) -> Result<(), Reason> {
        match length <= CAPTURE_MAX.into() {
            true => Ok(()),
            false => Err(format!("{length} bytes are more than what a record holds")),
        }
    }
}

/// The width of the characters that gdb shows behind a pointer to this type.
fn character(ty: &Type) -> Option<Width> {
    let text = matches!(ty.kind(), Kind::Char { .. }) || (ty.size() == 1 && ty.is_integral());
    Width::from_bytes(ty.size() as usize).filter(|width| text && *width != Width::W8)
}

/// Whether an expression's operands can be recorded where its value cannot be computed.
fn has_parts(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Unary(
            UnaryOp::Plus | UnaryOp::Neg | UnaryOp::Not | UnaryOp::LogicalNot,
            _
        ) | Expr::Cast(..)
            | Expr::Binary(..)
            | Expr::Comma(..)
    )
}

/// Whether a random number is drawn: the record must hold each once.
fn draws(expr: &Expr) -> bool {
    let mut draws = false;
    expr.walk(&mut |part| draws |= matches!(part, Expr::Internal(Internal::Random, _)));
    draws
}
