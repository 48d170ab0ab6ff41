//! Runs instructions at their own address and from a slot, and compares everything.

use super::*;

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use proptest::prelude::*;

/// `<linux/elf.h>`.
const NT_X86_XSTATE: libc::c_int = 0x202;
const SIZE: usize = 0x10000;
/// Offsets in the shared mapping: the original, its slot, data, the stack, a place to jump to.
const AT: usize = 0x1000;
const SLOT: usize = 0x3000;
const FAR: usize = 0x5000;
const DATA: usize = 0x8000;
const STACK: usize = 0xc000;

/// A child that only exists to be run, and the memory it shares with the test.
struct Machine {
    child: Pid,
    base: *mut u8,
    start: libc::user_regs_struct,
    start_vectors: Vec<u8>,
}

impl Machine {
    fn new() -> Machine {
        // SAFETY: a new anonymous mapping.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SIZE,
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        // SAFETY: the child calls only ptrace, raise and _exit, which are safe after a fork.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => unsafe {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                libc::raise(libc::SIGSTOP);
                libc::_exit(1);
            },
            ForkResult::Parent { child } => {
                waitpid(child, None).unwrap();
                ptrace::setoptions(child, ptrace::Options::PTRACE_O_EXITKILL).unwrap();
                Machine {
                    child,
                    base: base.cast(),
                    start: ptrace::getregs(child).unwrap(),
                    start_vectors: vectors(child),
                }
            }
        }
    }

    fn address(&self, offset: usize) -> u64 {
        self.base as u64 + offset as u64
    }

    fn memory(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is SIZE long and the child is stopped whenever this is called.
        unsafe { std::slice::from_raw_parts_mut(self.base, SIZE) }
    }

    /// Memory as every run finds it: int3 all over the code, a pattern in the data.
    fn reset(&mut self, original: &[u8], slot: &[u8]) {
        let far = self.address(FAR);
        let data = self.address(DATA);
        let memory = self.memory();
        memory[..DATA].fill(0xcc);
        for (i, byte) in memory[DATA..].iter_mut().enumerate() {
            *byte = (i * 7 + 3) as u8;
        }
        memory[AT..AT + original.len()].copy_from_slice(original);
        memory[SLOT..SLOT + slot.len()].copy_from_slice(slot);
        // What a return, an indirect jump and a `pop` find.
        memory[STACK..STACK + 8].copy_from_slice(&far.to_le_bytes());
        memory[DATA..DATA + 8].copy_from_slice(&far.to_le_bytes());
        memory[DATA + 8..DATA + 16].copy_from_slice(&data.to_le_bytes());
    }

    fn registers(&self, case: &Case) -> libc::user_regs_struct {
        let mut r = self.start;
        r.orig_rax = u64::MAX;
        r.rax = 0x1111_2222_3333_4444;
        r.rbx = 0x5555_6666_7777_8888;
        r.rcx = 3;
        r.rdx = 0x0102_0304_0506_0708;
        r.rsi = self.address(DATA + 0x100);
        r.rdi = self.address(DATA + 0x200);
        r.rbp = self.address(STACK + 0x100);
        r.rsp = self.address(STACK);
        r.r8 = self.address(FAR);
        r.r9 = 0x99;
        r.r10 = 0x1010;
        r.r11 = 0x1111;
        r.r12 = 0x1212;
        r.r13 = 0x1313;
        r.r14 = 0x1414;
        r.r15 = 0x1515;
        r.eflags = 0x202 | case.flags;
        if let Some(rcx) = case.rcx {
            r.rcx = rcx;
        }
        if let Some(rax) = case.rax {
            r.rax = rax;
        }
        r
    }

    /// Runs from `offset` to the next int3. The stop's signal tells a trap from a fault.
    fn run(&mut self, offset: usize, case: &Case) -> Outcome {
        let mut registers = self.registers(case);
        registers.rip = self.address(offset);
        ptrace::setregs(self.child, registers).unwrap();
        set_vectors(self.child, &self.start_vectors);
        ptrace::cont(self.child, None).unwrap();
        let signal = match waitpid(self.child, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::Stopped(_, signal) => signal,
            other => panic!("{}: {other:?}", case.name),
        };
        let registers = ptrace::getregs(self.child).unwrap();
        Outcome {
            signal,
            registers,
            vectors: vectors(self.child),
            memory: self.memory()[DATA..].to_vec(),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(self.child, Signal::SIGKILL);
        let _ = waitpid(self.child, Some(WaitPidFlag::__WALL));
        // SAFETY: the mapping made in `new`.
        unsafe { libc::munmap(self.base.cast(), SIZE) };
    }
}

