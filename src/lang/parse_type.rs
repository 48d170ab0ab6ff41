//! Types in expressions: `unsigned char *`, `int (*)[4]`, `void (*)(int)`.

use super::error::Error;
use super::lexer::Token;
use super::parse::Parser;
use super::types::{Kind, Qualifiers, Type};

/// What follows the base: the innermost comes last.
enum Part {
    Pointer(Qualifiers),
    Reference,
    Array(Option<u64>),
    Function(Vec<Type>, bool),
}

/// The built-in type with a name of one word. Those of `<stdint.h>`, `bool` and the wide
/// characters are known to gdb only where some module has debug info; here they always are.
pub(super) fn by_name(name: &str) -> Option<Type> {
    let integer = |size, signed| Some(Type::integer(name, size, signed));
    match name {
        "void" => Some(Type::void()),
        "char" => Some(Type::char()),
        "int" => Some(Type::int()),
        "short" => integer(2, true),
        "long" => integer(8, true),
        "float" => Some(Type::named(name, 4, Kind::Float)),
        "double" => Some(Type::double()),
        "bool" | "_Bool" => Some(Type::named(name, 1, Kind::Bool)),
        "int8_t" => Some(Type::named(name, 1, Kind::Char { signed: true })),
        "uint8_t" => Some(Type::named(name, 1, Kind::Char { signed: false })),
        "int16_t" => integer(2, true),
        "uint16_t" => integer(2, false),
        "int32_t" => integer(4, true),
        "uint32_t" => integer(4, false),
        "int64_t" | "ssize_t" | "ptrdiff_t" | "intptr_t" => integer(8, true),
        "uint64_t" | "size_t" | "uintptr_t" => integer(8, false),
        "__int128" => integer(16, true),
        "wchar_t" => Some(Type::named(name, 4, Kind::Char { signed: true })),
        "char16_t" => Some(Type::named(name, 2, Kind::Char { signed: false })),
        "char32_t" => Some(Type::named(name, 4, Kind::Char { signed: false })),
        _ => None,
    }
}

/// The words that types are made of.
#[derive(Default)]
struct Words {
    signed: bool,
    unsigned: bool,
    short: bool,
    long: u8,
    base: Option<String>,
    qualifiers: Qualifiers,
}

impl Words {
    /// Takes one word if it fits to those before.
    fn take(&mut self, word: &str) -> bool {
        let plain = self.base.is_none();
        match word {
            "const" => self.qualifiers.constant = true,
            "volatile" => self.qualifiers.volatile = true,
            "signed" if plain && !self.signed && !self.unsigned => self.signed = true,
            "unsigned" if plain && !self.signed && !self.unsigned => self.unsigned = true,
            "short" if plain && !self.short && self.long == 0 => self.short = true,
            "long" if plain && !self.short && self.long < 2 => self.long += 1,
            "double" if plain && self.long < 2 && !(self.signed || self.unsigned || self.short) => {
                self.base = Some(word.to_owned());
            }
            "int" if plain => self.base = Some(word.to_owned()),
            "char" | "__int128" if plain && !self.short && self.long == 0 => {
                self.base = Some(word.to_owned());
            }
            _ => {
                let alone =
                    plain && !(self.signed || self.unsigned || self.short) && self.long == 0;
                if !alone || by_name(word).is_none() {
                    return false;
                }
                self.base = Some(word.to_owned());
            }
        }
        true
    }

    fn finish(self) -> Type {
        let sign = if self.unsigned { "unsigned " } else { "" };
        let base = match (self.base.as_deref(), self.short, self.long) {
            (Some("double"), _, 1) => Type::named("long double", 16, Kind::Float),
            (Some("char"), ..) => match (self.signed, self.unsigned) {
                (true, _) => Type::named("signed char", 1, Kind::Char { signed: true }),
                (_, true) => Type::named("unsigned char", 1, Kind::Char { signed: false }),
                _ => Type::char(),
            },
            (Some("__int128"), ..) => Type::integer(&format!("{sign}__int128"), 16, !self.unsigned),
            (None | Some("int"), true, _) => {
                Type::integer(&format!("{sign}short"), 2, !self.unsigned)
            }
            (None | Some("int"), _, 1) => Type::integer(&format!("{sign}long"), 8, !self.unsigned),
            (None | Some("int"), _, 2) => {
                Type::integer(&format!("{sign}long long"), 8, !self.unsigned)
            }
            (None | Some("int"), ..) => match self.unsigned {
                true => Type::unsigned_int(),
                false => Type::int(),
            },
            (Some(name), ..) => by_name(name).unwrap_or_else(Type::int),
        };
        base.qualified(self.qualifiers)
    }
}

/// Whether a word can begin a type.
pub(super) fn starts_type(word: &str) -> bool {
    matches!(
        word,
        "const" | "volatile" | "signed" | "unsigned" | "struct" | "union" | "enum"
    ) || by_name(word).is_some()
}

