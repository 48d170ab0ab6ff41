//! From an expression to its value, and to its type without a value.

use std::sync::Arc;

use crate::arch::{self, Argument};

use super::convert::{cast, decay, is_known, part, unknown};
use super::error::Error;
use super::expr::{BinaryOp, Expr, UnaryOp};
use super::operate;
use super::registers::{Home, RegisterView};
use super::scope::{Fact, Scope, Special, Symbol, SymbolKind, Unavailable, WayOut};
use super::types::{Kind, Type};
use super::value::{Place, Value};

/// Evaluates; assignments happen.
pub(crate) fn evaluate(expr: &Expr, scope: &mut dyn Scope) -> Result<Value, Error> {
    Evaluator {
        reach: Reach::Live(scope),
    }
    .value(expr)
}

/// The type that [`evaluate`] would give, without reading memory or changing anything.
pub(crate) fn type_of(expr: &Expr, scope: &dyn Scope) -> Result<Type, Error> {
    match expr {
        Expr::Symbol { symbol, .. } => Ok(symbol_type(symbol)),
        Expr::Type(ty) => Ok(ty.clone()),
        _ => {
            let reach = Reach::Typing(scope);
            Ok(Evaluator { reach }.value(expr)?.ty().clone())
        }
    }
}

/// The type of a symbol without debug info.
fn symbol_type(symbol: &Symbol) -> Type {
    match symbol.kind {
        SymbolKind::Text => Type::text(),
        SymbolKind::Ifunc => Type::ifunc(),
        SymbolKind::Tls => Type::tls(),
        SymbolKind::Data | SymbolKind::Absolute => Type::data(),
    }
}

/// Where values come from.
pub(super) enum Reach<'a> {
    /// Only types are wanted: constants are computed, nothing is read or changed.
    Typing(&'a dyn Scope),
    Live(&'a mut dyn Scope),
}

pub(super) struct Evaluator<'a> {
    pub(super) reach: Reach<'a>,
}

