//! Every kind of first instruction (testapps/first/first.S): with probes the program computes what it computes without, and
//! every pass is one hit, whatever else happens to its threads meanwhile.

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use support::{App, Missing, TempFile, process, test, testapp};

/// What the program says of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    hits: u64,
    sum: String,
}

fn outcomes(text: &str) -> BTreeMap<String, Outcome> {
    let outcome = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let hits = words.next()?.strip_prefix("hits=")?.parse().ok()?;
        let sum = words.next()?.strip_prefix("sum=")?.to_owned();
        Some((name, Outcome { hits, sum }))
    };
    text.lines().filter_map(outcome).collect()
}

/// The program by itself.
fn alone(arguments: &[&str]) -> Result<BTreeMap<String, Outcome>, Missing> {
    let output = Command::new(testapp("first")?)
        .args(arguments)
        .output()
        .expect("the program");
    assert!(output.status.success(), "{:?}", output.status);
    Ok(outcomes(&String::from_utf8_lossy(&output.stdout)))
}

/// A traced run: what the program said, and the hits of each location.
struct Traced {
    outcomes: BTreeMap<String, Outcome>,
    hits: BTreeMap<String, u64>,
}

fn traced(locations: &[String], arguments: &[&str]) -> Result<Traced, Missing> {
    let probes: Vec<String> = locations
        .iter()
        .map(|location| format!("trace {location} {{ }}\n"))
        .collect();
    let script = TempFile::new(&probes.concat());
    let trapline = support::tracer::trapline();
    let output = Command::new("timeout")
        .arg("120")
        .arg(trapline.get_program())
        .args(["trace", "--json", "-x", &script.path(), "--"])
        .arg(testapp("first")?)
        .args(arguments)
        .output()
        .expect("trapline");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}:\n{said}", output.status);
    assert!(said.lines().any(|line| line == "done"), "{said}");
    let records = String::from_utf8_lossy(&output.stdout);
    let last = records.lines().last().expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(summary["drops"], "0");
    let probes = summary["probes"].as_array().expect("probes");
    assert_eq!(probes.len(), locations.len());
    let hits = |probe: &serde_json::Value| {
        let location = probe["location"].as_str().expect("a location").to_owned();
        let hits = probe["hits"].as_str().expect("hits").parse();
        assert_eq!(probe["hits"], probe["records"], "{location}");
        (location, hits.expect("a number"))
    };
    Ok(Traced {
        outcomes: outcomes(&said),
        hits: probes.iter().map(hits).collect(),
    })
}

/// What the handler of the storm did differs from run to run.
const STORM: [&str; 2] = ["f_handler", "f_restorer"];

#[track_caller]
fn assert_alike(traced: &Traced, alone: &BTreeMap<String, Outcome>) {
    for (name, outcome) in alone {
        if !STORM.contains(&name.as_str()) {
            assert_eq!(traced.outcomes.get(name), Some(outcome), "{name}");
        }
    }
}

fn entries(of: &BTreeMap<String, Outcome>) -> Vec<String> {
    let names = of.keys().filter(|name| name.starts_with("f_"));
    names.map(|name| format!("*{name}")).collect()
}

#[track_caller]
fn assert_exact(traced: &Traced) {
    for (location, hits) in &traced.hits {
        let name = location.trim_start_matches('*');
        assert_eq!(*hits, traced.outcomes[name].hits, "{location}");
    }
}

#[test]
fn every_first_instruction_does_what_it_did_and_counts_once() {
    test(|| {
        let arguments = ["--calls", "20"];
        let alone = alone(&arguments)?;
        let traced = traced(&entries(&alone), &arguments)?;
        assert!(traced.hits.len() > 240);
        assert_alike(&traced, &alone);
        assert_exact(&traced);
        Ok(())
    });
}

#[test]
fn in_four_threads_under_a_storm_of_signals_too() {
    test(|| {
        let arguments = ["--calls", "30", "--threads", "4"];
        let alone = alone(&arguments)?;
        for storm in ["300", "2000"] {
            let arguments = [&arguments[..], &["--storm", storm]].concat();
            let traced = traced(&entries(&alone), &arguments)?;
            assert_alike(&traced, &alone);
            assert_exact(&traced);
            assert!(traced.hits["*f_handler"] > 0);
        }
        Ok(())
    });
}

