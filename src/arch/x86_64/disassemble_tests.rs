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

/// Prints what differs, for `TRAPLINE_DISASSEMBLE="FILE…"`, in all of the files' text.
#[test]
#[ignore = "a tool to look for differences, not a test"]
fn differences() {
    let files = std::env::var("TRAPLINE_DISASSEMBLE").unwrap_or_default();
    for path in files.split_whitespace() {
        if let Some((wrong, count)) = compare(path, 1_000_000) {
            println!("{path}: {} of {count} differ", wrong.len());
            for line in wrong {
                println!("{line}");
            }
        }
    }
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
