//! `trapline trace`: every hit, one line, the target never stopped.

use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};

use super::signals;
use super::targets::{self, Choice};
use crate::command::{Interpreter, Names, probes, read_only, source};
use crate::error::Error;
use crate::lang::duration::duration;
use crate::lang::script::Position;
use crate::record::destination::{Destination, Format};
use crate::record::sink::{self, Sinks, Stamp};
use crate::record::{ProbeSummary, Summary, clock, json, text};
use crate::repl::input::Piped;
use crate::session::events::Wake;
use crate::session::output::Output;
use crate::session::replay::Show;
use crate::session::search::Search;
use crate::session::{Session, events, search, settings, wording};

/// Prints every hit of the given probes, one line each, without stopping the program.
///
/// Hits go to standard output; the banner, warnings and the summary to standard error.
///
/// Exit status: 0 at the end of the program, at Ctrl-C, after --count or --duration, and when
/// nobody reads the output any more; 1 for an error, a probe that was never found or could not be
/// armed, an output that could not be written, and with --strict for lost hits; 2 for wrong usage,
/// found before anything is touched.
#[derive(Debug, Parser)]
#[command(name = "trapline trace", no_binary_name = true)]
pub struct Options {
    /// What to trace: LOCATION [in TARGET] [if EXPRESSION] [{ COMMAND; ... }]. Without a body the arguments
    /// are printed. Use single quotes: the shell eats $rsi otherwise.
    #[arg(short = 'e', long = "probe", value_name = "PROBE")]
    pub probes: Vec<String>,

    /// A file of commands, with `trace PROBE` or `break` and `commands`.
    #[arg(short = 'x', long = "command", value_name = "FILE")]
    pub scripts: Vec<PathBuf>,

    /// A file of named probes, beside the built-in ones and those of the configuration directory.
    #[arg(long = "probes", value_name = "FILE")]
    pub probe_files: Vec<PathBuf>,

    /// Tell which named probes there are, and where in the program of -p; then leave.
    #[arg(long)]
    pub list_probes: bool,

    /// A running process: its id, its program's name, or /REGEX/ on its command line.
    #[arg(short = 'p', long = "pid", value_name = "TARGET")]
    pub targets: Vec<String>,

    /// Every process that has this library mapped (its path, or its file's name with or without
    /// the version), but for those that trapline itself runs in.
    #[arg(long, value_name = "LIBRARY")]
    pub using: Vec<String>,

    /// If several processes fit -p, trace all of them.
    #[arg(long)]
    pub all: bool,

    /// If no process fits yet, wait for one. With --all and with --using those that come, or load
    /// the library, while others are traced are traced too (all processes are looked at four
    /// times a second, new ones at once).
    #[arg(long)]
    pub wait: bool,

    /// Trace the processes that the program makes, too, and those that they make, whatever they
    /// execute: probes are found again in each program. Each hit tells its process.
    #[arg(long)]
    pub follow: bool,

    /// Where the hits go instead of to standard output; may be given several times. The ending
    /// chooses the format: .txt lines for people, .jsonl one JSON object a line; or the format in
    /// front of the name does: text:FILE, jsonl:FILE. - is standard output.
    #[arg(short = 'o', long = "output", value_name = "[FORMAT:]FILE")]
    pub outputs: Vec<OsString>,

    /// One JSON object a line on standard output.
    #[arg(long)]
    pub json: bool,

    /// Leave after this many hits, those of all probes and processes together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Leave after this time: 10s, 500ms, 2m, 1h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,

    /// The time that a line shows: mono is CLOCK_MONOTONIC, wall CLOCK_REALTIME (seconds since
    /// 1970), delta the time since the line before. JSON always has the first two.
    #[arg(long, value_enum, value_name = "CLOCK", default_value = "mono")]
    pub time: Clock,

    /// Refuse whatever would change the program's memory or registers, or end it. To be traced
    /// it still gets an int3 at each place, which is taken out at the end, and a page of slots
    /// beside each module, which stays.
    #[arg(long)]
    pub read_only: bool,

    /// Color lines on standard output; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: When,

    /// Exit with status 1 if hits were dropped or a body ended early.
    #[arg(long)]
    pub strict: bool,

    /// The program to launch, behind `--`, and its arguments.
    #[arg(last = true, value_name = "PROGRAM ARGUMENT")]
    pub command: Vec<OsString>,
}

