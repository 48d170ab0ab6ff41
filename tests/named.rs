//! Named probes of a user's own file, on the small SOME/IP client.

mod support;

use serde_json::Value;
use support::{
    App, Missing, TempDir, TempFile, Tracer, json_lines, schema, test, testapp, tracer, unique,
};

const PROBES: &str = "\
# What the client of testapps/hallo gets.
probe    hallo:recv
about    a greeting came in
message  someip
field    service/x  $_be16($_msg.address)
field    type/x     $_msg[14]

version  a version that was never built
at       vsomeip::routing_manager_proxy::on_greeting
address  $_arg2

version  2.x
at       vsomeip::routing_manager_proxy::on_message
when     *(unsigned char *)$_arg2 == 0x17
address  $_arg2 + 7
length   *(unsigned int *)($_arg2 + 3)
topic    (char *)($_msg.address + 23)
value    all        $_arg3

probe    hallo:raw
about    the same with its frame
version  2.x
at       vsomeip::routing_manager_proxy::on_message
address  $_arg2
length   (unsigned int)$_arg3
";

struct Pair {
    _service: App,
    client: App,
    probes: TempFile,
}

impl Pair {
    /// A client that waits for a line, and the file of probes.
    fn start(requests: usize) -> Result<Pair, Missing> {
        let socket = unique("named");
        let mut service = App::start(&testapp("hallo-service")?, &["--socket", &socket]);
        service.expect("ready");
        let requests = requests.to_string();
        let arguments = ["--socket", &socket, "--wait", "--requests", &requests];
        let mut client = App::start(&testapp("hallo-client")?, &arguments);
        client.expect("ready");
        Ok(Pair {
            _service: service,
            client,
            probes: TempFile::new(PROBES),
        })
    }

    /// Traces the client with the arguments behind `trapline trace -p PID --probes FILE`.
    fn trace(&mut self, arguments: &[&str]) -> String {
        let mut command = tracer::trapline();
        command
            .args(["trace", "-p", &self.client.pid().to_string()])
            .args(["--probes", &self.probes.path()])
            .args(arguments);
        let mut trace = App::spawn(command);
        trace.expect("  probe 1: ");
        self.client.send("go");
        self.client.expect("replies=");
        trace.succeed()
    }

    /// The same at the prompt, off a terminal; `echo armed` lets the client go.
    fn batch(&mut self, commands: &[&str]) -> Result<String, Missing> {
        let pid = self.client.pid().to_string();
        let file = self.probes.path();
        let mut arguments = vec!["-p", &pid, "--probes", &file];
        for command in commands {
            arguments.extend(["-ex", *command]);
        }
        let mut session = Tracer::Trapline.batch(&arguments)?;
        session.expect("armed");
        self.client.send("go");
        self.client.expect("replies=");
        Ok(session.succeed())
    }
}

#[test]
fn the_line_shows_what_the_probe_knows() {
    test(|| {
        let text = Pair::start(3)?.trace(&["-e", "hallo:recv"]);
        let end = " length=36 topic=\"Hello World!\" all=47 service=0x1234 type=0x80";
        let lines: Vec<&str> = text.lines().filter(|line| line.ends_with(end)).collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].contains(": (0x"), "{text}");
        assert!(lines[0].contains(" address=0x"), "{text}");
        assert!(!text.contains("arg1="), "{text}");
        Ok(())
    });
}

#[test]
fn of_two_at_one_place_each_has_its_own_pieces() {
    test(|| {
        let raw =
            "hallo:raw if $_msg.length == 47 { printf \"%lu %#x\\n\", $_msg.length, $_msg[0] }";
        // What the front is asked about has them too.
        let asks = "hallo:raw if $_msg[0] == 0x17 { print $_msg.length; info symbol $pc }";
        let text = Pair::start(3)?.trace(&["-e", "hallo:recv", "-e", raw, "-e", asks]);
        let count = |wanted: &str| text.lines().filter(|line| line.ends_with(wanted)).count();
        assert_eq!(count(" service=0x1234 type=0x80"), 3, "{text}");
        assert_eq!(count("47 0x17"), 3, "{text}");
        assert_eq!(count(" = 47"), 3, "{text}");
        Ok(())
    });
}

/// At its return a message is where it was at the entry.
#[test]
fn returns_know_what_the_entry_knew() {
    test(|| {
        let probe = "hallo:recv%return if $_msg.length == 36 { x/s $_topic }";
        let mut pair = Pair::start(3)?;
        let text = pair.trace(&["-e", "hallo:recv%return", "-e", probe]);
        let count = |wanted: &str| text.lines().filter(|line| line.ends_with(wanted)).count();
        assert_eq!(
            count(" length=36 topic=\"Hello World!\" all=47 service=0x1234 type=0x80"),
            3,
            "{text}"
        );
        assert_eq!(count(":\t\"Hello World!\""), 3, "{text}");
        Ok(())
    });
}

