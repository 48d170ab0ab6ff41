//! Assignments: to memory, registers and convenience variables.

use std::sync::Arc;

use super::convert::{cast, decay, decayed};
use super::error::Error;
use super::eval::{Evaluator, Reach};
use super::expr::{BinaryOp, Expr, IncDec};
use super::operate;
use super::place::store;
use super::types::Type;
use super::value::{Place, Value};

fn not_an_lvalue() -> Error {
    Error::new("Left operand of assignment is not an lvalue.")
}

impl Evaluator<'_> {
    pub(super) fn assign(&mut self, left: &Expr, right: &Expr) -> Result<Value, Error> {
        if let Expr::Variable(name) = left {
            let value = self.value(right)?;
            return self.set_variable(name, value);
        }
        let target = self.value(left)?;
        let value = self.value(right)?;
        self.put(target, value)
    }

    fn set_variable(&mut self, name: &str, value: Value) -> Result<Value, Error> {
        let place = Place::Variable {
            name: Arc::from(name),
            offset: 0,
        };
        // An array in memory becomes a pointer; one that is nowhere stays what it is.
        let value = match value.address() {
            Some(_) => decay(value)?,
            None => value,
        };
        let ty = value.ty().clone();
        let Reach::Live(scope) = &mut self.reach else {
            return Ok(Value::lazy(ty, place));
        };
        let contents = value.bytes(&**scope)?;
        let kept = Value::from_bytes(ty.clone(), contents.clone());
        scope.set_variable(name, kept.clone())?;
        Ok(kept.part(ty, place, Some(contents)))
    }

    fn put(&mut self, target: Value, value: Value) -> Result<Value, Error> {
        if target.is_frozen() {
            return Err(Error::new(
                "Left operand of assignment is not a modifiable lvalue.",
            ));
        }
        let ty = target.ty().clone();
        let value = cast(value, &ty, self.scope(), self.typing())?;
        if !target.is_lvalue() {
            return Err(not_an_lvalue());
        }
        let Reach::Live(scope) = &mut self.reach else {
            return Ok(Value::lazy(ty, target.place().clone()));
        };
        let bytes = value.bytes(&**scope)?;
        store(target.place(), &bytes, &mut **scope)?;
        Ok(target.part(ty, target.place().clone(), Some(bytes)))
    }

    pub(super) fn assign_op(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
    ) -> Result<Value, Error> {
        let (target, value) = (self.value(left)?, self.value(right)?);
        let result = operate::binary(op, target.clone(), value, self.scope(), self.typing())?;
        match left {
            Expr::Variable(name) => self.set_variable(name, result),
            _ => self.put(target, result),
        }
    }

    pub(super) fn step(&mut self, how: IncDec, operand: &Expr) -> Result<Value, Error> {
        let target = self.value(operand)?;
        let ty = target.ty().clone();
        if !(ty.is_integral() || ty.is_float() || decayed(&ty).is_pointer()) {
            return Err(Error::new("Not a numeric type."));
        }
        let op = match how.decrement {
            true => BinaryOp::Sub,
            false => BinaryOp::Add,
        };
        let old = match self.typing() {
            true => target.clone(),
            false => target.fetched(self.scope())?,
        };
        let one = Value::from_u64(Type::int(), 1);
        let one = match ty.is_integral() || ty.is_float() {
            true => cast(one, &ty, self.scope(), self.typing())?,
            false => one,
        };
        let result = operate::binary(op, old.clone(), one, self.scope(), self.typing())?;
        let new = match operand {
            Expr::Variable(name) => self.set_variable(name, result)?,
            _ => self.put(target, result)?,
        };
        Ok(match how.post {
            true => old.part(ty, Place::None, old.contents().cloned()),
            false => new,
        })
    }
}
