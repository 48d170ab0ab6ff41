//! The text is gdb's: the same commands on the same program, stopped at the same place, in both.
//!
//! `x` in every format, size and count; and the corpora `tests/corpus/*.txt`, one command a line. A line
//! that begins with `? ` is an exception, which may differ: at most 5 % of all.

mod support;

use std::fs;
use std::time::Duration;

use support::{Missing, Tracer, normalise, root, test, testapp};

const MARK: &str = "@@";
/// Commands per run, where they do not depend on one another.
const CHUNK: usize = 400;

/// The text of each command, run at the entry of `stop` in `program`.
fn texts(
    tracer: Tracer,
    program: &str,
    stop: &str,
    commands: &[String],
    chunk: usize,
) -> Result<Vec<String>, Missing> {
    let program = testapp(program)?.display().to_string();
    let mark = format!("\n{MARK}\n");
    let mut texts = Vec::new();
    for chunk in commands.chunks(chunk) {
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

/// Runs the commands in both, in order, and compares; `? COMMAND` is an exception.
fn compare(program: &str, stop: &str, lines: &[String], chunk: usize) -> Result<(), Missing> {
    let commands: Vec<String> = lines
        .iter()
        .map(|line| line.strip_prefix("? ").unwrap_or(line).to_owned())
        .collect();
    let gdb = texts(Tracer::Gdb, program, stop, &commands, chunk)?;
    let ours = texts(Tracer::Trapline, program, stop, &commands, chunk)?;
    let mut differences = Vec::new();
    let mut excepted = 0;
    for (line, (gdb, ours)) in lines.iter().zip(gdb.iter().zip(&ours)) {
        let unsupported = ours.contains("nsupported") || ours.contains("ot supported");
        if line.starts_with("? ") {
            excepted += 1;
            assert!(!unsupported || gdb == ours, "{line}: {ours}");
        // An exception may or may not take a number of the value history.
        } else if gdb != ours && (excepted == 0 || without_number(gdb) != without_number(ours)) {
            differences.push(format!("--- {line}\ngdb:      {gdb}\ntrapline: {ours}"));
        }
    }
    assert!(
        excepted * 20 <= lines.len(),
        "{excepted} of {} are exceptions",
        lines.len()
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
        lines.len()
    );
    Ok(())
}

fn command_of(line: &str) -> &str {
    line.strip_prefix("? ").unwrap_or(line)
}

fn without_number(text: &str) -> &str {
    match text.split_once(" = ") {
        Some((number, rest)) if number.starts_with('$') => rest,
        _ => text,
    }
}

/// `x` in all its forms at each address; without a size it is the last one, which is part of the comparison.
fn examine(addresses: &[String]) -> Vec<String> {
    let mut commands = Vec::new();
    for address in addresses {
        for count in ["1", "3", "47"] {
            for format in ["x", "d", "u", "o", "t", "z", "a", "c", "f"] {
                for size in ["", "b", "h", "w", "g"] {
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
        .flat_map(|address| ["1", "3", "12"].map(|count| format!("x/{count}i {address}")))
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
    test(|| compare("formats", "*stop_here", &examine(&named(&DATA)), CHUNK));
}

#[test]
fn examine_without_symbols() {
    test(|| {
        let stop = addresses(&["stop_here"])?;
        compare(
            "formats-stripped",
            &format!("*{}", stop[0]),
            &examine(&addresses(&DATA)?),
            CHUNK,
        )
    });
}

#[test]
fn instructions_with_symbols() {
    test(|| compare("formats", "*stop_here", &instructions(&named(&CODE)), CHUNK));
}

#[test]
fn instructions_without_symbols() {
    test(|| {
        let stop = addresses(&["stop_here"])?;
        compare(
            "formats-stripped",
            &format!("*{}", stop[0]),
            &instructions(&addresses(&CODE)?),
            CHUNK,
        )
    });
}

/// A corpus, whose commands build on one another, on the program that it was written for.
fn corpus(file: &str, program: &str, stop: &str) {
    test(|| {
        let path = root().join("tests/corpus").join(file);
        let text = fs::read_to_string(&path)
            .map_err(|error| Missing(format!("{}: {error}", path.display())))?;
        let lines: Vec<String> = text
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect();
        // What is random in the program itself, as the guard of its stack, is nobody's difference.
        let commands: Vec<String> = lines
            .iter()
            .map(|line| command_of(line).to_owned())
            .collect();
        let (first, again) = (
            texts(Tracer::Gdb, program, stop, &commands, lines.len())?,
            texts(Tracer::Gdb, program, stop, &commands, lines.len())?,
        );
        let steady: Vec<String> = lines
            .iter()
            .zip(first.iter().zip(&again))
            .filter(|(_, (first, again))| first == again)
            .map(|(line, _)| line.clone())
            .collect();
        assert!(
            (lines.len() - steady.len()) * 100 <= lines.len(),
            "{file}: too much is random"
        );
        compare(program, stop, &steady, steady.len())
    });
}

#[test]
fn corpus_of_print() {
    corpus("print.txt", "corpus-print", "add");
}

#[test]
fn corpus_of_print_in_cpp() {
    corpus("print.txt", "corpus-print-cc", "ns::Foo::bar");
}

#[test]
fn corpus_of_statements() {
    corpus("statements.txt", "corpus-shown", "stop_here");
}

#[test]
fn corpus_of_printf() {
    corpus("printf.txt", "corpus-shown", "stop_here");
}

#[test]
fn corpus_of_x() {
    corpus("x.txt", "corpus-shown", "stop_here");
}
