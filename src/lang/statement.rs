//! Simple commands as typed statements: parsed once, run over any [`Scope`].
//!
//! The same code shows a value at the prompt and prints a hit from its record. Which word is which
//! command is the command table's business: it hands over full names.

use std::io::Write;
use std::time::Duration;

use super::duration::duration;
use super::examine::{Disassemble, ExamineState, Failure, Spec, address_of, check_letter, examine};
use super::hexdump::hexdump;
use super::printf::Printf;
use super::script::Position;
use super::{
    BinaryOp, Error, Expr, Kind, Scope, UnaryOp, Value, evaluate, parse, parse_argument,
    print_value,
};

/// One command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    /// `print[/F] [EXPR]`, also `inspect` and `call`.
    Print {
        /// The format, if a slash was given; letters that were left out are those of the last one.
        spec: Option<Spec>,
        /// Without it, the last value.
        value: Option<Expr>,
        /// `call`: nothing for a `void`.
        quiet: bool,
    },
    /// `output[/F] EXPR`.
    Output {
        /// The format letter.
        letter: Option<char>,
        /// What to show.
        value: Expr,
    },
    /// `printf "FORMAT", …`.
    Printf(Printf),
    /// `echo TEXT`, its escapes read.
    Echo(Vec<u8>),
    /// `x[/NFU] [ADDRESS]`.
    Examine {
        /// What stood behind the slash.
        spec: Option<Spec>,
        /// Where; without it, behind what was shown last.
        address: Option<Expr>,
    },
    /// `set [var] EXPR`: evaluated for what it changes.
    Set(Expr),
    /// `hexdump ADDRESS, LENGTH`.
    Hexdump {
        /// Where.
        address: Expr,
        /// How many bytes.
        length: Expr,
    },
    /// `delay TIME`: the thread is held that long.
    Delay(Duration),
    /// `return [VALUE]`: the function is skipped.
    Return(Option<Expr>),
    /// `silent`
    Silent,
    /// `continue [N]`
    Continue(Option<Expr>),
    /// `if E … else … end`
    If {
        /// The condition.
        condition: Expr,
        /// Run when it is not zero.
        then: Vec<Command>,
        /// Run when it is zero.
        otherwise: Vec<Command>,
    },
    /// `while E … end`
    While {
        /// The condition.
        condition: Expr,
        /// What is repeated.
        body: Vec<Command>,
    },
    /// `loop_break`
    Break,
    /// `loop_continue`
    Next,
    /// Text that is wrong; running it gives the error, as gdb reads a command when it runs it.
    Invalid(Error),
    /// Anything else: the command table's.
    Other(String),
}

/// A statement of a body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Command {
    /// Position in the body, from 0, in the order of the text, nested ones included.
    pub index: u16,
    /// Where it was written.
    pub at: Position,
    /// What to do.
    pub statement: Statement,
}

/// Where control goes behind a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Flow {
    /// To the next one.
    Next,
    /// The body is over: the thread goes on, ignoring so many passes less one.
    Continue(u64),
    /// Out of the loop.
    Break,
    /// To the loop's condition.
    Again,
    /// The body is over for another reason, which the command table knows.
    Stop,
}

/// What statements work on.
pub(crate) struct Context<'a> {
    /// The target or the record.
    pub scope: &'a mut dyn Scope,
    /// Where the text goes.
    pub out: &'a mut dyn Write,
    /// What `x` and `print/F` remember.
    pub state: &'a mut ExamineState,
    /// The instruction decoder.
    pub disassemble: Disassemble<'a>,
}

