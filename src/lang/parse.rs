//! From text to an expression.

use super::error::Error;
use super::expr::{BinaryOp, Expr, IncDec, Internal, UnaryOp};
use super::lexer::{Lexer, Token};
use super::literal;
use super::parse_type::by_name;
use super::registers;
use super::scope::{Fact, Scope, Special};
use super::types::Type;

/// More operators than this in one expression are refused: trees are walked recursively.
const MOST_NODES: usize = 1000;
/// As deep as parentheses and the like may be nested.
const MOST_DEPTH: usize = 100;
/// Longer texts are refused.
const MOST_TEXT: usize = 64 << 10;

/// Parses a whole text as one expression (commas are the comma operator).
pub(crate) fn parse(text: &str, scope: &dyn Scope) -> Result<Expr, Error> {
    let mut parser = Parser::new(text, false, scope)?;
    let expr = parser.whole()?;
    match parser.lexer.rest(parser.lexer.start).is_empty() {
        true => Ok(expr),
        false => Err(Error::new("Junk after end of expression.")),
    }
}

/// Parses one argument of a list: stops at a comma outside parentheses or at the word `if`.
/// Gives how many bytes of `text` were used; what follows begins with the comma.
pub(crate) fn parse_argument(text: &str, scope: &dyn Scope) -> Result<(Expr, usize), Error> {
    let mut parser = Parser::new(text, true, scope)?;
    let expr = parser.whole()?;
    Ok((expr, parser.lexer.start))
}

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(super) token: Token,
    pub(super) scope: &'a dyn Scope,
    depth: usize,
    nodes: usize,
}

/// Binary operators and how tightly they bind; `@` stands between shifts and sums.
fn binary_operator(text: &str) -> Option<(u8, BinaryOp)> {
    Some(match text {
        "||" => (3, BinaryOp::LogicalOr),
        "&&" => (4, BinaryOp::LogicalAnd),
        "|" => (5, BinaryOp::BitOr),
        "^" => (6, BinaryOp::BitXor),
        "&" => (7, BinaryOp::BitAnd),
        "==" => (8, BinaryOp::Eq),
        "!=" => (8, BinaryOp::Ne),
        "<" => (9, BinaryOp::Lt),
        ">" => (9, BinaryOp::Gt),
        "<=" => (9, BinaryOp::Le),
        ">=" => (9, BinaryOp::Ge),
        "<<" => (10, BinaryOp::Shl),
        ">>" => (10, BinaryOp::Shr),
        "+" => (12, BinaryOp::Add),
        "-" => (12, BinaryOp::Sub),
        "*" => (13, BinaryOp::Mul),
        "/" => (13, BinaryOp::Div),
        "%" => (13, BinaryOp::Rem),
        _ => return None,
    })
}

const ASSIGN: u8 = 1;
const CONDITIONAL: u8 = 2;
const REPEAT: u8 = 11;

