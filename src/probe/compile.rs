//! From a condition and a body to the program of one site.
//!
//! Expressions of integers and pointers become bytecode. What a statement only shows is not
//! computed: the memory that showing it will read goes into the record, and the front shows it by
//! running the statement again. So every byte that such a run reads must be loaded with `keep` or
//! captured here, on exactly the path that the run will take, and a statement that would end the
//! body with an error there must be a fault here.
//!
//! The reader of the record lets the first value that was recorded of a byte, register or variable
//! win, and lays the body's own changes over it.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::arch::{ExitKind, Register, Registers};
use crate::lang::rate::Rate;
use crate::lang::scope::{Fact, Unavailable, WayOut};
use crate::lang::script::Position;
use crate::lang::statement::{Command, Statement};
use crate::lang::{Error, Expr, Scope, ScopeError, Symbol, Type, Value};

use super::interpret::{MAX_OPS, MAX_VALUES};
use super::program::{Op, Program, V, Width};

mod display;
mod expression;
mod functions;
mod place;
mod returns;
#[cfg(test)]
mod returns_tests;
#[cfg(test)]
mod tests;

pub(crate) use returns::way_out;

/// The convenience variables that programs share: 64-bit integers, each with one type.
pub(crate) trait Variables {
    /// The number of the variable `name` (without `$`), made known if need be; its values have the
    /// type `ty`. `None` if it cannot be shared: there are too many, or it is in use with another
    /// type.
    fn share(&mut self, name: &str, ty: &Type) -> Option<u16>;
}

/// What a site's program is made from.
pub(crate) struct Source<'a> {
    /// The condition.
    pub condition: Option<&'a Expr>,
    /// The commands, without a leading `silent`.
    pub body: &'a [Command],
    /// The thread always goes on (`trace`); otherwise only where the body says `continue`.
    pub continues: bool,
    /// The site is a function's first instruction, where its arguments are in their places.
    pub entry: bool,
    /// Only so many of the hits are looked at.
    pub sample: Option<Rate>,
    /// The site is a way out of a function.
    pub out: Option<Out<'a>>,
}

/// A way out of a function.
#[derive(Clone, Copy)]
pub(crate) struct Out<'a> {
    /// How it leaves.
    pub kind: ExitKind,
    /// The function's address.
    pub function: u64,
    /// All of the function's code: start and length of each part.
    pub parts: &'a [(u64, u64)],
    /// The expressions of `$_entry` that are kept at the function's entry, or why none is.
    pub entries: Result<&'a [Expr], Unavailable>,
}

/// Why the site has to stop and ask the front.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct NotCompiled {
    /// The command's index; `None` for the condition, or for the body as a whole.
    pub statement: Option<u16>,
    /// Where the command was written.
    pub at: Option<Position>,
    /// What cannot be done without the front.
    pub reason: String,
}

/// Why a piece cannot be lowered.
type Reason = String;

/// The most bytes of one capture.
pub(crate) const CAPTURE_MAX: u32 = 64 * 1024;

/// Compiles. `scope` is asked for symbols and the types of variables, nothing is read through it.
pub(crate) fn compile(
    source: &Source,
    scope: &dyn Scope,
    variables: &mut dyn Variables,
) -> Result<Program, NotCompiled> {
    Compiler::new(source.entry, source.out, scope, variables).site(source)
}

/// Compiles what keeps an expression of `$_entry` at the function's first instruction: number
/// `index` of `out.entries`. The first one tells that a call begins.
pub(crate) fn compile_entry(
    index: usize,
    out: Out,
    scope: &dyn Scope,
    variables: &mut dyn Variables,
) -> Result<Program, NotCompiled> {
    Compiler::new(true, None, scope, variables)
        .remember(index, out)
        .map_err(whole)
}

/// An item that `x` showed: where `$_` points.
#[derive(Clone)]
struct Examined {
    address: V,
    ty: Type,
    /// `$__` is its value; else it is void.
    value: bool,
}

struct Compiler<'a> {
    program: Program,
    scope: StaticScope<'a>,
    variables: &'a mut dyn Variables,
    entry: bool,
    out: Option<Out<'a>>,
    /// Loads go into the record: a body's do, a condition's do not.
    keep: bool,
    /// Jumps to the end of the program.
    ends: Vec<usize>,
    /// The last item of the last `x`, where that is known.
    examined: Option<Examined>,
    /// The last size letter of `x`, where that is known.
    size: Option<char>,
}

/// What is known at some point of the body and must be forgotten where paths meet.
struct Knowledge {
    examined: Option<Examined>,
    size: Option<char>,
    known: HashMap<String, Type>,
}

fn whole(reason: Reason) -> NotCompiled {
    NotCompiled {
        statement: None,
        at: None,
        reason,
    }
}