/// Which time a line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Clock {
    /// CLOCK_MONOTONIC
    Mono,
    /// CLOCK_REALTIME
    Wall,
    /// Since the line before.
    Delta,
}

/// Whether something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Where it makes sense.
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

/// Runs `trapline trace`; `arguments` is what follows that word.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Result<u8, Error> {
    let options: Options = match super::read(arguments) {
        Ok(options) => options,
        Err(status) => return Ok(status),
    };
    if options.list_probes {
        return list_probes(&options);
    }
    let (destinations, scripts) = check(&options)?;
    let json = |it: &Destination| it.path.is_none() && it.format == Some(Format::JsonLines);
    // What a script prints beside its hits is no JSON.
    let output = match options.json || destinations.iter().any(json) {
        true => Output::errors(),
        false => Output::standard(),
    };
    let sinks = open(&options, &destinations)?;
    signals::listen()?;
    let names = Names::default();
    let mut session = Session::new(output, Rc::new(names.clone()));
    super::named_probes(&mut session, &options.probe_files)?;
    session.show = Show::Records;
    session.stdout_to_stderr = options.owns_standard_output();
    session.read_only = options.read_only;
    session.follow_children = options.follow;
    session.sinks = Some(sinks);
    let mut interpreter = Interpreter::new(session, names, Box::new(Piped), true);
    let begun = Instant::now();
    let result = trace(&mut interpreter, &options, &scripts);
    let left = leave(&mut interpreter);
    interpreter.session.flush();
    result?;
    left?;
    Ok(end(&mut interpreter.session, &options, begun))
}

/// `--list-probes`: what is named, and where that is; nothing is traced.
fn list_probes(options: &Options) -> Result<u8, Error> {
    let mut session = Session::new(Output::standard(), Rc::new(Names::default()));
    super::named_probes(&mut session, &options.probe_files)?;
    match (options.targets.as_slice(), options.command.first()) {
        ([], None) => {}
        ([target], None) => {
            session.program = Some(super::symbols::of_process(
                search::find(target)?,
                &session.settings.debug_directories,
            )?);
        }
        ([], Some(program)) => {
            let path = super::prompt::program_path(program)?;
            session.load(std::path::Path::new(&path))?;
        }
        _ => return Err(usage("--list-probes looks at one program")),
    }
    let text = probes::list(&mut session, &[])?;
    session.output.print(&text);
    session.output.flush();
    Ok(0)
}

/// Writes the last lines and the summary; gives the exit status.
fn end(session: &mut Session, options: &Options, begun: Instant) -> u8 {
    session.flush();
    let summary = session.summary(begun.elapsed());
    let missing = session.unresolved();
    let mut failures = Vec::new();
    if let Some(sinks) = &mut session.sinks {
        for line in last_lines(&summary, &missing) {
            sinks.json(&line);
        }
    }
    session.flush();
    if let Some(sinks) = &session.sinks {
        failures.extend(
            sinks.failures().map(|(name, lost, why)| {
                format!("  {name}: {lost} records were not written: {why}")
            }),
        );
    }
    let lines = crate::session::replay::summary_lines(&summary);
    for line in lines.iter().chain(&failures).chain(&missing) {
        eprintln!("{line}");
    }
    let sum = |what: fn(&ProbeSummary) -> u64| summary.probes.iter().map(what).sum::<u64>();
    let imperfect = sum(|probe| probe.drops) > 0 || sum(|probe| probe.faults) > 0;
    let failed = !missing.is_empty() || !failures.is_empty() || options.strict && imperfect;
    u8::from(failed)
}

/// How a stream of JSON lines ends: what was never found, what was lost, and the summary.
fn last_lines(summary: &Summary, missing: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = missing.iter().map(|text| json::warning(text)).collect();
    let drops = summary.probes.iter().map(|probe| probe.drops).sum();
    if drops > 0 {
        lines.push(json::drops(clock::monotonic_ns(), clock::wall_ns(), drops));
    }
    lines.push(json::summary(summary));
    lines
}

