//! Programs at ways out of functions, compared with what the evaluator says there.

use super::tests::{Shared, World, commands, print_body};
use super::*;
use crate::arch::Target;
use crate::lang::body::entries;
use crate::lang::parse;
use crate::probe::interpret::{Machine, Outcome, check, run};
use crate::probe::program::Fault;

const FUNCTION: u64 = 0x5000;
const PARTS: &[(u64, u64)] = &[(FUNCTION, 0x100), (0x7000, 0x10)];

fn program(
    kind: ExitKind,
    condition: Option<&str>,
    text: &str,
    kept: Result<&[Expr], Unavailable>,
    world: &World,
    shared: &mut Shared,
) -> Program {
    let body = commands(text, world);
    let condition = condition.map(|text| parse(text, world).unwrap());
    let source = Source {
        condition: condition.as_ref(),
        body: &body,
        continues: true,
        entry: false,
        sample: None,
        out: Some(Out {
            kind,
            function: FUNCTION,
            parts: PARTS,
            entries: kept,
        }),
    };
    let program = compile(&source, world, shared).unwrap_or_else(|e| panic!("{text}: {e}"));
    check(&program).unwrap();
    assert!(!program.to_string().is_empty());
    program
}

/// Runs a body at a return: the entry's programs first, then everything in the registers changes.
/// What the engine and the front do must be what the evaluator does. Gives the text.
fn at_return(text: &str) -> String {
    let before = World::new();
    let kept = entries(None, &commands(text, &before));
    let mut shared = Shared::default();
    let mut machine = before.clone();
    for index in 0..kept.len() {
        let out = Out {
            kind: ExitKind::Return,
            function: FUNCTION,
            parts: PARTS,
            entries: Ok(&kept),
        };
        let program = compile_entry(index, out, &before, &mut shared).unwrap();
        check(&program).unwrap();
        run(&program, &mut machine, &mut Vec::new());
    }
    let sp = machine.registers.sp();
    machine.registers = Registers::default();
    machine.registers.set(Register::Rsp, sp);
    machine.registers.set(Register::Rax, 77);
    machine.way = WayOut::Return;
    machine.entries = kept.clone();
    let program = program(
        ExitKind::Return,
        None,
        text,
        Ok(&kept),
        &before,
        &mut shared,
    );
    let at_way_out = machine.clone();
    let outcome = run(&program, &mut machine, &mut Vec::new());
    let body = commands(text, &before);
    let mut live = at_way_out.clone();
    live.left = machine.left.clone();
    let (direct, error) = print_body(&body, &mut live);
    let (replayed, replay_error) = print_body(&body, &mut machine.snapshot(&at_way_out, &shared));
    assert_eq!(replayed, direct, "{text}\n{program}");
    assert_eq!(error.is_some(), replay_error.is_some(), "{text}\n{program}");
    assert_eq!(
        error.map(|(index, _)| index),
        outcome.fault.map(|_| outcome.command),
        "{text}\n{program}"
    );
    assert_eq!(machine.registers, live.registers, "{text}\n{program}");
    direct
}

#[test]
fn the_front_shows_what_the_program_saw() {
    assert_eq!(at_return("print $_retval"), "$1 = 77\n");
    assert_eq!(at_return("print $retval + 1"), "$1 = 78\n");
    at_return("set $_retval = 5\nprint $_retval\nprint $rax\nset $_retval += 3");
    at_return("set $retval = 9\nprint $retval\nprint $_retval");
    let text = at_return("print/x $_entry($rdi)\nprint (char)$_entry({int}$rdi)");
    assert_eq!(text, "$1 = 0x1000\n$2 = 72 'H'\n");
    at_return("print $_entry((char*)$rdi)\nx/s $_entry((char*)$rdi)\nprint $_entry($arg2)");
    at_return("printf \"%d %s\\n\", $_entry($edx), $_entry((char*)$rdi)");
    at_return("if $_entry($rdi) == 0x1000\nprint $_entry($rsi) + $_retval\nend");
    // At the entry the memory was not there.
    let text = at_return("print 1\nprint $_entry({int}8)\nprint 2");
    assert_eq!(text, "$1 = 1\n");
}

