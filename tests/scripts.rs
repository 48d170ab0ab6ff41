//! Scripts do in trapline what they do in gdb: the same script on the same program in both, everything that
//! is printed and the exit status compared.
//!
//! The cases are in `tests/scripts/AREA.txt`:
//!
//! ```text
//! program: NAME              above the first case: of all that name no other (tally if none does)
//!
//! === NAME OF THE CASE
//! program: NAME              of testapps/
//! args: OPTIONS              `--batch -x SCRIPT PROGRAM` if left out; SCRIPT and PROGRAM stand for the paths
//! ex: COMMAND                once or more: `--batch -ex COMMAND… PROGRAM`; `␤` is a new line
//! stdin: LINE                what is typed
//! except: REASON             the case differs; it is an error if it does not
//! --- file NAME              a file beside the script, once or more
//! TEXT
//! ---
//! SCRIPT
//! ```
//!
//! `TRAPLINE_CASE=TEXT` runs only the cases whose name has TEXT in it and shows both outputs.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use support::{App, Missing, TempDir, Tracer, root, test, testapp};

const AREAS: [&str; 21] = [
    "commands",
    "bp-cmds",
    "condbreak",
    "bp-cond-failure",
    "dprintf",
    "dprintf-pending",
    "display",
    "setvar",
    "setshow",
    "ena-dis-br",
    "save-bp",
    "pending",
    "unload",
    "ui-redirect",
    "batch-exit-status",
    "gnu-ifunc",
    "handle",
    "forks",
    "watch",
    "catch",
    "signal",
];

#[derive(Debug, Clone, Default)]
struct Case {
    name: String,
    program: String,
    arguments: Option<Vec<String>>,
    typed: Vec<String>,
    except: Option<String>,
    files: Vec<(String, String)>,
    script: String,
}

