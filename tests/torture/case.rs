//! One case, and a round with it: attach or launch, let the program work, leave, compare.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::support::app::{PATIENCE, number};
use super::support::process::{self, Seen};
use super::support::{App, Missing, Tracer, testapp, tracer};

/// What is traced, and how that must end.
pub struct Case {
    pub name: &'static str,
    /// Of `testapps/`.
    pub program: &'static str,
    pub arguments: &'static [&'static str],
    /// Where probes are, each with the word by which the program tells how often it passed there.
    pub sites: &'static [(&'static str, &'static str)],
    pub run: Run,
    pub ways: &'static [Way],
}

/// When the tracer is there.
#[derive(Clone, Copy)]
pub enum Run {
    /// From the start of the program to its end; its last line begins so.
    Launched(&'static str),
    /// The program waits, and is asked (the order, and how the answer begins) while it is traced.
    Asked(&'static str, &'static str),
    /// The program works all the while; asked, it answers when each part of it has gone on.
    Busy(&'static str, &'static str),
}

/// The words that tell of harm in an answer: all zero.
const HARM: [&str; 8] = [
    "wrong", "died", "eintr", "early", "late", "lost", "failed", "changes",
];

/// How the tracer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Interrupt,
    Terminate,
    HangUp,
    Kill,
    /// `kill -9` while it still arrives.
    KillEarly,
    /// `detach` at the prompt, which the tracer with the `Ctrl-C` of a user comes to.
    Detach,
    /// The prompt's input ends.
    Quit,
    /// It ends by a fault of its own, without a chance to leave.
    Abort,
    /// What it writes to is full, which ends it at the first hit.
    Full,
}

/// All of them.
pub const WAYS: &[Way] = &[
    Way::Interrupt,
    Way::Kill,
    Way::Terminate,
    Way::Detach,
    Way::KillEarly,
    Way::HangUp,
    Way::Quit,
];

/// And those that need somebody who passes by.
pub const WAYS_AND_FAULTS: &[Way] = &[
    Way::Full,
    Way::Abort,
    Way::Interrupt,
    Way::Kill,
    Way::Terminate,
    Way::Detach,
    Way::KillEarly,
    Way::HangUp,
    Way::Quit,
];

/// Those of a tracer that never stops the program. At the prompt Ctrl-C does, and calls
/// that are begun anew after that take longer.
pub const UNSTOPPED: &[Way] = &[
    Way::Interrupt,
    Way::Kill,
    Way::Terminate,
    Way::KillEarly,
    Way::HangUp,
];

/// What came of some rounds.
#[derive(Default)]
pub struct Tally {
    pub runs: u64,
    pub hits: u64,
    pub kills: u64,
    pub lost: u64,
}

impl Tally {
    pub const NONE: Tally = Tally {
        runs: 0,
        hits: 0,
        kills: 0,
        lost: 0,
    };

    pub fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.hits += other.hits;
        self.kills += other.kills;
        self.lost += other.lost;
    }

    pub fn head() -> String {
        format!(
            "{:<32} {:>7} {:>10} {:>7} {:>5}",
            "case", "runs", "hits", "kills", "lost"
        )
    }

    pub fn row(&self, name: &str) -> String {
        format!(
            "{name:<32} {:>7} {:>10} {:>7} {:>5}",
            self.runs, self.hits, self.kills, self.lost
        )
    }
}

/// Rounds with one case, which go on where the last ones ended.
pub struct Rounds {
    case: &'static Case,
    round: u32,
    moments: Moments,
}

/// Delays, the same in each run.
struct Moments(u64);

impl Moments {
    fn next(&mut self, most: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_nanos(self.0 % most.as_nanos() as u64)
    }
}

impl Rounds {
    pub fn new(case: &'static Case) -> Rounds {
        Rounds {
            case,
            round: 0,
            moments: Moments(0x2545_f491_4f6c_dd1d),
        }
    }