/// Opens what the hits are written to.
fn open(options: &Options, destinations: &[Destination]) -> Result<Sinks, Error> {
    let color = match options.color {
        When::Auto => sink::wants_color(),
        When::Always => true,
        When::Never => false,
    };
    let palette = if color { text::COLORED } else { text::PLAIN };
    let stamp = match options.time {
        Clock::Mono => Stamp::Monotonic,
        Clock::Wall => Stamp::Wall,
        Clock::Delta => Stamp::Delta,
    };
    let format = match options.json {
        true => Format::JsonLines,
        false => Format::Text,
    };
    let mut sinks = Sinks::open(destinations, format, stamp, palette)
        .map_err(|error| Error::new(format!("trapline trace: -o {error}")))?;
    if options.follow || options.choice().several() {
        sinks.name_processes();
    }
    Ok(sinks)
}

impl Options {
    /// Which processes are attached to.
    fn choice(&self) -> Choice<'_> {
        Choice {
            targets: &self.targets,
            using: &self.using,
            all: self.all,
            wait: self.wait,
        }
    }

    /// Records have standard output for themselves: a launched program writes elsewhere.
    fn owns_standard_output(&self) -> bool {
        self.json || self.outputs.iter().any(is_standard)
    }
}

fn is_standard(name: &OsString) -> bool {
    Destination::parse(name).is_ok_and(|destination| destination.path.is_none())
}

/// A fault in how the command was typed.
fn usage(text: &str) -> Error {
    super::usage("trace", text)
}

/// What can be said before anything is touched; gives where the hits go, and the scripts.
fn check(options: &Options) -> Result<(Vec<Destination>, Vec<String>), Error> {
    if options.probes.is_empty() && options.scripts.is_empty() {
        return Err(usage(
            "no probe: give one with -e 'LOCATION', or a script with -x FILE",
        ));
    }
    let attaches = !options.targets.is_empty() || !options.using.is_empty();
    if !attaches && options.command.is_empty() {
        return Err(usage(
            "no program: give a running one with -p TARGET, or one to launch behind --",
        ));
    }
    if attaches && !options.command.is_empty() {
        return Err(usage("attach with -p or launch behind --, not both"));
    }
    options.choice().check()?;
    for probe in &options.probes {
        let at = position("-e", 1);
        let wrong = |text: &str| Error::usage(format!("trapline trace: -e '{probe}': {text}"));
        let read = crate::lang::braces::parse_probe(probe, &at, &Names::default());
        let read = read.map_err(|e| wrong(&e.message))?;
        wording::check(&read.location).map_err(|e| wrong(&e.message))?;
        if options.read_only {
            read_only::check_probe(probe, &at).map_err(|e| wrong(&e.message))?;
        }
    }
    let destinations = destinations(options)?;
    Ok((destinations, read_scripts(options)?))
}

/// The texts of the scripts, read once: what is checked is what runs, and a pipe has it once only.
fn read_scripts(options: &Options) -> Result<Vec<String>, Error> {
    let read = |script: &PathBuf| {
        let text = source::read(script)?;
        if options.read_only {
            read_only::check_script(script, &text).map_err(|e| {
                Error::usage(format!("trapline trace: -x {}: {e}", script.display()))
            })?;
        }
        Ok(text)
    };
    options.scripts.iter().map(read).collect()
}

fn destinations(options: &Options) -> Result<Vec<Destination>, Error> {
    let mut list = Vec::new();
    for name in &options.outputs {
        let parsed = Destination::parse(name);
        let wrong = |why: String| usage(&format!("-o {}: {why}", name.to_string_lossy()));
        let destination = parsed.map_err(wrong)?;
        if list.iter().any(|other| destination.is_same_file(other)) {
            return Err(wrong("it is given twice".into()));
        }
        list.push(destination);
    }
    let standard = list.iter().filter(|it| it.path.is_none()).count();
    if standard == 0 && (options.json || list.is_empty()) {
        list.push(Destination {
            format: None,
            path: None,
        });
    }
    let other = |it: &Destination| it.path.is_none() && it.format == Some(Format::Text);
    if standard > 1 || options.json && list.iter().any(other) {
        return Err(usage("standard output can have one format only"));
    }
    Ok(list)
}

fn position(name: &str, line: u32) -> Position {
    Position {
        file: name.into(),
        line,
    }
}

