//! Real middleware by the named probes, with nothing but `-p` and `-e`: what is counted is what the
//! programs themselves count.

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use support::app::number;
use support::someip::Vsomeip;
use support::{App, Missing, Network, json_lines, root, stack, test, testapp, tracer};

/// A tracer of some processes that has its probes in place.
struct Traced {
    tracer: App,
}

impl Traced {
    fn start(pids: &[i32], probes: &[&str]) -> Traced {
        let mut command = tracer::trapline();
        command.args(["trace", "--json"]);
        for pid in pids {
            command.args(["-p", &pid.to_string()]);
        }
        for probe in probes {
            command.args(["-e", probe]);
        }
        let mut tracer = App::spawn(command);
        // The banner's last line.
        tracer.expect(&format!("  probe {}: ", probes.len()));
        Traced { tracer }
    }

    /// The hits, when the programs have ended.
    fn hits(&mut self) -> Vec<Value> {
        let text = self.tracer.succeed();
        let lines = json_lines(text.lines().filter(|line| line.starts_with('{')));
        let summary = lines.last().expect("a summary");
        assert_eq!(summary["type"], "summary", "{summary}");
        let none = ["drops", "faults"].map(|key| summary[key].as_str());
        assert_eq!(none, [Some("0"); 2], "{summary}");
        let hits = lines.iter().filter(|line| line["type"] == "hit");
        hits.cloned().collect()
    }
}

fn of_probe(hits: &[Value], probe: u64) -> Vec<&Value> {
    hits.iter().filter(|hit| hit["probe"] == probe).collect()
}

/// How many hits of a probe say all of `wanted` in their arguments.
fn count(hits: &[Value], probe: u64, wanted: &[(&str, &str)]) -> usize {
    let fits = |hit: &&Value| {
        wanted
            .iter()
            .all(|(name, value)| hit["args"][name] == *value)
    };
    of_probe(hits, probe).into_iter().filter(fits).count()
}

const REQUEST: [(&str, &str); 4] = [
    ("service", "0x1234"),
    ("method", "0x421"),
    ("type", "0x0"),
    ("length", "21"),
];
const REPLY: [(&str, &str); 4] = [
    ("service", "0x1234"),
    ("method", "0x421"),
    ("type", "0x80"),
    ("length", "28"),
];

struct Pair {
    service: App,
    client: App,
}

impl Pair {
    fn start(directory: &str, requests: usize) -> Result<Pair, Missing> {
        let vsomeip = Vsomeip::new(directory)?;
        let service = vsomeip.start("vsomeip-service", &[])?;
        let requests = requests.to_string();
        let client = vsomeip.start("vsomeip-client", &["--wait", "--requests", &requests])?;
        Ok(Pair { service, client })
    }

    /// Lets the client do its work; the service ends with it.
    fn run(&mut self, requests: usize) {
        self.client.send("go");
        let line = self.client.expect("replies=");
        assert_eq!(number(&line, "replies") as usize, requests, "{line}");
        self.client.succeed();
        self.service.succeed();
    }
}

#[test]
fn vsomeip_client() {
    test(|| {
        let mut pair = Pair::start("lib", 10_000)?;
        let mut traced = Traced::start(&[pair.client.pid()], &["someip:recv", "someip:send"]);
        pair.run(10_000);
        let hits = traced.hits();
        assert_eq!(count(&hits, 1, &REPLY), 10_000);
        assert_eq!(count(&hits, 2, &REQUEST), 10_000);
        assert_eq!(hits.len(), 20_000);
        let msg = &of_probe(&hits, 1)[0]["msg"];
        assert_eq!(msg["codec"], "someip");
        assert_eq!(msg["length"], "28");
        Ok(())
    });
}

#[test]
fn vsomeip_routing_manager() {
    test(|| {
        let mut pair = Pair::start("lib", 1_000)?;
        let mut traced = Traced::start(&[pair.service.pid()], &["someip:recv", "someip:send"]);
        pair.run(1_000);
        let hits = traced.hits();
        assert_eq!(count(&hits, 1, &REQUEST), 1_000);
        assert_eq!(count(&hits, 2, &REPLY), 1_000);
        Ok(())
    });
}

#[test]
fn vsomeip_stripped() {
    test(|| {
        let mut pair = Pair::start("stripped", 10_000)?;
        let mut traced = Traced::start(&[pair.client.pid()], &["someip:recv"]);
        pair.run(10_000);
        let hits = traced.hits();
        assert_eq!(count(&hits, 1, &REPLY), 10_000);
        assert_eq!(hits.len(), 10_000);
        Ok(())
    });
}

#[test]
fn opensomeip() {
    test(|| {
        let mut client = App::start(
            &testapp("opensomeip-echo")?,
            &["--wait", "--requests", "10000"],
        );
        client.expect("ready");
        let mut traced = Traced::start(&[client.pid()], &["someip:recv", "someip:send"]);
        client.send("go");
        let line = client.expect("sent=");
        assert_eq!(line, "sent=10000 received=10000 lost=0");
        client.succeed();
        let hits = traced.hits();
        assert_eq!(count(&hits, 1, &REPLY), 10_000);
        assert_eq!(count(&hits, 2, &REQUEST), 10_000);
        assert_eq!(hits.len(), 20_000);
        Ok(())
    });
}

