//! What an expression can reach.

use serde::{Deserialize, Serialize};

use crate::arch::{Register, Registers};

use super::error::Error;
use super::expr::Expr;
use super::value::Value;
pub(crate) use crate::record::wire::Unavailable;

/// Memory could not be read or written; `address` is the first byte that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Cannot access memory at address {address:#x}")]
pub(crate) struct Unreadable {
    /// The first byte that failed.
    pub address: u64,
}

/// Why something could not be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScopeError {
    /// No such memory, or it is not writable.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// There is no process.
    #[error("No registers.")]
    NoRegisters,
    /// Anything else, in the words to be shown (for instance that of `--read-only`).
    #[error("{0}")]
    Refused(String),
}

/// What can be asked about a hit itself, beside registers and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Special {
    /// CLOCK_MONOTONIC, nanoseconds.
    Now,
    /// CLOCK_REALTIME, nanoseconds since the epoch.
    Wall,
    /// The thread's id.
    Tid,
    /// The process's id.
    Pid,
    /// The processor it runs on.
    Cpu,
    /// A random number, 63 bits.
    Random,
}

/// What can be asked about a hit that is a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fact {
    /// `$_comm`: the thread's name.
    Comm,
    /// `$_func`: the function's name, demangled.
    Func,
    /// `$_probe`: the probe's place as it was typed.
    Probe,
}

/// How a place leaves its function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WayOut {
    /// It does not, as far as is known.
    #[default]
    None,
    /// It returns: the return value is in its register.
    Return,
    /// It jumps to another function, which will return in its place.
    Jump,
}

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SymbolKind {
    /// Code.
    Text,
    /// Data, read-only or not.
    Data,
    /// A function that chooses a function (STT_GNU_IFUNC).
    Ifunc,
    /// Thread-local data.
    Tls,
    /// An absolute number.
    Absolute,
}

/// A symbol without debug info.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Symbol {
    /// The run-time address; the file's address before there is a process.
    pub address: u64,
    /// Its size in bytes, 0 if not known.
    pub size: u64,
    /// What it stands for.
    pub kind: SymbolKind,
}

/// What an expression can reach: a live target at a stop, or the snapshot of a record. One that says
/// nothing of its own about memory, registers, the history or a hit has none.
pub(crate) trait Scope {
    /// Reads memory as the program would see it (without our own patches).
    fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), Unreadable> {
        let _ = buf;
        Err(Unreadable { address })
    }

    /// Writes memory.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ScopeError> {
        let _ = bytes;
        Err(Unreadable { address }.into())
    }

    /// The general registers; `None` without a process, which is gdb's `No registers.`
    fn registers(&self) -> Option<&Registers> {
        None
    }

    /// Changes one general register.
    fn set_register(&mut self, register: Register, value: u64) -> Result<(), ScopeError> {
        let _ = (register, value);
        Err(ScopeError::NoRegisters)
    }

    /// The bytes of an x87, SSE or AVX register or control register by gdb's name (`st0` 10
    /// bytes, `xmm0` 16, `ymm0` 32, `mxcsr` 4, `fctrl` 4 …); `None` where it is not known.
    fn vector_register(&self, name: &str) -> Option<Vec<u8>> {
        let _ = name;
        None
    }

    /// Changes an x87, SSE or AVX register.
    fn set_vector_register(&mut self, name: &str, bytes: &[u8]) -> Result<(), ScopeError> {
        let _ = bytes;
        Err(ScopeError::Refused(format!(
            "Register ${name} cannot be changed here."
        )))
    }

    /// A symbol by name: mangled, demangled with or without parameters.
    fn symbol(&self, name: &str) -> Option<Symbol>;

    /// The symbol at or before an address and the distance to it, as gdb prints it in
    /// `<name+off>`: demangled with parameters.
    fn symbol_at(&self, address: u64) -> Option<(String, u64)> {
        let _ = address;
        None
    }

    /// As [`Scope::symbol_at`] with the name as the linker knows it, mangled: gdb prints it in
    /// `print/a`, `x/a` and `x/i` (its `print asm-demangle` is off).
    fn linkage_symbol_at(&self, address: u64) -> Option<(String, u64)> {
        self.symbol_at(address)
    }

    /// Whether any module has debug info, which decides between two texts for an unknown name.
    /// Taken for granted where there is a process, unless the scope knows.
    fn has_symbols(&self) -> bool {
        self.registers().is_some()
    }

    /// A convenience variable, without its `$`; `None` is void.
    fn variable(&self, name: &str) -> Option<Value>;

    /// Changes a convenience variable. The value's contents have been read already.
    fn set_variable(&mut self, name: &str, value: Value) -> Result<(), ScopeError>;

    /// Value number `number` (from 1) of the value history.
    fn history(&self, number: usize) -> Option<Value> {
        let _ = number;
        None
    }

    /// How many values the history holds.
    fn history_length(&self) -> usize {
        0
    }

    /// Appends to the history; gives the number. The value's contents have been read already.
    fn push_history(&mut self, value: Value) -> usize {
        let _ = value;
        0
    }

    /// Facts about the hit: `$_now $_wall $_tid $_pid $_cpu`.
    fn special(&self, what: Special) -> Option<u64> {
        let _ = what;
        None
    }

    /// Texts about the hit: `$_comm $_func $_probe`.
    fn fact(&self, what: Fact) -> Option<String> {
        let _ = what;
        None
    }

    /// How the place of the hit leaves its function.
    fn way_out(&self) -> WayOut {
        WayOut::None
    }

    /// What `$_entry(EXPR)` is: the value that the expression had at the entry of the call that
    /// ends here, extended to 64 bits.
    fn at_entry(&self, expr: &Expr) -> Result<u64, Unavailable> {
        let _ = expr;
        Err(Unavailable::Entry)
    }

    /// What `$NAME` stands for at a named probe: `_msg.address`, `_topic` and the like. `None` where
    /// the name has no such meaning.
    fn piece(&self, name: &str) -> Option<Result<Expr, Error>> {
        let _ = name;
        None
    }

    /// A warning (gdb prints `warning: TEXT` on its error stream). Dropped unless overridden.
    fn warn(&self, text: &str) {
        let _ = text;
    }
}