impl Evaluator<'_> {
    pub(super) fn scope(&self) -> &dyn Scope {
        match &self.reach {
            Reach::Typing(scope) => *scope,
            Reach::Live(scope) => &**scope,
        }
    }

    pub(super) fn typing(&self) -> bool {
        matches!(self.reach, Reach::Typing(_))
    }

    pub(super) fn value(&mut self, expr: &Expr) -> Result<Value, Error> {
        match expr {
            Expr::Integer { value, ty } => Ok(Value::from_u128(ty.clone(), *value as u128)),
            Expr::Float { bytes, ty } => Ok(Value::from_bytes(ty.clone(), bytes.as_slice())),
            Expr::String { bytes, element } => Ok(string(bytes, element)),
            Expr::Array(elements) => self.array(elements),
            Expr::Register(view) => self.register(view),
            Expr::Variable(name) => self.variable(name),
            Expr::HistoryBack(back) => self.history_back(*back),
            Expr::HistoryNumber(number) => self.history(*number),
            Expr::Argument(number) => self.argument(*number),
            Expr::Retval => self.retval(),
            Expr::Entry(expr) => self.entry(expr),
            Expr::Special(what) => self.special(*what),
            Expr::Fact(what) => Ok(self.fact(*what)),
            Expr::Symbol { name, symbol } => match symbol.kind {
                SymbolKind::Text | SymbolKind::Ifunc => {
                    Ok(Value::at(symbol_type(symbol), symbol.address))
                }
                _ => {
                    let known = self.scope().symbol_at(symbol.address);
                    let known = known.filter(|(_, offset)| *offset == 0);
                    let name = known.map_or_else(|| name.clone(), |(name, _)| name);
                    Err(Error::new(format!(
                        "'{name}' has unknown type; cast it to its declared type"
                    )))
                }
            },
            Expr::Type(_) => Err(Error::new("Attempt to use a type name as an expression")),
            Expr::Unary(op, operand) => self.unary(*op, operand),
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
            Expr::IncDec(how, operand) => self.step(*how, operand),
            Expr::Assign(left, right) => self.assign(left, right),
            Expr::AssignOp(op, left, right) => self.assign_op(*op, left, right),
            Expr::Conditional(condition, yes, no) => self.conditional(condition, yes, no),
            Expr::Comma(left, right) => {
                self.value(left)?;
                self.value(right)
            }
            Expr::Cast(ty, operand) => self.cast(ty, operand),
            Expr::Reinterpret(ty, operand) => self.cast(ty, operand),
            Expr::At(ty, address) => self.at(ty, address),
            Expr::SizeOf(operand) => self.size_of(operand),
            Expr::AlignOf(operand) => {
                let align = align(&self.static_type(operand)?);
                Ok(Value::from_u64(Type::unsigned_long(), align))
            }
            Expr::Index(base, index) => self.index(base, index),
            Expr::Repeat(first, count) => self.repeat(first, count),
            Expr::Member(base, name) => {
                let base = self.value(base)?;
                self.member(&base, name)
            }
            Expr::Arrow(base, name) => {
                let base = self.value(base)?;
                let structure = |ty: &Type| matches!(ty.kind(), Kind::Aggregate { .. });
                let base = match base.ty().kind() {
                    Kind::Pointer(to) if structure(to) => self.dereference(base)?,
                    Kind::Aggregate { .. } => base,
                    _ => {
                        return Err(Error::new(
                            "Attempt to extract a component of a value \
                             that is not a structure pointer.",
                        ));
                    }
                };
                self.member(&base, name)
            }
            Expr::Internal(function, arguments) => self.internal(*function, arguments),
            Expr::Call(function, arguments) => self.call(function, arguments),
        }
    }

    fn array(&mut self, elements: &[Expr]) -> Result<Value, Error> {
        let mut bytes = Vec::new();
        let mut first: Option<Type> = None;
        let mut known = true;
        for element in elements {
            let value = self.value(element)?;
            let ty = first.get_or_insert_with(|| value.ty().clone());
            if ty.size() != value.ty().size() {
                return Err(Error::new("array elements must all be the same size"));
            }
            known &= is_known(&value, self.typing());
            if known {
                bytes.extend_from_slice(&value.bytes(self.scope())?);
            }
        }
        let Some(ty) = first else {
            return Err(Error::new("bad array bounds (0, -1)"));
        };
        let ty = ty.array(elements.len() as u64);
        Ok(match known {
            true => Value::from_bytes(ty, bytes),
            false => unknown(ty),
        })
    }

    fn register(&self, view: &RegisterView) -> Result<Value, Error> {
        let live = self.scope().registers().is_some();
        let optional = view.name.starts_with(['k', 'y']);
        if !live {
            // Which of these there are is known of a running processor only.
            return match optional {
                true => Ok(Value::void()),
                false if self.typing() && !matches!(view.name, "pc" | "sp" | "fp" | "ps") => {
                    Ok(Value::lazy(view.ty.clone(), home(view)))
                }
                false => Err(Error::new("No registers.")),
            };
        }
        if view.home == Home::Vector
            && !self.typing()
            && self.scope().vector_register(view.name).is_none()
        {
            return match optional {
                true => Ok(Value::void()),
                false => Err(Error::new(format!(
                    "value of register ${} is not available",
                    view.name
                ))),
            };
        }
        Ok(Value::lazy(view.ty.clone(), home(view)))
    }

    fn variable(&mut self, name: &str) -> Result<Value, Error> {
        let place = Place::Variable {
            name: Arc::from(name),
            offset: 0,
        };
        match (self.scope().variable(name), super::short_form(name)) {
            (Some(value), _) => {
                let contents = match self.typing() {
                    true => None,
                    false => Some(value.bytes(self.scope())?),
                };
                let ty = value.ty().clone();
                // A void variable has no bytes worth asking for.
                Ok(Value::lazy(ty.clone(), place.clone()).part(ty, place, contents))
            }
            // Elsewhere it is a variable like others.
            (None, Some(stands_for))
                if stands_for != Expr::Retval || self.scope().way_out() != WayOut::None =>
            {
                self.value(&stands_for)
            }
            (None, _) => {
                let void = Value::void();
                Ok(void.part(Type::void(), place, void.contents().cloned()))
            }
        }
    }

    fn history_back(&self, back: u64) -> Result<Value, Error> {
        let length = self.scope().history_length() as u64;
        match (length.checked_sub(back), back) {
            (Some(number), _) if number > 0 => self.history(number),
            (_, 0) => Err(Error::new("The history is empty.")),
            _ => Err(Error::new(format!("History does not go back to $${back}."))),
        }
    }

    fn history(&self, number: u64) -> Result<Value, Error> {
        let found = usize::try_from(number)
            .ok()
            .and_then(|n| self.scope().history(n));
        found.ok_or_else(|| Error::new(format!("History has not yet reached ${number}.")))
    }

    /// The ABI's places at a function's entry: six registers, then the words above the return
    /// address.
    fn argument(&self, number: u32) -> Result<Value, Error> {
        let above = match arch::argument(number) {
            None => return Err(Error::new("Arguments are counted from 1: $_arg1.")),
            Some(Argument::Register(register)) => {
                let offset = 0;
                let place = Place::Register { register, offset };
                return Ok(Value::lazy(Type::long(), place));
            }
            Some(Argument::Stack(above)) => above,
        };
        if self.typing() {
            return Ok(Value::at(Type::long(), 0));
        }
        let registers = self.scope().registers();
        let registers = registers.ok_or_else(|| Error::new("No registers."))?;
        Ok(Value::at(Type::long(), registers.sp().wrapping_add(above)))
    }

    fn fact(&self, what: Fact) -> Value {
        match self.scope().fact(what) {
            Some(text) => string(text.as_bytes(), &Type::char()),
            // A thread's name has room for 16 bytes (TASK_COMM_LEN).
            None if self.typing() => unknown(Type::char().array(16)),
            None => Value::void(),
        }
    }

    fn retval(&self) -> Result<Value, Error> {
        let place = Place::Register {
            register: arch::RETURN_VALUE,
            offset: 0,
        };
        match self.scope().way_out() {
            _ if self.typing() => {}
            WayOut::Return => {}
            WayOut::Jump => return Err(Unavailable::RetvalAtJump.into()),
            WayOut::None => return Err(Unavailable::Retval.into()),
        }
        Ok(Value::lazy(Type::long(), place))
    }

    fn entry(&mut self, expr: &Expr) -> Result<Value, Error> {
        let ty = type_of(expr, self.scope())?;
        if self.typing() {
            return Ok(unknown(ty));
        }
        let bits = self.scope().at_entry(expr)?;
        Ok(Value::from_u64(ty, bits))
    }

    fn special(&self, what: Special) -> Result<Value, Error> {
        let ty = match what {
            Special::Now | Special::Wall | Special::Random => Type::long(),
            Special::Tid | Special::Pid | Special::Cpu => Type::int(),
        };
        if self.typing() {
            return Ok(unknown(ty));
        }
        Ok(match self.scope().special(what) {
            Some(number) => Value::from_u64(ty, number),
            None => Value::void(),
        })
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) -> Result<Value, Error> {
        match (op, operand) {
            (UnaryOp::AddressOf, Expr::Symbol { symbol, .. }) => {
                let pointer = symbol_type(symbol).pointer();
                Ok(Value::from_u64(pointer, symbol.address))
            }
            (UnaryOp::AddressOf, Expr::Unary(UnaryOp::Deref, pointer)) => {
                let value = decay(self.value(pointer)?)?;
                match value.ty().kind() {
                    Kind::Pointer(_) | Kind::Int { .. } | Kind::Char { .. } => Ok(value),
                    _ => self.dereference(value),
                }
            }
            (UnaryOp::AddressOf, _) => {
                let value = self.value(operand)?;
                match value.place() {
                    Place::Memory(address) => Ok(Value::from_u64(value.ty().pointer(), *address)),
                    _ if matches!(operand, Expr::String { .. }) && !self.typing() => decay(value),
                    // The type is right, and nothing more is asked for.
                    _ if self.typing() && matches!(operand, Expr::String { .. }) => {
                        Ok(unknown(value.ty().pointer()))
                    }
                    _ => Err(Error::new(
                        "Attempt to take address of value not located in memory.",
                    )),
                }
            }
            (UnaryOp::Deref, _) => {
                let value = self.value(operand)?;
                self.dereference(value)
            }
            _ => {
                let value = self.value(operand)?;
                operate::unary(op, value, self.scope(), self.typing())
            }
        }
    }

    /// `*p`; a plain integer is taken for an `int *`.
    fn dereference(&self, value: Value) -> Result<Value, Error> {
        if self.typing() && matches!(value.ty().kind(), Kind::Function { .. }) {
            return Err(Error::new(
                "Attempt to take contents of a non-pointer value.",
            ));
        }
        let value = decay(value)?;
        let ty = match value.ty().kind() {
            Kind::Pointer(to) if *to.kind() == Kind::Void => {
                return Err(Error::new("Attempt to dereference a generic pointer."));
            }
            Kind::Pointer(to) => to.clone(),
            Kind::Int { .. } | Kind::Char { .. } => Type::int(),
            _ => {
                return Err(Error::new(
                    "Attempt to take contents of a non-pointer value.",
                ));
            }
        };
        let address = match is_known(&value, self.typing()) {
            true => value.as_u64(self.scope())?,
            false => 0,
        };
        Ok(Value::at(ty, address))
    }

    fn truth(&mut self, expr: &Expr) -> Result<Option<bool>, Error> {
        let value = self.value(expr)?;
        match is_known(&value, self.typing()) {
            true => value.is_true(self.scope()).map(Some),
            false => Ok(None),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr) -> Result<Value, Error> {
        if matches!(op, BinaryOp::LogicalAnd | BinaryOp::LogicalOr) {
            let left = self.truth(a)?;
            let decides = op == BinaryOp::LogicalOr;
            if left == Some(decides) && !self.typing() {
                return Ok(Value::from_u64(Type::int(), u64::from(decides)));
            }
            return Ok(match (left, self.truth(b)?) {
                (Some(left), Some(right)) => {
                    let truth = if decides {
                        left || right
                    } else {
                        left && right
                    };
                    Value::from_u64(Type::int(), u64::from(truth))
                }
                _ => unknown(Type::int()),
            });
        }
        let (a, b) = (self.value(a)?, self.value(b)?);
        operate::binary(op, a, b, self.scope(), self.typing())
    }

    fn conditional(&mut self, condition: &Expr, yes: &Expr, no: &Expr) -> Result<Value, Error> {
        match self.truth(condition)? {
            Some(false) => self.value(no),
            _ => self.value(yes),
        }
    }

    fn cast(&mut self, ty: &Type, operand: &Expr) -> Result<Value, Error> {
        if let Expr::Symbol { symbol, .. } = operand
            && !matches!(symbol.kind, SymbolKind::Text | SymbolKind::Ifunc)
        {
            // A variable without a type is taken for what the cast says, not converted.
            let value = Value::at(ty.clone(), symbol.address);
            return match self.typing() {
                true => Ok(unknown(ty.clone())),
                false => Ok(Value::from_bytes(ty.clone(), value.bytes(self.scope())?)),
            };
        }
        let value = self.value(operand)?;
        cast(value, ty, self.scope(), self.typing())
    }

    fn at(&mut self, ty: &Type, address: &Expr) -> Result<Value, Error> {
        let address = self.value(address)?;
        match is_known(&address, self.typing()) {
            true => Ok(Value::at(ty.clone(), address.as_u64(self.scope())?)),
            false => Ok(Value::at(ty.clone(), 0)),
        }
    }

    fn static_type(&mut self, operand: &Expr) -> Result<Type, Error> {
        match operand {
            Expr::Type(ty) => Ok(ty.clone()),
            _ => {
                let reach = Reach::Typing(self.scope());
                Ok(Evaluator { reach }.value(operand)?.ty().clone())
            }
        }
    }

    fn size_of(&mut self, operand: &Expr) -> Result<Value, Error> {
        let ty = self.static_type(operand)?;
        let size = match ty.kind() {
            Kind::Reference(to) => to.size(),
            _ => ty.size(),
        };
        Ok(Value::from_u64(Type::int(), size))
    }

    fn index(&mut self, base: &Expr, index: &Expr) -> Result<Value, Error> {
        let (base, index) = (self.value(base)?, self.value(index)?);
        match base.ty().kind() {
            Kind::Pointer(_) => {
                let moved =
                    operate::binary(BinaryOp::Add, base, index, self.scope(), self.typing())?;
                self.dereference(moved)
            }
            Kind::Array {
                element,
                count,
                vector,
            } => {
                let (element, count) = (element.clone(), count.unwrap_or(0));
                if !is_known(&index, self.typing()) {
                    return Ok(part(&base, element, 0));
                }
                let at = index.as_i128(self.scope())? as u64;
                let inside = at < count;
                if !inside && (*vector || base.address().is_none()) {
                    return Err(Error::new("no such vector element"));
                }
                let offset = at.wrapping_mul(element.size());
                Ok(part(&base, element, offset))
            }
            _ => Err(Error::new(match base.ty().own_name() {
                Some(name) => format!("cannot subscript something of type `{name}'"),
                None => "cannot subscript requested type".to_owned(),
            })),
        }
    }

    fn repeat(&mut self, first: &Expr, count: &Expr) -> Result<Value, Error> {
        let (first, count) = (self.value(first)?, self.value(count)?);
        let Some(address) = first.address() else {
            return Err(Error::new(
                "Only values in memory can be extended with '@'.",
            ));
        };
        if !is_known(&count, self.typing()) {
            return Err(Error::new("The count behind '@' is not a constant."));
        }
        let count = count.as_i128(self.scope())? as i32;
        if count < 1 {
            return Err(Error::new(format!(
                "Invalid number {count} of repetitions."
            )));
        }
        Ok(Value::at(first.ty().array(count as u64), address))
    }

    fn member(&self, base: &Value, name: &str) -> Result<Value, Error> {
        let Kind::Aggregate { members, .. } = base.ty().kind() else {
            return Err(Error::new(
                "Attempt to extract a component of a value that is not a structure.",
            ));
        };
        let Some(member) = members.iter().find(|m| *m.name == *name) else {
            return Err(Error::new(format!("There is no member named {name}.")));
        };
        Ok(member_of(base, member))
    }

    /// Nothing is ever called in the target: the arguments and the function are still looked at,
    /// so that their errors come first.
    fn call(&mut self, function: &Expr, arguments: &[Expr]) -> Result<Value, Error> {
        let callee = self.value(function)?;
        for argument in arguments {
            self.value(argument)?;
        }
        if self.scope().registers().is_none() {
            return Err(Error::new("You can't do that without a process to debug."));
        }
        Err(Error::new(match (function, callee.ty().kind()) {
            (Expr::Symbol { name, .. }, _) => format!(
                "'{name}' has unknown return type; cast the call to its declared return type"
            ),
            (_, Kind::Int { .. } | Kind::Function { .. }) => {
                "Functions of the program are not called here.".to_owned()
            }
            _ => "Invalid data type for function to be called.".to_owned(),
        }))
    }
}