impl Parser<'_> {
    /// Whether the current token begins a type (a symbol with such a name goes first).
    pub(super) fn at_type(&self) -> bool {
        match &self.token {
            Token::Name(word) => {
                starts_type(word) && (is_keyword(word) || self.scope.symbol(word).is_none())
            }
            _ => false,
        }
    }

    /// A type with its abstract declarator.
    pub(super) fn type_name(&mut self) -> Result<Type, Error> {
        let base = self.type_base()?;
        let mut parts = Vec::new();
        self.declarator(&mut parts, 0)?;
        parts.into_iter().try_fold(base, apply)
    }

    fn type_base(&mut self) -> Result<Type, Error> {
        let mut words = Words::default();
        let mut any = false;
        while let Token::Name(word) = &self.token {
            if matches!(word.as_str(), "struct" | "union" | "enum") && !any {
                return self.tagged();
            }
            if !words.take(word) {
                break;
            }
            any = true;
            self.advance()?;
        }
        match any {
            true => Ok(words.finish()),
            false => Err(self.syntax_error()),
        }
    }

    /// There is no debug info to look into.
    fn tagged(&mut self) -> Result<Type, Error> {
        let Token::Name(tag) = self.token.clone() else {
            return Err(self.syntax_error());
        };
        self.advance()?;
        let Token::Name(name) = self.token.clone() else {
            return Err(self.syntax_error());
        };
        Err(Error::new(format!("No {tag} type named {name}.")))
    }

    /// `*`, `&`, `(…)`, `[n]`, `(parameters)`: pushed so that applying them in order to the base
    /// gives the type.
    fn declarator(&mut self, parts: &mut Vec<Part>, depth: u32) -> Result<(), Error> {
        if depth > 20 || parts.len() > 40 {
            return Err(Error::new("The type is nested too deeply."));
        }
        loop {
            if self.eat("*")? {
                let mut qualifiers = Qualifiers::default();
                loop {
                    match &self.token {
                        Token::Name(w) if w == "const" => qualifiers.constant = true,
                        Token::Name(w) if w == "volatile" => qualifiers.volatile = true,
                        _ => break,
                    }
                    self.advance()?;
                }
                parts.push(Part::Pointer(qualifiers));
            } else if self.eat("&")? {
                parts.push(Part::Reference);
            } else {
                break;
            }
            if parts.len() > 40 {
                return Err(Error::new("The type is nested too deeply."));
            }
        }
        let mut inner = Vec::new();
        let mut tails = Vec::new();
        if self.is("(") {
            self.advance()?;
            if self.is("*") || self.is("&") || self.is("(") {
                self.declarator(&mut inner, depth + 1)?;
                self.expect(")")?;
            } else {
                tails.push(self.parameters()?);
            }
        }
        loop {
            if self.eat("[")? {
                tails.push(Part::Array(self.array_length()?));
            } else if self.is("(") {
                self.advance()?;
                tails.push(self.parameters()?);
            } else {
                break;
            }
            if tails.len() > 40 {
                return Err(Error::new("The type is nested too deeply."));
            }
        }
        parts.extend(tails.into_iter().rev());
        parts.extend(inner);
        Ok(())
    }

    fn array_length(&mut self) -> Result<Option<u64>, Error> {
        if self.eat("]")? {
            return Ok(None);
        }
        let Token::Number(text) = self.token.clone() else {
            return Err(self.syntax_error());
        };
        let (value, _) = super::literal::integer(&text)?;
        self.advance()?;
        self.expect("]")?;
        Ok(Some(value))
    }

    /// Behind the opening parenthesis.
    fn parameters(&mut self) -> Result<Part, Error> {
        let mut list = Vec::new();
        if self.eat(")")? {
            return Ok(Part::Function(list, false));
        }
        loop {
            list.push(self.deeper(Parser::type_name)?);
            if self.eat(")")? {
                break;
            }
            self.expect(",")?;
        }
        if let [only] = list.as_slice()
            && *only.kind() == Kind::Void
        {
            list.clear();
        }
        Ok(Part::Function(list, true))
    }
}

fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "void"
            | "char"
            | "int"
            | "short"
            | "long"
            | "float"
            | "double"
            | "const"
            | "volatile"
            | "signed"
            | "unsigned"
            | "struct"
            | "union"
            | "enum"
    )
}

fn apply(base: Type, part: Part) -> Result<Type, Error> {
    Ok(match part {
        Part::Pointer(qualifiers) => base.pointer().qualified(qualifiers),
        Part::Reference => base.reference(),
        Part::Array(None) => base.open_array(),
        Part::Array(Some(count)) => base.array(count),
        Part::Function(parameters, prototyped) => base.function(parameters, prototyped),
    })
}