fn read_area(area: &str) -> Vec<Case> {
    let path = root().join("tests/scripts").join(format!("{area}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut parts = text.split("\n=== ");
    let program = parts
        .next()
        .and_then(|head| head.lines().find_map(|line| line.strip_prefix("program: ")))
        .unwrap_or("tally");
    parts.map(|part| read_case(part, program)).collect()
}

fn read_case(text: &str, program: &str) -> Case {
    let mut lines = text.lines();
    let mut case = Case {
        name: lines.next().unwrap_or_default().to_owned(),
        program: program.to_owned(),
        ..Case::default()
    };
    let mut commands = Vec::new();
    let mut into: Option<usize> = None;
    for line in lines.by_ref() {
        if line == "---" {
            break;
        } else if let Some(name) = line.strip_prefix("--- file ") {
            into = Some(case.files.len());
            case.files.push((name.to_owned(), String::new()));
        } else if let Some(at) = into {
            case.files[at].1 += &format!("{line}\n");
        } else {
            let (key, value) = line
                .split_once(": ")
                .unwrap_or_else(|| panic!("{}: what is {line:?}?", case.name));
            match key {
                "program" => case.program = value.to_owned(),
                "args" => case.arguments = Some(words(value)),
                "ex" => commands.push(value.replace('␤', "\n")),
                "stdin" => case.typed.push(value.to_owned()),
                "except" => case.except = Some(value.to_owned()),
                _ => panic!("{}: what is {key:?}?", case.name),
            }
        }
    }
    case.script = lines.map(|line| format!("{line}\n")).collect();
    case.script = case.script.trim_end_matches('\n').to_owned() + "\n";
    if !commands.is_empty() {
        let mut arguments = vec!["--batch".to_owned()];
        for command in commands {
            arguments.extend(["-ex".to_owned(), command]);
        }
        arguments.push("PROGRAM".to_owned());
        case.arguments = Some(arguments);
    }
    case
}

/// The words of a line as a shell would read them.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

impl Case {
    /// What it prints, made comparable, and the exit status.
    fn run(&self, tracer: Tracer, directory: &Path) -> Result<String, Missing> {
        fs::create_dir_all(directory).expect("a directory of our own");
        let script = directory.join("script.gdb");
        fs::write(&script, &self.script).expect("a file of our own");
        for (name, text) in &self.files {
            fs::write(directory.join(name), text).expect("a file of our own");
        }
        let program = testapp(&self.program)?.display().to_string();
        let script = script.display().to_string();
        let standard = || words("--batch -x SCRIPT PROGRAM");
        let arguments = self.arguments.clone().unwrap_or_else(standard);
        let mut command = tracer.command()?;
        command.current_dir(directory);
        command.args(arguments.iter().map(|word| match word.as_str() {
            "SCRIPT" => script.clone(),
            "PROGRAM" => program.clone(),
            word => word.to_owned(),
        }));
        let mut app = App::spawn(command);
        for line in &self.typed {
            app.send(line);
        }
        let (status, text) = app.finish();
        let text = text.replace(&directory.display().to_string(), "DIRECTORY");
        Ok(format!("{}[{status}]\n", comparable(&text)))
    }
}

/// Without what differs from run to run, what gdb's thread library says, and the prompt.
fn comparable(text: &str) -> String {
    const NOISE: [&str; 2] = [
        "[Thread debugging using libthread_db",
        "Using host libthread_db library",
    ];
    let pid = regex::Regex::new(r"\b(process|LWP) \d+").expect("a pattern");
    let stack = regex::Regex::new(r"0x7fffff[0-9a-f]{6}\b").expect("a pattern");
    let mut out = String::new();
    for line in text.lines() {
        if NOISE.iter().any(|noise| line.starts_with(noise)) {
            continue;
        }
        let line = line.replace("(gdb) ", "");
        let line = pid.replace_all(&line, "$1 PID");
        let _ = writeln!(out, "{}", stack.replace_all(&line, "0xSTACK"));
    }
    // gdb goes to a new line when its input ends.
    out.truncate(out.trim_end_matches('\n').len());
    out.push('\n');
    out
}

/// The lines of both, those that only one has marked.
fn difference(gdb: &str, ours: &str) -> String {
    let (gdb, ours): (Vec<&str>, Vec<&str>) = (gdb.lines().collect(), ours.lines().collect());
    // The longest common subsequence, from the end: outputs are short.
    let mut common = vec![vec![0usize; ours.len() + 1]; gdb.len() + 1];
    for i in (0..gdb.len()).rev() {
        for j in (0..ours.len()).rev() {
            common[i][j] = match gdb[i] == ours[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut out = String::new();
    while i < gdb.len() || j < ours.len() {
        if i < gdb.len() && j < ours.len() && gdb[i] == ours[j] {
            let _ = writeln!(out, "      {}", gdb[i]);
            (i, j) = (i + 1, j + 1);
        } else if j == ours.len() || i < gdb.len() && common[i + 1][j] >= common[i][j + 1] {
            let _ = writeln!(out, "  gdb {}", gdb[i]);
            i += 1;
        } else {
            let _ = writeln!(out, "  our {}", ours[j]);
            j += 1;
        }
    }
    out
}

fn area(area: &str) {
    let only = std::env::var("TRAPLINE_CASE").ok();
    test(|| {
        let directory = TempDir::new("trapline-scripts");
        let mut wrong = String::new();
        let (mut equal, mut excepted) = (0, 0);
        for (number, case) in read_area(area).into_iter().enumerate() {
            if only.as_ref().is_some_and(|only| !case.name.contains(only)) {
                continue;
            }
            let here = directory.join(number.to_string());
            let gdb = case.run(Tracer::Gdb, &here.join("gdb"))?;
            let ours = case.run(Tracer::Trapline, &here.join("trapline"))?;
            if only.is_some() {
                println!("=== {}\n{}", case.name, difference(&gdb, &ours));
            }
            match (gdb == ours, &case.except) {
                (true, None) => equal += 1,
                (false, Some(_)) => excepted += 1,
                (true, Some(_)) => {
                    let _ = writeln!(wrong, "=== {}: equal, and said not to be", case.name);
                }
                (false, None) => {
                    let _ = write!(wrong, "=== {}\n{}", case.name, difference(&gdb, &ours));
                }
            }
        }
        println!("{area}: {equal} equal, {excepted} differ with a reason");
        assert!(wrong.is_empty(), "{area}:\n{wrong}");
        Ok(())
    });
}

macro_rules! areas {
    ($($name:ident: $area:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            area($area);
        })*
    };
}

areas! {
    commands: "commands",
    breakpoint_commands: "bp-cmds",
    conditions: "condbreak",
    failing_conditions: "bp-cond-failure",
    dprintf: "dprintf",
    pending_dprintf: "dprintf-pending",
    display: "display",
    set_var: "setvar",
    set_and_show: "setshow",
    enable_and_disable: "ena-dis-br",
    save_breakpoints: "save-bp",
    pending: "pending",
    unload: "unload",
    redirection: "ui-redirect",
    batch_exit_status: "batch-exit-status",
    ifunc: "gnu-ifunc",
    handle: "handle",
    forks: "forks",
    watchpoints: "watch",
    catchpoints: "catch",
    signal: "signal",
}

/// Every area is looked at, and nearly everything in it is equal.
#[test]
fn exceptions_are_few() {
    let mut total = 0;
    let mut excepted = 0;
    for area in AREAS {
        let cases = read_area(area);
        assert!(cases.len() >= 8, "{area} has {} cases", cases.len());
        total += cases.len();
        excepted += cases.iter().filter(|case| case.except.is_some()).count();
    }
    assert!(excepted * 10 <= total, "{excepted} of {total} differ");
}