impl<'a> Compiler<'a> {
    fn new(
        entry: bool,
        out: Option<Out<'a>>,
        scope: &'a dyn Scope,
        variables: &'a mut dyn Variables,
    ) -> Compiler<'a> {
        Compiler {
            program: Program::default(),
            scope: StaticScope {
                inner: scope,
                known: RefCell::default(),
                registers: Registers::default(),
                out: out.map_or(WayOut::None, |out| returns::way_out(out.kind)),
            },
            variables,
            entry,
            out,
            keep: false,
            ends: Vec::new(),
            examined: None,
            size: None,
        }
    }
}

impl Compiler<'_> {
    fn site(&mut self, source: &Source) -> Result<Program, NotCompiled> {
        if let Some(out) = self.out {
            self.leaves(&out).map_err(whole)?;
        }
        if let Some(condition) = source.condition {
            let truth = self.truth(condition).map_err(whole)?;
            let jump = self.jump_if_zero(truth).map_err(whole)?;
            self.ends.push(jump);
        }
        self.op(Op::Hit).map_err(whole)?;
        if let Some(Rate { of, all }) = source.sample {
            self.op(Op::Sample { of, all }).map_err(whole)?;
        }
        self.keep = true;
        let falls_through = self.body(source.body)?;
        if falls_through && !source.continues {
            return Err(whole("the body does not end with `continue'".into()));
        }
        for jump in std::mem::take(&mut self.ends) {
            self.land(jump);
        }
        Ok(std::mem::take(&mut self.program))
    }

    /// Lowers commands; false if none of its paths reaches the end.
    fn body(&mut self, body: &[Command]) -> Result<bool, NotCompiled> {
        for command in body {
            let lowered = match &command.statement {
                Statement::If {
                    condition,
                    then,
                    otherwise,
                } => self.branch(command, condition, then, otherwise)?,
                statement => self
                    .statement(command.index, statement)
                    .map_err(|reason| at(command, reason))?,
            };
            if !lowered {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn branch(
        &mut self,
        command: &Command,
        condition: &Expr,
        then: &[Command],
        otherwise: &[Command],
    ) -> Result<bool, NotCompiled> {
        let here = |reason| at(command, reason);
        self.op(Op::Command {
            index: command.index,
        })
        .map_err(here)?;
        let truth = self.truth(condition).map_err(here)?;
        let to_otherwise = self.jump_if_zero(truth).map_err(here)?;
        let before = self.knowledge();
        let then_goes_on = self.body(then)?;
        self.restore(&before);
        let to_end = match then_goes_on && !otherwise.is_empty() {
            true => Some(self.jump().map_err(here)?),
            false => None,
        };
        self.land(to_otherwise);
        let otherwise_goes_on = self.body(otherwise)?;
        self.restore(&before);
        // What a branch may have changed is no longer known.
        self.examined = None;
        self.size = None;
        self.scope.known.borrow_mut().remove("_");
        self.scope.known.borrow_mut().remove("__");
        if let Some(jump) = to_end {
            self.land(jump);
        }
        Ok(then_goes_on || otherwise_goes_on)
    }

    fn statement(&mut self, index: u16, statement: &Statement) -> Result<bool, Reason> {
        self.op(Op::Command { index })?;
        match statement {
            Statement::Print { spec, value, .. } => match value {
                Some(value) => self.show(value, spec.and_then(|spec| spec.format))?,
                None => return Err("the value history is the front's".into()),
            },
            Statement::Output { letter, value } => self.show(value, *letter)?,
            Statement::Printf(printf) => self.printf(printf)?,
            Statement::Echo(_) => {}
            Statement::Examine { spec, address } => self.examine(*spec, address.as_ref())?,
            Statement::Set(expr) => self.effect(expr)?,
            Statement::Hexdump { address, length } => self.hexdump(address, length)?,
            Statement::Silent => {
                return Err("`silent' is a command only in front of all others".into());
            }
            Statement::Continue(None) => {
                let jump = self.jump()?;
                self.ends.push(jump);
                return Ok(false);
            }
            Statement::Delay(time) => {
                let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                self.op(Op::Delay { ns })?;
            }
            Statement::Return(value) => {
                self.skip(value.as_ref())?;
                return Ok(false);
            }
            Statement::Continue(Some(_)) => {
                return Err("`continue' with a count changes the breakpoint".into());
            }
            Statement::While { .. } | Statement::Break | Statement::Next => {
                return Err("a loop has no bound".into());
            }
            Statement::Invalid(error) => return Err(error.to_string()),
            Statement::Other(text) => return Err(format!("`{text}' is done by the front")),
            Statement::If { .. } => return Err("`if' is no simple command".into()),
        }
        Ok(true)
    }

    fn knowledge(&self) -> Knowledge {
        Knowledge {
            examined: self.examined.clone(),
            size: self.size,
            known: self.scope.known.borrow().clone(),
        }
    }

    fn restore(&mut self, before: &Knowledge) {
        self.examined = before.examined.clone();
        self.size = before.size;
        *self.scope.known.borrow_mut() = before.known.clone();
    }

    // Emitting.

    fn op(&mut self, op: Op) -> Result<usize, Reason> {
        if self.program.ops.len() >= MAX_OPS {
            return Err("the body is too long".into());
        }
        let writes = matches!(op, Op::Store { .. } | Op::SetRegister { .. });
        self.program.capabilities.writes |= writes;
        self.program.ops.push(op);
        Ok(self.program.ops.len() - 1)
    }

    fn value(&mut self) -> Result<V, Reason> {
        let number = self.program.values;
        if usize::from(number) >= MAX_VALUES {
            return Err("the body is too long".into());
        }
        self.program.values += 1;
        Ok(V(number))
    }

    /// Emits what `make` makes for a new value.
    fn emit(&mut self, make: impl FnOnce(V) -> Op) -> Result<V, Reason> {
        let to = self.value()?;
        self.op(make(to))?;
        Ok(to)
    }

    fn constant(&mut self, value: u64) -> Result<V, Reason> {
        self.emit(|to| Op::Const { to, value })
    }

    fn jump(&mut self) -> Result<usize, Reason> {
        self.op(Op::Jump { target: 0 })
    }

    fn jump_if_zero(&mut self, condition: V) -> Result<usize, Reason> {
        self.op(Op::JumpIfZero {
            condition,
            target: 0,
        })
    }

    /// The jump at `op` goes to what is emitted next.
    fn land(&mut self, op: usize) {
        let here = self.program.ops.len() as u16;
        match &mut self.program.ops[op] {
            Op::Jump { target } | Op::JumpIfZero { target, .. } => *target = here,
            _ => {}
        }
    }

    /// Loads `width` bytes that the record needs only if loads are kept at all.
    fn load(&mut self, address: V, width: Width, signed: bool) -> Result<V, Reason> {
        let keep = self.keep;
        self.emit(|to| Op::Load {
            to,
            address,
            width,
            signed,
            keep,
        })
    }

    /// A fault if the byte at `address` cannot be read.
    fn probe(&mut self, address: V) -> Result<V, Reason> {
        self.emit(|to| Op::Load {
            to,
            address,
            width: Width::W1,
            signed: false,
            keep: false,
        })
    }

    fn type_of(&self, expr: &Expr) -> Result<Type, Reason> {
        crate::lang::type_of(expr, &self.scope).map_err(|error| error.to_string())
    }
}

fn at(command: &Command, reason: Reason) -> NotCompiled {
    NotCompiled {
        statement: Some(command.index),
        at: Some(command.at.clone()),
        reason,
    }
}

/// The scope for typing: variables that the body has set so far have the types that it gave them.
struct StaticScope<'a> {
    inner: &'a dyn Scope,
    known: RefCell<HashMap<String, Type>>,
    /// A hit has registers, whatever the session has now; only their types are asked for.
    registers: Registers,
    out: WayOut,
}

impl StaticScope<'_> {
    /// The type of a convenience variable here; `None` is void.
    fn variable_type(&self, name: &str) -> Option<Type> {
        self.variable(name).map(|value| value.ty().clone())
    }

    fn learn(&self, name: &str, ty: Type) {
        self.known.borrow_mut().insert(name.into(), ty);
    }
}

