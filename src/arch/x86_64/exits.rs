//! The ways out of a function: its returns, and the jumps that leave it for another function.

use std::collections::HashSet;

use iced_x86::{
    Code, ConditionCode, Decoder, DecoderError, DecoderOptions, FlowControl, Instruction, Mnemonic,
    OpKind, Register as Iced,
};

use super::registers::Register;
use super::relocate::general;

/// Where an indirect jump goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// To what is in a register.
    Register(Register),
    /// To the word at `base + index * scale + displacement`.
    Memory {
        /// Added as it is.
        base: Option<Register>,
        /// Multiplied by 1, 2, 4 or 8.
        index: Option<(Register, u8)>,
        /// The rest, or the whole address.
        displacement: u64,
    },
}

/// How an instruction leaves its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// It returns to the caller.
    Return,
    /// It jumps to another function, which returns to the caller in its place.
    Jump,
    /// It does so if this condition holds: the low four bits of the `jcc`'s opcode.
    Conditional(u8),
    /// It jumps to an address that only the pass itself has: inside, it is no way out.
    Indirect(Target),
}

/// One way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The instruction's address.
    pub address: u64,
    /// What it is.
    pub kind: ExitKind,
}

/// What a function's code says about its ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exits {
    /// By address.
    pub exits: Vec<Exit>,
    /// Jumps through tables of places in the function itself, which leave nothing.
    pub tables: Vec<u64>,
    /// Jumps that may leave and cannot be followed, each with the reason.
    pub left_out: Vec<(u64, &'static str)>,
    /// Where direct jumps go that leave.
    pub outside: Vec<u64>,
    /// A jump goes to the function's first instruction: passes there are not calls alone.
    pub starts_again: bool,
}

/// Why a function's ways out cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Undecoded {
    /// Data, or code that is not the processor's.
    #[error("no valid instruction at {0:#x}")]
    Invalid(u64),
    /// Then the instructions are not what they seem to be.
    #[error("the jump at {from:#x} goes into the middle of an instruction, to {to:#x}")]
    Inside {
        /// The jump.
        from: u64,
        /// Where it goes.
        to: u64,
    },
}

/// Whether `code` begins with a return.
pub fn returns(code: &[u8]) -> bool {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    instruction.flow_control() == FlowControl::Return
}

/// Reads a whole function: its `parts` are its own code, then what the compiler moved away of it,
/// each with its address.
pub fn exits(parts: &[(u64, Vec<u8>)]) -> Result<Exits, Undecoded> {
    let mut starts = HashSet::new();
    let mut found = Exits::default();
    let mut inside = Vec::new();
    for (start, code) in parts {
        let instructions = decode(*start, code)?;
        starts.extend(instructions.iter().map(Instruction::ip));
        for (at, instruction) in instructions.iter().enumerate() {
            leaves(instruction, &instructions[..at], parts, &mut found);
            if let Some(to) = branch(instruction).filter(|to| contains(parts, *to)) {
                inside.push((instruction.ip(), to));
            }
        }
    }
    let first = parts.first().map(|(start, _)| *start);
    found.starts_again = inside.iter().any(|(_, to)| Some(*to) == first);
    match inside.iter().find(|(_, to)| !starts.contains(to)) {
        Some((from, to)) => Err(Undecoded::Inside {
            from: *from,
            to: *to,
        }),
        None => Ok(found),
    }
}

fn contains(parts: &[(u64, Vec<u8>)], address: u64) -> bool {
    parts
        .iter()
        .any(|(start, code)| address.wrapping_sub(*start) < code.len() as u64)
}

/// All instructions of a piece. What a linker fills up with behind the last one is none.
fn decode(start: u64, code: &[u8]) -> Result<Vec<Instruction>, Undecoded> {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    while decoder.can_decode() {
        let at = decoder.position();
        let instruction = decoder.decode();
        match decoder.last_error() {
            DecoderError::None => instructions.push(instruction),
            _ if code[at..].iter().all(|byte| *byte == 0) => break,
            _ => return Err(Undecoded::Invalid(start.wrapping_add(at as u64))),
        }
    }
    Ok(instructions)
}

/// The address that a direct jump or a conditional one goes to.
fn branch(instruction: &Instruction) -> Option<u64> {
    let near = matches!(
        instruction.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    );
    let jumps = matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
    );
    (near && jumps).then(|| instruction.near_branch_target())
}