/// Starts everything and shows hits until the end.
fn trace(
    interpreter: &mut Interpreter,
    options: &Options,
    scripts: &[String],
) -> Result<(), Error> {
    let mut search = None;
    if options.command.is_empty() {
        search = options.choice().attach(&mut interpreter.session)?;
        if interpreter.session.targets.is_empty() {
            return Ok(());
        }
    }
    if let Some((program, arguments)) = options.command.split_first() {
        let path = super::prompt::program_path(program)?;
        interpreter.session.load(std::path::Path::new(&path))?;
        let words: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
        interpreter.session.settings.arguments = settings::quote(words.iter().map(|w| w.as_ref()));
        interpreter.session.settings.disable_randomization = false;
        interpreter.session.launch()?;
        if options.owns_standard_output() {
            eprintln!("The program's standard output goes to standard error.");
        }
    }
    for (script, text) in options.scripts.iter().zip(scripts) {
        interpreter.source_read(script, text)?;
    }
    for (index, probe) in options.probes.iter().enumerate() {
        interpreter.trace_probe(probe, &position("-e", index as u32 + 1))?;
    }
    follow(interpreter, options, search)
}

fn follow(
    interpreter: &mut Interpreter,
    options: &Options,
    mut search: Option<Search>,
) -> Result<(), Error> {
    let until = options.duration.map(|d| Instant::now() + d);
    interpreter.session.limit = options.count;
    interpreter.session.resume()?;
    banner(interpreter);
    loop {
        search = search.filter(|search| !search.is_over());
        let look = search.is_some().then(|| Instant::now() + targets::LOOK);
        let next = [until, look].into_iter().flatten().min();
        match (interpreter.session.wait(next)?, &mut search) {
            (Wake::Interrupted, _) | (Wake::Ended | Wake::TimeOver, None) => return Ok(()),
            (Wake::Ended | Wake::TimeOver, Some(search)) => {
                let session = &mut interpreter.session;
                let ends = events::interrupted() || events::must_end();
                if ends || until.is_some_and(|until| Instant::now() >= until) {
                    return Ok(());
                }
                let pause = match session.targets.is_empty() {
                    true => targets::LOOK,
                    false => Duration::ZERO,
                };
                targets::admit(session, search, pause);
            }
            (
                Wake::Ask {
                    tid,
                    number,
                    bodies,
                },
                _,
            ) => interpreter.asked(tid, number, &bodies)?,
            (Wake::Stopped(_), _) => {
                // A `break` without `continue` in a script: this front never stops anything.
                interpreter.session.resume()?;
            }
        }
    }
}

/// What is traced, on standard error.
fn banner(interpreter: &mut Interpreter) {
    let session = &interpreter.session;
    for target in &session.targets {
        targets::announce(target);
    }
    for probe in session.probes.iter() {
        let places = match probe.locations.as_slice() {
            [] => "(nowhere yet: it may be in a library that is loaded later)".to_string(),
            many if many.len() > 8 => format!("at {} places", many.len()),
            few => {
                let list: Vec<_> = few.iter().map(|l| format!("{:#x}", l.address)).collect();
                format!("at {}", list.join(", "))
            }
        };
        eprintln!("  probe {}: {} {places}", probe.number, probe.spec);
        for remark in crate::session::returns::remarks(&probe.locations) {
            eprintln!("    {remark}");
        }
    }
    let arming = session.arming;
    if arming.sites > 8 {
        let seconds = arming.time.as_secs_f64();
        eprintln!("  {} sites armed in {seconds:.3} s", arming.sites);
    }
}

/// Lets every target go; a launched one runs on to its end by itself.
fn leave(interpreter: &mut Interpreter) -> Result<(), Error> {
    while !interpreter.session.targets.is_empty() {
        let before = interpreter.session.targets.len();
        interpreter.session.detach(0)?;
        if interpreter.session.targets.len() == before {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = Options::try_parse_from([
            "-e",
            "f",
            "-e",
            "g if $rsi",
            "-p",
            "12",
            "--json",
            "--count",
            "3",
            "--duration",
            "1.5s",
            "--",
            "prog",
            "-x",
        ])
        .unwrap();
        assert_eq!(options.probes, ["f", "g if $rsi"]);
        assert_eq!(options.targets, ["12"]);
        assert_eq!(options.duration, Some(Duration::from_millis(1500)));
        assert_eq!(options.command, ["prog", "-x"]);
        assert!(Options::try_parse_from(["--count", "0"]).is_err());
    }
}