fn vectors(child: Pid) -> Vec<u8> {
    let mut buffer = vec![0u8; 1 << 14];
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: `part` describes `buffer`.
    let result = unsafe {
        libc::ptrace(
            libc::PTRACE_GETREGSET,
            child.as_raw(),
            NT_X86_XSTATE,
            &mut part,
        )
    };
    assert_eq!(result, 0);
    buffer.truncate(part.iov_len);
    // The address of the last x87 instruction is allowed to be the slot's.
    buffer[8..16].fill(0);
    buffer
}

fn set_vectors(child: Pid, start: &[u8]) {
    let mut state = start.to_vec();
    for (i, byte) in state[160..160 + 256].iter_mut().enumerate() {
        *byte = (i * 5 + 1) as u8;
    }
    // x87, SSE and AVX in use, the upper halves of ymm zero.
    state[512] |= 7;
    state[576..576 + 256].fill(0);
    let mut part = libc::iovec {
        iov_base: state.as_mut_ptr().cast(),
        iov_len: state.len(),
    };
    // SAFETY: `part` describes `state`.
    let result = unsafe {
        libc::ptrace(
            libc::PTRACE_SETREGSET,
            child.as_raw(),
            NT_X86_XSTATE,
            &mut part,
        )
    };
    assert_eq!(result, 0);
}

#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    signal: Signal,
    registers: libc::user_regs_struct,
    vectors: Vec<u8>,
    memory: Vec<u8>,
}

struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    flags: u64,
    rcx: Option<u64>,
    rax: Option<u64>,
}

/// Bytes in hexadecimal; `DATA` and `FAR` are the displacements to those offsets.
fn case(name: &'static str, text: &str) -> Case {
    let mut bytes = Vec::new();
    let mut hole = None;
    let mut length = 0;
    for word in text.split_whitespace() {
        if word == "DATA" || word == "FAR" {
            hole = Some((length, if word == "DATA" { DATA } else { FAR }));
            bytes.extend_from_slice(&[0; 4]);
            length += 4;
        } else {
            bytes.push(u8::from_str_radix(word, 16).unwrap());
            length += 1;
        }
    }
    if let Some((at, target)) = hole {
        let displacement = (target - AT - length) as i32;
        bytes[at..at + 4].copy_from_slice(&displacement.to_le_bytes());
    }
    Case {
        name,
        bytes,
        flags: 0,
        rcx: None,
        rax: None,
    }
}

const ZF: u64 = 0x40;
const ALL_FLAGS: u64 = 0x8d5;

