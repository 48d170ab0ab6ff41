//! The prologues against gdb's own choice, on functions assembled for it.

use super::*;

use std::fmt::Write as _;
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol};

const REGISTERS: [&str; 15] = [
    "rax", "rcx", "rdx", "rbx", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

/// Bodies of functions; `FRAME` is the prologue itself.
fn bodies() -> Vec<String> {
    let mut bodies: Vec<String> = [
        "FRAME",
        "push %rbp; .byte 0x48,0x8b,0xec",
        "push %rbp; mov %esp,%ebp",
        "push %rbp; .byte 0x8b,0xec",
        "push %rbp; .byte 0x66,0x48,0x89,0xe5",
        "endbr64; FRAME",
        "endbr64; endbr64; FRAME",
        "endbr64; mov %rdi,%rax",
        "endbr64; push %rbp; mov %rdi,%rbp",
        ".byte 0xf3,0x0f,0x1e,0xfb; FRAME",
        "push %rbp; endbr64; mov %rsp,%rbp",
        "push %rbp; push %rbx",
        "push %rbp; sub $8,%rsp; mov %rsp,%rbp",
        ".byte 0xff,0xf5; mov %rsp,%rbp",
        ".byte 0x48,0x55; mov %rsp,%rbp",
        "sub $8,%rsp",
        "nop; FRAME",
        "lea 8(%rsp),%r10; and $-16,%rsp; pushq -8(%r10); nop",
        "lea 8(%rsp),%r10; and $-16,%rsp; pushq -8(%r10); push %rbp; push %rbx",
        "endbr64; lea 8(%rsp),%r10; and $-16,%rsp; pushq -8(%r10); FRAME",
        "lea 8(%rsp),%r10; and $-16,%rsp; pushq -8(%r10); endbr64; FRAME",
        "lea 8(%rsp),%rcx; and $-16,%rsp; pushq -8(%rdx); FRAME",
        "lea 16(%rsp),%rdx; and $-16,%rsp; pushq -8(%rdx); FRAME",
        "lea 8(%rsp),%rdx; and $-16,%rsp; pushq -16(%rdx); FRAME",
        "lea 8(%esp),%r10d; and $-16,%esp; pushq -8(%r10); FRAME",
        "lea 8(%rsp),%r10; and $-16,%rsp; .byte 0x49,0xff,0x72,0xf8; FRAME",
        "push %rdx; lea 8(%rsp),%rdx; and $-16,%rsp; pushq -8(%rdx); FRAME",
        "push %rdx; lea 16(%rsp),%rbx; and $-16,%rsp; pushq -8(%rbx); FRAME",
        ".byte 0x40,0x52; lea 16(%rsp),%rdx; and $-16,%rsp; pushq -8(%rdx); FRAME",
        ".byte 0xff,0xf2; lea 16(%rsp),%rdx; and $-16,%rsp; pushq -8(%rdx); FRAME",
    ]
    .map(str::to_owned)
    .into();
    for r in REGISTERS {
        for mask in ["-32", "-4096"] {
            let align = format!("and ${mask},%rsp; pushq -8(%{r}); FRAME");
            bodies.push(format!("lea 8(%rsp),%{r}; {align}"));
            bodies.push(format!("push %{r}; lea 16(%rsp),%{r}; {align}"));
        }
    }
    bodies
}

fn assemble(directory: &std::path::Path) -> Option<(Vec<String>, std::path::PathBuf)> {
    let bodies = bodies();
    let mut text = String::from(".section .note.GNU-stack\n.text\n.globl main\nmain: ret\n");
    for (i, body) in bodies.iter().enumerate() {
        let body = body
            .replace("FRAME", "push %rbp; .byte 0x48,0x89,0xe5")
            .replace(';', "\n");
        let _ = write!(
            text,
            ".globl case{i}\n.type case{i},@function\ncase{i}:\n{body}\nnop\nret\n"
        );
    }
    let source = directory.join("prologues.s");
    let program = directory.join("prologues");
    std::fs::write(&source, text).unwrap();
    let status = Command::new("gcc")
        .args(["-g0", "-no-pie", "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .ok()?;
    status.success().then_some((bodies, program))
}

#[test]
fn a_breakpoint_goes_where_gdb_puts_it() {
    let directory = std::env::temp_dir().join(format!("trapline-prologue-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let assembled = assemble(&directory);
    let found = assembled.as_ref().and_then(|(bodies, program)| {
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "-batch"]);
        for i in 0..bodies.len() {
            gdb.arg("-ex").arg(format!("break case{i}"));
        }
        let output = gdb.arg(program).output().ok()?;
        Some((output, std::fs::read(program).unwrap()))
    });
    let _ = std::fs::remove_dir_all(&directory);
    let (Some((bodies, _)), Some((output, file))) = (assembled, found) else {
        println!("skipped: it takes gcc and gdb");
        return;
    };
    let addresses: Vec<u64> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split_once(" at 0x"))
        .map(|(_, hex)| u64::from_str_radix(hex, 16).unwrap())
        .collect();
    assert_eq!(addresses.len(), bodies.len());
    let object = object::File::parse(&*file).unwrap();
    let text = object.section_by_name(".text").unwrap();
    for (i, (body, address)) in bodies.iter().zip(addresses).enumerate() {
        let start = object
            .symbol_by_name(&format!("case{i}"))
            .unwrap()
            .address();
        let code = &text.data().unwrap()[(start - text.address()) as usize..];
        let code = &code[..code.len().min(PROLOGUE_MAX)];
        assert_eq!(start + prologue(code) as u64, address, "{body}");
    }
}

#[test]
fn a_cut_prologue_is_none() {
    let code = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5];
    assert_eq!(prologue(&code), 8);
    for length in 0..8 {
        assert_eq!(prologue(&code[..length]), 0);
    }
}
