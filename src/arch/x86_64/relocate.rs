//! Passing a site's first instruction out of line, in a slot: `[instruction][jmp back]`.
//!
//! The instruction is copied byte for byte, so every prefix and redundant encoding survives; only
//! what depends on the address of the instruction changes: a RIP-relative displacement, a branch
//! displacement, the return address that `syscall` leaves in `rcx`. Nothing that a slot adds
//! touches flags, the stack or a register that the instruction does not write itself.
//!
//! A `call` never goes into a slot, because the return address it pushes would be the slot's; the
//! tracer does it instead ([`Displaced::call`]).

use iced_x86::{
    Code, Decoder, DecoderError, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind,
    Register as Iced,
};

use super::registers::{Register, Registers};

/// The longest instruction there is (SDM vol. 2, 2.3.11).
pub const INSTRUCTION_MAX: usize = 15;

/// No slot is longer than this.
pub const SLOT_MAX: usize = 32;

/// Why an instruction cannot be run anywhere but at its own address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum RelocateError {
    #[error("no valid instruction at {at:#x}")]
    Invalid { at: u64 },
    #[error("the instruction at {at:#x} goes on behind the bytes that are known")]
    Truncated { at: u64 },
    #[error("the instruction at {at:#x} cannot be moved: {why}")]
    Unmovable { at: u64, why: &'static str },
    #[error("the slot at {slot:#x} is more than 2 GiB away from {target:#x}")]
    TooFar { slot: u64, target: u64 },
}

/// How the instruction depends on its own address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Not at all.
    Plain,
    /// One RIP-relative operand; the offset of its 32-bit displacement.
    RipRelative { displacement: usize, target: u64 },
    /// `jmp` to an address.
    Jump { target: u64 },
    /// `jcc` with this condition (the low four bits of its opcode).
    Conditional { condition: u8, target: u64 },
    /// `loop`, `loope`, `loopne`, `jrcxz`, `jecxz`: only a short displacement exists.
    Short { target: u64 },
    /// Leaves the address behind itself in `rcx`.
    Syscall,
    /// Pushes the address behind itself.
    Call,
}

/// The first instruction of a site.
#[derive(Debug, Clone)]
pub struct Displaced {
    at: u64,
    bytes: Vec<u8>,
    instruction: Instruction,
    kind: Kind,
}

/// Where a thread whose rip is in a slot stands in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The displaced instruction has not run (or, with `rep`, has not finished).
    NotExecuted,
    /// It has run; the program goes on at this address.
    Done(u64),
}

/// The code for one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The bytes to write at the slot's address.
    pub code: Vec<u8>,
    positions: Vec<(usize, Position)>,
    repair: Option<(usize, Register, u64)>,
}

impl Slot {
    /// What rip = slot address + `offset` means in the program; `None` if no instruction of the
    /// slot begins there.
    pub fn position(&self, offset: u64) -> Option<Position> {
        self.positions
            .iter()
            .find(|(at, _)| *at as u64 == offset)
            .map(|(_, position)| *position)
    }

    /// A register that the rest of the slot would still have set, for a thread that is taken out
    /// of the slot at `offset`: `rcx` behind a `syscall`.
    pub fn repair(&self, offset: u64) -> Option<(Register, u64)> {
        match self.repair {
            Some((at, register, value)) if at as u64 == offset => Some((register, value)),
            _ => None,
        }
    }
}

/// What a `call` does, beside `rsp -= 8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The new rip.
    pub target: u64,
    /// What is pushed.
    pub return_address: u64,
}

impl Displaced {
    /// Decodes the instruction that begins `bytes` and stands at `at` in the program.
    pub fn decode(bytes: &[u8], at: u64) -> Result<Displaced, RelocateError> {
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let instruction = decoder.decode();
        match decoder.last_error() {
            DecoderError::None => {}
            DecoderError::NoMoreBytes if bytes.len() < INSTRUCTION_MAX => {
                return Err(RelocateError::Truncated { at });
            }
            _ => return Err(RelocateError::Invalid { at }),
        }
        let displacement = decoder
            .get_constant_offsets(&instruction)
            .displacement_offset();
        let kind = kind(&instruction, displacement, &bytes[..instruction.len()])
            .map_err(|why| RelocateError::Unmovable { at, why })?;
        Ok(Displaced {
            at,
            bytes: bytes[..instruction.len()].to_vec(),
            instruction,
            kind,
        })
    }

    /// The length of the instruction in bytes.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The address behind the instruction.
    pub fn next(&self) -> u64 {
        self.at.wrapping_add(self.bytes.len() as u64)
    }

    /// True for a near `call`, which the tracer does itself.
    pub fn is_call(&self) -> bool {
        self.kind == Kind::Call
    }

    /// True for `syscall`, which may block for as long as it likes.
    pub fn is_syscall(&self) -> bool {
        self.kind == Kind::Syscall
    }