impl<'a> Parser<'a> {
    fn new(text: &'a str, comma_ends: bool, scope: &'a dyn Scope) -> Result<Parser<'a>, Error> {
        if text.len() > MOST_TEXT {
            return Err(Error::new("The expression is too long."));
        }
        let mut lexer = Lexer::new(text, comma_ends);
        let token = lexer.next()?;
        Ok(Parser {
            lexer,
            token,
            scope,
            depth: 0,
            nodes: 0,
        })
    }

    pub(super) fn advance(&mut self) -> Result<(), Error> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    pub(super) fn is(&self, punct: &str) -> bool {
        matches!(self.token, Token::Punct(p) if p == punct)
    }

    pub(super) fn eat(&mut self, punct: &str) -> Result<bool, Error> {
        let found = self.is(punct);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, punct: &str) -> Result<(), Error> {
        match self.eat(punct)? {
            true => Ok(()),
            false => Err(self.syntax_error()),
        }
    }

    pub(super) fn syntax_error(&self) -> Error {
        let near = self.lexer.rest(self.lexer.start);
        Error::new(format!("A syntax error in expression, near `{near}'."))
    }

    fn count(&mut self) -> Result<(), Error> {
        self.nodes += 1;
        match self.nodes > MOST_NODES {
            true => Err(Error::new("The expression is too complex.")),
            false => Ok(()),
        }
    }

    fn node(&mut self, expr: Expr) -> Result<Expr, Error> {
        self.count()?;
        Ok(expr)
    }

    pub(super) fn deeper<T>(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.depth >= MOST_DEPTH {
            return Err(Error::new("The expression is nested too deeply."));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn whole(&mut self) -> Result<Expr, Error> {
        let expr = match self.at_type() {
            true => Expr::Type(self.type_name()?),
            false => self.comma()?,
        };
        match self.token {
            Token::End => Ok(expr),
            _ => Err(self.syntax_error()),
        }
    }

    fn comma(&mut self) -> Result<Expr, Error> {
        let mut expr = self.expression(ASSIGN)?;
        while self.eat(",")? {
            let right = self.expression(ASSIGN)?;
            expr = self.node(Expr::Comma(Box::new(expr), Box::new(right)))?;
        }
        Ok(expr)
    }

    /// An expression of operators that bind at least as tightly as `least`. As in gdb any
    /// expression may stand to the left of `=`; whether it is an lvalue shows when it runs.
    fn expression(&mut self, least: u8) -> Result<Expr, Error> {
        self.deeper(|p| p.expression_at(least))
    }

    fn expression_at(&mut self, least: u8) -> Result<Expr, Error> {
        let mut left = self.unary()?;
        while let Token::Punct(punct) = self.token {
            let boxed = Box::new;
            left = match punct {
                "=" if least <= ASSIGN => {
                    self.advance()?;
                    let right = self.expression(ASSIGN)?;
                    self.node(Expr::Assign(boxed(left), boxed(right)))?
                }
                "?" if least <= CONDITIONAL => {
                    self.advance()?;
                    let yes = self.expression(ASSIGN)?;
                    self.expect(":")?;
                    let no = self.expression(CONDITIONAL)?;
                    self.node(Expr::Conditional(boxed(left), boxed(yes), boxed(no)))?
                }
                "@" if least <= REPEAT => {
                    self.advance()?;
                    let right = self.expression(REPEAT + 1)?;
                    self.node(Expr::Repeat(boxed(left), boxed(right)))?
                }
                _ => match (binary_operator(punct), punct.strip_suffix('=')) {
                    (Some((level, op)), _) if level >= least => {
                        self.advance()?;
                        let right = self.expression(level + 1)?;
                        self.node(Expr::Binary(op, boxed(left), boxed(right)))?
                    }
                    (None, Some(op)) if least <= ASSIGN && binary_operator(op).is_some() => {
                        let op = binary_operator(op).map_or(BinaryOp::Add, |(_, op)| op);
                        self.advance()?;
                        let right = self.expression(ASSIGN)?;
                        self.node(Expr::AssignOp(op, boxed(left), boxed(right)))?
                    }
                    _ => return Ok(left),
                },
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Error> {
        self.deeper(Self::unary_at)
    }

    fn unary_at(&mut self) -> Result<Expr, Error> {
        let op = match self.token {
            Token::Punct("-") => UnaryOp::Neg,
            Token::Punct("+") => UnaryOp::Plus,
            Token::Punct("!") => UnaryOp::LogicalNot,
            Token::Punct("~") => UnaryOp::Not,
            Token::Punct("*") => UnaryOp::Deref,
            Token::Punct("&") => UnaryOp::AddressOf,
            Token::Punct("++" | "--") => {
                let decrement = self.is("--");
                self.advance()?;
                let operand = self.unary()?;
                let how = IncDec {
                    decrement,
                    post: false,
                };
                return self.node(Expr::IncDec(how, Box::new(operand)));
            }
            Token::Punct("{") => return self.braces(),
            Token::Punct("(") => return self.parenthesis(),
            Token::Name(ref word)
                if word == "sizeof" || word == "alignof" || word == "_Alignof" =>
            {
                let size = word == "sizeof";
                return self.size_of(size);
            }
            _ => {
                let primary = self.primary()?;
                return self.postfix(primary);
            }
        };
        self.advance()?;
        let operand = self.unary()?;
        self.node(Expr::Unary(op, Box::new(operand)))
    }

    /// `{type} address` or an array `{1, 2, 3}`.
    fn braces(&mut self) -> Result<Expr, Error> {
        self.advance()?;
        if self.at_type() {
            let ty = self.type_name()?;
            self.expect("}")?;
            let address = self.unary()?;
            return self.node(Expr::At(ty, Box::new(address)));
        }
        if self.is("}") {
            return Err(Error::new("bad array bounds (0, -1)"));
        }
        let mut elements = vec![self.expression(ASSIGN)?];
        while self.eat(",")? {
            elements.push(self.expression(ASSIGN)?);
        }
        self.expect("}")?;
        let array = self.node(Expr::Array(elements))?;
        self.postfix(array)
    }

    /// A cast or an expression in parentheses.
    fn parenthesis(&mut self) -> Result<Expr, Error> {
        self.advance()?;
        if !self.at_type() {
            let inside = self.comma()?;
            self.expect(")")?;
            return self.postfix(inside);
        }
        let ty = self.type_name()?;
        self.expect(")")?;
        let operand = self.unary()?;
        self.node(Expr::Cast(ty, Box::new(operand)))
    }

    fn size_of(&mut self, size: bool) -> Result<Expr, Error> {
        self.advance()?;
        let operand = if self.is("(") {
            self.advance()?;
            if self.at_type() {
                let ty = self.type_name()?;
                self.expect(")")?;
                Expr::Type(ty)
            } else {
                let inside = self.comma()?;
                self.expect(")")?;
                self.postfix(inside)?
            }
        } else if size {
            self.unary()?
        } else {
            return Err(self.syntax_error());
        };
        let operand = Box::new(operand);
        self.node(match size {
            true => Expr::SizeOf(operand),
            false => Expr::AlignOf(operand),
        })
    }

    fn postfix(&mut self, mut expr: Expr) -> Result<Expr, Error> {
        while let Token::Punct(punct) = self.token {
            let inner = Box::new;
            expr = match punct {
                "[" => {
                    self.advance()?;
                    let index = self.comma()?;
                    self.expect("]")?;
                    Expr::Index(inner(expr), inner(index))
                }
                "." | "->" => {
                    self.advance()?;
                    let Token::Name(name) = self.token.clone() else {
                        return Err(self.syntax_error());
                    };
                    self.advance()?;
                    match punct {
                        "." => Expr::Member(inner(expr), name),
                        _ => Expr::Arrow(inner(expr), name),
                    }
                }
                "++" | "--" => {
                    let decrement = punct == "--";
                    self.advance()?;
                    Expr::IncDec(
                        IncDec {
                            decrement,
                            post: true,
                        },
                        inner(expr),
                    )
                }
                "(" => {
                    let arguments = self.arguments()?;
                    call(expr, arguments)?
                }
                _ => break,
            };
            expr = self.node(expr)?;
        }
        Ok(expr)
    }

    /// From the opening parenthesis on.
    fn arguments(&mut self) -> Result<Vec<Expr>, Error> {
        self.expect("(")?;
        let mut list = Vec::new();
        if self.eat(")")? {
            return Ok(list);
        }
        loop {
            list.push(self.expression(ASSIGN)?);
            if self.eat(")")? {
                return Ok(list);
            }
            self.expect(",")?;
        }
    }

    fn primary(&mut self) -> Result<Expr, Error> {
        self.count()?;
        match self.token.clone() {
            Token::Number(text) => {
                let expr = literal::number(&text)?;
                self.advance()?;
                Ok(expr)
            }
            Token::Char { value, prefix } => {
                let ty = character_type(prefix);
                let value = match ty.size() {
                    1 => i128::from(value as u8 as i8),
                    _ => i128::from(value),
                };
                self.advance()?;
                Ok(Expr::Integer { value, ty })
            }
            Token::String { .. } => self.strings(),
            Token::Dollar(name) => {
                self.advance()?;
                self.dollar(name)
            }
            Token::Quoted(name) => self.symbol(name.clone(), name),
            Token::Name(word) => self.word(word),
            Token::Punct("::") => {
                self.advance()?;
                match self.token.clone() {
                    Token::Name(word) => self.word(word),
                    _ => Err(self.syntax_error()),
                }
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// `$name`, with what a named probe says about its message.
    fn dollar(&mut self, name: String) -> Result<Expr, Error> {
        if name == "_msg" {
            return self.message();
        }
        match self.piece(&name) {
            Some(piece) => piece,
            None => Ok(dollar(name)),
        }
    }

    /// What a name stands for counts as if it were written here: pieces that use each other twice would
    /// double at each step.
    fn piece(&mut self, name: &str) -> Option<Result<Expr, Error>> {
        let piece = self.scope.piece(name)?;
        Some(piece.and_then(|expr| {
            let mut nodes = 0;
            expr.walk(&mut |_| nodes += 1);
            self.nodes += nodes;
            self.count().map(|()| expr)
        }))
    }

    /// `$_msg.NAME`; alone it is the message's bytes.
    fn message(&mut self) -> Result<Expr, Error> {
        let Some(address) = self.scope.piece("_msg.address") else {
            return match self.scope.variable("_msg") {
                Some(_) => Ok(dollar("_msg".into())),
                None => Err(Error::new(
                    "$_msg is what arrives at a named probe, and this is none (`info probes' lists them).",
                )),
            };
        };
        if self.eat(".")? {
            let Token::Name(field) = self.token.clone() else {
                return Err(self.syntax_error());
            };
            let piece = self.piece(&format!("_msg.{field}"));
            let piece = piece.ok_or_else(|| self.syntax_error())??;
            self.advance()?;
            return Ok(piece);
        }
        let address = address?;
        if self.is("[") {
            return Ok(address);
        }
        let length = self.piece("_msg.length");
        let length = length.ok_or_else(|| self.syntax_error())??;
        let first = Expr::Unary(UnaryOp::Deref, Box::new(address));
        self.node(Expr::Repeat(Box::new(first), Box::new(length)))
    }

    /// Neighbouring literals are one string.
    fn strings(&mut self) -> Result<Expr, Error> {
        let mut bytes = Vec::new();
        let mut element = Type::char();
        while let Token::String { text, prefix } = self.token.clone() {
            if bytes.is_empty() {
                element = character_type(prefix);
            }
            let size = element.size() as usize;
            for c in text {
                bytes.extend_from_slice(&c.to_le_bytes()[..size.min(4)]);
            }
            self.advance()?;
        }
        Ok(Expr::String { bytes, element })
    }

    fn word(&mut self, word: String) -> Result<Expr, Error> {
        match word.as_str() {
            "static_cast" | "reinterpret_cast" | "const_cast" | "dynamic_cast" => {
                return self.named_cast(&word);
            }
            "true" | "false" if self.scope.symbol(&word).is_none() => {
                self.advance()?;
                let value = i128::from(word == "true");
                let ty = Type::bool();
                return Ok(Expr::Integer { value, ty });
            }
            _ => {}
        }
        if self.at_type() {
            return Err(self.syntax_error());
        }
        let full = self.qualified(&word);
        self.symbol(full, word)
    }

    /// The longest name that is a symbol: `ns::f(int)`, `ns::f`. The lexer stands behind it.
    fn qualified(&mut self, first: &str) -> String {
        let start = self.lexer.start;
        let mut name = first.to_owned();
        let mut end = start + first.len();
        while let Some(rest) = self.lexer.rest(end).strip_prefix("::") {
            let len = rest
                .find(|c: char| !(c == '_' || c == '~' || c.is_ascii_alphanumeric()))
                .unwrap_or(rest.len());
            if len == 0 {
                break;
            }
            end += 2 + len;
            name = self.lexer.rest(start)[..end - start].to_owned();
        }
        if name.len() == first.len() {
            return name;
        }
        if let Some(parameters) = balanced(self.lexer.rest(end)) {
            let with = format!("{name}{parameters}");
            if self.scope.symbol(&with).is_some() {
                self.lexer.seek(end + parameters.len());
                return with;
            }
        }
        if self.scope.symbol(&name).is_some() {
            self.lexer.seek(end);
            return name;
        }
        first.to_owned()
    }

    /// The symbol `name`; `first` is the word that an error names.
    fn symbol(&mut self, name: String, first: String) -> Result<Expr, Error> {
        let Some(symbol) = self.scope.symbol(&name) else {
            return Err(match self.scope.has_symbols() {
                true => Error::new(format!("No symbol \"{first}\" in current context.")),
                false => Error::new("No symbol table is loaded.  Use the \"file\" command."),
            });
        };
        self.advance()?;
        Ok(Expr::Symbol { name, symbol })
    }

    fn named_cast(&mut self, word: &str) -> Result<Expr, Error> {
        self.advance()?;
        self.expect("<")?;
        let ty = self.type_name()?;
        self.expect(">")?;
        self.expect("(")?;
        let operand = Box::new(self.comma()?);
        self.expect(")")?;
        let cast = match word {
            "reinterpret_cast" => Expr::Reinterpret(ty, operand),
            _ => Expr::Cast(ty, operand),
        };
        self.postfix(cast)
    }
}

/// `(…)` at the start of a text, parentheses balanced.
fn balanced(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (at > 0).then(|| &text[..=at]);
        }
    }
    None
}

fn character_type(prefix: &str) -> Type {
    match prefix {
        "L" => by_name("wchar_t"),
        "u" => by_name("char16_t"),
        "U" => by_name("char32_t"),
        _ => None,
    }
    .unwrap_or_else(Type::char)
}

/// `f(…)`: one of the language's own functions, or a call that will be refused.
fn call(function: Expr, arguments: Vec<Expr>) -> Result<Expr, Error> {
    let internal = match &function {
        Expr::Variable(name) => super::functions::by_name(name),
        _ => None,
    };
    if matches!(&function, Expr::Variable(name) if name == "_entry") {
        return entry(arguments);
    }
    match internal {
        None => Ok(Expr::Call(Box::new(function), arguments)),
        Some((internal, least, most)) if (least..=most).contains(&arguments.len()) => {
            Ok(Expr::Internal(internal, arguments))
        }
        Some((Internal::Be16 | Internal::Be32 | Internal::Be64, ..)) => {
            Err(Error::new("You must provide one argument: the address."))
        }
        Some((_, least, most)) if least == most => Err(Error::new(format!(
            "The function takes {least} argument{}.",
            if least == 1 { "" } else { "s" }
        ))),
        Some((_, least, most)) => Err(Error::new(format!(
            "The function takes {least} to {most} arguments."
        ))),
    }
}

/// `$_entry(EXPR)`
fn entry(mut arguments: Vec<Expr>) -> Result<Expr, Error> {
    let (Some(argument), true) = (arguments.pop(), arguments.is_empty()) else {
        return Err(Error::new("You must provide one argument: an expression."));
    };
    let mut nested = false;
    argument.walk(&mut |part| nested |= matches!(part, Expr::Entry(_) | Expr::Retval));
    match nested {
        true => Err(Error::new(
            "What is only known at the way out cannot be asked for at the entry.",
        )),
        false => Ok(Expr::Entry(Box::new(argument))),
    }
}

/// What `$name` is: history, a fact about the hit, a register, a convenience variable.
fn dollar(name: String) -> Expr {
    let number = |text: &str| text.parse::<u64>().ok();
    if name.is_empty() {
        return Expr::HistoryBack(0);
    }
    if name == "$" {
        return Expr::HistoryBack(1);
    }
    if let Some(back) = name.strip_prefix('$').and_then(number) {
        return Expr::HistoryBack(back);
    }
    if let Some(n) = number(&name) {
        return match n {
            0 => Expr::HistoryBack(0),
            n => Expr::HistoryNumber(n),
        };
    }
    let special = match name.as_str() {
        "_now" => Some(Special::Now),
        "_wall" => Some(Special::Wall),
        "_tid" => Some(Special::Tid),
        "_pid" => Some(Special::Pid),
        "_cpu" => Some(Special::Cpu),
        _ => None,
    };
    let fact = match name.as_str() {
        "_comm" => Some(Fact::Comm),
        "_func" => Some(Fact::Func),
        "_probe" => Some(Fact::Probe),
        _ => None,
    };
    if let Some(fact) = fact {
        return Expr::Fact(fact);
    }
    if let Some(special) = special {
        return Expr::Special(special);
    }
    if let Some(register) = registers::lookup(&name) {
        return Expr::Register(register);
    }
    match name.strip_prefix('_').and_then(super::short_form) {
        Some(meant @ (Expr::Argument(_) | Expr::Retval)) => meant,
        _ => Expr::Variable(name),
    }
}
