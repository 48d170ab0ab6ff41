//! Runs instructions at their own address and from a slot, and compares everything.

use super::*;

use super::super::machine::{AT, Case, DATA, FAR, Machine, SLOT};

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use proptest::prelude::*;

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

/// All of libc, decoded again from its slots: the same instruction with the same target.
#[test]
fn every_instruction_of_libc_survives_its_move() {
    use object::{Object, ObjectSection};
    let path = "/lib/x86_64-linux-gnu/libc.so.6";
    let Ok(file) = std::fs::read(path) else {
        println!("skipped: {path} cannot be read");
        return;
    };
    let object = object::File::parse(&*file).unwrap();
    let text = object.section_by_name(".text").unwrap();
    let (code, start) = (text.data().unwrap(), text.address());
    let slot_address = start + 0x4000_0000;
    let (mut offset, mut moved, mut relative) = (0, 0, 0);
    while offset < code.len() {
        let at = start + offset as u64;
        let bytes = &code[offset..];
        let original = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        offset += original.len();
        let Ok(displaced) = Displaced::decode(bytes, at) else {
            continue; // `ud2`, `hlt` and what lies between functions.
        };
        if displaced.is_call() {
            continue;
        }
        let slot = displaced.slot(slot_address).unwrap();
        let copy = Decoder::with_ip(64, &slot.code, slot_address, DecoderOptions::NONE).decode();
        moved += 1;
        if original.is_ip_rel_memory_operand() {
            relative += 1;
            assert_eq!(
                copy.ip_rel_memory_address(),
                original.ip_rel_memory_address()
            );
        }
        if original.op0_kind() == OpKind::NearBranch64 {
            assert_eq!(copy.mnemonic(), original.mnemonic(), "{at:#x}");
            if !original.is_jcx_short() {
                assert_eq!(copy.near_branch64(), original.near_branch64(), "{at:#x}");
            }
        } else {
            assert_eq!(copy.code(), original.code(), "{at:#x}");
            assert_eq!(copy.len(), original.len(), "{at:#x}");
        }
    }
    assert!(moved > 100_000 && relative > 1_000, "{moved} {relative}");
}

/// What ptrace hands over is where `vector_register` looks for it.
#[test]
fn vector_registers_are_found_in_what_ptrace_reads() {
    use super::super::vector::vector_register;
    let mut machine = Machine::new();
    let mut run = |case: Case| {
        machine.reset(&case.bytes, &[]);
        machine.run(AT, &case)
    };
    let outcome = run(case("movups (%rip),%xmm5", "0f 10 2d DATA"));
    assert_eq!(
        vector_register("xmm5", &outcome.vectors).unwrap(),
        outcome.memory[..16]
    );
    let outcome = run(case("fld1", "d9 e8"));
    assert_eq!(
        vector_register("st0", &outcome.vectors).unwrap(),
        [0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f]
    );
    assert_eq!(
        vector_register("ftag", &outcome.vectors).unwrap(),
        [0xff, 0x3f, 0, 0]
    );
    if is_x86_feature_detected!("avx") {
        let outcome = run(case("vmovdqu (%rip),%ymm3", "c5 fe 6f 1d DATA"));
        assert_eq!(
            vector_register("ymm3", &outcome.vectors).unwrap(),
            outcome.memory[..32]
        );
    }
    if is_x86_feature_detected!("avx512bw") {
        for (name, text) in [
            ("zmm1", "62 f1 fe 48 6f 0d DATA"),
            ("zmm17", "62 e1 fe 48 6f 0d DATA"),
        ] {
            let outcome = run(case(name, text));
            assert_eq!(
                vector_register(name, &outcome.vectors).unwrap(),
                outcome.memory[..64]
            );
        }
        let outcome = run(case("kmovq %rax,%k1", "c4 e1 fb 92 c8"));
        assert_eq!(
            vector_register("k1", &outcome.vectors).unwrap(),
            outcome.registers.rax.to_le_bytes()
        );
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

#[test]
fn what_moves_the_flags_is_known() {
    let moves = |bytes: &[u8]| Displaced::decode(bytes, 0x1000).unwrap().moves_flags();
    assert!(moves(&[0x9c]) && moves(&[0x9d]) && moves(&[0x48, 0xcf]));
    assert!(moves(&[0x66, 0x9c]) && moves(&[0x66, 0x9d]) && moves(&[0xcf]));
    assert!(!moves(&[0x55]) && !moves(&[0x9e]) && !moves(&[0xc3]));
}
