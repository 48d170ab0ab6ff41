//! `save breakpoints FILE`: commands that make the breakpoints again.

use std::fs;

use super::interpreter::{Call, Interpreter};
use super::table::split;
use crate::error::{Error, fail};
use crate::lang::script::Node;
use crate::session::breakpoint::{Disposition, Event, Origin, Probe};
use crate::session::table::lines;

/// `save breakpoints FILE`
pub fn save(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (word, file) = split(call.arguments);
    if word.is_empty() {
        i.print("List of save subcommands:\n\nsave breakpoints -- Save the breakpoints as a script.\n\n");
        return Ok(());
    }
    if !"breakpoints".starts_with(word) {
        fail!(
            "Undefined save command: \"{}\".  Try \"help save\".",
            call.arguments
        );
    }
    if file.is_empty() {
        fail!("Argument required (file name in which to save)");
    }
    i.session.read_counters();
    if i.session.probes.is_empty() {
        i.session.output.complain("warning: Nothing to save.");
        return Ok(());
    }
    let text: String = i.session.probes.iter().map(script).collect();
    if let Err(error) = fs::write(file, text) {
        let why = crate::session::lifecycle::plain(&error);
        fail!("Unable to open file '{file}' for saving ({why})");
    }
    if call.from_tty {
        i.print(&format!("Saved to file '{file}'.\n"));
    }
    Ok(())
}

/// The commands that make one.
fn script(probe: &Probe) -> String {
    let pending = !probe.resolved && probe.locations.is_empty();
    let what = if pending { &probe.typed } else { &probe.spec };
    let typed_condition = pending && probe.origin == Origin::Break && probe.typed != probe.spec;
    let mut out = match (probe.origin, probe.disposition) {
        (Origin::Event, _) => event(probe),
        (Origin::Dprintf, _) if pending => format!("dprintf {what}\n"),
        (Origin::Dprintf, _) => format!("dprintf {},{}\n", probe.spec, format_of(probe)),
        (Origin::Trace, _) => format!("trace {}{}{}\n", probe.spec, sample(probe), braces(probe)),
        (Origin::Break, Disposition::Delete) => format!("tbreak {what}\n"),
        (Origin::Break, _) => format!("break {what}\n"),
    };
    if let Some(condition) = probe.condition.as_ref().filter(|_| !typed_condition) {
        out.push_str(&format!("  condition $bpnum {condition}\n"));
    }
    if probe.ignore > 0 {
        out.push_str(&format!("  ignore $bpnum {}\n", probe.ignore));
    }
    if let Some(body) = probe.body.as_ref().filter(|_| probe.origin.stops()) {
        out.push_str("  commands\n");
        lines(body, 4, &mut out);
        out.push_str("  end\n");
    }
    if !probe.enabled {
        out.push_str("disable $bpnum\n");
    }
    for (index, location) in probe.locations.iter().enumerate() {
        if !location.enabled && probe.locations.len() > 1 {
            out.push_str(&format!("disable $bpnum.{}\n", index + 1));
        }
    }
    out
}

/// The command that waits for something to happen.
fn event(probe: &Probe) -> String {
    match &probe.event {
        Some(Event::Watch(watched)) => format!("{} {}\n", watched.command(), probe.spec),
        Some(Event::Catch(catch)) => {
            let temporary = probe.disposition == Disposition::Delete;
            let command = if temporary { "tcatch" } else { "catch" };
            format!("{command} {}\n", catch.command())
        }
        None => String::new(),
    }
}

/// What a dprintf prints.
fn format_of(probe: &Probe) -> &str {
    match probe.body.as_deref() {
        Some([Node::Simple(line)]) => line.text.strip_prefix("printf ").unwrap_or_default(),
        _ => "",
    }
}

/// The rate of a `trace`, which stands behind its location.
fn sample(probe: &Probe) -> String {
    let rate = probe.sample;
    rate.map_or_else(String::new, |rate| format!(" sample {rate}"))
}