fn cases() -> Vec<Case> {
    let mut cases = vec![
        case("push %rbp", "55"),
        case("push %r15", "41 57"),
        case("push %rsp", "54"),
        case("pop %rbx", "5b"),
        case("endbr64", "f3 0f 1e fa"),
        case("nop", "90"),
        case("nopw", "66 0f 1f 44 00 00"),
        case("sub $8,%rsp", "48 83 ec 08"),
        case("mov %rsp,%rbp", "48 89 e5"),
        case("pushf", "9c"),
        case("enter", "c8 10 00 00"),
        case("leave", "c9"),
        case("ret", "c3"),
        case("repz ret", "f3 c3"),
        case("ret $16", "c2 10 00"),
        case("lea (%rip)", "48 8d 05 DATA"),
        case("mov (%rip),%rax", "48 8b 05 DATA"),
        case("movl $imm,(%rip)", "c7 05 DATA 44 33 22 11"),
        case("movb $imm,(%rip)", "c6 05 DATA 44"),
        case("movw $imm,(%rip)", "66 c7 05 DATA 44 33"),
        case("cmpl $imm8,(%rip)", "83 3d DATA 07"),
        case("add %al,(%rip)", "00 05 DATA"),
        case("xchg (%rip)", "48 87 05 DATA"),
        case("lock incl (%rip)", "f0 ff 05 DATA"),
        case("lock cmpxchg16b (%rip)", "f0 48 0f c7 0d DATA"),
        case("cmpxchg8b (%rip)", "0f c7 0d DATA"),
        case("push (%rip)", "ff 35 DATA"),
        case("pop (%rip)", "8f 05 DATA"),
        case("movups (%rip)", "0f 10 05 DATA"),
        case("movdqa (%rip)", "66 44 0f 6f 3d DATA"),
        case("pshufd $imm,(%rip)", "66 0f 70 05 DATA 1b"),
        case("fldl (%rip)", "dd 05 DATA"),
        case("jmp rel8", "eb 20"),
        case("jmp rel8 backwards", "eb f0"),
        case("jmp rel32", "e9 FAR"),
        case("bnd jmp rel32", "f2 e9 FAR"),
        case("jmp *%r8", "41 ff e0"),
        case("notrack jmp *%r8", "3e 41 ff e0"),
        case("jmp *(%rip)", "ff 25 DATA"),
        case("jmp *(%rsp)", "ff 24 24"),
        case("rep movsb", "f3 a4"),
        case("rep stosq", "f3 48 ab"),
        case("repne scasb", "f2 ae"),
        case("repe cmpsb", "f3 a6"),
        case("mov %fs:0x28,%rax", "64 48 8b 04 25 28 00 00 00"),
        case("div that overflows", "48 f7 f1"),
        case("mov 0,%eax, which faults", "8b 04 25 00 00 00 00"),
        case("movabs", "48 b8 88 77 66 55 44 33 22 11"),
        case("iretq, which faults", "48 cf"),
        case("cpuid", "0f a2"),
    ];
    if std::arch::is_x86_feature_detected!("avx") {
        cases.push(case("vmovdqu (%rip)", "c5 fe 6f 05 DATA"));
        cases.push(case("vpshufd $imm,(%rip)", "c5 f9 70 05 DATA 1b"));
        cases.push(case("vinsertf128 (%rip)", "c4 e3 7d 18 05 DATA 01"));
    }
    if std::arch::is_x86_feature_detected!("avx512f") {
        cases.push(case("vmovdqu64 (%rip),%zmm1", "62 f1 fe 48 6f 0d DATA"));
    }
    for condition in 0..16u8 {
        for flags in [0, ALL_FLAGS, ZF, 0x1, 0x80, 0x800, 0x4, 0x880] {
            let mut short = case("jcc rel8", "70 20");
            short.bytes[0] |= condition;
            short.flags = flags;
            cases.push(short);
            let mut near = case("jcc rel32", "0f 80 FAR");
            near.bytes[1] |= condition;
            near.flags = flags;
            cases.push(near);
        }
    }
    for opcode in 0xe0..=0xe3u8 {
        for rcx in [0, 1, 2, 0x1_0000_0000] {
            for flags in [0, ALL_FLAGS] {
                for prefix in [false, true] {
                    let mut short = case("loop/jrcxz", "e0 20");
                    short.bytes[0] = opcode;
                    if prefix {
                        short.bytes.insert(0, 0x67);
                    }
                    short.rcx = Some(rcx);
                    short.flags = flags;
                    cases.push(short);
                }
            }
        }
    }
    let mut syscall = case("syscall getpid", "0f 05");
    syscall.rax = Some(libc::SYS_getpid as u64);
    cases.push(syscall);
    cases
}

#[test]
fn a_slot_does_what_the_original_does() {
    let mut machine = Machine::new();
    for case in cases() {
        let displaced = Displaced::decode(&case.bytes, machine.address(AT)).expect(case.name);
        assert_eq!(displaced.length(), case.bytes.len(), "{}", case.name);
        let slot = displaced.slot(machine.address(SLOT)).expect(case.name);
        assert!(slot.code.len() <= SLOT_MAX, "{}", case.name);

        machine.reset(&case.bytes, &slot.code);
        let original = machine.run(AT, &case);
        machine.reset(&case.bytes, &slot.code);
        let mut moved = machine.run(SLOT, &case);
        if original.signal != Signal::SIGTRAP {
            // A fault leaves rip at the instruction.
            assert_eq!(original.registers.rip, machine.address(AT), "{}", case.name);
            assert_eq!(moved.registers.rip, machine.address(SLOT), "{}", case.name);
            assert_eq!(slot.position(0), Some(Position::NotExecuted));
            moved.registers.rip = original.registers.rip;
        }
        assert!(original == moved, "{} {:x?}", case.name, case.bytes);
    }
}