    /// So many rounds more, all with one process if it is attached to.
    pub fn make(&mut self, rounds: u32, tally: &mut Tally) -> Result<(), Missing> {
        let case = self.case;
        if let Run::Launched(last) = case.run {
            for _ in 0..rounds.div_ceil(3) {
                launched(case, last, tally)?;
            }
            return Ok(());
        }
        let mut target = App::start(&testapp(case.program)?, case.arguments);
        target.expect("ready");
        for _ in 0..rounds {
            let way = case.ways[self.round as usize % case.ways.len()];
            self.round += 1;
            self.attached(&mut target, way, tally)?;
        }
        target.send("quit");
        target.succeed();
        Ok(())
    }

    fn attached(&mut self, target: &mut App, way: Way, tally: &mut Tally) -> Result<(), Missing> {
        let case = self.case;
        if let Run::Busy(order, answer) | Run::Asked(order, answer) = case.run {
            harmless(&target.ask(order, answer), "before");
        }
        let before = Seen::of(target.pid());
        let early = (way == Way::KillEarly).then(|| self.moments.next(Duration::from_millis(250)));
        let mut session = Session::start(case, target.pid(), way, early)?;
        let mut counted = None;
        match case.run {
            _ if early.is_some() => {}
            Run::Asked(order, answer) => counted = Some(target.ask(order, answer)),
            // The moment is what varies.
            _ => pause(self.moments.next(Duration::from_millis(60))),
        }
        let hits = session.leave();
        let when = format!("{}, round {}, {way:?}", case.name, self.round);
        process::wait_untraced(target.pid());
        before.is_as_before(target.pid(), &when);
        let (Run::Asked(order, answer) | Run::Busy(order, answer)) = case.run else {
            return Ok(());
        };
        if let Some(counted) = &counted {
            harmless(counted, &when);
            if let Some(hits) = &hits {
                exact(case, hits, counted, &when);
            }
        }
        harmless(&target.ask(order, answer), &when);
        before.is_as_before(target.pid(), &when);
        tally.runs += 1;
        tally.kills += u64::from(matches!(way, Way::Kill | Way::KillEarly | Way::Abort));
        tally.hits += hits.iter().flatten().sum::<u64>();
        Ok(())
    }
}

/// Waits without anything to wait for: the moment of what follows is the point.
pub fn pause(time: Duration) {
    process::until(Instant::now() + time, || false);
}

fn harmless(answer: &str, when: &str) {
    for word in HARM {
        if answer.contains(&format!("{word}=")) {
            assert_eq!(number(answer, word), 0, "{when}: {answer}");
        }
    }
}

fn exact(case: &Case, hits: &[u64], counted: &str, when: &str) {
    for ((site, word), hits) in case.sites.iter().zip(hits) {
        if !word.is_empty() {
            assert_eq!(*hits, number(counted, word), "{site}: {when}: {counted}");
        }
    }
}

fn launched(case: &Case, last: &str, tally: &mut Tally) -> Result<(), Missing> {
    let mut command = probing(case, "text:/dev/null");
    command.arg("--").arg(testapp(case.program)?);
    command.args(case.arguments);
    let text = App::spawn(command).patient(3 * PATIENCE).succeed();
    let counted = text.lines().find(|line| line.starts_with(last));
    let counted = counted.unwrap_or_else(|| panic!("no {last:?} in:\n{text}"));
    harmless(counted, case.name);
    let hits = summary(case, &text);
    exact(case, &hits, counted, case.name);
    tally.runs += 1;
    tally.hits += hits.iter().sum::<u64>();
    Ok(())
}

/// `trapline trace` with the case's probes, which say nothing.
fn probing(case: &Case, output: &str) -> std::process::Command {
    let mut command = tracer::trapline();
    command.args(["trace", "-o", output]);
    for (site, _) in case.sites {
        command.args(["-e", &format!("{site} {{ while 0; end }}")]);
    }
    command
}

