//! The program of a probe at one site: a small typed bytecode with forward jumps only.
//!
//! The compile step makes it from a condition and a body; each engine runs it or translates it.
//! It never prints: it decides whether this pass is a hit, collects what the body will want to
//! show (registers always, memory by [`Op::Load`] and [`Op::Capture`]), and changes what the body
//! changes. The front prints afterwards by running the body again over what was collected.

use serde::{Deserialize, Serialize};

use crate::arch::Register;
pub(crate) use crate::lang::scope::Special;
pub use crate::record::wire::{Fault, Unavailable};

/// A 64-bit value of a program, by number. Written before it is read, on every path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct V(pub u16);

/// How many bytes an operation works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Width {
    W1,
    W2,
    W4,
    W8,
}

impl Width {
    /// The width in bytes: 1, 2, 4 or 8.
    pub fn bytes(self) -> usize {
        match self {
            Width::W1 => 1,
            Width::W2 => 2,
            Width::W4 => 4,
            Width::W8 => 8,
        }
    }

    /// The width with that many bytes.
    pub fn from_bytes(bytes: usize) -> Option<Width> {
        Some(match bytes {
            1 => Width::W1,
            2 => Width::W2,
            4 => Width::W4,
            8 => Width::W8,
            _ => return None,
        })
    }

    /// `value` cut to this width and extended to 64 bits again.
    pub fn extend(self, value: u64, signed: bool) -> u64 {
        let shift = 64 - 8 * self.bytes() as u32;
        if signed {
            ((value << shift) as i64 >> shift) as u64
        } else {
            value << shift >> shift
        }
    }
}

/// Two-operand operations. The result is cut to the operation's width and extended by its sign;
/// comparisons give 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// Division by zero is a fault; the quotient is truncated towards zero, as in C.
    Div,
    Rem,
    And,
    Or,
    Xor,
    /// A count that is negative or at least the width gives what gdb gives: 0 (or the sign).
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// One-operand operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    /// `~`
    Not,
    /// `!`: 1 for zero, else 0.
    IsZero,
    /// Byte swap within the width (`$_be16` and its kin on a loaded value).
    Swap,
}