/// Parses a command by its full name; `None` if it is none of ours. `arguments` is the rest of the
/// line, the slash and its letters included.
pub(crate) fn parse_statement(
    name: &str,
    arguments: &str,
    scope: &dyn Scope,
) -> Result<Option<Statement>, Error> {
    let arguments = arguments.trim_end_matches([' ', '\t']);
    Ok(Some(match name {
        "print" | "inspect" => parse_print(arguments, false, scope)?,
        "call" => parse_print(arguments, true, scope)?,
        "output" => parse_output(arguments, scope)?,
        "printf" => Statement::Printf(Printf::parse(arguments, scope)?),
        "echo" => Statement::Echo(unescape(arguments)),
        "x" => parse_examine(arguments, scope)?,
        "set" if is_expression(arguments) => parse_set(arguments, scope)?,
        "set" => match arguments.split_once([' ', '\t', '=']) {
            Some((word, rest)) if is_variable(word) && !rest.trim().is_empty() => {
                parse_set(arguments[word.len()..].trim_start(), scope)?
            }
            _ if is_variable(arguments.trim()) => return Err(required("expression to compute")),
            _ => return Ok(None),
        },
        "set variable" => parse_set(arguments, scope)?,
        "hexdump" => parse_hexdump(arguments, scope)?,
        "delay" => Statement::Delay(parse_delay(arguments)?),
        "return" if arguments.is_empty() => Statement::Return(None),
        "return" => Statement::Return(Some(parse(arguments, scope)?)),
        "silent" if arguments.is_empty() => Statement::Silent,
        "continue" if arguments.is_empty() => Statement::Continue(None),
        "continue" => Statement::Continue(Some(parse(arguments, scope)?)),
        _ => return Ok(None),
    }))
}

fn parse_delay(text: &str) -> Result<Duration, Error> {
    match text.is_empty() {
        true => Err(required("a time: 5ms")),
        false => duration(text).map_err(Error::new),
    }
}

/// `set`'s own word for an expression, which may be shortened.
fn is_variable(word: &str) -> bool {
    word.len() >= 2 && "variable".starts_with(word)
}

/// Whether what follows `set` can only be an expression: its settings begin with a letter.
fn is_expression(arguments: &str) -> bool {
    arguments.is_empty() || !arguments.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn required(what: &str) -> Error {
    Error::new(format!("Argument required ({what})."))
}

fn parse_set(text: &str, scope: &dyn Scope) -> Result<Statement, Error> {
    match text.is_empty() {
        true => Err(required("expression to compute")),
        false => Ok(Statement::Set(parse(text, scope)?)),
    }
}

/// A slash and its letters, checked as `print` and `output` want them.
fn parse_format<'t>(text: &'t str, command: &str) -> Result<(Option<Spec>, &'t str), Error> {
    let Some(letters) = text.trim_start().strip_prefix('/') else {
        return Ok((None, text));
    };
    let (spec, rest) = Spec::parse(letters);
    let complaint = if spec.size.is_some() {
        "Size letters are"
    } else if spec.count != 1 {
        "Item count other than 1 is"
    } else if spec.format == Some('i') {
        "Format letter \"i\" is"
    } else {
        return Ok((Some(spec), rest));
    };
    Err(Error::new(format!(
        "{complaint} meaningless in \"{command}\" command."
    )))
}

fn parse_print(text: &str, quiet: bool, scope: &dyn Scope) -> Result<Statement, Error> {
    // Options (`-elements 3 --`) do not matter to the values that exist here.
    let text = match text.split_once(" -- ") {
        Some((options, rest)) if text.starts_with('-') && !options.contains(['"', '\'']) => rest,
        _ => text,
    };
    let (spec, text) = parse_format(text, if quiet { "call" } else { "print" })?;
    let value = match text.trim().is_empty() {
        true => None,
        false => Some(parse(text, scope)?),
    };
    Ok(Statement::Print { spec, value, quiet })
}

fn parse_output(text: &str, scope: &dyn Scope) -> Result<Statement, Error> {
    if text.is_empty() {
        return Err(required("expression to compute"));
    }
    let (spec, text) = parse_format(text, "output")?;
    let letter = spec.and_then(|spec| spec.format);
    let value = parse(text, scope)?;
    Ok(Statement::Output { letter, value })
}

fn parse_examine(text: &str, scope: &dyn Scope) -> Result<Statement, Error> {
    let (spec, text) = match text.strip_prefix('/') {
        Some(letters) => {
            let (spec, rest) = Spec::parse(letters);
            (Some(spec), rest)
        }
        None => (None, text),
    };
    let address = match text.is_empty() {
        true => None,
        false => Some(parse(text, scope)?),
    };
    Ok(Statement::Examine { spec, address })
}