/// Steps through slots and checks that every place maps to the one the original is at.
#[test]
fn every_place_in_a_slot_has_its_place_in_the_program() {
    let mut machine = Machine::new();
    for case in cases() {
        let at = machine.address(AT);
        let slot_address = machine.address(SLOT);
        let slot = Displaced::decode(&case.bytes, at)
            .and_then(|displaced| displaced.slot(slot_address))
            .expect(case.name);
        machine.reset(&case.bytes, &slot.code);
        let mut registers = machine.registers(&case);
        registers.rip = at;
        ptrace::setregs(machine.child, registers).unwrap();
        if !step(&machine, at) {
            continue; // It faults.
        }
        let expected = ptrace::getregs(machine.child).unwrap();
        machine.reset(&case.bytes, &slot.code);
        registers.rip = slot_address;
        ptrace::setregs(machine.child, registers).unwrap();
        let end = slot_address + slot.code.len() as u64;
        for _ in 0..4 {
            step(&machine, slot_address);
            let mut now = ptrace::getregs(machine.child).unwrap();
            if !(slot_address..end).contains(&now.rip) {
                assert_eq!(now.rip, expected.rip, "{}", case.name);
                break;
            }
            let offset = now.rip - slot_address;
            assert_eq!(
                slot.position(offset),
                Some(Position::Done(expected.rip)),
                "{} {offset}",
                case.name
            );
            if let Some((register, value)) = slot.repair(offset) {
                assert_eq!(register, Register::Rcx);
                now.rcx = value;
            }
            assert_eq!(now.rcx, expected.rcx, "{}", case.name);
            assert_eq!(now.rsp, expected.rsp, "{}", case.name);
        }
    }
}

/// One instruction, all iterations of a `rep`; false if it faults.
fn step(machine: &Machine, from: u64) -> bool {
    loop {
        ptrace::step(machine.child, None).unwrap();
        match waitpid(machine.child, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
            _ => return false,
        }
        if ptrace::getregs(machine.child).unwrap().rip != from {
            return true;
        }
    }
}

#[test]
fn a_call_is_done_as_the_processor_does_it() {
    let mut machine = Machine::new();
    let calls = [
        case("call rel32", "e8 FAR"),
        case("call *%r8", "41 ff d0"),
        case("call *%rsp", "ff d4"),
        case("call *(%rsp)", "ff 14 24"),
        case("call *(%rip)", "ff 15 DATA"),
        case("call *-0x200(%rdi)", "ff 97 00 fe ff ff"),
        case("call *(%rdi,%rcx,8)", "ff 94 cf e8 fd ff ff"),
        case("data16 rex.W call rel32", "66 48 e8 FAR"),
        case("notrack call *%r8", "3e 41 ff d0"),
        case("bnd call rel32", "f2 e8 FAR"),
    ];
    for case in calls {
        let at = machine.address(AT);
        let displaced = Displaced::decode(&case.bytes, at).expect(case.name);
        assert!(displaced.is_call(), "{}", case.name);
        assert!(displaced.slot(machine.address(SLOT)).is_err());
        machine.reset(&case.bytes, &[]);
        let start = machine.registers(&case);
        let mut words = [0; Registers::COUNT];
        // SAFETY: both are the 27 words of user_regs_struct.
        words.copy_from_slice(unsafe {
            std::slice::from_raw_parts((&raw const start).cast::<u64>(), Registers::COUNT)
        });
        let base = machine.base as u64;
        let memory = machine.memory().to_vec();
        let call = displaced
            .call(&Registers(words), &mut |address| {
                let offset = address.checked_sub(base)? as usize;
                let word = memory.get(offset..offset + 8)?;
                Some(u64::from_le_bytes(word.try_into().ok()?))
            })
            .expect(case.name);
        let mut registers = start;
        registers.rip = at;
        ptrace::setregs(machine.child, registers).unwrap();
        assert!(step(&machine, at), "{}", case.name);
        let now = ptrace::getregs(machine.child).unwrap();
        assert_eq!(call.target, now.rip, "{}", case.name);
        assert_eq!(now.rsp, start.rsp - 8, "{}", case.name);
        let offset = (now.rsp - base) as usize;
        let pushed = machine.memory()[offset..offset + 8].to_vec();
        assert_eq!(pushed, call.return_address.to_le_bytes(), "{}", case.name);
    }
}

