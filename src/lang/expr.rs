//! The tree of an expression. Names are resolved by the parser: a register is a register, a
//! symbol has its address.

use super::registers::RegisterView;
use super::scope::{Fact, Special, Symbol};
use super::types::Type;

/// One expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    /// An integer, character or `true`/`false`: the value extended to 128 bits by its type's sign.
    Integer {
        /// The value.
        value: i128,
        /// Its type.
        ty: Type,
    },
    /// A floating-point number, as the bytes of its type.
    Float {
        /// The bytes, in the type's format.
        bytes: Vec<u8>,
        /// `float`, `double` or `long double`.
        ty: Type,
    },
    /// A string literal: its characters without the closing zero, each `element.size()` bytes.
    String {
        /// The bytes.
        bytes: Vec<u8>,
        /// The characters' type.
        element: Type,
    },
    /// `{1, 2, 3}`
    Array(Vec<Expr>),
    /// `$rdi`, `$eax`, `$xmm0`, `$pc`.
    Register(RegisterView),
    /// `$name`, without the `$`; also `$_` and `$__`. [`short_form`] tells what an unset one means.
    ///
    /// [`short_form`]: super::short_form
    Variable(String),
    /// `$`, `$$`, `$$n`: that many values back from the last one.
    HistoryBack(u64),
    /// `$n`.
    HistoryNumber(u64),
    /// `$_arg1`…: an ABI argument at a function's entry, from 1. Its type is `long`.
    Argument(u32),
    /// `$_retval`: the return value, where a function returns. Its type is `long`.
    Retval,
    /// `$_entry(EXPR)`: what it was at the entry of the call that ends here.
    Entry(Box<Expr>),
    /// `$_now` and its kin. The type is `long`, `int` for ids.
    Special(Special),
    /// `$_comm` and its kin: an array of characters.
    Fact(Fact),
    /// A symbol without debug info.
    Symbol {
        /// The name as it was written.
        name: String,
        /// What it stands for.
        symbol: Symbol,
    },
    /// A type where a value is expected (`sizeof`, `whatis`).
    Type(Type),
    /// `-x`, `*p`, `&v` …
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`, `a && b` …
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `++x`, `x--` …
    IncDec(IncDec, Box<Expr>),
    /// `a = b`
    Assign(Box<Expr>, Box<Expr>),
    /// `a += b`
    AssignOp(BinaryOp, Box<Expr>, Box<Expr>),
    /// `a ? b : c`
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a, b`
    Comma(Box<Expr>, Box<Expr>),
    /// `(type) x`, `static_cast<type> (x)`
    Cast(Type, Box<Expr>),
    /// `reinterpret_cast<type> (x)`
    Reinterpret(Type, Box<Expr>),
    /// `{type} address`
    At(Type, Box<Expr>),
    /// `sizeof x`: of a value or of an [`Expr::Type`]; its type is `int`, as gdb has it.
    SizeOf(Box<Expr>),
    /// `alignof (x)`
    AlignOf(Box<Expr>),
    /// `a[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `a @ n`
    Repeat(Box<Expr>, Box<Expr>),
    /// `a.name`
    Member(Box<Expr>, String),
    /// `p->name`
    Arrow(Box<Expr>, String),
    /// `$_be16(p)` and its kin.
    Internal(Internal, Vec<Expr>),
    /// `f(…)`: calls into the target are refused when they are evaluated.
    Call(Box<Expr>, Vec<Expr>),
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum UnaryOp {
    /// `+x`
    Plus,
    /// `-x`
    Neg,
    /// `~x`
    Not,
    /// `!x`
    LogicalNot,
    /// `*x`
    Deref,
    /// `&x`
    AddressOf,
}

/// Operators with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub(crate) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    LogicalAnd,
    LogicalOr,
}

/// `++x --x x++ x--`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct IncDec {
    /// `--`
    pub decrement: bool,
    /// Behind the operand: its value is the old one.
    pub post: bool,
}

/// Functions of the language that need no call into the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Internal {
    /// `$_be16(p)`: the big-endian number at an address; `unsigned short`.
    Be16,
    /// `$_be32(p)`: `unsigned int`.
    Be32,
    /// `$_be64(p)`: `unsigned long`.
    Be64,
    /// `$_streq(a, b)`: 1 if two strings are equal; `int`, as in gdb.
    Streq,
    /// `$_memeq(a, b, n)`: 1 if so many bytes are equal; `int`.
    Memeq,
    /// `$_regex(s, "re")`: 1 if a string begins with a match; `int`.
    Regex,
    /// `$_strlen(p)`: bytes in front of the zero; `int`.
    Strlen,
    /// `$_atoi(p[, n])`: the decimal number at the beginning of a text; `long`.
    Atoi,
    /// `$_random([n])`: from 0 to n-1, or to 2^31-1; `long`.
    Random,
}

impl Expr {
    /// Shows the expression and all its parts to `f`, the outer ones first.
    pub(crate) fn walk(&self, f: &mut dyn FnMut(&Expr)) {
        f(self);
        match self {
            Expr::Unary(_, a)
            | Expr::IncDec(_, a)
            | Expr::Cast(_, a)
            | Expr::Reinterpret(_, a)
            | Expr::At(_, a)
            | Expr::SizeOf(a)
            | Expr::AlignOf(a)
            | Expr::Entry(a)
            | Expr::Member(a, _)
            | Expr::Arrow(a, _) => a.walk(f),
            Expr::Binary(_, a, b)
            | Expr::Assign(a, b)
            | Expr::AssignOp(_, a, b)
            | Expr::Comma(a, b)
            | Expr::Index(a, b)
            | Expr::Repeat(a, b) => {
                a.walk(f);
                b.walk(f);
            }
            Expr::Conditional(a, b, c) => {
                a.walk(f);
                b.walk(f);
                c.walk(f);
            }
            Expr::Array(all) | Expr::Internal(_, all) => all.iter().for_each(|one| one.walk(f)),
            Expr::Call(function, all) => {
                function.walk(f);
                all.iter().for_each(|one| one.walk(f));
            }
            Expr::Integer { .. }
            | Expr::Float { .. }
            | Expr::String { .. }
            | Expr::Register(_)
            | Expr::Variable(_)
            | Expr::HistoryBack(_)
            | Expr::HistoryNumber(_)
            | Expr::Argument(_)
            | Expr::Retval
            | Expr::Special(_)
            | Expr::Fact(_)
            | Expr::Symbol { .. }
            | Expr::Type(_) => {}
        }
    }
}