fn parse_hexdump(text: &str, scope: &dyn Scope) -> Result<Statement, Error> {
    const USAGE: &str = "hexdump needs an address and a length: hexdump ADDRESS, LENGTH";
    if text.is_empty() {
        return Err(Error::new(USAGE));
    }
    let (address, used) = parse_argument(text, scope)?;
    let rest = text.get(used..).unwrap_or_default().trim_start();
    if let (Expr::Repeat(first, count), "") = (&address, rest) {
        let size = Expr::SizeOf(first.clone());
        return Ok(Statement::Hexdump {
            address: Expr::Unary(UnaryOp::AddressOf, first.clone()),
            length: Expr::Binary(BinaryOp::Mul, count.clone(), Box::new(size)),
        });
    }
    let Some(rest) = rest.strip_prefix(',') else {
        return Err(Error::new(USAGE));
    };
    let length = parse(rest.trim(), scope)?;
    Ok(Statement::Hexdump { address, length })
}

/// Reads `echo`'s escapes; a backslash at the end protects the blanks in front of it.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some(escaped) = bytes.next() else { break };
        out.push(match escaped {
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'0'..=b'7' => {
                let mut value = u32::from(escaped - b'0');
                for _ in 0..2 {
                    match bytes.next_if(|byte| (b'0'..=b'7').contains(byte)) {
                        Some(digit) => value = value * 8 + u32::from(digit - b'0'),
                        None => break,
                    }
                }
                value as u8
            }
            other => other,
        });
    }
    out
}

impl Statement {
    /// Shows the statement's expressions to `f`, those of its bodies too.
    pub(crate) fn expressions<'s>(&'s self, f: &mut dyn FnMut(&'s Expr)) {
        match self {
            Statement::Print { value, .. } | Statement::Examine { address: value, .. } => {
                value.iter().for_each(f);
            }
            Statement::Output { value, .. } | Statement::Set(value) => f(value),
            Statement::Printf(printf) => printf.arguments.iter().for_each(f),
            Statement::Hexdump { address, length } => {
                f(address);
                f(length);
            }
            Statement::Continue(value) | Statement::Return(value) => value.iter().for_each(f),
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                f(condition);
                let all = then.iter().chain(otherwise);
                all.for_each(|command| command.statement.expressions(f));
            }
            Statement::While { condition, body } => {
                f(condition);
                body.iter()
                    .for_each(|command| command.statement.expressions(f));
            }
            Statement::Echo(_)
            | Statement::Delay(_)
            | Statement::Silent
            | Statement::Break
            | Statement::Next
            | Statement::Invalid(_)
            | Statement::Other(_) => {}
        }
    }

    /// Runs a statement that has no body and is the language's own.
    pub(crate) fn run(&self, context: &mut Context) -> Result<Flow, Failure> {
        match self {
            Statement::Print { spec, value, quiet } => {
                print(*spec, value.as_ref(), *quiet, context)?
            }
            Statement::Output { letter, value } => {
                let value = evaluate(value, context.scope)?.fetched(context.scope)?;
                output(&value, *letter, context)?;
            }
            Statement::Printf(printf) => printf.run(context.scope, context.out)?,
            Statement::Echo(text) => context.out.write_all(text)?,
            Statement::Examine { spec, address } => run_examine(*spec, address.as_ref(), context)?,
            Statement::Set(expr) => {
                if !changes(expr) {
                    let warning = "Expression is not an assignment (and might have no effect)";
                    context.scope.warn(warning);
                }
                evaluate(expr, context.scope)?;
            }
            Statement::Hexdump { address, length } => {
                let address = evaluate(address, context.scope)?.as_u64(context.scope)?;
                let length = evaluate(length, context.scope)?.as_u64(context.scope)?;
                hexdump(address, length, context.scope, context.out)?;
            }
            Statement::Continue(count) => {
                let count = match count {
                    Some(count) => evaluate(count, context.scope)?.as_u64(context.scope)?,
                    None => 1,
                };
                return Ok(Flow::Continue(count));
            }
            // The program has done it at the hit.
            Statement::Delay(_) => {}
            Statement::Return(value) => {
                if let Some(value) = value {
                    evaluate(value, context.scope)?.as_u64(context.scope)?;
                }
                return Ok(Flow::Continue(1));
            }
            Statement::Break => return Ok(Flow::Break),
            Statement::Next => return Ok(Flow::Again),
            Statement::Invalid(error) => return Err(error.clone().into()),
            Statement::Silent => {
                return Err(Error::new("Undefined command: \"silent\".  Try \"help\".").into());
            }
            Statement::If { .. } | Statement::While { .. } | Statement::Other(_) => {}
        }
        Ok(Flow::Next)
    }
}

