//! A scope in which a file's expressions are read before there is any program.

use super::Reading;
use crate::arch::{Register, Registers};
use crate::lang::scope::Special;
use crate::lang::{Error, Expr, Scope, ScopeError, Symbol, SymbolKind, Unreadable, Value};

/// Every name may be a symbol; nothing has a value.
pub(super) struct Check {
    pub reading: Reading,
}

fn refused() -> ScopeError {
    ScopeError::Refused("Nothing is changed while a file is read.".into())
}

impl Scope for Check {
    fn read(&self, address: u64, _: &mut [u8]) -> Result<(), Unreadable> {
        Err(Unreadable { address })
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), ScopeError> {
        Err(refused())
    }

    fn registers(&self) -> Option<&Registers> {
        None
    }

    fn set_register(&mut self, _: Register, _: u64) -> Result<(), ScopeError> {
        Err(refused())
    }

    fn vector_register(&self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn symbol(&self, _: &str) -> Option<Symbol> {
        Some(Symbol {
            address: 0,
            size: 0,
            kind: SymbolKind::Data,
        })
    }

    fn symbol_at(&self, _: u64) -> Option<(String, u64)> {
        None
    }

    fn variable(&self, _: &str) -> Option<Value> {
        None
    }

    fn set_variable(&mut self, _: &str, _: Value) -> Result<(), ScopeError> {
        Err(refused())
    }

    fn history(&self, _: usize) -> Option<Value> {
        None
    }

    fn history_length(&self) -> usize {
        0
    }

    fn push_history(&mut self, _: Value) -> usize {
        0
    }

    fn special(&self, _: Special) -> Option<u64> {
        None
    }

    fn piece(&self, name: &str) -> Option<Result<Expr, Error>> {
        self.reading.piece(name, self)
    }
}
