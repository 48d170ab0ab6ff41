//! What stands in for a program while a text is only read.

use super::parse_type::starts_type;
use super::{Error, Expr, Scope, ScopeError, Symbol, SymbolKind, Value};

/// What `$NAME` stands for, parsed in the scope that asks.
type Pieces<'a> = &'a dyn Fn(&str, &dyn Scope) -> Option<Result<Expr, Error>>;

/// A scope in which every name is a symbol, and nothing can be reached.
pub(crate) struct AnyName<'a> {
    pieces: Pieces<'a>,
}

impl AnyName<'_> {
    /// Without a named probe.
    pub fn plain() -> AnyName<'static> {
        AnyName {
            pieces: &|_, _| None,
        }
    }

    /// At a named probe, with what [`Scope::piece`] gives there.
    pub fn with_pieces(pieces: Pieces<'_>) -> AnyName<'_> {
        AnyName { pieces }
    }
}

impl Scope for AnyName<'_> {
    fn symbol(&self, name: &str) -> Option<Symbol> {
        // Words of the language, which a symbol would hide.
        let own = matches!(name, "true" | "false") || starts_type(name);
        (!own).then_some(Symbol {
            address: 0,
            size: 0,
            kind: SymbolKind::Data,
        })
    }

    fn variable(&self, _: &str) -> Option<Value> {
        None
    }

    fn set_variable(&mut self, _: &str, _: Value) -> Result<(), ScopeError> {
        Ok(())
    }

    fn piece(&self, name: &str) -> Option<Result<Expr, Error>> {
        (self.pieces)(name, self)
    }
}
