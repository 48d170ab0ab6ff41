//! The pieces of a place in the place of their names, while an expression is read.

use std::cell::Cell;
use std::sync::Arc;

use super::{Pieces, Shown};
use crate::lang::{self, Error, Expr, Kind, Scope, Type};

/// Pieces may use each other through so many others: each is parsed inside the one that uses it.
const MOST_DEPTH: usize = 8;
/// As much text may stand behind the names in one expression, bytes.
const MOST_TEXT: usize = 64 << 10;

/// The pieces that expressions of a place may use.
#[derive(Debug)]
pub(crate) struct Reading {
    pieces: Arc<Pieces>,
    /// A piece uses those in front of it only, so none uses itself.
    limit: Cell<usize>,
    /// How many pieces are being read, each inside the one before.
    depth: Cell<usize>,
    /// The text that they and those before them in the same expression had, bytes.
    text: Cell<usize>,
    /// What is wrong in one of them has its line in front.
    told: Cell<bool>,
    /// At a way out of the function, where the pieces are what they were at its entry.
    out: bool,
}

impl Reading {
    /// All of them.
    pub fn new(pieces: Arc<Pieces>, out: bool) -> Reading {
        let limit = Cell::new(pieces.list.len());
        Reading {
            pieces,
            limit,
            depth: Cell::new(0),
            text: Cell::new(0),
            told: Cell::new(false),
            out,
        }
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
        Some(match self.inside(index, scope) {
            Ok(expr) => Ok(typed(name, expr)),
            // The innermost has named its line.
            Err(error) if self.told.replace(true) => Err(error),
            Err(error) => Err(Error::new(format!("{}: {error}", piece.at))),
        })
    }

    /// Parses a piece with those in front of it.
    fn inside(&self, index: usize, scope: &dyn Scope) -> Result<Expr, Error> {
        let (limit, depth) = (self.limit.get(), self.depth.get());
        let text = &self.pieces.list[index].text;
        if depth == 0 {
            self.text.set(0);
            self.told.set(false);
        }
        self.text.set(self.text.get() + text.len());
        if depth >= MOST_DEPTH || self.text.get() > MOST_TEXT {
            let why = "The values of this place use each other too deeply.";
            return Err(Error::new(why));
        }
        self.limit.set(index);
        self.depth.set(depth + 1);
        let parsed = match self.out && depth == 0 {
            true => lang::parse(&format!("$_entry({text})"), scope),
            false => lang::parse(text, scope),
        };
        self.limit.set(limit);
        self.depth.set(depth);
        parsed
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