/// The hits of each probe, out of the last lines of `trapline trace`.
fn summary(case: &Case, text: &str) -> Vec<u64> {
    let line = regex::Regex::new("probe ([0-9]+): .*: ([0-9]+) hits?").expect("a pattern");
    let found: Vec<u64> = line
        .captures_iter(text)
        .map(|found| found[2].parse().expect("a number"))
        .collect();
    assert_eq!(found.len(), case.sites.len(), "{text}");
    found
}

/// The tracer at work on a running program.
struct Session<'c> {
    case: &'c Case,
    app: App,
    way: Way,
}

impl Session<'_> {
    /// Returns with every probe in place, or, with `early`, so long after the start.
    fn start(
        case: &Case,
        pid: i32,
        way: Way,
        early: Option<Duration>,
    ) -> Result<Session<'_>, Missing> {
        let pid = pid.to_string();
        let app = if matches!(way, Way::Detach | Way::Quit) {
            let mut commands = vec!["handle all nostop noprint pass".to_owned()];
            for (n, (site, _)) in (1..).zip(case.sites) {
                commands.push(format!("break {site}"));
                commands.push(format!("ignore {n} 1000000000"));
            }
            commands.extend(["echo armed\\n".into(), "continue".into()]);
            let commands: Vec<&str> = commands.iter().flat_map(|c| ["-ex", c]).collect();
            let mut app = Tracer::Trapline.start(&[&["-p", &pid], &commands[..]].concat())?;
            app.expect("armed");
            app
        } else {
            let mut command = match way {
                Way::Full => probing(case, "text:/dev/full"),
                _ => probing(case, "text:/dev/null"),
            };
            command.args(["-p", &pid]);
            let mut app = App::spawn(command);
            match early {
                Some(time) => pause(time),
                // The banner's last line.
                None => drop(app.expect(&format!("  probe {}: ", case.sites.len()))),
            }
            app
        };
        Ok(Session { case, app, way })
    }

    /// Leaves; the hits of each probe if the tracer could tell them.
    fn leave(&mut self) -> Option<Vec<u64>> {
        match self.way {
            Way::Kill | Way::KillEarly => {
                self.app.signal(Signal::SIGKILL);
                self.app.finish();
                return None;
            }
            Way::Abort => {
                self.app.signal(Signal::SIGABRT);
                self.app.finish();
                return None;
            }
            Way::Full => {
                let (status, text) = self.app.finish();
                assert_eq!(status.code(), Some(1), "{text}");
                return None;
            }
            Way::Interrupt => self.app.signal(Signal::SIGINT),
            Way::Terminate => self.app.signal(Signal::SIGTERM),
            Way::HangUp => self.app.signal(Signal::SIGHUP),
            Way::Detach => {
                self.app.signal(Signal::SIGINT);
                self.app.send("detach");
                self.app.send("info breakpoints");
                self.app.send("quit");
            }
            Way::Quit => {
                self.app.signal(Signal::SIGINT);
                self.app.send("info breakpoints");
                self.app.close_stdin();
            }
        }
        let text = self.app.finish().1;
        if matches!(self.way, Way::Detach | Way::Quit) {
            return Some(breakpoints(self.case, &text));
        }
        Some(summary(self.case, &text))
    }
}

/// The hits of each breakpoint, as `info breakpoints` shows them: none is told of as nothing.
fn breakpoints(case: &Case, text: &str) -> Vec<u64> {
    let mut hits = vec![0; case.sites.len()];
    let mut current = None;
    for line in text.lines() {
        let first = line.split_whitespace().next();
        if let Some(number) = first.and_then(|word| word.parse::<usize>().ok()) {
            current = number.checked_sub(1);
        }
        if let Some(rest) = line.trim().strip_prefix("breakpoint already hit ")
            && let Some(count) = rest.split(' ').next().and_then(|n| n.parse().ok())
            && let Some(hits) = current.and_then(|at| hits.get_mut(at))
        {
            *hits = count;
        }
    }
    assert!(current.is_some(), "no breakpoints in:\n{text}");
    hits
}
