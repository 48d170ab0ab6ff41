//! The pieces of a place in the place of their names, while an expression is read.

use std::cell::Cell;
use std::sync::Arc;

use super::{Pieces, Shown};
use crate::lang::{self, Error, Expr, Kind, Scope, Type};

/// The pieces that expressions of a place may use.
#[derive(Debug)]
pub(crate) struct Reading {
    pieces: Arc<Pieces>,
    /// A piece uses those in front of it only, so none uses itself.
    limit: Cell<usize>,
    /// At a way out of the function, where the pieces are what they were at its entry.
    out: bool,
}

impl Reading {
    /// All of them.
    pub fn new(pieces: Arc<Pieces>, out: bool) -> Reading {
        let limit = Cell::new(pieces.list.len());
        Reading { pieces, limit, out }
    }

    /// What `$NAME` stands for. `None`: it is no piece's name.
    pub fn piece(&self, name: &str, scope: &dyn Scope) -> Option<Result<Expr, Error>> {
        let limit = self.limit.get();
        let found = self.pieces.list[..limit]
            .iter()
            .position(|piece| piece.name == name);
        let Some(index) = found else {
            let own = name.starts_with("_msg.") || matches!(name, "_topic" | "_stamp");
            return own.then(|| Err(self.unknown(name)));
        };
        let piece = &self.pieces.list[index];
        self.limit.set(index);
        let outermost = limit == self.pieces.list.len();
        let parsed = match self.out && outermost {
            true => lang::parse(&format!("$_entry({})", piece.text), scope),
            false => lang::parse(&piece.text, scope),
        };
        self.limit.set(limit);
        Some(match parsed {
            Ok(expr) => Ok(typed(name, expr)),
            Err(error) => Err(Error::new(format!("{}: {error}", piece.at))),
        })
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<String> = self.pieces.list[..self.limit.get()]
            .iter()
            .map(|piece| format!("${}", piece.name))
            .collect();
        let has = match names.as_slice() {
            [] => "nothing by a name".into(),
            names => names.join(", "),
        };
        Error::new(format!(
            "{} has no ${name} here; it has {has}.",
            self.pieces.probe
        ))
    }
}

/// An address is one of bytes, a length a number of them.
fn typed(name: &str, expr: Expr) -> Expr {
    let byte = Type::named("unsigned char", 1, Kind::Char { signed: false });
    match name {
        "_msg.address" => Expr::Cast(byte.pointer(), Box::new(expr)),
        "_msg.length" => Expr::Cast(Type::unsigned_long(), Box::new(expr)),
        _ => expr,
    }
}

/// Every piece, parsed in a scope that has them.
pub(crate) fn shown(pieces: &Pieces, scope: &dyn Scope) -> Result<Vec<Shown>, Error> {
    let all = pieces.list.iter().map(|piece| {
        let expr = lang::parse(&format!("${}", piece.name), scope)?;
        let letter = match piece.name.as_str() {
            "_msg.address" => Some('x'),
            _ => piece.letter,
        };
        Ok(Shown {
            name: piece.name.clone(),
            title: piece.title().into(),
            letter,
            expr,
        })
    });
    all.collect()
}