#[test]
fn a_call_takes_segment_bases_and_short_addresses() {
    let mut registers = Registers::default();
    registers.set(Register::FsBase, 0x7000_0000_0000);
    registers.set(Register::GsBase, 0x6000);
    registers.set(Register::Rax, 0xffff_ffff_0000_1000);
    let mut asked = Vec::new();
    for bytes in [
        &[0x64, 0xff, 0x14, 0x25, 0x10, 0, 0, 0][..], // call *%fs:0x10
        &[0x65, 0xff, 0x50, 0x08],                    // call *%gs:8(%rax)
        &[0x67, 0xff, 0x50, 0x08],                    // call *8(%eax)
    ] {
        Displaced::decode(bytes, 0x1000)
            .unwrap()
            .call(&registers, &mut |address| {
                asked.push(address);
                Some(1)
            })
            .unwrap();
    }
    assert_eq!(asked, [0x7000_0000_0010, 0xffff_ffff_0000_7008, 0x1008]);
}

#[test]
fn what_cannot_be_moved_is_refused() {
    for bytes in [
        &[0xcc][..],
        &[0xcd, 0x80],
        &[0xf1],
        &[0x0f, 0x0b],
        &[0x0f, 0xb9, 0xc0],
        &[0xc7, 0xf8, 0, 0, 0, 0],       // xbegin
        &[0xff, 0x18],                   // lcall *(%rax)
        &[0x48, 0xff, 0x18],             // rex.W lcall
        &[0x66, 0xff, 0xd0],             // call *%ax
        &[0x0f, 0x34],                   // sysenter
        &[0x48, 0x0f, 0x07],             // sysretq
        &[0x67, 0x8d, 0x05, 0, 0, 0, 0], // lea (%eip)
    ] {
        let result = Displaced::decode(bytes, 0x1000);
        assert!(
            matches!(result, Err(RelocateError::Unmovable { .. })),
            "{bytes:x?} {result:?}"
        );
    }
    let invalid = Displaced::decode(&[0x06; 16], 0);
    assert!(
        matches!(invalid, Err(RelocateError::Invalid { .. })),
        "{invalid:?}"
    );
    assert!(matches!(
        Displaced::decode(&[0xe8, 0], 0),
        Err(RelocateError::Truncated { .. })
    ));
    assert!(matches!(
        Displaced::decode(&[], 0),
        Err(RelocateError::Truncated { .. })
    ));
}

#[test]
fn more_than_two_gigabytes_is_an_error() {
    let at = 0x5555_5555_5000u64;
    for bytes in [
        &[0x55][..],
        &[0x74, 0x10],
        &[0xeb, 0x10],
        &[0xe3, 0x10],
        &[0x48, 0x8d, 0x05, 0, 0, 0, 0],
    ] {
        let displaced = Displaced::decode(bytes, at).unwrap();
        assert!(displaced.slot(at + 0x7fff_0000).is_ok());
        assert!(displaced.slot(at - 0x7fff_0000).is_ok());
        for slot in [at + 0x8000_1000, at - 0x8000_1000, at ^ (1 << 63), 0x10000] {
            assert!(
                matches!(displaced.slot(slot), Err(RelocateError::TooFar { .. })),
                "{bytes:x?} {slot:#x}"
            );
        }
    }
}

#[test]
fn a_push_of_a_register_is_known() {
    let push = |bytes: &[u8]| Displaced::decode(bytes, 0).unwrap().is_push_register();
    assert_eq!(push(&[0x55]), Some(Register::Rbp));
    assert_eq!(push(&[0x41, 0x57]), Some(Register::R15));
    assert_eq!(push(&[0x66, 0x55]), None);
    assert_eq!(push(&[0x6a, 0x00]), None);
    assert_eq!(push(&[0x5d]), None);
}

proptest! {
    #[test]
    fn any_bytes_are_moved_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..20),
        at: u64,
        distance: i32,
    ) {
        if let Ok(displaced) = Displaced::decode(&bytes, at) {
            prop_assert!(displaced.length() <= bytes.len().min(INSTRUCTION_MAX));
            let _ = displaced.call(&Registers::default(), &mut Some);
            let _ = displaced.is_push_register();
            if let Ok(slot) = displaced.slot(at.wrapping_add(distance as i64 as u64)) {
                prop_assert!(slot.code.len() <= SLOT_MAX);
                prop_assert_eq!(slot.position(0), Some(Position::NotExecuted));
            }
        }
    }
}
