//! gdb's types: the built-in ones of C and C++, and what can be made of them.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// A type. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Type(Arc<Inner>);

#[derive(PartialEq, Eq, Hash)]
struct Inner {
    /// The name, where the type has one (`unsigned char`, `uint8_t`); derived types have none.
    name: Option<Box<str>>,
    size: u64,
    kind: Kind,
    /// `const`, `volatile`.
    qualifiers: Qualifiers,
}

/// What stands in front of a type and changes nothing but its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Qualifiers {
    /// `const`
    pub constant: bool,
    /// `volatile`
    pub volatile: bool,
}

impl Qualifiers {
    fn words(self) -> Option<&'static str> {
        match (self.constant, self.volatile) {
            (false, false) => None,
            (true, false) => Some("const"),
            (false, true) => Some("volatile"),
            (true, true) => Some("const volatile"),
        }
    }
}

/// What a type is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// `void`; gdb gives it the size 1.
    Void,
    /// An integer that prints as a number.
    Int {
        /// Has a sign.
        signed: bool,
    },
    /// An integer that prints as a character: `char`, `signed char`, `unsigned char`,
    /// `char16_t`, `char32_t`, `int8_t`, `uint8_t`.
    Char {
        /// Has a sign.
        signed: bool,
    },
    /// `bool`.
    Bool,
    /// `float` (4 bytes), `double` (8), `long double` (16, of which 10 count), `_Float16`,
    /// and x87's own 10 bytes.
    Float,
    /// A pointer.
    Pointer(Type),
    /// A C++ reference.
    Reference(Type),
    /// An array; `vector` ones are registers' parts and vector extensions.
    Array {
        /// The elements' type.
        element: Type,
        /// How many; `None` for `[]`.
        count: Option<u64>,
        /// A vector: no decay to a pointer.
        vector: bool,
    },
    /// A function.
    Function {
        /// What it returns.
        result: Type,
        /// The parameters' types.
        parameters: Vec<Type>,
        /// Whether the parameters are known: `(void)` and not `()`.
        prototyped: bool,
    },
    /// A struct, class or union.
    Aggregate {
        /// All members at offset 0.
        union: bool,
        /// The members, in order.
        members: Vec<Member>,
    },
    /// A register of named bits (`eflags`, `mxcsr`): prints as `[ ZF PF ]`.
    Flags(Vec<Flag>),
    /// Data whose type nobody knows: `<data variable, no debug info>`.
    Unknown,
}

/// A member of a struct or union.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    /// Its name.
    pub name: Box<str>,
    /// Its type.
    pub ty: Type,
    /// Bits from the start of the aggregate.
    pub bit_offset: u64,
    /// Set for bit fields.
    pub bit_size: Option<u32>,
}

/// One named bit or field of a flags register.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Flag {
    /// Its name; bits without one print as `@N` where they are set.
    pub name: Box<str>,
    /// The lowest bit.
    pub bit: u8,
    /// How many bits.
    pub bits: u8,
}

/// How wide `size` bytes of text, data and pointers are here.
pub(crate) const POINTER_SIZE: u64 = 8;

struct Builtins {
    void: Type,
    char: Type,
    int: Type,
    unsigned_int: Type,
    long: Type,
    unsigned_long: Type,
    bool: Type,
    double: Type,
    text: Type,
    ifunc: Type,
    data: Type,
    tls: Type,
}

static BUILTINS: LazyLock<Builtins> = LazyLock::new(|| {
    let int = |name, size, signed| Type::named(name, size, Kind::Int { signed });
    let plain = int("int", 4, true);
    let function = |name| {
        Type::named(
            name,
            1,
            Kind::Function {
                result: plain.clone(),
                parameters: Vec::new(),
                prototyped: false,
            },
        )
    };
    Builtins {
        void: Type::named("void", 1, Kind::Void),
        char: Type::named("char", 1, Kind::Char { signed: true }),
        int: plain.clone(),
        unsigned_int: int("unsigned int", 4, false),
        long: int("long", 8, true),
        unsigned_long: int("unsigned long", 8, false),
        bool: Type::named("bool", 1, Kind::Bool),
        double: Type::named("double", 8, Kind::Float),
        text: function("<text variable, no debug info>"),
        ifunc: function("<text gnu-indirect-function variable, no debug info>"),
        data: Type::named("<data variable, no debug info>", 0, Kind::Unknown),
        tls: Type::named("<thread local variable, no debug info>", 0, Kind::Unknown),
    }
});