fn home(view: &RegisterView) -> Place {
    match view.home {
        Home::General { register, offset } => Place::Register { register, offset },
        Home::Vector => Place::Vector {
            name: view.name,
            offset: 0,
        },
    }
}

fn string(bytes: &[u8], element: &Type) -> Value {
    let size = element.size().max(1);
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len() + size as usize, 0);
    Value::from_bytes(element.array(bytes.len() as u64 / size), bytes)
}

fn align(ty: &Type) -> u64 {
    match ty.kind() {
        Kind::Array { element, .. } => align(element),
        Kind::Aggregate { members, .. } => members.iter().map(|m| align(&m.ty)).max().unwrap_or(1),
        _ => ty.size().clamp(1, 16),
    }
}

/// A member of a struct or union, bit fields too.
pub(super) fn member_of(base: &Value, member: &super::types::Member) -> Value {
    let ty = member.ty.clone();
    let Some(bits) = member.bit_size else {
        return part(base, ty, member.bit_offset / 8);
    };
    let first = member.bit_offset / 8;
    let bit = (member.bit_offset % 8) as u32;
    let bytes = (bit + bits).div_ceil(8);
    let of = super::place::advance(base.place(), first);
    let place = Place::Bits {
        of: Arc::new(of),
        bytes,
        bit,
        bits,
    };
    let contents = base.contents().and_then(|all| {
        let from = first as usize;
        let raw = super::number::extend(all.get(from..from + bytes as usize)?, false) as u128;
        let field = raw >> bit & u128::MAX.checked_shr(128 - bits.min(128)).unwrap_or(0);
        Some(Arc::from(
            &field.to_le_bytes()[..(ty.size() as usize).min(16)],
        ))
    });
    base.part(ty, place, contents)
}