#[test]
fn what_is_not_available_is_a_fault() {
    let world = World::new();
    let inner = parse("$rdi", &world).unwrap();
    let kept = [inner];
    let run_it = |kind, condition, text, kept: Result<&[Expr], _>| {
        let program = program(kind, condition, text, kept, &world, &mut Shared::default());
        let mut machine = world.clone();
        run(&program, &mut machine, &mut Vec::new())
    };
    let fault = |outcome: Outcome| outcome.fault;
    let unavailable = |what| Some(Fault::Unavailable(what));
    let jump = run_it(ExitKind::Jump, None, "print $_retval", Ok(&[]));
    assert_eq!(fault(jump), unavailable(Unavailable::RetvalAtJump));
    let condition = run_it(ExitKind::Jump, Some("$_retval == 5"), "", Ok(&[]));
    assert!(!condition.hit);
    let text = "print $_entry($rdi)";
    let unknown = run_it(ExitKind::Return, None, text, Ok(&kept));
    assert_eq!(fault(unknown), unavailable(Unavailable::EntryUnknown));
    let other = run_it(ExitKind::Return, None, text, Ok(&[]));
    assert_eq!(fault(other), unavailable(Unavailable::EntryNotKept));
    let refused = run_it(ExitKind::Return, None, text, Err(Unavailable::EntryInLoop));
    assert_eq!(fault(refused), unavailable(Unavailable::EntryInLoop));
}

/// Whether a pass with these registers is a hit, and whether its call ended.
fn leaves(kind: ExitKind, change: impl Fn(&mut World)) -> bool {
    let mut world = World::new();
    let kept = [parse("$rdi", &world).unwrap()];
    let mut shared = Shared::default();
    let program = program(kind, None, "", Ok(&kept), &world, &mut shared);
    change(&mut world);
    world.enter(FUNCTION);
    let hit = run(&program, &mut world, &mut Vec::new()).hit;
    assert_eq!(hit, world.left.is_some());
    hit
}

#[test]
fn a_jump_that_stays_inside_is_no_way_out() {
    let by_register = ExitKind::Indirect(Target::Register(Register::Rax));
    let to = |address: u64| move |world: &mut World| world.registers.set(Register::Rax, address);
    for (address, out) in [
        (0x5001, false),
        (0x50ff, false),
        (0x5100, true),
        (0x4fff, true),
        // Its own first instruction is another call.
        (FUNCTION, true),
        (0x7000, false),
        (0x700f, false),
        (0x7010, true),
    ] {
        assert_eq!(leaves(by_register, to(address)), out, "{address:#x}");
    }
    // jmp *8(%rdi,%rcx,8): the word at 0x1040 is 0x1000, outside.
    let memory = ExitKind::Indirect(Target::Memory {
        base: Some(Register::Rdi),
        index: Some((Register::Rcx, 8)),
        displacement: 8,
    });
    let index = |world: &mut World| world.registers.set(Register::Rcx, 7);
    assert!(leaves(memory, index));
    assert!(!leaves(memory, |world| {
        index(world);
        world.memory[0x40..0x48].copy_from_slice(&0x5010u64.to_le_bytes());
    }));
}

/// What the processor does, from the SDM's table of conditions.
fn jumps(condition: u8, flags: u64) -> bool {
    let flag = |bit: u32| flags >> bit & 1 == 1;
    let (carry, parity, zero, sign, overflow) = (flag(0), flag(2), flag(6), flag(7), flag(11));
    let holds = match condition & !1 {
        0 => overflow,
        2 => carry,
        4 => zero,
        6 => carry || zero,
        8 => sign,
        10 => parity,
        12 => sign != overflow,
        _ => zero || sign != overflow,
    };
    holds != (condition & 1 == 1)
}

#[test]
fn a_conditional_jump_leaves_where_its_condition_holds() {
    for condition in 0..16 {
        for bits in 0..32u64 {
            let flags = [0, 2, 6, 7, 11].iter().enumerate();
            let flags = flags.fold(0x202, |all, (n, bit)| {
                all & !(1 << bit) | (bits >> n & 1) << bit
            });
            let out = leaves(ExitKind::Conditional(condition), |world| {
                world.registers.set(Register::Eflags, flags);
            });
            assert_eq!(out, jumps(condition, flags), "{condition} {flags:#x}");
        }
    }
}
