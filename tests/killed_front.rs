//! `kill -9` of the command at any moment leaves the target as if nobody had been there. (At every labelled
//! point of what the keeper does: torture/points.rs.)

mod support;

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use support::process::Signals;
use support::{App, Missing, TempFile, Tracer, process, test, testapp};

const ROUNDS: u32 = 20;
/// A body that the keeper runs by itself, and one that stops the thread and asks the front.
const COMPILED: &str = "x/2xg $rsp\nset {char}($rsp-128) = 0x61";
const ASKING: &str = "info registers rip";

/// Twenty threads that run through one site as fast as they can, and what they were like before.
struct Target {
    app: App,
    signals: Signals,
    checksum: String,
}

impl Target {
    fn start() -> Result<Target, Missing> {
        let mut app = App::start(&testapp("hot")?, &["--nice", "--threads", "20"]);
        app.expect("ready");
        // A thread that is just being made blocks everything for a moment.
        app.ask("alive", "alive 20");
        let signals = process::signals(app.pid());
        let checksum = app.ask("text", "text ");
        Ok(Target {
            app,
            signals,
            checksum,
        })
    }

    /// Attaches, with `body` at each hit.
    fn attach(&self, body: &str) -> Result<App, Missing> {
        let script = TempFile::new(&format!(
            "break *site\ncommands\nsilent\n{body}\ncont\nend\necho armed\\n\n"
        ));
        let mut command = Tracer::Trapline.command()?;
        command.args([
            "--batch",
            "-p",
            &self.app.pid().to_string(),
            "-x",
            &script.path(),
            "-ex",
            "continue",
        ]);
        let mut session = App::spawn(command);
        session.expect("armed");
        Ok(session)
    }

    /// Nobody traces it any more, and nothing tells that somebody did.
    fn is_untouched(&mut self, when: &str) {
        let pid = self.app.pid();
        process::wait_untraced(pid);
        assert_eq!(process::changed_text(pid), [], "{when}");
        assert_eq!(process::signals(pid), self.signals, "{when}");
        self.app.ask("alive", "alive 20");
        assert_eq!(self.app.ask("text", "text "), self.checksum, "{when}");
        let state = process::status_field(pid, "State").unwrap_or_default();
        assert!(state.starts_with(['R', 'S']), "{when}: {state}");
    }

    fn ends_well(mut self) {
        self.app.send("quit");
        self.app.succeed();
    }
}

/// Delays between 0 and 50 ms, the same in each run.
fn delays() -> impl Iterator<Item = Duration> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Duration::from_micros(state % 50_000)
    })
}

fn at_any_moment(body: &str) -> Result<(), Missing> {
    let mut target = Target::start()?;
    for (round, delay) in (1..=ROUNDS).zip(delays()) {
        let session = target.attach(body)?;
        // Nothing to wait for: the moment of the kill is what varies.
        let moment = Instant::now() + delay;
        process::until(moment, || false);
        session.signal(Signal::SIGKILL);
        drop(session);
        target.is_untouched(&format!("round {round}, after {delay:?}"));
    }
    target.ends_well();
    Ok(())
}

#[test]
fn while_bodies_run_in_the_keeper() {
    test(|| at_any_moment(COMPILED));
}

#[test]
fn while_threads_wait_for_the_front() {
    test(|| at_any_moment(ASKING));
}
