//! Registers by gdb's names: where each lives and which type gdb gives it.

use std::sync::LazyLock;

use crate::arch::{self, Register, RegisterClass};

use super::types::{Flag, Kind, Member, Type};

/// A register as an expression sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RegisterView {
    /// gdb's name, without the `$`.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// Where its bytes are.
    pub home: Home,
}

/// Where a register's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// Bytes of a general register; as many as the type has.
    General {
        /// Which one.
        register: Register,
        /// The first byte.
        offset: u8,
    },
    /// An x87, SSE or AVX register, by [`super::Scope::vector_register`].
    Vector,
}

/// The types that registers have.
struct Types {
    /// By size: 1, 2, 4, 8, 16 bytes; numbers, not characters.
    int8: Type,
    int16: Type,
    int32: Type,
    int64: Type,
    uint64: Type,
    long: Type,
    int: Type,
    code: Type,
    data: Type,
    eflags: Type,
    mxcsr: Type,
    x87: Type,
    xmm: Type,
    ymm: Type,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let uint128 = Type::integer("uint128_t", 16, false);
    Types {
        int8: Type::integer("int8_t", 1, true),
        int16: Type::integer("int16_t", 2, true),
        int32: Type::integer("int32_t", 4, true),
        int64: Type::integer("int64_t", 8, true),
        uint64: Type::integer("uint64_t", 8, false),
        long: Type::long(),
        int: Type::int(),
        code: Type::void().function(Vec::new(), false).pointer(),
        data: Type::void().pointer(),
        eflags: flags("i386_eflags", &arch::EFLAGS),
        mxcsr: flags("i386_mxcsr", &arch::MXCSR),
        x87: Type::named("builtin_type_i387_ext", 10, Kind::Float),
        xmm: vector_union(1, &uint128),
        ymm: vector_union(2, &uint128),
    }
});

fn flags(name: &str, bits: &[(u8, &str)]) -> Type {
    let flag = |(bit, name): &(u8, &str)| Flag {
        name: (*name).into(),
        bit: *bit,
        bits: 1,
    };
    Type::named(name, 4, Kind::Flags(bits.iter().map(flag).collect()))
}

/// The views of an SSE (`times` 1) or AVX (2) register, as gdb's union has them.
fn vector_union(times: u64, uint128: &Type) -> Type {
    let float =
        |name, own, size| Type::named(if times == 1 { own } else { name }, size, Kind::Float);
    let bfloat = float("bfloat16", "builtin_type_bfloat16", 2);
    let half = float("half", "builtin_type_ieee_half", 2);
    let single = float("float", "builtin_type_ieee_single", 4);
    let double = float("double", "builtin_type_ieee_double", 8);
    let integer = |name, size| Type::integer(name, size, true);
    let views = [
        ("bfloat16", "bf16", bfloat, 8),
        ("half", "h", half, 8),
        ("float", "f", single, 4),
        ("double", "d", double, 2),
        ("int8", "i8", integer("int8_t", 1), 16),
        ("int16", "i16", integer("int16_t", 2), 8),
        ("int32", "i32", integer("int32_t", 4), 4),
        ("int64", "i64", integer("int64_t", 8), 2),
    ];
    let member = |name: String, ty: Type| Member {
        name: name.into(),
        ty,
        bit_offset: 0,
        bit_size: None,
    };
    let mut members = Vec::new();
    for (name, short, element, count) in views {
        let count = count * times;
        let ty = match times {
            1 => element.named_vector(&format!("v{count}{short}"), count),
            _ => element.vector(count),
        };
        members.push(member(format!("v{count}_{name}"), ty));
    }
    match times {
        1 => members.push(member("uint128".to_owned(), uint128.clone())),
        _ => {
            let wide = Type::integer("int128_t", 16, true).vector(2);
            members.push(member("v2_int128".to_owned(), wide));
        }
    }
    let name = if times == 1 {
        "vec128"
    } else {
        "builtin_type_vec256i"
    };
    let union = true;
    Type::named(name, 16 * times, Kind::Aggregate { union, members })
}

const CONTROL: [&str; 8] = [
    "fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop",
];

const NUMBERED: [&str; 48] = [
    "st0", "st1", "st2", "st3", "st4", "st5", "st6", "st7", "k0", "k1", "k2", "k3", "k4", "k5",
    "k6", "k7", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
    "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "ymm0", "ymm1", "ymm2", "ymm3", "ymm4",
    "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11", "ymm12", "ymm13", "ymm14", "ymm15",
];

/// A general register, or the part of one that the name stands for.
fn general(name: &str) -> Option<RegisterView> {
    let entry = arch::register_name(name)?;
    let types = &*TYPES;
    let ty = match entry.class {
        RegisterClass::Int8 => &types.int8,
        RegisterClass::Int16 => &types.int16,
        RegisterClass::Int32 => &types.int32,
        RegisterClass::Int64 => &types.int64,
        RegisterClass::Long => &types.long,
        RegisterClass::DataPointer => &types.data,
        RegisterClass::CodePointer => &types.code,
        RegisterClass::Flags => &types.eflags,
    };
    Some(RegisterView {
        name: entry.name,
        ty: ty.clone(),
        home: Home::General {
            register: entry.register,
            offset: entry.offset,
        },
    })
}

/// Every register's name, without the `$`.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    arch::register_names()
        .chain(CONTROL)
        .chain(["mxcsr"])
        .chain(NUMBERED)
}

/// The register with this name (without the `$`), if gdb knows one on x86-64.
pub(crate) fn lookup(name: &str) -> Option<RegisterView> {
    if let Some(view) = general(name) {
        return Some(view);
    }
    let types = &*TYPES;
    let home = Home::Vector;
    let of = |name, ty: &Type| {
        Some(RegisterView {
            name,
            ty: ty.clone(),
            home,
        })
    };
    if let Some(control) = CONTROL.iter().find(|c| **c == name) {
        return of(control, &types.int);
    }
    if name == "mxcsr" {
        return of("mxcsr", &types.mxcsr);
    }
    if let Some(number) = NUMBERED.iter().find(|n| **n == name) {
        let ty = match number.as_bytes()[0] {
            b's' => &types.x87,
            b'k' => &types.uint64,
            b'x' => &types.xmm,
            _ => &types.ymm,
        };
        return of(number, ty);
    }
    None
}
