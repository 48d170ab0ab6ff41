//! The text is gdb's: the same commands on the same program, stopped at the same place, in both.
//!
//! `x` in every format, size and count; and the corpora `tests/corpus/*.txt`, one command a line. Where
//! the texts may differ is listed, with the reason, in `tests/corpus/exceptions.txt`: at most 5 % of all.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use support::{Missing, Tracer, normalise, root, test, testapp};

const MARK: &str = "@@";
/// Commands per run: the argument list has a limit.
const CHUNK: usize = 400;

/// The text of each command, run at the entry of `stop` in `program`.
fn texts(
    tracer: Tracer,
    program: &str,
    stop: &str,
    commands: &[String],
) -> Result<Vec<String>, Missing> {
    let program = testapp(program)?.display().to_string();
    let mark = format!("\n{MARK}\n");
    let mut texts = Vec::new();
    for chunk in commands.chunks(CHUNK) {
        let stop = format!("break {stop}");
        let mut arguments: Vec<String> = [&stop, "run"]
            .iter()
            .flat_map(|command| ["-ex".to_owned(), (*command).to_owned()])
            .collect();
        for command in chunk {
            arguments.extend([
                "-ex".into(),
                format!("echo \\n{MARK}\\n"),
                "-ex".into(),
                command.clone(),
            ]);
        }
        // The last word decides the exit status of a batch.
        arguments.extend([
            "-ex".into(),
            format!("echo \\n{MARK}\\n"),
            "-ex".into(),
            "kill".into(),
            program.clone(),
        ]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let text = tracer
            .batch(&arguments)?
            .patient(Duration::from_secs(180))
            .finish()
            .1;
        let mut parts = text.split(&mark).map(normalise);
        parts.next();
        let before = texts.len();
        texts.extend(parts.take(chunk.len()));
        assert_eq!(
            texts.len() - before,
            chunk.len(),
            "{tracer:?} ended early:\n{text}"
        );
    }
    Ok(texts)
}

/// Commands whose text is allowed to differ, with the reason behind ` # `.
fn exceptions() -> Vec<String> {
    let list = fs::read_to_string(root().join("tests/corpus/exceptions.txt")).unwrap_or_default();
    list.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once(" # ")?.0.trim().to_owned()))
        .collect()
}

fn compare(program: &str, stop: &str, commands: &[String]) -> Result<(), Missing> {
    let gdb = texts(Tracer::Gdb, program, stop, commands)?;
    let ours = texts(Tracer::Trapline, program, stop, commands)?;
    let excepted = exceptions();
    let mut allowed = 0;
    let mut differences = Vec::new();
    for ((command, gdb), ours) in commands.iter().zip(&gdb).zip(&ours) {
        assert!(
            !ours.contains("nsupported") && !ours.contains("ot supported") || gdb == ours,
            "{command}: {ours}"
        );
        if gdb == ours {
            continue;
        }
        if excepted.contains(command) {
            allowed += 1;
        } else {
            differences.push(format!("--- {command}\ngdb:      {gdb}\ntrapline: {ours}"));
        }
    }
    assert!(
        allowed * 20 <= commands.len(),
        "{allowed} of {} are exceptions",
        commands.len()
    );
    let shown = differences
        .iter()
        .take(30)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        differences.is_empty(),
        "{} of {} differ:\n{shown}",
        differences.len(),
        commands.len()
    );
    Ok(())
}

/// `x` in all its forms at each address.
fn examine(addresses: &[String]) -> Vec<String> {
    let mut commands = Vec::new();
    for address in addresses {
        for count in ["", "3", "47"] {
            for format in ["x", "d", "u", "o", "t", "z", "a", "c", "f"] {
                for size in ["b", "h", "w", "g"] {
                    commands.push(format!("x/{count}{format}{size} {address}"));
                }
            }
            for form in ["s", "sb", "sh", "sw"] {
                commands.push(format!("x/{count}{form} {address}"));
            }
        }
    }
    commands
}

fn instructions(addresses: &[String]) -> Vec<String> {
    addresses
        .iter()
        .flat_map(|address| ["", "3", "12"].map(|count| format!("x/{count}i {address}")))
        .collect()
}

const DATA: [&str; 5] = ["&bytes", "&text", "&doubles", "&pointers", "&floats"];
const CODE: [&str; 3] = ["stop_here", "callee", "main"];

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The addresses of symbols in the program at fixed addresses, as gdb prints them.
fn addresses(names: &[&str]) -> Result<Vec<String>, Missing> {
    let program = testapp("formats-fixed")?.display().to_string();
    let commands: Vec<String> = names
        .iter()
        .map(|name| format!("output/x (long)&{}", name.trim_start_matches('&')))
        .collect();
    let mut arguments: Vec<&str> = commands
        .iter()
        .flat_map(|command| ["-ex", command, "-ex", "echo \\n"])
        .collect();
    arguments.push(&program);
    let text = Tracer::Gdb.batch(&arguments)?.succeed();
    let addresses: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("0x"))
        .map(str::to_owned)
        .collect();
    assert_eq!(addresses.len(), names.len(), "{text}");
    Ok(addresses)
}

#[test]
fn examine_with_symbols() {
    test(|| compare("formats", "*stop_here", &examine(&named(&DATA))));
}

#[test]
fn examine_without_symbols() {
    test(|| {
        let stop = addresses(&["stop_here"])?;
        compare(
            "formats-stripped",
            &format!("*{}", stop[0]),
            &examine(&addresses(&DATA)?),
        )
    });
}

#[test]
fn instructions_with_symbols() {
    test(|| compare("formats", "*stop_here", &instructions(&named(&CODE))));
}

#[test]
fn instructions_without_symbols() {
    test(|| {
        let stop = addresses(&["stop_here"])?;
        compare(
            "formats-stripped",
            &format!("*{}", stop[0]),
            &instructions(&addresses(&CODE)?),
        )
    });
}

fn corpus(file: &str) {
    test(|| {
        let path = root().join("tests/corpus").join(file);
        let text = fs::read_to_string(&path)
            .map_err(|error| Missing(format!("{}: {error}", path.display())))?;
        let commands: Vec<String> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect();
        let distinct: BTreeMap<&String, ()> =
            commands.iter().map(|command| (command, ())).collect();
        assert_eq!(distinct.len(), commands.len(), "{file} repeats itself");
        compare("formats", "*stop_here", &commands)
    });
}

#[test]
fn corpus_of_print() {
    corpus("print.txt");
}

#[test]
fn corpus_of_printf() {
    corpus("printf.txt");
}

#[test]
fn corpus_of_x() {
    corpus("x.txt");
}