/// `f_NAME+OFFSET` of every instruction of those functions, as the disassembler has them.
fn instructions() -> Result<Vec<(String, u64)>, Missing> {
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn"])
        .arg(testapp("first")?)
        .output()
        .map_err(|_| Missing("objdump is not installed".into()))?;
    let mut function: Option<(String, u64)> = None;
    let mut all = Vec::new();
    let mut prefix = false;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some((address, name)) = line.split_once(" <") {
            let address = u64::from_str_radix(address, 16);
            if let (Ok(address), Some(name)) = (address, name.strip_suffix(">:")) {
                function = Some((name.to_owned(), address));
                continue;
            }
        }
        let Some((address, text)) = line.split_once(':') else {
            continue;
        };
        let (Ok(address), Some((name, start))) =
            (u64::from_str_radix(address.trim(), 16), &function)
        else {
            continue;
        };
        let text = text.trim();
        // Behind the function's end, or what is there to be refused.
        let filling = ["int3", "ud2", "(bad)"].contains(&text) || text.starts_with("nop");
        // The disassembler tells some prefixes apart from their instruction.
        if name.starts_with("f_") && !(prefix || filling && address != *start) {
            all.push((name.clone(), address - start));
        }
        prefix = text == "rex.W";
    }
    Ok(all)
}

#[test]
fn every_instruction_of_every_function_at_once() {
    test(|| {
        let arguments = ["--calls", "10", "--threads", "4"];
        let alone = alone(&arguments)?;
        let all = instructions()?;
        assert!(all.len() > 500, "{}", all.len());
        let locations: Vec<String> = all
            .iter()
            .map(|(name, offset)| format!("*({name}+{offset})"))
            .collect();
        let quiet = traced(&locations, &arguments)?;
        let storm = traced(&locations, &[&arguments[..], &["--storm", "1500"]].concat())?;
        assert_alike(&quiet, &alone);
        assert_alike(&storm, &alone);
        for (location, (name, offset)) in locations.iter().zip(&all) {
            let entry = storm.outcomes[name].hits;
            let hits = storm.hits[location];
            match () {
                () if *offset == 0 || STORM.contains(&name.as_str()) => {
                    assert_eq!(hits, entry, "{location}")
                }
                // Behind a branch or a fault: not always, and as often with a storm as without.
                () => {
                    assert_eq!(hits, quiet.hits[location], "{location}");
                    assert!(hits <= entry, "{location}");
                }
            }
        }
        for (condition, opposite) in [
            ("o", "no"),
            ("b", "ae"),
            ("e", "ne"),
            ("be", "a"),
            ("s", "ns"),
            ("p", "np"),
            ("l", "ge"),
            ("le", "g"),
        ] {
            let hits = |name: &str| storm.hits[&format!("*(f_j{name}_short+2)")];
            let not_taken = hits(condition) + hits(opposite);
            assert_eq!(not_taken, 40, "j{condition} and j{opposite}");
        }
        Ok(())
    });
}

#[test]
fn what_cannot_be_moved_is_refused_before_anything_is_written() {
    test(|| {
        let alone = alone(&["--calls", "5"])?;
        let mut app = App::start(&testapp("first")?, &["--calls", "5", "--wait"]);
        app.expect("ready");
        let pid = app.pid();
        for (name, reason) in [
            ("r_int3", "an interrupt reports its own address"),
            ("r_ud2", "fault at its own address"),
            ("r_int80", "an interrupt reports its own address"),
            ("r_int1", "an interrupt reports its own address"),
            ("r_int3_long", "an interrupt reports its own address"),
            ("r_xbegin", "a transaction restarts at its own address"),
            ("r_sysenter", "not an instruction of user programs"),
            ("r_sysret", "not an instruction of user programs"),
            ("r_lcall", "a far call"),
            ("r_call16", "processors disagree about its 66 prefix"),
            ("r_jmp16", "processors disagree about its 66 prefix"),
            ("r_eip_load", "a 32-bit operand relative to the instruction"),
            ("r_invalid", "no valid instruction"),
        ] {
            let output = support::tracer::trapline()
                .args(["trace", "-p", &pid.to_string(), "-e"])
                .arg(format!("*{name} {{ }}"))
                .output()
                .expect("trapline");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{name}: {said}");
            assert!(said.contains(reason), "{name}: {said}");
            process::wait_untraced(pid);
            assert_eq!(process::changed_text(pid), [], "{name}");
        }
        app.send("go");
        app.expect("done");
        let output = app.succeed();
        assert_eq!(outcomes(&output), alone);
        Ok(())
    });
}