#[test]
fn json_says_where_the_message_is() {
    test(|| {
        let text = Pair::start(3)?.trace(&["--json", "-e", "hallo:recv { x/s $_topic }"]);
        let schema = schema("record-v1.json");
        let lines = json_lines(text.lines().filter(|line| line.starts_with('{')));
        assert!(lines.iter().all(|line| schema.is_valid(line)), "{text}");
        let hits: Vec<&Value> = lines.iter().filter(|line| line["type"] == "hit").collect();
        assert_eq!(hits.len(), 3, "{text}");
        for hit in hits {
            assert_eq!(hit["msg"]["codec"], "someip");
            assert_eq!(hit["msg"]["length"], "36");
            // 23 bytes behind the message's address is the text.
            let address = |text: &Value| {
                let text = text.as_str().unwrap_or_default();
                let digits = text.trim_start_matches("0x").split(':').next();
                u64::from_str_radix(digits.unwrap_or_default(), 16).expect("an address")
            };
            let (message, shown) = (&hit["msg"]["address"], &hit["out"][0]);
            assert_eq!(address(shown) - address(message), 23, "{hit}");
            assert!(
                shown
                    .as_str()
                    .is_some_and(|line| line.ends_with("\t\"Hello World!\""))
            );
        }
        Ok(())
    });
}

#[test]
fn conditions_and_bodies_use_the_pieces() {
    test(|| {
        let probe = "hallo:recv if $_msg.type == 0x80 && $_msg.length > 30 && $_all == 47 \
                     { hexdump $_msg; x/s $_msg.address+23; output/x $_msg[1]; echo \\n; \
                       set var $_msg[24] = 'a' }";
        let never = "hallo:recv if $_msg.service != 0x1234";
        let mut pair = Pair::start(4)?;
        let text = pair.trace(&["-e", probe, "-e", never]);
        let count = |wanted: &str| text.lines().filter(|line| line.contains(wanted)).count();
        assert_eq!(count("\"Hello World!\""), 4, "{text}");
        // The dump has the header's beginning, and the message to its last byte and no further.
        assert_eq!(count("12 34 04 21  00 00 00 1c"), 4, "{text}");
        assert_eq!(count("6c 64 21 00 "), 4, "{text}");
        assert_eq!(
            text.lines().filter(|line| *line == "0x34").count(),
            4,
            "{text}"
        );
        assert_eq!(count("hallo:recv: 4 hits"), 1, "{text}");
        assert_eq!(count("hallo:recv: 0 hits"), 1, "{text}");
        let said = pair.client.succeed();
        assert_eq!(said.matches("Hallo World!").count(), 4, "{said}");
        Ok(())
    });
}

/// What does not compile is run by the front, at the stop.
#[test]
fn a_body_that_stops_uses_them_too() {
    test(|| {
        let probe = "hallo:recv if $_msg.length == 36 { print $_msg.length; info symbol $pc }";
        let text = Pair::start(3)?.trace(&["-e", probe]);
        let count = |wanted: &str| text.lines().filter(|line| line.contains(wanted)).count();
        assert_eq!(count(" = 36"), 3, "{text}");
        assert_eq!(
            count("vsomeip::routing_manager_proxy::on_message"),
            6,
            "{text}"
        );
        Ok(())
    });
}

#[test]
fn breakpoints_stand_at_the_entry() {
    test(|| {
        let text = Pair::start(2)?.batch(&[
            "break hallo:recv",
            "info probes hallo",
            "echo armed\\n",
            "continue",
            "print $_msg.length",
            "x/s $_topic",
            "print $_msg.color",
            "print (long)$_topic == $_arg2 + 30",
            "delete",
            "continue",
        ])?;
        assert!(
            text.contains("hallo:recv -- a greeting came in ("),
            "{text}"
        );
        assert!(
            text.contains("<vsomeip::routing_manager_proxy::on_message(unsigned char const*, unsigned int, vsomeip::endpoint*)>, 2.x, engine ptrace"),
            "{text}"
        );
        assert!(text.contains("$1 = 36"), "{text}");
        assert!(text.contains(":\t\"Hello World!\""), "{text}");
        let unknown = "hallo:recv has no $_msg.color here; it has $_msg.address, $_msg.length, $_topic, $_all, $_msg.service, $_msg.type.";
        assert!(text.contains(unknown), "{text}");
        assert!(
            text.contains("$2 = 1") || text.contains("$2 = true"),
            "{text}"
        );
        Ok(())
    });
}

#[test]
fn the_prompt_prints_a_line_a_hit() {
    test(|| {
        let text = Pair::start(2)?.batch(&["trace hallo:recv", "echo armed\\n", "continue"])?;
        let count = text.matches(" topic=\"Hello World!\"").count();
        assert_eq!(count, 2, "{text}");
        Ok(())
    });
}

fn trace(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = tracer::trapline();
    command.arg("trace").args(arguments);
    let (status, text) = App::spawn(command).finish();
    (status.code(), text)
}