/// Notes an instruction that leaves; `before` are those in front of it.
fn leaves(
    instruction: &Instruction,
    before: &[Instruction],
    parts: &[(u64, Vec<u8>)],
    found: &mut Exits,
) {
    let address = instruction.ip();
    let kind = match instruction.flow_control() {
        FlowControl::Return => ExitKind::Return,
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            let Some(to) = branch(instruction).filter(|to| !contains(parts, *to)) else {
                return;
            };
            found.outside.push(to);
            match condition(instruction) {
                Some(condition) => ExitKind::Conditional(condition),
                None if instruction.flow_control() == FlowControl::UnconditionalBranch => {
                    ExitKind::Jump
                }
                None => {
                    let why = "it jumps if rcx is zero";
                    return found.left_out.push((address, why));
                }
            }
        }
        FlowControl::IndirectBranch if through_table(instruction, before) => {
            return found.tables.push(address);
        }
        FlowControl::IndirectBranch => match target(instruction) {
            Some(target) => ExitKind::Indirect(target),
            None => {
                let why = "it goes through a segment or a far pointer";
                return found.left_out.push((address, why));
            }
        },
        _ => return,
    };
    found.exits.push(Exit { address, kind });
}

/// The condition of a `jcc` as its opcode has it.
fn condition(instruction: &Instruction) -> Option<u8> {
    Some(match instruction.condition_code() {
        ConditionCode::o => 0,
        ConditionCode::no => 1,
        ConditionCode::b => 2,
        ConditionCode::ae => 3,
        ConditionCode::e if instruction.is_jcc_short_or_near() => 4,
        ConditionCode::ne if instruction.is_jcc_short_or_near() => 5,
        ConditionCode::be => 6,
        ConditionCode::a => 7,
        ConditionCode::s => 8,
        ConditionCode::ns => 9,
        ConditionCode::p => 10,
        ConditionCode::np => 11,
        ConditionCode::l => 12,
        ConditionCode::ge => 13,
        ConditionCode::le => 14,
        ConditionCode::g => 15,
        // `loope` and `loopne` have a condition too.
        _ => return None,
    })
}

/// Where an indirect near jump goes, if general registers and plain memory tell.
fn target(instruction: &Instruction) -> Option<Target> {
    match instruction.code() {
        Code::Jmp_rm64 => {}
        _ => return None,
    }
    if instruction.op0_kind() == OpKind::Register {
        return general(instruction.op0_register()).map(Target::Register);
    }
    if matches!(instruction.segment_prefix(), Iced::FS | Iced::GS) {
        return None;
    }
    let displacement = instruction.memory_displacement64();
    let base = match instruction.memory_base() {
        // The displacement is the whole address then.
        Iced::None | Iced::RIP => None,
        register => Some(general(register)?),
    };
    let index = match instruction.memory_index() {
        Iced::None => None,
        register => Some((
            general(register)?,
            instruction.memory_index_scale().min(8) as u8,
        )),
    };
    Some(Target::Memory {
        base,
        index,
        displacement,
    })
}

/// How far in front of a jump its address may be computed.
const COMPUTED: usize = 6;