fn refused() -> ScopeError {
    ScopeError::Refused("Nothing is changed while a body is compiled.".into())
}

impl Scope for StaticScope<'_> {
    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), ScopeError> {
        Err(refused())
    }

    fn registers(&self) -> Option<&Registers> {
        Some(&self.registers)
    }

    fn set_register(&mut self, _: Register, _: u64) -> Result<(), ScopeError> {
        Err(refused())
    }

    fn symbol(&self, name: &str) -> Option<Symbol> {
        self.inner.symbol(name)
    }

    fn symbol_at(&self, address: u64) -> Option<(String, u64)> {
        self.inner.symbol_at(address)
    }

    fn variable(&self, name: &str) -> Option<Value> {
        if let Some(ty) = self.known.borrow().get(name) {
            return Some(Value::from_u64(ty.clone(), 0));
        }
        match name {
            // What an earlier `x` left, at the prompt or in another hit.
            "_" | "__" => None,
            _ => self.inner.variable(name),
        }
    }

    fn set_variable(&mut self, _: &str, _: Value) -> Result<(), ScopeError> {
        Err(refused())
    }

    fn fact(&self, what: Fact) -> Option<String> {
        match what {
            Fact::Comm => None,
            Fact::Func | Fact::Probe => self.inner.fact(what),
        }
    }

    fn way_out(&self) -> WayOut {
        self.out
    }
}

/// The words of an error of typing.
fn words(error: Error) -> Reason {
    error.to_string()
}
