//! Where `break FUNCTION` stops in a function without debug information: where gdb 13 would.
//!
//! gdb looks for one prologue only, `push %rbp; mov %rsp,%rbp`, possibly behind an `endbr64` and
//! behind the code by which gcc aligns the stack of `main` and of functions with wide locals.
//! Anything else stops at the function's first instruction.

const PUSH_RBP: u8 = 0x55;
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// `mov %rsp,%rbp`, in its two encodings.
const MOV_RSP_RBP: [[u8; 3]; 2] = [[0x48, 0x89, 0xe5], [0x48, 0x8b, 0xec]];

/// How many bytes [`prologue`] looks at, at most.
#[cfg(test)]
const PROLOGUE_MAX: usize = 32;

/// The length in bytes of the prologue that a breakpoint on the function skips; 0 if none is
/// recognised. `code` begins at the function.
pub fn prologue(code: &[u8]) -> usize {
    let aligned = stack_alignment(code).unwrap_or(0);
    let rest = &code[aligned..];
    let marked = if rest.starts_with(&ENDBR64) { 4 } else { 0 };
    match &rest[marked..] {
        [PUSH_RBP, rest @ ..] if MOV_RSP_RBP.iter().any(|mov| rest.starts_with(mov)) => {
            aligned + marked + 4
        }
        _ => 0,
    }
}

/// The length of gcc's alignment of the stack:
/// `[push %reg]; lea 8(%rsp),%reg; and $-N,%rsp; pushq -8(%reg)` (16 instead of 8 behind a push).
fn stack_alignment(code: &[u8]) -> Option<usize> {
    let mut rest = code;
    let pushed = take_push(&mut rest);
    let register = take_lea(&mut rest, if pushed.is_some() { 16 } else { 8 })?;
    if pushed.is_some_and(|pushed| pushed != register) {
        return None;
    }
    take_and(&mut rest)?;
    if take_push_below(&mut rest)? != register {
        return None;
    }
    Some(code.len() - rest.len())
}

/// The number of the pushed register.
fn take_push(rest: &mut &[u8]) -> Option<u8> {
    let (register, behind) = match *rest {
        [opcode @ 0x50..=0x57, behind @ ..] => (opcode & 7, behind),
        [rex @ 0x40..=0x4f, opcode @ 0x50..=0x57, behind @ ..] => {
            (opcode & 7 | (rex & 1) << 3, behind)
        }
        _ => return None,
    };
    *rest = behind;
    Some(register)
}

/// `lea DISPLACEMENT(%rsp),%reg`: the number of `reg`.
fn take_lea(rest: &mut &[u8], displacement: u8) -> Option<u8> {
    let [rex @ (0x48 | 0x4c), 0x8d, modrm, 0x24, offset, behind @ ..] = *rest else {
        return None;
    };
    if modrm & 0xc7 != 0x44 || *offset != displacement {
        return None;
    }
    *rest = behind;
    Some(modrm >> 3 & 7 | (rex & 4) << 1)
}

/// `and $imm,%rsp`.
fn take_and(rest: &mut &[u8]) -> Option<()> {
    *rest = match *rest {
        [0x48, 0x83, 0xe4, _, behind @ ..] => behind,
        [0x48, 0x81, 0xe4, _, _, _, _, behind @ ..] => behind,
        _ => return None,
    };
    Some(())
}

/// `pushq -8(%reg)`: the number of `reg`. gdb does not know the form with `%rbp`.
fn take_push_below(rest: &mut &[u8]) -> Option<u8> {
    let (high, plain) = match *rest {
        [rex @ 0x40..=0x4f, behind @ ..] => ((rex & 1) << 3, behind),
        plain => (0, plain),
    };
    let [0xff, modrm @ 0x70..=0x77, 0xf8, behind @ ..] = plain else {
        return None;
    };
    let register = modrm & 7 | high;
    if register == RBP {
        return None;
    }
    *rest = behind;
    Some(register)
}

const RBP: u8 = 5;

#[cfg(test)]
#[path = "prologue_tests.rs"]
mod tests;