#[test]
fn ros2() {
    test(|| {
        const MESSAGES: usize = 1_000;
        stack("ROS2")?;
        let network = Network::start()?;
        let start = |program: &str| -> Result<App, Missing> {
            let mut command = network.command(testapp(program)?);
            command
                .args(["--wait", "--messages", &MESSAGES.to_string()])
                .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
            Ok(App::spawn(command))
        };
        let (mut listener, mut talker) = (start("ros2-listener")?, start("ros2-talker")?);
        listener.expect("ready");
        talker.expect("ready");
        let probes = [
            "ros2:publish",
            "ros2:take",
            "ros2:callback",
            "ros2:take if $_streq($_topic, \"/chatter\") { printf \"%ld\\n\", $_stamp }",
        ];
        let mut traced = Traced::start(&[talker.pid(), listener.pid()], &probes);
        listener.send("go");
        assert_eq!(
            talker.ask("go", "published="),
            format!("published={MESSAGES}")
        );
        assert_eq!(listener.expect("taken="), format!("taken={MESSAGES}"));
        listener.succeed();
        talker.succeed();

        let hits = traced.hits();
        let topic = [("topic", "\"/chatter\"")];
        assert_eq!(count(&hits, 1, &topic), MESSAGES);
        assert_eq!(count(&hits, 2, &topic), MESSAGES);
        assert_eq!(count(&hits, 3, &[]), MESSAGES);
        assert_eq!(count(&hits, 4, &[]), MESSAGES);
        // A publish is joined to its take, in the other process, by the time stamp.
        let stamps = |probe| -> BTreeSet<String> {
            let hits = of_probe(&hits, probe).into_iter();
            hits.filter(|hit| hit["args"]["topic"] == "\"/chatter\"")
                .map(|hit| hit["args"]["stamp"].to_string())
                .collect()
        };
        assert_eq!(stamps(1).len(), MESSAGES);
        assert_eq!(stamps(1), stamps(2));
        Ok(())
    });
}

/// A pair in Python on a stack that is one big library, loaded by name.
fn python_pair(network: &Network, directory: PathBuf, program: &str, arguments: &[&str]) -> App {
    let mut command = network.command(directory.join("python"));
    command
        .arg(root().join("testapps").join(program))
        .arg("--wait")
        .args(arguments);
    let mut pair = App::spawn(command);
    pair.expect("ready");
    pair
}

#[test]
fn cyber() {
    test(|| {
        let network = Network::start()?;
        let directory = stack("CYBER")?;
        let mut pair = python_pair(&network, directory, "cyber/pair.py", &["--messages", "200"]);
        let threads = std::fs::read_dir(format!("/proc/{}/task", pair.pid()))
            .expect("threads")
            .count();
        assert!(threads >= 25, "{threads} threads");
        let probes = [
            "cyber:write",
            "cyber:read",
            "cyber:read { printf \"%.19s\\n\", (char *)($_msg.address + 307200) }",
        ];
        let mut traced = Traced::start(&[pair.pid()], &probes);
        assert_eq!(pair.ask("go", "written="), "written=200 received=200");
        pair.succeed();
        let hits = traced.hits();
        let whole = [("topic", "\"trapline/messages\""), ("length", "307240")];
        assert_eq!(count(&hits, 1, &whole), 200);
        assert_eq!(count(&hits, 2, &whole), 200);
        // Each message's own time, which is before the time of its hit.
        let tails = of_probe(&hits, 3);
        assert_eq!(tails.len(), 200);
        for hit in tails {
            let written: u64 = hit["out"][0]
                .as_str()
                .and_then(|s| s.parse().ok())
                .unwrap_or(0);
            let wall: u64 = hit["wall"]
                .as_str()
                .and_then(|s| s.parse().ok())
                .unwrap_or(0);
            let second = 1_000_000_000;
            assert!(written < wall && wall - written < 60 * second, "{hit}");
        }
        Ok(())
    });
}

/// A launched program gets its big library by name, long after its start and two programs later.
#[test]
fn cyber_launched() {
    test(|| {
        let network = Network::start()?;
        let python = stack("CYBER")?.join("python");
        let mut command = network.command(tracer::trapline().get_program());
        command
            .args([
                "trace",
                "--json",
                "-e",
                "cyber:write",
                "-e",
                "cyber:read",
                "--",
                "/bin/sh",
            ])
            .arg(python)
            .arg(root().join("testapps/cyber/pair.py"))
            .args(["--messages", "50"]);
        let mut traced = Traced {
            tracer: App::spawn(command),
        };
        traced.tracer.expect("written=50 received=50");
        let hits = traced.hits();
        // Shorter ones came before, until writer and reader had found each other.
        let whole = [("topic", "\"trapline/messages\""), ("length", "307240")];
        assert_eq!(count(&hits, 1, &whole), 50);
        assert_eq!(count(&hits, 2, &whole), 50);
        Ok(())
    });
}

#[test]
fn cyclonedds() {
    test(|| {
        let network = Network::start()?;
        let directory = stack("CYCLONEDDS")?;
        let arguments = ["--messages", "1000"];
        let mut pair = python_pair(&network, directory, "cyclonedds/pair.py", &arguments);
        let mut traced = Traced::start(&[pair.pid()], &["dds:write", "dds:arrive"]);
        assert_eq!(pair.ask("go", "written="), "written=1000 taken=1000");
        pair.succeed();
        let hits = traced.hits();
        assert_eq!(count(&hits, 1, &[("topic", "\"greetings\"")]), 1_000);
        assert_eq!(count(&hits, 2, &[("type", "\"Greeting\"")]), 1_000);
        Ok(())
    });
}