#[test]
fn a_program_without_the_stack_is_told_what_was_tried() {
    test(|| {
        let client = testapp("threads")?.display().to_string();
        let (code, text) = trace(&["-e", "someip:recv", "--", &client]);
        assert_eq!(code, Some(1), "{text}");
        let wanted = "probe 1 (someip:recv): someip:recv has no place here; tried: vsomeip 3.4 (No shared library or program \"libvsomeip3.so\" is loaded); vsomeip 3, by its deserializer (No shared library or program \"libvsomeip3.so\" is loaded); opensomeip 0.2 (Function \"someip::Message::deserialize(unsigned char const*, unsigned long, bool)\" not defined).";
        assert!(text.lines().any(|line| line == wanted), "{text}");
        Ok(())
    });
}

#[test]
fn a_wrong_name_is_told_the_right_ones() {
    test(|| {
        let client = testapp("threads")?.display().to_string();
        let (code, text) = trace(&["-e", "someip:receive", "--", &client]);
        assert_eq!(code, Some(1), "{text}");
        let wanted = "There is no named probe \"someip:receive\"; of someip there are someip:recv, someip:send.";
        assert!(text.contains(wanted), "{text}");
        Ok(())
    });
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_touched() {
    let file = TempFile::new("probe hallo:recv\nversion 1\nat f\nadress $rdi\n");
    let (code, text) = trace(&["--probes", &file.path(), "-e", "hallo:recv", "-p", "1"]);
    assert_eq!(code, Some(2), "{text}");
    let wanted = format!("--probes: {}:4: \"adress\" is no keyword", file.path());
    assert!(text.starts_with(&wanted), "{text}");
    let (code, text) = trace(&["--probes", "/dev/zero", "-e", "f", "-p", "1"]);
    assert_eq!(code, Some(2), "{text}");
    let wanted = "--probes: /dev/zero is no file of named probes: it has more than 262144 bytes.";
    assert_eq!(text, wanted);
    let (code, text) = trace(&["--probes", "/nonexistent/x.probes", "-e", "f", "-p", "1"]);
    assert_eq!(code, Some(2), "{text}");
    assert_eq!(
        text,
        "--probes: Cannot read /nonexistent/x.probes: No such file or directory (os error 2)."
    );
}

#[test]
fn a_message_is_there_at_named_probes_only() {
    test(|| {
        let program = testapp("threads")?.display().to_string();
        let (code, text) = trace(&["-e", "main if $_msg.length", "--", &program]);
        assert_eq!(code, Some(1), "{text}");
        assert!(
            text.contains("$_msg is what arrives at a named probe"),
            "{text}"
        );
        Ok(())
    });
}

/// The configuration directory's files are read; a broken one keeps nobody from the others.
#[test]
fn configured_files_are_read() {
    let directory = TempDir::new("trapline-config");
    let probes = directory.join("trapline/probes");
    std::fs::create_dir_all(&probes).expect("a directory");
    std::fs::write(probes.join("hallo.probes"), PROBES).expect("a file");
    std::fs::write(probes.join("broken.probes"), "prob x:y\n").expect("a file");
    std::fs::write(probes.join("notes.txt"), "no probes").expect("a file");
    let mut command = tracer::trapline();
    command
        .args(["trace", "--list-probes"])
        .env("XDG_CONFIG_HOME", directory.path());
    let text = App::spawn(command).succeed();
    let has = |start: &str| text.lines().any(|line| line.starts_with(start));
    assert!(has("someip:recv -- "), "{text}");
    assert!(has("    known: vsomeip 3.4; "), "{text}");
    assert!(has("hallo:recv -- a greeting came in ("), "{text}");
    assert!(
        text.contains("broken.probes:1: \"prob\" is no keyword: there probe can stand."),
        "{text}"
    );
    assert!(!text.contains("notes.txt"), "{text}");
}

#[test]
fn what_is_loaded_later_is_waited_for() {
    test(|| {
        let socket = unique("named");
        let mut service = App::start(&testapp("hallo-service")?, &["--socket", &socket]);
        service.expect("ready");
        let client = testapp("hallo-client")?.display().to_string();
        let file = TempFile::new(PROBES);
        let text = Tracer::Trapline
            .batch(&[
                "--probes",
                &file.path(),
                "-ex",
                "break someip:recv",
                "-ex",
                "break hallo:recv",
                "-ex",
                "run",
                "-ex",
                "print $_msg.length",
                "-ex",
                "info breakpoints",
                "--args",
                &client,
                "--socket",
                &socket,
                "--requests",
                "1",
            ])?
            .succeed();
        assert!(
            text.contains("Breakpoint 1 (someip:recv) pending."),
            "{text}"
        );
        assert!(text.contains("$1 = 36"), "{text}");
        assert!(text.contains("<PENDING>  "), "{text}");
        Ok(())
    });
}