    /// True for what moves the flags to or from the stack: a single step would leave its own trap
    /// flag in what is pushed, or the kernel would take the flag for the program's.
    pub fn moves_flags(&self) -> bool {
        matches!(
            self.instruction.mnemonic(),
            Mnemonic::Pushf
                | Mnemonic::Pushfq
                | Mnemonic::Popf
                | Mnemonic::Popfq
                | Mnemonic::Iret
                | Mnemonic::Iretd
                | Mnemonic::Iretq
        )
    }

    /// The register of a `push %r64`. It leaves rsp and the word there as a mark by which a
    /// thread that has passed the instruction is told from one that has not.
    pub fn is_push_register(&self) -> Option<Register> {
        if self.instruction.code() != Code::Push_r64 {
            return None;
        }
        general(self.instruction.op0_register())
    }

    /// The code that does the instruction at `slot_address` and goes on behind the original.
    pub fn slot(&self, slot_address: u64) -> Result<Slot, RelocateError> {
        let mut slot = Builder {
            address: slot_address,
            code: Vec::with_capacity(SLOT_MAX),
            positions: vec![(0, Position::NotExecuted)],
        };
        let mut repair = None;
        match self.kind {
            Kind::Plain => slot.code.extend_from_slice(&self.bytes),
            Kind::RipRelative {
                displacement,
                target,
            } => {
                slot.code.extend_from_slice(&self.bytes);
                let value = slot.displacement(self.bytes.len(), target)?;
                slot.code[displacement..displacement + 4].copy_from_slice(&value);
            }
            Kind::Jump { target } => {
                slot.branch(&[0xe9], target)?;
                return Ok(slot.finish(None));
            }
            Kind::Conditional { condition, target } => {
                slot.branch(&[0x0f, 0x80 | condition], target)?;
            }
            Kind::Short { target } => {
                // The short branch can only skip the jump back, to a jump that does its part.
                slot.code.extend_from_slice(&self.bytes);
                if let Some(last) = slot.code.last_mut() {
                    *last = JUMP_LENGTH;
                }
                slot.jump(self.next())?;
                slot.jump(target)?;
                return Ok(slot.finish(None));
            }
            Kind::Syscall => {
                slot.code.extend_from_slice(&self.bytes);
                let next = self.next();
                repair = Some((slot.code.len(), Register::Rcx, next));
                slot.positions.push((slot.code.len(), Position::Done(next)));
                slot.code.extend_from_slice(&MOVABS_RCX);
                slot.code.extend_from_slice(&next.to_le_bytes());
            }
            Kind::Call => {
                return Err(RelocateError::Unmovable {
                    at: self.at,
                    why: "a call pushes its own address",
                });
            }
        }
        slot.jump(self.next())?;
        Ok(slot.finish(repair))
    }

    /// What a `call` would do with these registers; memory operands are read with `read` (eight
    /// bytes, little-endian). `None`: no call, or its operand is unreadable, where the processor
    /// would fault before it pushes anything.
    pub fn call(
        &self,
        registers: &Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<Call> {
        if self.kind != Kind::Call {
            return None;
        }
        let instruction = &self.instruction;
        let target = match instruction.op0_kind() {
            OpKind::NearBranch64 => instruction.near_branch64(),
            OpKind::Register => registers.get(general(instruction.op0_register())?),
            OpKind::Memory => read(memory_address(instruction, registers)?)?,
            _ => return None,
        };
        Some(Call {
            target,
            return_address: self.next(),
        })
    }
}

/// `jmp rel32`.
const JUMP_LENGTH: u8 = 5;
/// `movabs $imm64,%rcx`, without the immediate.
const MOVABS_RCX: [u8; 2] = [0x48, 0xb9];

/// A slot in the making.
struct Builder {
    address: u64,
    code: Vec<u8>,
    positions: Vec<(usize, Position)>,
}

impl Builder {
    /// The 32-bit displacement to `target` of an instruction that ends at offset `end`.
    fn displacement(&self, end: usize, target: u64) -> Result<[u8; 4], RelocateError> {
        let from = self.address.wrapping_add(end as u64);
        let distance = target.wrapping_sub(from) as i64;
        match i32::try_from(distance) {
            Ok(distance) => Ok(distance.to_le_bytes()),
            Err(_) => Err(RelocateError::TooFar {
                slot: self.address,
                target,
            }),
        }
    }

    fn branch(&mut self, opcode: &[u8], target: u64) -> Result<(), RelocateError> {
        let displacement = self.displacement(self.code.len() + opcode.len() + 4, target)?;
        self.code.extend_from_slice(opcode);
        self.code.extend_from_slice(&displacement);
        Ok(())
    }

    /// `jmp target`, where all that the instruction does is done.
    fn jump(&mut self, target: u64) -> Result<(), RelocateError> {
        self.positions
            .push((self.code.len(), Position::Done(target)));
        self.branch(&[0xe9], target)
    }