impl Type {
    fn make(name: Option<&str>, size: u64, kind: Kind) -> Type {
        Type(Arc::new(Inner {
            name: name.map(Box::from),
            size,
            kind,
            qualifiers: Qualifiers::default(),
        }))
    }

    /// The same type with these qualifiers.
    pub(crate) fn qualified(&self, qualifiers: Qualifiers) -> Type {
        if qualifiers == self.0.qualifiers {
            return self.clone();
        }
        Type(Arc::new(Inner {
            name: self.0.name.clone(),
            size: self.0.size,
            kind: self.0.kind.clone(),
            qualifiers,
        }))
    }

    /// The same type without `const` and `volatile`.
    pub(crate) fn unqualified(&self) -> Type {
        self.qualified(Qualifiers::default())
    }

    /// A type with a name of its own.
    pub(crate) fn named(name: &str, size: u64, kind: Kind) -> Type {
        Type::make(Some(name), size, kind)
    }

    /// `void`
    pub(crate) fn void() -> Type {
        BUILTINS.void.clone()
    }

    /// `char`
    pub(crate) fn char() -> Type {
        BUILTINS.char.clone()
    }

    /// `int`
    pub(crate) fn int() -> Type {
        BUILTINS.int.clone()
    }

    /// `unsigned int`
    pub(crate) fn unsigned_int() -> Type {
        BUILTINS.unsigned_int.clone()
    }

    /// `long`
    pub(crate) fn long() -> Type {
        BUILTINS.long.clone()
    }

    /// `unsigned long`
    pub(crate) fn unsigned_long() -> Type {
        BUILTINS.unsigned_long.clone()
    }

    /// `bool`
    pub(crate) fn bool() -> Type {
        BUILTINS.bool.clone()
    }

    /// `double`
    pub(crate) fn double() -> Type {
        BUILTINS.double.clone()
    }

    /// The type of a code symbol: `<text variable, no debug info>`.
    pub(crate) fn text() -> Type {
        BUILTINS.text.clone()
    }

    /// The type of an ifunc's symbol.
    pub(crate) fn ifunc() -> Type {
        BUILTINS.ifunc.clone()
    }

    /// The type of a data symbol: `<data variable, no debug info>`.
    pub(crate) fn data() -> Type {
        BUILTINS.data.clone()
    }

    /// The type of a thread-local symbol.
    pub(crate) fn tls() -> Type {
        BUILTINS.tls.clone()
    }

    /// An integer type with this name, size in bytes and sign.
    pub(crate) fn integer(name: &str, size: u64, signed: bool) -> Type {
        Type::named(name, size, Kind::Int { signed })
    }

    /// A pointer to this type.
    pub(crate) fn pointer(&self) -> Type {
        Type::make(None, POINTER_SIZE, Kind::Pointer(self.clone()))
    }

    /// A reference to this type.
    pub(crate) fn reference(&self) -> Type {
        Type::make(None, POINTER_SIZE, Kind::Reference(self.clone()))
    }

    /// An array of `count` of this type.
    pub(crate) fn array(&self, count: u64) -> Type {
        self.array_of(Some(count), false)
    }

    /// An array of unknown length.
    pub(crate) fn open_array(&self) -> Type {
        self.array_of(None, false)
    }

    /// A vector of `count` of this type.
    pub(crate) fn vector(&self, count: u64) -> Type {
        self.array_of(Some(count), true)
    }

    /// A vector with a name (`v4f`).
    pub(crate) fn named_vector(&self, name: &str, count: u64) -> Type {
        let element = self.clone();
        let kind = Kind::Array {
            element,
            count: Some(count),
            vector: true,
        };
        Type::named(name, self.size().saturating_mul(count), kind)
    }