/// Whether an indirect jump provably goes through a table of places in the function. Compilers
/// write `notrack` for such jumps alone; without it the address comes from a table of 32-bit
/// distances, `movslq (%base,%index,4),%r; add %base,%r; jmp *%r`.
fn through_table(instruction: &Instruction, before: &[Instruction]) -> bool {
    if instruction.segment_prefix() == Iced::DS {
        return true;
    }
    if instruction.op0_kind() != OpKind::Register {
        return false;
    }
    let jumped = instruction.op0_register();
    let straight = before
        .iter()
        .rev()
        .take(COMPUTED)
        .take_while(|i| i.flow_control() == FlowControl::Next);
    let mut added = None;
    for earlier in straight {
        let writes =
            |register| earlier.op0_kind() == OpKind::Register && earlier.op0_register() == register;
        match added {
            None if earlier.mnemonic() == Mnemonic::Add && writes(jumped) => {
                added = Some(earlier.op1_register());
            }
            None if writes(jumped) => return false,
            Some(base) if earlier.mnemonic() == Mnemonic::Movsxd => {
                let distance = writes(jumped) || writes(base);
                return distance
                    && earlier.op1_kind() == OpKind::Memory
                    && earlier.memory_index() != Iced::None
                    && earlier.memory_index_scale() == 4;
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: u64 = 0x1000;

    fn of(code: &[u8]) -> Result<Exits, Undecoded> {
        exits(&[(START, code.to_vec())])
    }

    fn kinds(code: &[u8]) -> Vec<(u64, ExitKind)> {
        let found = of(code).unwrap();
        found.exits.iter().map(|e| (e.address, e.kind)).collect()
    }

    #[test]
    fn every_kind_of_return() {
        // ret; repz ret; bnd ret; ret $0x10
        let code = [0xc3, 0xf3, 0xc3, 0xf2, 0xc3, 0xc2, 0x10, 0x00];
        let returns = [0x1000, 0x1001, 0x1003, 0x1005].map(|at| (at, ExitKind::Return));
        assert_eq!(kinds(&code), returns);
    }

    #[test]
    fn jumps_leave_or_stay() {
        // je +2 (inside); jmp far away; jne far away; jmp -2-… to the first instruction; ret
        let code = [
            0x74, 0x02, 0x90, 0x90, 0xe9, 0x00, 0x01, 0x00, 0x00, 0x0f, 0x85, 0x00, 0x02, 0x00,
            0x00, 0xeb, 0xef, 0xc3,
        ];
        let found = of(&code).unwrap();
        assert!(found.starts_again);
        assert_eq!(found.outside, [0x1109, 0x120f]);
        let kinds: Vec<_> = found.exits.iter().map(|e| e.kind).collect();
        assert_eq!(
            kinds,
            [ExitKind::Jump, ExitKind::Conditional(5), ExitKind::Return]
        );
    }

    #[test]
    fn a_part_that_was_moved_away_belongs_to_the_function() {
        let function = vec![0x0f, 0x84, 0xfa, 0x0f, 0x00, 0x00, 0xc3]; // je 0x2000; ret
        let alone = of(&function).unwrap();
        assert_eq!(alone.outside, [0x2000]);
        let cold = vec![0xe9, 0x01, 0xf0, 0xff, 0xff]; // jmp 0x1006
        let both = exits(&[(START, function), (0x2000, cold)]).unwrap();
        assert!(both.outside.is_empty());
        assert_eq!(
            both.exits,
            [Exit {
                address: 0x1006,
                kind: ExitKind::Return
            }]
        );
    }

    #[test]
    fn indirect_jumps_say_where_they_read() {
        let memory = |base, index, displacement| {
            ExitKind::Indirect(Target::Memory {
                base,
                index,
                displacement,
            })
        };
        let rax = Register::Rax;
        for (code, kind) in [
            // jmp *%rax; jmp *0x18(%rax); jmp *0x10(%rip); jmp *0x601000(,%rax,8)
            (vec![0xff, 0xe0], ExitKind::Indirect(Target::Register(rax))),
            (vec![0xff, 0x60, 0x18], memory(Some(rax), None, 0x18)),
            (vec![0xff, 0x25, 0x10, 0, 0, 0], memory(None, None, 0x1016)),
            (
                vec![0xff, 0x24, 0xc5, 0x00, 0x10, 0x60, 0x00],
                memory(None, Some((rax, 8)), 0x601000),
            ),
        ] {
            assert_eq!(kinds(&code), [(START, kind)]);
        }
    }

    #[test]
    fn jumps_through_tables_stay() {
        // notrack jmp *%rax
        let found = of(&[0x3e, 0xff, 0xe0, 0xc3]).unwrap();
        assert_eq!((found.tables, found.exits.len()), (vec![START], 1));
        // movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax
        let found = of(&[0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0]).unwrap();
        assert_eq!((found.tables, found.exits.len()), (vec![START + 7], 0));
        // A relative virtual table has no index: movslq (%rax),%rcx; add %rax,%rcx; jmp *%rcx
        let found = of(&[0x48, 0x63, 0x08, 0x48, 0x01, 0xc1, 0xff, 0xe1]).unwrap();
        assert_eq!((found.tables, found.exits.len()), (vec![], 1));
    }

    #[test]
    fn what_is_no_code_is_refused() {
        assert_eq!(of(&[0x06, 0xc3]), Err(Undecoded::Invalid(START)));
        assert_eq!(of(&[0xc3, 0xe8, 0x01]), Err(Undecoded::Invalid(START + 1)));
        // jmp into the middle of a mov
        let (from, to) = (START, START + 4);
        let code = [0xeb, 0x02, 0xb8, 1, 2, 3, 4, 0xc3];
        assert_eq!(of(&code), Err(Undecoded::Inside { from, to }));
        // Filled up with zeros that are no whole instruction.
        assert_eq!(kinds(&[0xc3, 0, 0, 0]).len(), 1);
    }

    #[test]
    fn loops_by_rcx_are_left_out() {
        let found = of(&[0xe3, 0x20, 0xc3]).unwrap();
        assert_eq!(found.left_out.len(), 1);
        assert_eq!(found.exits.len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(code in proptest::collection::vec(any::<u8>(), 0..64), start: u64) {
            let _ = exits(&[(start, code)]);
        }
    }
}
