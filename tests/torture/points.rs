//! The front is killed at every labelled point of what the keeper does (`src/engine/keeper/crash.rs`).

use nix::sys::signal::Signal;

use super::case::Tally;
use super::support::process::{self, Seen};
use super::support::{App, Missing, testapp, tracer};

/// How often at each point in `cargo test`.
pub const SHORT: u32 = 4;
/// How often at each point in the long form.
pub const LONG: u32 = 20;

/// How a session comes to a point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comes {
    /// Once, on its way in.
    Once,
    /// Again and again while it traces.
    Often,
    /// When it leaves, once or at each of the twenty threads.
    Leaving { each: bool },
}

/// The labels, in the order in which a session comes by.
const POINTS: &[(&str, Comes)] = &[
    ("seized", Comes::Once),
    ("attached", Comes::Once),
    ("arming", Comes::Once),
    ("armed", Comes::Once),
    ("trapped", Comes::Often),
    ("registers", Comes::Often),
    ("slot-page", Comes::Once),
    ("read", Comes::Often),
    ("ran", Comes::Often),
    ("recorded", Comes::Often),
    ("moved", Comes::Often),
    ("resumed", Comes::Often),
    ("leaving", Comes::Leaving { each: false }),
    ("disarmed", Comes::Leaving { each: false }),
    ("gathered", Comes::Leaving { each: false }),
    ("settled", Comes::Leaving { each: false }),
    ("released", Comes::Leaving { each: true }),
    ("left", Comes::Leaving { each: false }),
];

const THREADS: u32 = 20;

/// Kills it so often at each point, under twenty busy threads.
pub fn at_every_point(rounds: u32, tally: &mut Tally) -> Result<(), Missing> {
    let arguments = ["--nice", "--threads", &THREADS.to_string()];
    let mut app = App::start(&testapp("hot")?, &arguments);
    app.expect("ready");
    app.ask("alive", "alive 20");
    let before = Seen::at_rest(app.pid());
    for (label, comes) in POINTS {
        for round in 1..=rounds {
            let passes = match comes {
                Comes::Once | Comes::Leaving { each: false } => 1,
                Comes::Often => round * round,
                Comes::Leaving { each: true } => 1 + round % THREADS,
            };
            let point = format!("{label}:{passes}");
            killed(&mut app, &point, *comes)?;
            process::wait_untraced(app.pid());
            before.is_as_before(app.pid(), &point);
            app.ask("alive", "alive 20");
            tally.runs += 1;
            tally.kills += 1;
        }
    }
    app.send("quit");
    app.succeed();
    Ok(())
}

/// A session whose front is killed at `point`.
fn killed(target: &mut App, point: &str, comes: Comes) -> Result<(), Missing> {
    let mut command = tracer::trapline();
    command
        .args([
            "trace",
            "-p",
            &target.pid().to_string(),
            "-o",
            "text:/dev/null",
        ])
        .args(["-e", "*site { x/2xg $rsp; set {char}($rsp-128) = 0x61 }"])
        .env("TRAPLINE_TEST_KILL_FRONT", point);
    let mut session = App::spawn(command);
    if let Comes::Leaving { .. } = comes {
        session.expect("  probe 1: ");
        session.signal(Signal::SIGINT);
    }
    let (status, text) = session.finish();
    assert!(
        status.code().is_none(),
        "killed at {point}, it ended with {status}:\n{text}"
    );
    Ok(())
}
