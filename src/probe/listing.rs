//! A program as text, one op a line.

use std::fmt;

use super::program::{Binary, Bytes, Op, Program, Special, Unary, V, Width};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, op) in self.ops.iter().enumerate() {
            writeln!(f, "{number:5}  {}", line(op))?;
        }
        for (number, literal) in self.literals.iter().enumerate() {
            writeln!(f, "       literal {number}: \"{}\"", literal.escape_ascii())?;
        }
        let writes = if self.capabilities.writes {
            ", writes"
        } else {
            ""
        };
        writeln!(f, "       {} values{writes}", self.values)
    }
}

fn line(op: &Op) -> String {
    match op {
        Op::Const { to, value } => format!("{to} = {value:#x}"),
        Op::Register { to, register } => format!("{to} = register {}", lower(register)),
        Op::Variable { to, variable } => format!("{to} = variable {variable}"),
        Op::Special { to, what } => format!("{to} = {}", special(*what)),
        Op::Load {
            to,
            address,
            width,
            signed,
            keep,
        } => {
            let keep = kept(*keep);
            format!("{to} = load {} [{address}]{keep}", kind(*width, *signed))
        }
        Op::Binary {
            to,
            op,
            a,
            b,
            width,
            signed,
        } => format!(
            "{to} = {a} {} {b} as {}",
            symbol(*op),
            kind(*width, *signed)
        ),
        Op::Unary {
            to,
            op,
            a,
            width,
            signed,
        } => {
            let name = match op {
                Unary::Neg => "-",
                Unary::Not => "~",
                Unary::IsZero => "!",
                Unary::Swap => "swap ",
            };
            format!("{to} = {name}{a} as {}", kind(*width, *signed))
        }
        Op::Extend {
            to,
            from,
            width: Width::W8,
            ..
        } => format!("{to} = {from}"),
        Op::Extend {
            to,
            from,
            width,
            signed,
        } => format!("{to} = {from} as {}", kind(*width, *signed)),
        Op::Capture {
            address,
            length,
            maximum,
        } => format!("capture [{address}], {length} bytes, at most {maximum}"),
        Op::CaptureString {
            end,
            address,
            maximum,
            unit,
        } => format!(
            "{end} = capture string [{address}], {} characters of {} bytes at most",
            maximum,
            unit.bytes()
        ),
        Op::Store {
            address,
            from,
            width,
        } => format!("store {} [{address}] = {from}", kind(*width, false)),
        Op::SetRegister { register, from } => format!("register {} = {from}", lower(register)),
        Op::SetVariable { variable, from } => format!("variable {variable} = {from}"),
        Op::Jump { target } => format!("jump {target}"),
        Op::JumpIfZero { condition, target } => format!("jump {target} if {condition} is 0"),
        Op::Same {
            to,
            a,
            b,
            length: None,
            keep,
        } => format!(
            "{to} = string {} is {}{}",
            bytes(*a),
            bytes(*b),
            kept(*keep)
        ),
        Op::Same {
            to,
            a,
            b,
            length: Some(length),
            keep,
        } => format!(
            "{to} = {length} bytes {} are {}{}",
            bytes(*a),
            bytes(*b),
            kept(*keep)
        ),
        Op::StringLength { to, of, keep } => {
            format!("{to} = string length of {}{}", bytes(*of), kept(*keep))
        }
        Op::Decimal { to, of, most, keep } => format!(
            "{to} = number of at most {most} characters {}{}",
            bytes(*of),
            kept(*keep)
        ),
        Op::Sample { of, all } => format!("sample {of} of {all}"),
        Op::Delay { ns } => format!("delay {ns} ns"),
        Op::Enter { function } => format!("enter {function:#x}"),
        Op::Remember {
            function,
            index,
            from,
        } => format!("entry {index} of {function:#x} = {from}"),
        Op::Leave { function } => format!("leave {function:#x}"),
        Op::Recall { to, index } => format!("{to} = entry {index}"),
        Op::Unavailable { what } => format!("fault: {what}"),
        Op::Hit => "hit".into(),
        Op::Command { index } => format!("command {index}:"),
    }
}

impl fmt::Display for V {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

fn bytes(of: Bytes) -> String {
    match of {
        Bytes::Memory(address) => format!("[{address}]"),
        Bytes::Literal(number) => format!("literal {number}"),
        Bytes::Comm => "$_comm".into(),
    }
}

fn kept(keep: bool) -> &'static str {
    if keep { ", keep" } else { "" }
}

fn lower(name: &impl fmt::Debug) -> String {
    format!("{name:?}").to_lowercase()
}

fn kind(width: Width, signed: bool) -> String {
    format!("{}{}", if signed { 's' } else { 'u' }, 8 * width.bytes())
}

fn special(what: Special) -> String {
    format!("$_{}", lower(&what))
}

fn symbol(op: Binary) -> &'static str {
    match op {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Rem => "%",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::Shl => "<<",
        Binary::Shr => ">>",
        Binary::Eq => "==",
        Binary::Ne => "!=",
        Binary::Lt => "<",
        Binary::Le => "<=",
        Binary::Gt => ">",
        Binary::Ge => ">=",
    }
}
