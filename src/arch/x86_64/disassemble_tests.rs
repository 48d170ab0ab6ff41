//! The text against gdb's own, over real code.

use super::*;

use std::collections::HashMap;
use std::process::Command;

use object::{Object, ObjectSection};
use proptest::prelude::*;

/// How many instructions of each file are compared.
const COUNT: usize = 20_000;

const FILES: [&str; 5] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/x86_64-linux-gnu/libm.so.6",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/bin/bash",
];

/// Compares `.text` of one file; the lines that differ, and how many there were.
fn compare(path: &str, count: usize) -> Option<(Vec<String>, usize)> {
    let file = std::fs::read(path).ok()?;
    let object = object::File::parse(&*file).ok()?;
    let section = object.section_by_name(".text")?;
    let start = section.address();
    let code = section.data().ok()?;
    let output = Command::new("gdb")
        .args(["-nx", "-batch", "-ex", "set width 0", "-ex"])
        .arg(format!("x/{}i {start:#x}", count))
        .arg(path)
        .output()
        .ok()?;
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for line in output.lines() {
        let Some((head, expected)) = line.split_once(":\t") else {
            continue;
        };
        let address = head.trim_start().trim_start_matches("0x");
        let address = address.split(' ').next().unwrap_or_default();
        let Ok(address) = u64::from_str_radix(address, 16) else {
            continue;
        };
        let Some(bytes) = code.get((address - start) as usize..) else {
            break;
        };
        compared += 1;
        let symbols = symbols(expected);
        let ours = disassemble(bytes, address, &|address| symbols.get(&address).cloned());
        let ours = ours.map(|ours| ours.text).unwrap_or_default();
        if ours != expected {
            let bytes: String = bytes
                .iter()
                .take(12)
                .map(|byte| format!("{byte:02x} "))
                .collect();
            wrong.push(format!(
                "{address:#x} {bytes}\n  gdb  {expected}\n  ours {ours}"
            ));
        }
    }
    Some((wrong, compared))
}

/// The `0x… <name>` of a line: gdb's symbols are not what is compared here.
fn symbols(line: &str) -> HashMap<u64, String> {
    let mut symbols = HashMap::new();
    if let Some(open) = line.find(" <")
        && let Some(name) = line[open + 2..].strip_suffix('>')
        && let Some(hex) = line[..open].rfind("0x")
        && let Ok(address) = u64::from_str_radix(&line[open.min(hex + 2)..open], 16)
    {
        symbols.insert(address, name.to_owned());
    }
    symbols
}

fn has_gdb() -> bool {
    let found = Command::new("gdb").arg("--version").output().is_ok();
    if !found {
        println!("skipped: there is no gdb to compare with");
    }
    found
}

#[test]
fn the_text_is_gdbs() {
    if !has_gdb() {
        return;
    }
    for path in FILES {
        let Some((wrong, count)) = compare(path, COUNT) else {
            println!("skipped: {path} cannot be read");
            continue;
        };
        assert!(wrong.len() * 1000 <= count, "{path}: {}", wrong.join("\n"));
    }
}

/// What gdb prints, for machines without it.
#[test]
fn known_texts() {
    let symbol = |address| (address == 0x401126).then(|| "f+3".to_owned());
    let texts: [(&[u8], &str); 22] = [
        (&[0x55], "push   %rbp"),
        (&[0x48, 0x89, 0xe5], "mov    %rsp,%rbp"),
        (&[0xc3], "ret"),
        (&[0xf3, 0xc3], "repz ret"),
        (&[0xf3, 0x0f, 0x1e, 0xfa], "endbr64"),
        (&[0xe8, 0x21, 0x01, 0, 0], "call   0x401126 <f+3>"),
        (&[0xf2, 0xe9, 0x20, 0x01, 0, 0], "bnd jmp 0x401126 <f+3>"),
        (&[0x3e, 0xff, 0xe0], "notrack jmp *%rax"),
        (&[0x74, 0x02], "je     0x401004"),
        (&[0xc7, 0x45, 0xfc, 0, 0, 0, 0], "movl   $0x0,-0x4(%rbp)"),
        (
            &[0x48, 0x8d, 0x05, 0x1f, 0x01, 0, 0],
            "lea    0x11f(%rip),%rax        # 0x401126 <f+3>",
        ),
        (&[0x0f, 0x1f, 0x44, 0, 0], "nopl   0x0(%rax,%rax,1)"),
        (
            &[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            "data16 cs nopw 0x0(%rax,%rax,1)",
        ),
        (&[0xf3, 0xaa], "rep stos %al,%es:(%rdi)"),
        (&[0x48, 0xa5], "movsq  %ds:(%rsi),%es:(%rdi)"),
        (
            &[0x48, 0xb8, 1, 0, 0, 0, 0, 0, 0, 0x80],
            "movabs $0x8000000000000001,%rax",
        ),
        (&[0x48, 0x83, 0xe4, 0xf0], "and    $0xfffffffffffffff0,%rsp"),
        (
            &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0],
            "mov    %fs:0x28,%rax",
        ),
        (&[0xd1, 0xe8], "shr    %eax"),
        (&[0xf0, 0x0f, 0xb1, 0x0f], "lock cmpxchg %ecx,(%rdi)"),
        (&[0xc5, 0xfd, 0x6f, 0x07], "vmovdqa (%rdi),%ymm0"),
        (&[0xcc], "int3"),
    ];
    for (bytes, text) in texts {
        let instruction = disassemble(bytes, 0x401000, &symbol).unwrap();
        assert_eq!(instruction.text, text);
        assert_eq!(instruction.length, bytes.len());
    }
    let bad = disassemble(&[0x06; 15], 0, &symbol).unwrap();
    assert_eq!((bad.length, &*bad.text), (1, "(bad)"));
    assert_eq!(disassemble(&[0xe8, 0], 0, &symbol), None);
}

proptest! {
    #[test]
    fn any_bytes_have_a_text(bytes in proptest::collection::vec(any::<u8>(), 0..20), address: u64) {
        if let Some(instruction) = disassemble(&bytes, address, &|_| None) {
            prop_assert!(instruction.length >= 1 && instruction.length <= bytes.len());
            prop_assert!(!instruction.text.is_empty());
        }
    }
}