/// Something to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bytes {
    /// Memory at the address in this value.
    Memory(V),
    /// One of the program's literals.
    Literal(u16),
    /// The thread's name.
    Comm,
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// A constant.
    Const {
        /// Where it goes.
        to: V,
        /// The value.
        value: u64,
    },
    /// A general register of the tracee, as earlier [`Op::SetRegister`]s left it.
    Register {
        /// Where it goes.
        to: V,
        /// Which one.
        register: Register,
    },
    /// A convenience variable (an index into the shared variables).
    Variable {
        /// Where it goes.
        to: V,
        /// Which one.
        variable: u16,
    },
    /// A fact about the hit.
    Special {
        /// Where it goes.
        to: V,
        /// Which one.
        what: Special,
    },
    /// Little-endian memory, extended by `signed`. Unreadable memory is a fault.
    Load {
        /// Where it goes.
        to: V,
        /// From which address.
        address: V,
        /// How many bytes.
        width: Width,
        /// Extended by sign.
        signed: bool,
        /// The bytes go into the record too.
        keep: bool,
    },
    /// `a op b`, both first cut to `width` and extended by `signed`.
    Binary {
        /// Where it goes.
        to: V,
        /// What to do.
        op: Binary,
        /// Left operand.
        a: V,
        /// Right operand.
        b: V,
        /// Width of the operation.
        width: Width,
        /// Signed operation.
        signed: bool,
    },
    /// `op a`.
    Unary {
        /// Where it goes.
        to: V,
        /// What to do.
        op: Unary,
        /// Operand.
        a: V,
        /// Width of the operation.
        width: Width,
        /// Signed result.
        signed: bool,
    },
    /// `from` cut to `width` and extended (a C conversion between integers); also a plain copy
    /// with width 8, so that two paths can write one value.
    Extend {
        /// Where it goes.
        to: V,
        /// Operand.
        from: V,
        /// Width it is cut to.
        width: Width,
        /// Extended by sign.
        signed: bool,
    },
    /// 1 if two strings are equal, or so many bytes; else 0. At most
    /// [`MOST`](crate::lang::functions::MOST) bytes are looked at, none behind the first difference.
    Same {
        /// Where it goes.
        to: V,
        /// One of them.
        a: Bytes,
        /// The other.
        b: Bytes,
        /// How many bytes; strings without.
        length: Option<V>,
        /// The bytes go into the record too.
        keep: bool,
    },
    /// The bytes of a string in front of its zero.
    StringLength {
        /// Where it goes.
        to: V,
        /// The string.
        of: Bytes,
        /// The bytes go into the record too.
        keep: bool,
    },
    /// The decimal number at the beginning of a text.
    Decimal {
        /// Where it goes.
        to: V,
        /// The text.
        of: Bytes,
        /// At most so many characters.
        most: V,
        /// The bytes go into the record too.
        keep: bool,
    },
    /// Goes on for some passes and ends the program, without a hit's record, for the others.
    Sample {
        /// For so many …
        of: u32,
        /// … of so many.
        all: u32,
    },
    /// Holds the thread for so many nanoseconds before it goes on.
    Delay {
        /// How long.
        ns: u64,
    },
    /// Puts `length` bytes at `address` into the record, at most `maximum` (the cut is visible in
    /// the record). Memory that is unreadable from the first byte on is a fault; a readable
    /// beginning is kept and the rest is a fault of the reader in the front.
    Capture {
        /// From which address.
        address: V,
        /// How many bytes.
        length: V,
        /// At most this many.
        maximum: u32,
    },
    /// Puts a string of `unit`-wide characters at `address` into the record: up to and with its
    /// first zero, at most `maximum` characters. `end` is the address behind what was taken.
    CaptureString {
        /// The address behind the string.
        end: V,
        /// From which address.
        address: V,
        /// At most this many characters.
        maximum: u32,
        /// Bytes of a character.
        unit: Width,
    },
    /// Writes the low bytes of `from` to memory.
    Store {
        /// To which address.
        address: V,
        /// The value.
        from: V,
        /// How many bytes.
        width: Width,
    },
    /// Changes a general register of the tracee.
    SetRegister {
        /// Which one.
        register: Register,
        /// The whole new value.
        from: V,
    },
    /// Changes a convenience variable.
    SetVariable {
        /// Which one.
        variable: u16,
        /// The new value.
        from: V,
    },
    /// Continues at op number `target`, which is further on.
    Jump {
        /// The op's number; the number of ops is the end.
        target: u16,
    },
    /// Continues at op number `target` if `condition` is zero.
    JumpIfZero {
        /// The value looked at.
        condition: V,
        /// The op's number; the number of ops is the end.
        target: u16,
    },
    /// A call of a function begins: what an earlier one left behind at this place is dropped.
    Enter {
        /// The function's address.
        function: u64,
    },
    /// Keeps a value for the return of the call that begins here.
    Remember {
        /// The function's address.
        function: u64,
        /// Its place among the values of a call.
        index: u16,
        /// The value.
        from: V,
    },
    /// The call of a function ends: what it kept is there for [`Op::Recall`], and nowhere else.
    Leave {
        /// The function's address.
        function: u64,
    },
    /// A value that was kept at the entry of the call that ended; a fault if there is none.
    Recall {
        /// Where it goes.
        to: V,
        /// Its place among the values of a call.
        index: u16,
    },
    /// A fault: what is asked for is never there.
    Unavailable {
        /// What it is.
        what: Unavailable,
    },
    /// This pass is a hit (the condition, if there is one, was true): counts it; an ignore count
    /// that is not used up ends the program here.
    Hit,
    /// What follows belongs to the body's command number `index` (faults name it).
    Command {
        /// Position in the body, in the order of the text, nested ones included.
        index: u16,
    },
}

/// What a program may do beside reading, for the choice of engine and for `--read-only`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Capabilities {
    /// Writes memory or registers.
    pub writes: bool,
}

/// A compiled condition and body.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Program {
    /// The instructions.
    pub ops: Vec<Op>,
    /// How many values (`V`) it uses.
    pub values: u16,
    /// What it may do.
    pub capabilities: Capabilities,
    /// Texts that it compares with.
    pub literals: Vec<Vec<u8>>,
}
