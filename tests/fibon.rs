//! n calls are n hits: at every boundary of a function, in any number of threads, with the int3 in place
//! all the while.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::Signal;
use support::app::number;
use support::{App, Missing, Tracer, process, test, testapp};

const ALL: &str = "1000000000";

/// Launches `program` with a counted breakpoint at each location; the hits of each, and the program's last line.
fn counts(
    tracer: Tracer,
    program: &str,
    arguments: &[&str],
    locations: &[String],
) -> Result<(Vec<u64>, String), Missing> {
    let program = testapp(program)?.display().to_string();
    let mut commands = Vec::new();
    for (number, location) in (1..).zip(locations) {
        commands.push(format!("break {location}"));
        commands.push(format!("ignore {number} {ALL}"));
    }
    commands.extend(["run".into(), "info breakpoints".into()]);
    let mut all: Vec<&str> = commands
        .iter()
        .flat_map(|command| ["-ex", command])
        .collect();
    all.extend(["--args", &program]);
    all.extend(arguments);
    let text = tracer
        .batch(&all)?
        .patient(Duration::from_secs(300))
        .succeed();
    let last = text
        .lines()
        .find(|line| line.starts_with("calls=") || line.starts_with("passes="));
    let last = last
        .unwrap_or_else(|| panic!("the program did not end:\n{text}"))
        .to_owned();
    Ok((hits(&text, locations.len()), last))
}

/// `breakpoint already hit N times`, by breakpoint, out of `info breakpoints`.
fn hits(text: &str, breakpoints: usize) -> Vec<u64> {
    let mut hits = vec![0; breakpoints];
    let mut current = None;
    for line in text.lines() {
        if let Some(number) = line
            .split_whitespace()
            .next()
            .and_then(|word| word.parse::<usize>().ok())
        {
            current = number.checked_sub(1);
        }
        if let Some(count) = line.trim().strip_prefix("breakpoint already hit ") {
            let count = count
                .split(' ')
                .next()
                .and_then(|count| count.parse().ok())
                .expect("a count");
            *current
                .and_then(|at| hits.get_mut(at))
                .expect("a breakpoint") = count;
        }
    }
    hits
}

/// Where the instructions of `Fibon` begin, as gdb disassembles it.
fn boundaries(program: &str) -> Result<Vec<u64>, Missing> {
    let program = testapp(program)?.display().to_string();
    let text = Tracer::Gdb
        .batch(&["-ex", "disassemble Fibon", &program])?
        .succeed();
    let offset = |line: &str| line.split_once("<+")?.1.split_once('>')?.0.parse().ok();
    let offsets: Vec<u64> = text
        .lines()
        .filter(|line| !line.contains("nop") && !line.contains("xchg   %ax,%ax"))
        .filter_map(offset)
        .collect();
    assert!(offsets.len() > 15, "{text}");
    Ok(offsets)
}

fn full_count(location: &str) {
    test(|| {
        let (hits, last) = counts(Tracer::Trapline, "fibon", &[], &[location.into()])?;
        assert_eq!(
            (hits[0], number(&last, "calls")),
            (890_000, 890_000),
            "{last}"
        );
        Ok(())
    });
}

#[test]
fn every_call_at_the_entry() {
    full_count("*Fibon");
}

#[test]
fn every_call_behind_the_first_byte() {
    full_count("*(Fibon+1)");
}

/// Which of the program's own counts (`calls`, `leaves`, `inner`) each boundary has, as gdb finds with few calls.
fn kinds(program: &str, offsets: &[u64]) -> Result<Vec<&'static str>, Missing> {
    let locations: Vec<String> = offsets
        .iter()
        .map(|offset| format!("*(Fibon+{offset})"))
        .collect();
    let (hits, last) = counts(Tracer::Gdb, program, &["--calls", "60"], &locations)?;
    let by_count: BTreeMap<u64, &str> = ["calls", "leaves", "inner"]
        .into_iter()
        .map(|kind| (number(&last, kind), kind))
        .collect();
    assert_eq!(by_count.len(), 3, "ambiguous: {last}");
    Ok(hits
        .iter()
        .map(|hits| {
            *by_count
                .get(hits)
                .unwrap_or_else(|| panic!("{hits} hits, {last}"))
        })
        .collect())
}

fn every_boundary(program: &str) {
    test(|| {
        let offsets = boundaries(program)?;
        let kinds = kinds(program, &offsets)?;
        let locations: Vec<String> = offsets
            .iter()
            .map(|offset| format!("*(Fibon+{offset})"))
            .collect();
        // Each alone, then all at once: slots next to each other must not disturb one another.
        for (location, kind) in locations.iter().zip(&kinds) {
            let (hits, last) = counts(
                Tracer::Trapline,
                program,
                &["--calls", "5000"],
                std::slice::from_ref(location),
            )?;
            assert_eq!(hits[0], number(&last, kind), "{location}: {last}");
        }
        let (hits, last) = counts(Tracer::Trapline, program, &["--calls", "5000"], &locations)?;
        let expected: Vec<u64> = kinds.iter().map(|kind| number(&last, kind)).collect();
        assert_eq!(hits, expected, "{offsets:?}");
        Ok(())
    });
}

#[test]
fn every_boundary_unoptimized() {
    every_boundary("fibon");
}

#[test]
fn every_boundary_optimized() {
    every_boundary("fibon-O2");
}

#[test]
fn every_boundary_static() {
    every_boundary("fibon-static");
}

#[test]
fn inside_an_instruction_is_refused() {
    test(|| {
        let program = testapp("fibon")?.display().to_string();
        // The second instruction, `mov %rsp,%rbp`, begins at +1 and the third at +4.
        let text = Tracer::Trapline
            .batch(&[
                "-ex",
                "break *(Fibon+2)",
                "-ex",
                "info breakpoints",
                &program,
            ])?
            .finish()
            .1;
        assert!(text.contains("No breakpoints or watchpoints."), "{text}");
        assert!(
            text.contains("Fibon+1") && text.contains("Fibon+4"),
            "the boundaries beside it are shown: {text}"
        );
        Ok(())
    });
}

/// The int3 comes once and goes once: a thread of the target that watches the bytes sees two changes.
#[test]
fn the_bytes_change_twice() {
    test(|| {
        let mut target = App::start(
            &testapp("fibon")?,
            &["--wait", "--sample", "--linger", "--calls", "100000"],
        );
        target.expect("ready");
        let pid = target.pid().to_string();
        let ignore = format!("ignore 1 {ALL}");
        let arguments = ["-p", &pid, "-ex", "break *Fibon", "-ex", &ignore];
        let mut session = Tracer::Trapline.armed(&arguments, &[])?;
        target.ask("go", "calls done");
        session.signal(Signal::SIGINT);
        session.finish();
        process::wait_untraced(target.pid());
        assert_eq!(process::changed_text(target.pid()), []);
        let line = target.ask("end", "calls=");
        assert_eq!(
            (number(&line, "calls"), number(&line, "changes")),
            (100_000, 2),
            "{line}"
        );
        Ok(())
    });
}

#[test]
fn a_hundred_threads_a_hundred_times() {
    test(|| {
        let (hits, last) = counts(
            Tracer::Trapline,
            "threads",
            &["--rounds", "100"],
            &["*site".into()],
        )?;
        assert_eq!((hits[0], number(&last, "passes")), (10_000, 10_000));
        Ok(())
    });
}