    fn finish(self, repair: Option<(usize, Register, u64)>) -> Slot {
        Slot {
            code: self.code,
            positions: self.positions,
            repair,
        }
    }
}

fn kind(
    instruction: &Instruction,
    displacement: usize,
    bytes: &[u8],
) -> Result<Kind, &'static str> {
    match instruction.mnemonic() {
        Mnemonic::Sysenter
        | Mnemonic::Sysret
        | Mnemonic::Sysretq
        | Mnemonic::Sysexit
        | Mnemonic::Sysexitq
        | Mnemonic::Rsm => {
            return Err("it is not an instruction of user programs");
        }
        _ => {}
    }
    match instruction.flow_control() {
        FlowControl::Call
        | FlowControl::IndirectCall
        | FlowControl::UnconditionalBranch
        | FlowControl::ConditionalBranch
        | FlowControl::IndirectBranch
            if narrow(bytes) =>
        {
            return Err("processors disagree about its 66 prefix");
        }
        FlowControl::Call | FlowControl::IndirectCall => return call_kind(instruction),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            return branch_kind(instruction);
        }
        FlowControl::Interrupt => return Err("an interrupt reports its own address"),
        FlowControl::XbeginXabortXend if instruction.mnemonic() == Mnemonic::Xbegin => {
            return Err("a transaction restarts at its own address");
        }
        FlowControl::Exception => return Err("it is there to fault at its own address"),
        _ => {}
    }
    if instruction.is_ip_rel_memory_operand() {
        if instruction.memory_base() != Iced::RIP {
            return Err("a 32-bit operand relative to the instruction");
        }
        return Ok(Kind::RipRelative {
            displacement,
            target: instruction.ip_rel_memory_address(),
        });
    }
    Ok(Kind::Plain)
}

/// A 66 prefix that counts. Near branches with it are 64 bits wide on Intel's processors and 16 on
/// AMD's; REX.W settles it (`data16 rex.W call`, in accesses to thread-local variables).
fn narrow(bytes: &[u8]) -> bool {
    let prefixes = bytes
        .iter()
        .take_while(|byte| {
            matches!(
                byte,
                0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
            )
        })
        .count();
    let wide = bytes
        .get(prefixes)
        .is_some_and(|byte| matches!(byte, 0x48..=0x4f));
    bytes[..prefixes].contains(&0x66) && !wide
}

fn call_kind(instruction: &Instruction) -> Result<Kind, &'static str> {
    match instruction.code() {
        Code::Syscall => Ok(Kind::Syscall),
        Code::Call_rel32_64 | Code::Call_rm64 => Ok(Kind::Call),
        Code::Call_m1616 | Code::Call_m1632 | Code::Call_m1664 => Err("a far call"),
        _ => Err("a call that is not 64-bit, or enters the kernel or a hypervisor"),
    }
}

fn branch_kind(instruction: &Instruction) -> Result<Kind, &'static str> {
    if instruction.op0_kind() != OpKind::NearBranch64 {
        return Err("a branch that is not 64-bit");
    }
    let target = instruction.near_branch64();
    match instruction.code() {
        Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => Ok(Kind::Jump { target }),
        _ if instruction.is_jcc_short_or_near() => Ok(Kind::Conditional {
            // ConditionCode counts from 1 in the order of the opcodes.
            condition: instruction.condition_code() as u8 - 1,
            target,
        }),
        _ if instruction.is_loop() || instruction.is_loopcc() || instruction.is_jcx_short() => {
            Ok(Kind::Short { target })
        }
        _ => Err("an unusual branch"),
    }
}

/// The address of the memory operand with these registers.
fn memory_address(instruction: &Instruction, registers: &Registers) -> Option<u64> {
    instruction.virtual_address(0, 0, |register, _, _| match register {
        // Outside of fs and gs a segment has no base in 64-bit mode.
        Iced::CS | Iced::DS | Iced::ES | Iced::SS => Some(0),
        Iced::FS => Some(registers.get(Register::FsBase)),
        Iced::GS => Some(registers.get(Register::GsBase)),
        _ => {
            let value = registers.get(general(register.full_register())?);
            // The 67 prefix takes the low halves.
            Some(if register.is_gpr32() {
                value as u32 as u64
            } else {
                value
            })
        }
    })
}

/// The 64-bit register of that name.
pub(super) fn general(register: Iced) -> Option<Register> {
    Some(match register {
        Iced::RAX => Register::Rax,
        Iced::RBX => Register::Rbx,
        Iced::RCX => Register::Rcx,
        Iced::RDX => Register::Rdx,
        Iced::RSI => Register::Rsi,
        Iced::RDI => Register::Rdi,
        Iced::RBP => Register::Rbp,
        Iced::RSP => Register::Rsp,
        Iced::R8 => Register::R8,
        Iced::R9 => Register::R9,
        Iced::R10 => Register::R10,
        Iced::R11 => Register::R11,
        Iced::R12 => Register::R12,
        Iced::R13 => Register::R13,
        Iced::R14 => Register::R14,
        Iced::R15 => Register::R15,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "relocate_tests.rs"]
mod tests;
