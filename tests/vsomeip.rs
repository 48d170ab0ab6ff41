//! The acceptance target: a live client of vsomeip 3.4.10.

mod support;

use std::path::PathBuf;

use nix::sys::signal::Signal;
use support::app::number;
use support::{App, Missing, Tracer, process, script, test, testapp, unique, vsomeip};

const REPLY: &str = "0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x20, 0x57, 0x6f, 0x72, 0x6c, 0x64, 0x21}";

struct Stack {
    _service: App,
    network: String,
    libraries: PathBuf,
}

impl Stack {
    /// A running service; its client will use the libraries of `directory` (`lib` or `stripped`).
    fn start(directory: &str) -> Result<Stack, Missing> {
        let libraries = vsomeip()?.join(directory);
        let network = unique("trapline");
        let mut service = App::start(&testapp("vsomeip-service")?, &["--network", &network]);
        service.expect("ready");
        Ok(Stack {
            _service: service,
            network,
            libraries,
        })
    }

    /// A client that is connected and waits for a line.
    fn client(&self, arguments: &[&str]) -> Result<App, Missing> {
        let mut command = std::process::Command::new(testapp("vsomeip-client")?);
        command
            .args(["--network", &self.network, "--wait"])
            .args(arguments)
            .env("LD_LIBRARY_PATH", &self.libraries);
        let mut client = App::spawn(command);
        client.expect("ready");
        Ok(client)
    }
}

fn every_reply(
    tracer: Tracer,
    directory: &str,
    file: &str,
    requests: usize,
) -> Result<(), Missing> {
    let stack = Stack::start(directory)?;
    let mut client = stack.client(&["--requests", &requests.to_string()])?;
    let pid = client.pid().to_string();
    let mut session = tracer.armed(&["-p", &pid, "-x", &script(file)], &[])?;
    client.send("go");
    let line = client.expect("replies=");
    assert!(
        line.starts_with(&format!(
            "replies={requests} hello=0 hallo={requests} other=0 lost=0"
        )),
        "{line}"
    );
    client.succeed();

    let text = session.succeed();
    let messages = text
        .lines()
        .filter(|line| line.starts_with("SOME/IP message of 28 bytes"))
        .count();
    let dumps: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("{0x12, 0x34, 0x4, 0x21,"))
        .collect();
    assert_eq!((messages, dumps.len()), (requests, requests));
    // Each dump is one whole message: 16 bytes of header and the text, without the end tag.
    let odd = dumps
        .iter()
        .find(|dump| !dump.ends_with(REPLY) || dump.matches("0x").count() != 28);
    assert_eq!(odd, None);
    Ok(())
}

#[test]
fn ten_thousand_replies_in_trapline() {
    test(|| every_reply(Tracer::Trapline, "lib", "vsomeip.gdb", 10_000));
}

#[test]
fn the_same_script_in_gdb() {
    test(|| every_reply(Tracer::Gdb, "lib", "vsomeip.gdb", 300));
}

#[test]
fn stripped_of_local_symbols_in_trapline() {
    test(|| every_reply(Tracer::Trapline, "stripped", "vsomeip-stripped.gdb", 10_000));
}

#[test]
fn stripped_of_local_symbols_in_gdb() {
    test(|| every_reply(Tracer::Gdb, "stripped", "vsomeip-stripped.gdb", 300));
}

/// Half of the replies are changed, then the tracer leaves, and the other half arrives as sent.
fn left_in_the_middle(
    tracer: Tracer,
    requests: u64,
    leave: impl Fn(&mut App),
) -> Result<(), Missing> {
    let stack = Stack::start("lib")?;
    let half = requests / 2;
    let mut client = stack.client(&[
        "--requests",
        &requests.to_string(),
        "--pause-at",
        &half.to_string(),
    ])?;
    let before = process::signals(client.pid());
    let pid = client.pid().to_string();
    let mut session = tracer.start(&[
        "-p",
        &pid,
        "-x",
        &script("vsomeip.gdb"),
        "-ex",
        "echo armed\\n",
        "-ex",
        "continue",
    ])?;
    session.expect("armed");
    client.ask("go", "paused");
    leave(&mut session);
    process::wait_untraced(client.pid());
    assert_eq!(process::changed_text(client.pid()), []);
    assert_eq!(process::signals(client.pid()), before);
    let line = client.ask("go", "replies=");
    let counts = ["replies", "hello", "hallo", "lost"].map(|key| number(&line, key));
    assert_eq!(counts, [requests, half, half, 0], "{line}");
    client.succeed();
    Ok(())
}

fn detach(session: &mut App) {
    session.signal(Signal::SIGINT);
    session.send("detach");
    session.send("quit");
    session.succeed();
}

#[test]
fn detached_in_the_middle_by_trapline() {
    test(|| left_in_the_middle(Tracer::Trapline, 10_000, detach));
}

#[test]
fn detached_in_the_middle_by_gdb() {
    test(|| left_in_the_middle(Tracer::Gdb, 200, detach));
}

#[test]
fn killed_in_the_middle() {
    test(|| {
        left_in_the_middle(Tracer::Trapline, 10_000, |session| {
            session.signal(Signal::SIGKILL)
        })
    });
}
