//! The example scripts: each is run by the command in its head, and has to print what its head says.
//!
//! A head has `$ COMMAND` lines, each followed by lines of its output, in order and perhaps with
//! others between them; `...` stands for anything.

mod support;

use std::process::Command;

use support::{App, Missing, Network, Tracer, root, script, stack, test, testapp, tracer, unique};

/// A command of a head and what it prints.
#[derive(Debug, Default)]
struct Example {
    command: Vec<String>,
    output: Vec<String>,
}

fn examples(name: &str) -> Vec<Example> {
    let text = std::fs::read_to_string(script(name)).expect("a script");
    let mut examples: Vec<Example> = Vec::new();
    for line in text.lines().take_while(|line| line.starts_with('#')) {
        let line = line.trim_start_matches('#');
        if let Some(command) = line.trim().strip_prefix("$ ") {
            examples.push(Example {
                command: command.split_whitespace().map(String::from).collect(),
                ..Example::default()
            });
        } else if let (Some(example), Some(output)) =
            (examples.last_mut(), line.strip_prefix("   "))
        {
            example.output.push(output.into());
        }
    }
    assert!(!examples.is_empty(), "{name} has no example in its head");
    let complete =
        |it: &Example| !it.output.is_empty() && it.command.iter().any(|word| word.ends_with(name));
    assert!(examples.iter().all(complete), "{examples:?}");
    examples
}

/// Checks that the lines of an example come in its order.
fn check(example: &Example, text: &str) {
    let mut lines = text.lines();
    for wanted in &example.output {
        let pattern: Vec<String> = wanted.split("...").map(regex::escape).collect();
        let pattern = regex::Regex::new(&format!("^{}$", pattern.join(".*"))).expect("a pattern");
        assert!(
            lines.any(|line| pattern.is_match(line)),
            "no further {wanted:?} in:\n{text}"
        );
    }
}

/// Runs the example against a program that waits; `release` lets it go and sees it end.
fn run(example: &Example, pid: i32, release: impl FnOnce()) -> Result<(), Missing> {
    let arguments: Vec<String> = example.command[1..]
        .iter()
        .map(|word| match word.as_str() {
            "PID" => pid.to_string(),
            word => word.to_string(),
        })
        .collect();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let trace = arguments[0] == "trace";
    let mut command = match (trace, example.command[0].as_str()) {
        (true, "trapline") => tracer::trapline(),
        (false, "trapline") => Tracer::Trapline.command()?,
        (false, "gdb") => Tracer::Gdb.command()?,
        other => panic!("{other:?}"),
    };
    if !trace {
        let at = arguments.len() - 2;
        arguments.splice(at..at, ["-ex", "echo armed\\n"]);
    }
    command.current_dir(root()).args(&arguments);
    let mut traced = App::spawn(command);
    if trace {
        let probes = std::fs::read_to_string(script(name(&arguments))).expect("a script");
        let count = probes
            .lines()
            .filter(|line| line.starts_with("trace "))
            .count();
        traced.expect(&format!("  probe {count}: "));
    } else {
        traced.expect("armed");
    }
    release();
    check(example, &traced.succeed());
    Ok(())
}

fn name<'a>(arguments: &[&'a str]) -> &'a str {
    let script = arguments
        .iter()
        .find_map(|word| word.strip_prefix("scripts/"));
    script.expect("a script")
}

/// A program of ours that waits for a line.
fn waiting(mut command: Command) -> App {
    command.arg("--wait");
    let mut app = App::spawn(command);
    app.expect("ready");
    app
}

fn only(name: &str, mut app: App) -> Result<(), Missing> {
    let list = examples(name);
    assert_eq!(list.len(), 1);
    run(&list[0], app.pid(), || {
        app.send("go");
        app.succeed();
    })
}

#[test]
fn hallo() {
    test(|| {
        let list = examples("hallo.gdb");
        assert_eq!(list.len(), 2);
        for example in &list {
            let socket = unique("example");
            let mut service = App::start(&testapp("hallo-service")?, &["--socket", &socket]);
            service.expect("ready");
            let mut command = Command::new(testapp("hallo-client")?);
            command.args(["--socket", &socket]);
            let mut client = waiting(command);
            run(example, client.pid(), || {
                client.send("go");
                let line = client.expect("replies=");
                assert!(line.starts_with("replies=10 hello=0 hallo=10 "), "{line}");
            })?;
        }
        Ok(())
    });
}

#[test]
fn fibon() {
    test(|| {
        let mut command = Command::new(testapp("fibon")?);
        command.args(["--calls", "25"]);
        only("fibon.trl", waiting(command))
    });
}

#[test]
fn vendor_offset() {
    test(|| {
        only(
            "vendor-offset.trl",
            waiting(Command::new(testapp("vendor-client")?)),
        )
    });
}

#[test]
fn someip_messages() {
    test(|| {
        stack("VSOMEIP")?;
        let network = unique("example");
        let mut service = App::start(&testapp("vsomeip-service")?, &["--network", &network]);
        service.expect("ready");
        let mut command = Command::new(testapp("vsomeip-client")?);
        command.args(["--network", &network, "--requests", "10"]);
        only("someip-messages.trl", waiting(command))
    });
}

#[test]
fn ros2_callbacks() {
    test(|| {
        stack("ROS2")?;
        let network = Network::start()?;
        let start = |program: &str| -> Result<App, Missing> {
            let mut command = network.command(testapp(program)?);
            command
                .args(["--wait", "--messages", "10"])
                .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
            Ok(App::spawn(command))
        };
        let (mut listener, mut talker) = (start("ros2-listener")?, start("ros2-talker")?);
        listener.expect("ready");
        talker.expect("ready");
        let list = examples("ros2-callbacks.trl");
        run(&list[0], listener.pid(), || {
            listener.send("go");
            talker.ask("go", "published=10");
            listener.expect("taken=10");
            listener.succeed();
        })
    });
}

#[test]
fn cyber_tail() {
    test(|| {
        let network = Network::start()?;
        let mut command = network.command(stack("CYBER")?.join("python"));
        command
            .arg(root().join("testapps/cyber/pair.py"))
            .args(["--messages", "10"]);
        only("cyber-tail.trl", waiting(command))
    });
}
