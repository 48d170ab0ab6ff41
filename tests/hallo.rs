//! The article's session: a client in the shape of vsomeip 2.x, whose replies arrive through a thunk.

mod support;

use support::app::number;
use support::{App, Missing, TempFile, Tracer, normalise, script, test, testapp, unique};

const THUNK: &str = "_ZThn8_N7vsomeip21routing_manager_proxy10on_messageEPKhjPNS_8endpointE";
const METHOD: &str = "vsomeip::routing_manager_proxy::on_message";

/// A running service and the path and arguments of its client.
struct Pair {
    _service: App,
    client: String,
    socket: String,
}

impl Pair {
    fn start(client: &str) -> Result<Pair, Missing> {
        let socket = unique("hallo");
        let client = testapp(client)?.display().to_string();
        let mut service = App::start(&testapp("hallo-service")?, &["--socket", &socket]);
        service.expect("ready");
        Ok(Pair {
            _service: service,
            client,
            socket,
        })
    }

    /// Traces a launched client that makes `requests`; the whole text.
    fn launched(&self, tracer: Tracer, requests: &str, before: &[&str]) -> Result<String, Missing> {
        let mut arguments = before.to_vec();
        arguments.extend([
            "-ex",
            "run",
            "--args",
            &self.client,
            "--socket",
            &self.socket,
            "--requests",
            requests,
        ]);
        Ok(tracer.batch(&arguments)?.succeed())
    }

    fn waiting(&self, arguments: &[&str]) -> App {
        let mut all = vec!["--socket", &self.socket, "--wait"];
        all.extend(arguments);
        let mut client = App::start(self.client.as_ref(), &all);
        client.expect("ready");
        client
    }
}

fn summary(text: &str) -> &str {
    text.lines()
        .find(|line| line.starts_with("replies="))
        .unwrap_or_else(|| panic!("no summary in:\n{text}"))
}

fn dumps(text: &str) -> usize {
    text.lines()
        .filter(|line| line.ends_with("\"Hello World!\""))
        .count()
}

fn script_when_launched(tracer: Tracer) -> Result<(), Missing> {
    let text =
        Pair::start("hallo-client")?.launched(tracer, "50", &["-x", &script("hallo.gdb")])?;
    assert!(
        summary(&text).starts_with("replies=50 hello=0 hallo=50 other=0 lost=0"),
        "{text}"
    );
    assert_eq!(dumps(&text), 50, "{text}");
    Ok(())
}

#[test]
fn one_script_in_trapline() {
    test(|| script_when_launched(Tracer::Trapline));
}

#[test]
fn one_script_in_gdb() {
    test(|| script_when_launched(Tracer::Gdb));
}

/// What the client itself prints: trapline lets it go on before a hit is printed, so that its lines and
/// the tracer's mix differently.
const CLIENTS: [&str; 3] = ["ready", "Hallo World!", "replies="];

#[test]
fn the_text_is_gdbs() {
    test(|| {
        let pair = Pair::start("hallo-client")?;
        let run = |tracer| {
            let text = pair.launched(tracer, "5", &["-x", &script("hallo.gdb")])?;
            Ok(normalise(&text)
                .lines()
                .filter(|line| !CLIENTS.iter().any(|said| line.starts_with(said)))
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .join("\n"))
        };
        similar(&run(Tracer::Trapline)?, &run(Tracer::Gdb)?);
        Ok(())
    });
}

fn similar(trapline: &str, gdb: &str) {
    assert!(trapline == gdb, "trapline:\n{trapline}\n\ngdb:\n{gdb}");
}

fn attached(tracer: Tracer) -> Result<(), Missing> {
    let pair = Pair::start("hallo-client")?;
    let mut client = pair.waiting(&["--requests", "200"]);
    let pid = client.pid().to_string();
    let mut session = tracer.armed(&["-p", &pid, "-x", &script("hallo.gdb")], &[])?;
    client.send("go");
    let text = client.succeed();
    assert!(
        summary(&text).starts_with("replies=200 hello=0 hallo=200"),
        "{text}"
    );
    let text = session.succeed();
    assert_eq!(dumps(&text), 200, "{text}");
    Ok(())
}

#[test]
fn attached_by_trapline() {
    test(|| attached(Tracer::Trapline));
}

#[test]
fn attached_by_gdb() {
    test(|| attached(Tracer::Gdb));
}

/// What a person types, line by line, `x/s ADDR+30` with the address that `x/47xb` has shown.
fn typed(tracer: Tracer) -> Result<String, Missing> {
    let pair = Pair::start("hallo-client")?;
    let mut session = tracer.start(&[
        "--args",
        &pair.client,
        "--socket",
        &pair.socket,
        "--requests",
        "20",
    ])?;
    session.send(&format!("b {THUNK}"));
    session.send("run");
    session.send("x/47xb $rsi");
    // A prompt, which has no line of its own without a terminal, may come in front of the text.
    let dump = session.line("a dump", |line| line.contains(":\t0x17\t0x43"));
    let address = dump
        .trim_start_matches("(gdb) ")
        .split(':')
        .next()
        .expect("an address")
        .to_owned();
    session.send(&format!("x/s {address}+30"));
    for line in [
        "commands",
        "silent",
        "x/s $rsi+30",
        "set {char}($rsi+31)=0x61",
        "cont",
        "end",
        "cont",
    ] {
        session.send(line);
    }
    let text = session.succeed();
    assert!(
        summary(&text).starts_with("replies=20 hello=1 hallo=19"),
        "{text}"
    );
    assert_eq!(dumps(&text), 20, "{text}");
    Ok(text)
}

#[test]
fn typed_in_trapline() {
    test(|| typed(Tracer::Trapline).map(drop));
}

#[test]
fn typed_in_gdb() {
    test(|| typed(Tracer::Gdb).map(drop));
}

/// A script that counts the hits of one breakpoint at `location` by the lines that it prints.
fn hits(client: &str, location: &str) -> Result<usize, Missing> {
    let script = TempFile::new(&format!(
        "break {location}\ncommands\nsilent\nx/s $rsi+30\ncont\nend\n"
    ));
    let output = Pair::start(client)?.launched(Tracer::Trapline, "30", &["-x", &script.path()])?;
    assert_eq!(number(summary(&output), "hello"), 30, "{output}");
    Ok(dumps(&output))
}

#[test]
fn a_method_is_hit_through_a_thunk_that_bears_its_body() {
    test(|| {
        assert_eq!(hits("hallo-client-body", METHOD)?, 30);
        Ok(())
    });
}

#[test]
fn a_thunk_that_only_jumps_is_no_second_hit() {
    test(|| {
        assert_eq!(hits("hallo-client", METHOD)?, 30);
        Ok(())
    });
}

#[test]
fn a_method_with_its_parameters() {
    test(|| {
        let location = "vsomeip::routing_manager_proxy::on_message(unsigned char const*, unsigned int, vsomeip::endpoint*)";
        assert_eq!(hits("hallo-client", location)?, 30);
        Ok(())
    });
}

#[test]
fn a_mangled_name_is_exactly_that_symbol() {
    test(|| {
        assert_eq!(hits("hallo-client", THUNK)?, 30);
        assert_eq!(hits("hallo-client-body", THUNK)?, 30);
        // The replies of this client come through the thunk, which has the method's body in it.
        assert_eq!(
            hits("hallo-client-body", THUNK.replace("_ZThn8_", "_Z").as_str())?,
            0
        );
        Ok(())
    });
}
