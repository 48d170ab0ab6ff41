//! The language's own functions on the program's memory.

use crate::lang::functions::DIGITS;
use crate::lang::scope::{Fact, Scope, Special};
use crate::lang::{Expr, Internal};
use crate::probe::program::{Binary, Bytes, Op, Unary, V, Width};

use super::expression::Number;
use super::{Compiler, Reason};

impl Compiler<'_> {
    /// `$_streq(a, b)` and its kin.
    pub(super) fn internal(
        &mut self,
        function: Internal,
        arguments: &[Expr],
        expr: &Expr,
    ) -> Result<Number, Reason> {
        let keep = self.keep;
        let v = match (function, arguments) {
            (Internal::Be16, [address]) => self.big_endian(address, Width::W2)?,
            (Internal::Be32, [address]) => self.big_endian(address, Width::W4)?,
            (Internal::Be64, [address]) => self.big_endian(address, Width::W8)?,
            (Internal::Streq, [a, b]) => self.same(a, b, None)?,
            (Internal::Memeq, [a, b, length]) => self.same(a, b, Some(length))?,
            (Internal::Strlen, [of]) => {
                let of = self.bytes(of)?;
                self.emit(|to| Op::StringLength { to, of, keep })?
            }
            (Internal::Atoi, [of, most @ ..]) => {
                let of = self.bytes(of)?;
                let most = match most.first() {
                    Some(most) => self.number(most)?.v,
                    None => self.constant(DIGITS)?,
                };
                self.emit(|to| Op::Decimal { to, of, most, keep })?
            }
            (Internal::Random, below) => self.random(below.first())?,
            (Internal::Regex, _) => {
                return Err("regular expressions are matched by the front".into());
            }
            _ => return Err("an argument is missing".into()),
        };
        Ok(Number {
            v,
            ty: self.type_of(expr)?,
        })
    }

    fn big_endian(&mut self, address: &Expr, width: Width) -> Result<V, Reason> {
        let address = self.address(address)?;
        let a = self.load(address, width, false)?;
        self.emit(|to| Op::Unary {
            to,
            op: Unary::Swap,
            a,
            width,
            signed: false,
        })
    }

    fn same(&mut self, a: &Expr, b: &Expr, length: Option<&Expr>) -> Result<V, Reason> {
        let keep = self.keep;
        let (a, b) = (self.bytes(a)?, self.bytes(b)?);
        let length = length.map(|length| self.number(length)).transpose()?;
        let length = length.map(|length| length.v);
        self.emit(|to| Op::Same {
            to,
            a,
            b,
            length,
            keep,
        })
    }

    fn random(&mut self, below: Option<&Expr>) -> Result<V, Reason> {
        let below = below.map(|below| self.number(below)).transpose()?;
        let what = Special::Random;
        let random = self.emit(|to| Op::Special { to, what })?;
        match below {
            Some(below) => self.wide(Binary::Rem, random, below.v),
            None => {
                let bits = self.constant(0x7fff_ffff)?;
                self.wide(Binary::And, random, bits)
            }
        }
    }

    /// What an expression stands for where a string or memory is wanted.
    fn bytes(&mut self, expr: &Expr) -> Result<Bytes, Reason> {
        let text = match expr {
            Expr::String { bytes, element } if element.size() == 1 => bytes.clone(),
            Expr::Fact(Fact::Comm) => return Ok(Bytes::Comm),
            Expr::Fact(what) => match self.scope.fact(*what) {
                Some(text) => text.into_bytes(),
                None => return Err("the text is known at the hit only".into()),
            },
            _ => return Ok(Bytes::Memory(self.address(expr)?)),
        };
        let mut text = text;
        text.push(0);
        let literals = &mut self.program.literals;
        let known = literals.iter().position(|known| *known == text);
        let number = known.unwrap_or_else(|| {
            literals.push(text);
            literals.len() - 1
        });
        u16::try_from(number)
            .map(Bytes::Literal)
            .map_err(|_| "there are too many literals".into())
    }
}