/// Whether gdb takes the expression for one that changes something.
fn changes(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Assign(..) | Expr::AssignOp(..) | Expr::IncDec(..) | Expr::Comma(..)
    )
}

fn is_true(condition: &Expr, scope: &mut dyn Scope) -> Result<bool, Error> {
    evaluate(condition, scope)?.is_true(scope)
}

fn run_examine(
    spec: Option<Spec>,
    address: Option<&Expr>,
    context: &mut Context,
) -> Result<(), Failure> {
    // gdb remembers the count before it looks at the address.
    if let Some(spec) = spec {
        context.state.count = spec.count;
    }
    let address = match address {
        Some(address) => {
            let value = evaluate(address, context.scope)?;
            Some(address_of(&value, context.scope)?)
        }
        None => None,
    };
    examine(
        spec,
        address,
        context.state,
        context.scope,
        context.disassemble,
        context.out,
    )
}

fn print(
    spec: Option<Spec>,
    value: Option<&Expr>,
    quiet: bool,
    context: &mut Context,
) -> Result<(), Failure> {
    let mut letter = None;
    if let Some(spec) = spec {
        let format = spec.format.unwrap_or(context.state.format);
        context.state.format = format;
        letter = Some(format);
    }
    let value = match value {
        Some(expr) => evaluate(expr, context.scope)?,
        None => {
            let last = context.scope.history_length();
            let value = context.scope.history(last);
            value.ok_or_else(|| Error::new("The history is empty."))?
        }
    };
    if quiet && *value.ty().kind() == Kind::Void {
        return Ok(());
    }
    let value = value.for_history(context.scope)?;
    let number = context.scope.push_history(value.clone());
    write!(context.out, "${number} = ")?;
    check_letter(letter)?;
    let text = print_value(&value, letter, context.scope)?;
    writeln!(context.out, "{text}")?;
    Ok(())
}

fn output(value: &Value, letter: Option<char>, context: &mut Context) -> Result<(), Failure> {
    check_letter(letter)?;
    let text = print_value(value, letter, context.scope)?;
    write!(context.out, "{text}")?;
    Ok(())
}

/// What runs the commands that are not the language's own.
pub(crate) type Others<'o> = &'o mut dyn FnMut(&str, &mut Context) -> Result<Flow, Failure>;

/// Runs a body. An error comes with the index of the command that it ended at.
pub(crate) fn run_body(
    body: &[Command],
    context: &mut Context,
    others: Others,
) -> Result<Flow, (u16, Failure)> {
    for command in body {
        let fail = |failure: Failure| (command.index, failure);
        let flow = match &command.statement {
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                let condition =
                    is_true(condition, context.scope).map_err(|error| fail(error.into()))?;
                run_body(if condition { then } else { otherwise }, context, others)?
            }
            Statement::While { condition, body } => {
                run_while(command.index, condition, body, context, others)?
            }
            Statement::Other(text) => others(text, context).map_err(fail)?,
            statement => statement.run(context).map_err(fail)?,
        };
        if flow != Flow::Next {
            return Ok(flow);
        }
    }
    Ok(Flow::Next)
}

fn run_while(
    index: u16,
    condition: &Expr,
    body: &[Command],
    context: &mut Context,
    others: Others,
) -> Result<Flow, (u16, Failure)> {
    while is_true(condition, context.scope).map_err(|error| (index, error.into()))? {
        match run_body(body, context, others)? {
            Flow::Next | Flow::Again => {}
            Flow::Break => break,
            flow => return Ok(flow),
        }
    }
    Ok(Flow::Next)
}