    fn array_of(&self, count: Option<u64>, vector: bool) -> Type {
        Type::make(
            None,
            self.size().saturating_mul(count.unwrap_or(0)),
            Kind::Array {
                element: self.clone(),
                count,
                vector,
            },
        )
    }

    /// A function that returns this type.
    pub(crate) fn function(&self, parameters: Vec<Type>, prototyped: bool) -> Type {
        Type::make(
            None,
            1,
            Kind::Function {
                result: self.clone(),
                parameters,
                prototyped,
            },
        )
    }

    /// What it is made of.
    pub(crate) fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Its own name, if it has one.
    pub(crate) fn own_name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Its size in bytes as gdb's `sizeof` gives it (1 for `void` and functions).
    pub(crate) fn size(&self) -> u64 {
        self.0.size
    }

    /// Integers, characters, `bool`, enumerations and flags.
    pub(crate) fn is_integral(&self) -> bool {
        matches!(
            self.kind(),
            Kind::Int { .. } | Kind::Char { .. } | Kind::Bool | Kind::Flags(_)
        )
    }

    /// A pointer or a reference.
    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self.kind(), Kind::Pointer(_))
    }

    /// A floating-point number.
    pub(crate) fn is_float(&self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Whether a number of this type is extended by its sign.
    pub(crate) fn is_signed(&self) -> bool {
        match self.kind() {
            Kind::Int { signed } | Kind::Char { signed } => *signed,
            Kind::Float => true,
            _ => false,
        }
    }

    /// What a pointer, reference or array leads to, what a function returns.
    pub(crate) fn target(&self) -> Option<&Type> {
        match self.kind() {
            Kind::Pointer(to) | Kind::Reference(to) => Some(to),
            Kind::Array { element, .. } => Some(element),
            Kind::Function { result, .. } => Some(result),
            _ => None,
        }
    }

    /// The name with `inside` where a declarator's name would be: `int (*INSIDE)[4]`.
    fn declare(&self, inside: String) -> String {
        if let Some(name) = &self.0.name {
            let words = self.0.qualifiers.words();
            let tag = match self.kind() {
                Kind::Aggregate { union: true, .. } => "union",
                Kind::Aggregate { .. } => "struct",
                _ => "",
            };
            let parts = [words.unwrap_or(""), tag, name, inside.as_str()];
            let parts: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
            return parts.join(" ");
        }
        let wrap = |to: &Type, inside: String| match (to.own_name(), to.kind()) {
            (None, Kind::Array { .. } | Kind::Function { .. }) => format!("({inside})"),
            _ => inside,
        };
        match self.kind() {
            Kind::Pointer(to) => {
                let inside = match self.0.qualifiers.words() {
                    None => format!("*{inside}"),
                    Some(words) if inside.is_empty() => format!("* {words}"),
                    Some(words) => format!("* {words} {inside}"),
                };
                to.declare(wrap(to, inside))
            }
            Kind::Reference(to) => to.declare(wrap(to, format!("&{inside}"))),
            Kind::Array {
                element,
                count,
                vector,
            } => {
                let count = count.map(|n| n.to_string()).unwrap_or_default();
                let tail = match vector {
                    true if inside.is_empty() => format!("__attribute__ ((vector_size({count})))"),
                    true => format!(" __attribute__ ((vector_size({count})))"),
                    false => format!("[{count}]"),
                };
                element.declare(format!("{inside}{tail}"))
            }
            Kind::Function {
                result,
                parameters,
                prototyped,
            } => {
                let list: Vec<String> = parameters.iter().map(|p| p.to_string()).collect();
                let list = match (list.is_empty(), prototyped) {
                    (true, true) => "void".to_owned(),
                    _ => list.join(", "),
                };
                result.declare(format!("{inside}({list})"))
            }
            _ => inside,
        }
    }
}

/// The name as gdb prints it: `unsigned char [4]`, `void (*)()`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.declare(String::new()))
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}