/// The body of a `trace`, which takes it in braces.
fn braces(probe: &Probe) -> String {
    let Some(body) = &probe.body else {
        return String::new();
    };
    let mut text = String::new();
    lines(body, 4, &mut text);
    format!(" {{\n{text}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Names;
    use crate::hostile::hostile;
    use crate::lang::braces::{ProbeText, parse_probe};
    use crate::lang::rate::Rate;
    use crate::lang::script::{Position, Read, Reader};

    fn at() -> Position {
        Position {
            file: "t".into(),
            line: 1,
        }
    }

    fn probe(typed: &ProbeText, origin: Origin) -> Probe {
        Probe {
            number: 1,
            place: 0,
            origin,
            spec: typed.location.clone(),
            typed: typed.location.clone(),
            condition: typed.condition.clone(),
            sample: typed.sample,
            body: typed.body.clone().map(Into::into),
            disposition: Disposition::Keep,
            enabled: true,
            hits: 0,
            ignore: 0,
            left: 0,
            locations: Vec::new(),
            off: Vec::new(),
            resolved: true,
            missing: None,
            chooser: None,
            event: None,
        }
    }

    #[test]
    fn a_sampled_trace_reads_back_the_same() {
        let read = |text: &str| parse_probe(text, &at(), &Names::default()).unwrap();
        let typed = read("f if $rdi sample 2.5% { x/s $rsi; if 1 { print 2 } }");
        let probe = probe(&typed, Origin::Trace);
        let text = script(&probe);
        let (command, condition) = text.split_once("}\n").unwrap();
        let again = read(&format!("{}}}", command.strip_prefix("trace ").unwrap()));
        assert_eq!(again.sample, Some(Rate { of: 25, all: 1000 }));
        assert_eq!(again.location, typed.location);
        assert_eq!(again.body.map(|body| body.len()), Some(2));
        assert_eq!(condition, "  condition $bpnum $rdi\n");
        let plain = script(&Probe {
            body: None,
            condition: None,
            ..probe
        });
        assert_eq!(plain, "trace f sample 25/1000\n");
    }

    fn written(body: &[Node]) -> String {
        let mut text = String::new();
        lines(body, 0, &mut text);
        text
    }

    hostile!(
        /// What is saved of a body is read back as the same commands.
        fuzz_saved,
        crate::hostile::lines(&["tests/corpus/hostile/probes.txt"]),
        {
            words: &[
                "f {", "f if $rdi {", "}", ";", "if 1", "else", "end", "while $n", "{", "print 1", "silent", "x/s $rdi",
                "echo \\", "\\", "\"", "'", "#", "set $n = 1", "commands", "loop_break", "cont", "\n",
            ],
        },
        |input| {
            let names = Names::default();
            let Ok(typed) = parse_probe(&String::from_utf8_lossy(input), &at(), &names) else {
                return;
            };
            let Some(body) = &typed.body else { return };
            // Only a body has several lines.
            let head = [Some(&typed.location), typed.condition.as_ref()];
            if head.iter().flatten().any(|text| text.contains('\n')) {
                return;
            }
            let trace = script(&probe(&typed, Origin::Trace));
            let (command, _) = trace.rsplit_once("}\n").unwrap();
            let command = command.strip_prefix("trace ").unwrap();
            let again = parse_probe(&format!("{command}}}"), &at(), &names);
            let again = again.unwrap_or_else(|error| panic!("{error}:\n{trace}"));
            assert_eq!(written(again.body.as_deref().unwrap_or_default()), written(body), "{trace}");
            // As the commands of a breakpoint.
            let breakpoint = script(&probe(&typed, Origin::Break));
            let mut reader = Reader::new("t", &names);
            let mut nodes = Vec::new();
            for line in breakpoint.lines() {
                match reader.line(line) {
                    Ok(Read::Node(node)) => nodes.push(node),
                    Ok(_) => {}
                    Err(error) => panic!("{error}:\n{breakpoint}"),
                }
            }
            match nodes.last() {
                Some(Node::Commands { body: again, .. }) => {
                    assert_eq!(written(again), written(body), "{breakpoint}");
                }
                other => panic!("{other:?}:\n{breakpoint}"),
            }
        }
    );
}
