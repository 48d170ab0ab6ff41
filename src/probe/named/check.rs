//! A scope in which a file's expressions are read before there is any program.

use super::Reading;
use crate::arch::Register;
use crate::lang::{Error, Expr, Scope, ScopeError, Symbol, SymbolKind, Value};

/// Every name may be a symbol; nothing has a value.
pub(super) struct Check {
    pub reading: Reading,
}

fn refused() -> ScopeError {
    ScopeError::Refused("Nothing is changed while a file is read.".into())
}

impl Scope for Check {
    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), ScopeError> {
        Err(refused())
    }

    fn set_register(&mut self, _: Register, _: u64) -> Result<(), ScopeError> {
        Err(refused())
    }

    fn symbol(&self, _: &str) -> Option<Symbol> {
        Some(Symbol {
            address: 0,
            size: 0,
            kind: SymbolKind::Data,
        })
    }

    fn variable(&self, _: &str) -> Option<Value> {
        None
    }

    fn set_variable(&mut self, _: &str, _: Value) -> Result<(), ScopeError> {
        Err(refused())
    }

    fn piece(&self, name: &str) -> Option<Result<Expr, Error>> {
        self.reading.piece(name, self)
    }
}
