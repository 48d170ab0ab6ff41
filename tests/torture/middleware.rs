//! Real middleware under load: a tracer comes, counts and goes, or is killed, again and again.

use nix::sys::signal::Signal;

use super::case::{Tally, pause};
use super::support::app::{PATIENCE, number};
use super::support::process::{self, Seen};
use super::support::someip::Vsomeip;
use super::support::{App, Missing, Network, root, stack, tracer};

/// So many of each.
#[derive(Clone, Copy)]
pub struct Cycles {
    pub detached: u32,
    pub killed: u32,
}

/// In `cargo test`.
pub const SHORT: Cycles = Cycles {
    detached: 6,
    killed: 3,
};
/// In the long form.
pub const LONG: Cycles = Cycles {
    detached: 100,
    killed: 20,
};

/// A client of vsomeip that makes one request after the other of its service.
pub fn vsomeip(cycles: Cycles, tally: &mut Tally) -> Result<(), Missing> {
    let vsomeip = Vsomeip::new("lib")?;
    let mut service = vsomeip.start("vsomeip-service", &[])?;
    let mut client = vsomeip.start("vsomeip-client", &["--forever"])?;
    come_and_go(&client, &["someip:recv", "someip:send"], cycles, tally);
    let line = client.ask("stop", "replies=");
    assert_eq!(number(&line, "lost"), 0, "{line}");
    assert_eq!(number(&line, "hello"), number(&line, "replies"), "{line}");
    client.succeed();
    service.succeed();
    Ok(())
}

/// A process of Cyber RT, with 25 threads and more, that writes messages to itself.
pub fn cyber(cycles: Cycles, tally: &mut Tally) -> Result<(), Missing> {
    let network = Network::start()?;
    let mut command = network.command(stack("CYBER")?.join("python"));
    command
        .arg(root().join("testapps/cyber/pair.py"))
        .args(["--forever", "--size", "307240"]);
    let mut pair = App::spawn(command);
    pair.expect("ready");
    come_and_go(&pair, &["cyber:write", "cyber:read"], cycles, tally);
    let line = pair.ask("stop", "written=");
    assert_eq!(
        number(&line, "written"),
        number(&line, "received"),
        "{line}"
    );
    pair.succeed();
    Ok(())
}

fn come_and_go(target: &App, probes: &[&str], cycles: Cycles, tally: &mut Tally) {
    let pid = target.pid();
    let before = Seen::at_rest(pid);
    let all = cycles.detached + cycles.killed;
    let every = all / cycles.killed.max(1);
    for cycle in 0..all {
        let kill = cycle % every == every - 1 && cycle / every < cycles.killed;
        let mut command = tracer::trapline();
        command.args(["trace", "-o", "text:/dev/null", "-p", &pid.to_string()]);
        for probe in probes {
            command.args(["-e", probe]);
        }
        // It ends by itself after some hits of the load, or is killed in the midst of them.
        if !kill {
            command.args(["--count", &(20 + cycle % 30).to_string()]);
        }
        let mut session = App::spawn(command).patient(2 * PATIENCE);
        if kill {
            session.expect(&format!("  probe {}: ", probes.len()));
            pause(std::time::Duration::from_millis(u64::from(cycle * 7 % 50)));
            session.signal(Signal::SIGKILL);
            session.finish();
        } else {
            tally.hits += hits(&session.succeed(), probes.len());
        }
        let when = format!("cycle {cycle}");
        process::wait_untraced(pid);
        before.is_as_before(pid, &when);
        tally.runs += 1;
        tally.kills += u64::from(kill);
    }
}

fn hits(text: &str, probes: usize) -> u64 {
    let line = regex::Regex::new("probe ([0-9]+): .*: ([0-9]+) hits?").expect("a pattern");
    let found: Vec<u64> = line
        .captures_iter(text)
        .map(|found| found[2].parse().expect("a number"))
        .collect();
    assert_eq!(found.len(), probes, "{text}");
    found.iter().sum()
}
