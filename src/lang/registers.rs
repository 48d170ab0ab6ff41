//! Registers by gdb's names: where each lives and which type gdb gives it.

use std::sync::LazyLock;

use crate::arch::Register;

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
        eflags: eflags(),
        mxcsr: mxcsr(),
        x87: Type::named("builtin_type_i387_ext", 10, Kind::Float),
        xmm: vector_union(1, &uint128),
        ymm: vector_union(2, &uint128),
    }
});

fn flags(name: &str, bits: &[(&str, u8)]) -> Type {
    let flag = |(name, bit): &(&str, u8)| Flag {
        name: (*name).into(),
        bit: *bit,
        bits: 1,
    };
    Type::named(name, 4, Kind::Flags(bits.iter().map(flag).collect()))
}

fn eflags() -> Type {
    let bits = [
        ("CF", 0),
        ("", 1),
        ("PF", 2),
        ("AF", 4),
        ("ZF", 6),
        ("SF", 7),
        ("TF", 8),
        ("IF", 9),
        ("DF", 10),
        ("OF", 11),
        ("NT", 14),
        ("RF", 16),
        ("VM", 17),
        ("AC", 18),
        ("VIF", 19),
        ("VIP", 20),
        ("ID", 21),
    ];
    flags("i386_eflags", &bits)
}

fn mxcsr() -> Type {
    let bits = [
        ("IE", 0),
        ("DE", 1),
        ("ZE", 2),
        ("OE", 3),
        ("UE", 4),
        ("PE", 5),
        ("DAZ", 6),
        ("IM", 7),
        ("DM", 8),
        ("ZM", 9),
        ("OM", 10),
        ("UM", 11),
        ("PM", 12),
        ("FZ", 15),
    ];
    flags("i386_mxcsr", &bits)
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

/// Registers whose parts have names: the 64-bit one, its low 4, 2 and 1 bytes, byte 1.
const GENERAL: [(Register, &str, &str, &str, &str, &str); 16] = [
    (Register::Rax, "rax", "eax", "ax", "al", "ah"),
    (Register::Rbx, "rbx", "ebx", "bx", "bl", "bh"),
    (Register::Rcx, "rcx", "ecx", "cx", "cl", "ch"),
    (Register::Rdx, "rdx", "edx", "dx", "dl", "dh"),
    (Register::Rsi, "rsi", "esi", "si", "sil", ""),
    (Register::Rdi, "rdi", "edi", "di", "dil", ""),
    (Register::Rbp, "rbp", "ebp", "bp", "bpl", ""),
    (Register::Rsp, "rsp", "esp", "", "spl", ""),
    (Register::R8, "r8", "r8d", "r8w", "r8l", ""),
    (Register::R9, "r9", "r9d", "r9w", "r9l", ""),
    (Register::R10, "r10", "r10d", "r10w", "r10l", ""),
    (Register::R11, "r11", "r11d", "r11w", "r11l", ""),
    (Register::R12, "r12", "r12d", "r12w", "r12l", ""),
    (Register::R13, "r13", "r13d", "r13w", "r13l", ""),
    (Register::R14, "r14", "r14d", "r14w", "r14l", ""),
    (Register::R15, "r15", "r15d", "r15w", "r15l", ""),
];

const SEGMENTS: [(Register, &str); 6] = [
    (Register::Cs, "cs"),
    (Register::Ss, "ss"),
    (Register::Ds, "ds"),
    (Register::Es, "es"),
    (Register::Fs, "fs"),
    (Register::Gs, "gs"),
];

const CONTROL: [&str; 8] = [
    "fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop",
];

const NUMBERED: [&str; 48] = [
    "st0", "st1", "st2", "st3", "st4", "st5", "st6", "st7", "k0", "k1", "k2", "k3", "k4", "k5",
    "k6", "k7", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
    "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "ymm0", "ymm1", "ymm2", "ymm3", "ymm4",
    "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11", "ymm12", "ymm13", "ymm14", "ymm15",
];

fn general(name: &str) -> Option<RegisterView> {
    let types = &*TYPES;
    let view = |name, register, ty: &Type, offset| {
        let ty = ty.clone();
        let home = Home::General { register, offset };
        Some(RegisterView { name, ty, home })
    };
    for (register, long, dword, word, low, high) in GENERAL {
        let stack = matches!(register, Register::Rsp | Register::Rbp);
        let wide = if stack { &types.data } else { &types.int64 };
        let parts = [
            (long, wide, 0),
            (dword, &types.int32, 0),
            (word, &types.int16, 0),
            (low, &types.int8, 0),
            (high, &types.int8, 1),
        ];
        let found = parts
            .iter()
            .find(|(part, ..)| *part == name && !part.is_empty());
        if let Some((part, ty, offset)) = found {
            return view(part, register, ty, *offset);
        }
    }
    if let Some((register, segment)) = SEGMENTS.iter().find(|(_, s)| *s == name) {
        return view(segment, *register, &types.int32, 0);
    }
    match name {
        "rip" => view("rip", Register::Rip, &types.code, 0),
        "pc" => view("pc", Register::Rip, &types.code, 0),
        "sp" => view("sp", Register::Rsp, &types.data, 0),
        "fp" => view("fp", Register::Rbp, &types.data, 0),
        "eflags" => view("eflags", Register::Eflags, &types.eflags, 0),
        "ps" => view("ps", Register::Eflags, &types.eflags, 0),
        "fs_base" => view("fs_base", Register::FsBase, &types.long, 0),
        "gs_base" => view("gs_base", Register::GsBase, &types.long, 0),
        "orig_rax" => view("orig_rax", Register::OrigRax, &types.long, 0),
        _ => None,
    }
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
