//! `trapline symbols`: the same names and addresses as `nm`, `objdump` and gdb, and what they do not tell.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use support::{App, Missing, Tracer, json_lines, schema, test, testapp, text, vsomeip};

fn symbols(arguments: &[&str]) -> Output {
    let mut command = support::tracer::trapline();
    command.arg("symbols").args(arguments);
    command.output().expect("trapline runs")
}

/// The objects that `--json` prints.
fn rows(arguments: &[&str]) -> Vec<serde_json::Value> {
    let output = symbols(&[&["--json"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    json_lines(text(&output.stdout).lines())
}

fn number(row: &serde_json::Value, field: &str) -> u64 {
    let text = row[field].as_str().unwrap_or_default();
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{row}"))
}

/// The programs and libraries that are compared.
fn files() -> Result<Vec<PathBuf>, Missing> {
    let mut files = vec![testapp("hallo-client")?, testapp("fibon-static")?];
    if let Ok(directory) = vsomeip() {
        files.push(directory.join("lib/libvsomeip3.so"));
    }
    Ok(files)
}

fn tool(name: &str, arguments: &[&str], file: &Path) -> Result<String, Missing> {
    let output = Command::new(name).args(arguments).arg(file).output();
    let output = output.map_err(|error| Missing(format!("no {name}: {error}")))?;
    Ok(text(&output.stdout))
}

/// Address and name, what differs between the spellings of the tools taken out.
type Names = BTreeSet<(u64, String)>;

fn own(file: &Path) -> (Names, Names) {
    let rows = rows(&[&file.display().to_string()]);
    let defined = rows.iter().filter(|row| !row["address"].is_null());
    let pair = |row: &serde_json::Value, name: &str| {
        (
            number(row, "address"),
            row[name].as_str().unwrap_or_default().to_string(),
        )
    };
    let defined: Vec<_> = defined.collect();
    let demangled = defined.iter().map(|row| pair(row, "name")).collect();
    let linkage = defined.iter().map(|row| pair(row, "linkage")).collect();
    (demangled, linkage)
}

/// How many of `wanted` are not in `own`, as a share of all.
fn missing<'a>(own: &Names, wanted: &'a Names) -> Vec<&'a (u64, String)> {
    wanted.iter().filter(|pair| !own.contains(*pair)).collect()
}

#[test]
fn the_names_and_addresses_of_nm_and_objdump() {
    test(|| {
        for file in files()? {
            let (_, linkage) = own(&file);
            // `t` and `T` are code, `w` and `W` weak, `i` indirect functions, `u` unique.
            let nm = tool("nm", &["--defined-only"], &file)?;
            let wanted: Names = nm
                .lines()
                .filter_map(|line| {
                    let mut words = line.split_whitespace();
                    let address = u64::from_str_radix(words.next()?, 16).ok()?;
                    matches!(words.next()?, "t" | "T" | "i").then_some(())?;
                    Some((address, words.next()?.split('@').next()?.to_string()))
                })
                .collect();
            assert!(wanted.len() > 10, "{nm}");
            assert_eq!(
                missing(&linkage, &wanted),
                Vec::<&(u64, String)>::new(),
                "{}",
                file.display()
            );

            let objdump = tool("objdump", &["-t"], &file)?;
            let wanted: Names = objdump
                .lines()
                .filter_map(|line| {
                    let address = u64::from_str_radix(line.get(..16)?, 16).ok()?;
                    line.get(16..25).filter(|flags| flags.contains('F'))?;
                    let name = line.split_whitespace().last()?;
                    let defined = !line.contains("*UND*");
                    defined.then(|| (address, name.split('@').next().unwrap_or(name).to_string()))
                })
                .collect();
            assert!(wanted.len() > 10, "{objdump}");
            assert_eq!(
                missing(&linkage, &wanted),
                Vec::<&(u64, String)>::new(),
                "{}",
                file.display()
            );
        }
        Ok(())
    });
}

/// gdb's `info functions`, which lists the PLT's stubs beside.
#[test]
fn the_demangled_names_of_gdb() {
    test(|| {
        for file in files()? {
            let mut command = Tracer::Gdb.command()?;
            command
                .args(["--batch", "-ex", "info functions"])
                .args(["-iex", "set debug-file-directory /nonexistent"])
                .arg(&file)
                .stdin(Stdio::null());
            let text = text(&command.output().expect("gdb runs").stdout);
            let wanted: Names = text
                .lines()
                .filter_map(|line| {
                    let (address, name) = line.strip_prefix("0x")?.split_once("  ")?;
                    let address = u64::from_str_radix(address, 16).ok()?;
                    // What compilers append to C names gdb takes for Ada's.
                    let suffixed = name.contains('.') && !name.contains('(');
                    (!name.ends_with("@plt") && !suffixed).then(|| (address, name.to_string()))
                })
                .collect();
            let (demangled, _) = own(&file);
            let lost = missing(&demangled, &wanted);
            eprintln!(
                "{}: {} of {} as gdb",
                file.display(),
                wanted.len() - lost.len(),
                wanted.len()
            );
            assert!(wanted.len() > 10, "{text}");
            // A few of gdb's spellings of templates differ.
            assert!(lost.len() * 50 <= wanted.len(), "{lost:#?}");
        }
        Ok(())
    });
}

#[test]
fn kinds_and_patterns() {
    test(|| {
        let client = testapp("hallo-client")?.display().to_string();
        let kinds = |pattern: &str| -> BTreeMap<String, String> {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
            let rows = rows(&[&client, pattern]);
            rows.iter()
                .map(|row| (text(&row["linkage"]), text(&row["kind"])))
                .collect()
        };
        let method = "_ZN7vsomeip21routing_manager_proxy10on_messageEPKhjPNS_8endpointE";
        let thunk = "_ZThn8_N7vsomeip21routing_manager_proxy10on_messageEPKhjPNS_8endpointE";
        let found = kinds("on_message");
        assert_eq!(
            found.get(method).map(String::as_str),
            Some("function"),
            "{found:?}"
        );
        assert_eq!(
            found.get(thunk).map(String::as_str),
            Some("thunk-jump"),
            "{found:?}"
        );
        let body = testapp("hallo-client-body")?.display().to_string();
        let rows_of_body = rows(&[&body, "/^non-virtual thunk to .*on_message/"]);
        assert_eq!(rows_of_body.len(), 1, "{rows_of_body:?}");
        assert_eq!(rows_of_body[0]["kind"], "thunk");
        assert_eq!(
            kinds("/^main$/").into_iter().collect::<Vec<_>>(),
            [("main".into(), "function".into())]
        );
        assert_eq!(
            kinds("/^_start$|^frame_dummy$/")
                .get("frame_dummy")
                .map(String::as_str),
            Some("zero-size")
        );
        assert_eq!(
            kinds("/^puts$/").get("puts").map(String::as_str),
            Some("imported")
        );
        let ifuncs = rows(&[
            &testapp("fibon-static")?.display().to_string(),
            "/^strlen$/",
        ]);
        assert_eq!(ifuncs[0]["kind"], "ifunc", "{ifuncs:?}");
        let output = symbols(&[&client, "on_mesage"]);
        assert_eq!(
            (output.status.code(), text(&output.stdout).as_str()),
            (Some(1), "")
        );
        let text = text(&output.stderr);
        assert!(
            text.contains("The nearest: vsomeip::routing_manager_proxy::on_message."),
            "{text}"
        );
        for wrong in [&[&client, "/(/"][..], &[], &[&client, "a", "b"]] {
            assert_eq!(symbols(wrong).status.code(), Some(2), "{wrong:?}");
        }
        Ok(())
    });
}

#[test]
fn json_keeps_to_its_schema() {
    test(|| {
        let schema = schema("symbols-v1.json");
        let mut all = rows(&["/lib/x86_64-linux-gnu/libc.so.6"]);
        all.extend(rows(&[&testapp("hallo-client")?.display().to_string()]));
        assert!(all.len() > 1000);
        for row in &all {
            let errors: Vec<String> = schema.iter_errors(row).map(|e| e.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{row}");
        }
        Ok(())
    });
}

#[test]
fn of_a_process_every_module_with_its_addresses() {
    test(|| {
        let running = App::start(Path::new("sleep"), &["300"]);
        let pid = running.pid();
        let mapped = || std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let deadline = std::time::Instant::now() + support::app::PATIENCE;
        assert!(support::process::until(deadline, || mapped().contains("libc.so.6")));
        let all = rows(&["-p", &pid.to_string()]);
        let puts: Vec<_> = all.iter().filter(|row| row["linkage"] == "puts").collect();
        assert!(puts.iter().any(|row| row["kind"] == "function"), "{puts:?}");
        assert!(
            !puts.iter().any(|row| row["kind"] == "imported"),
            "{puts:?}"
        );
        // A symbol is as far from its module's first mapping as the file says.
        let maps = mapped();
        for row in all.iter().filter(|row| !row["runtime"].is_null()) {
            let module = row["module"].as_str().unwrap_or_default();
            let Some(first) = maps.lines().find(|line| line.ends_with(module)) else {
                panic!("{module} is not mapped: {row}");
            };
            let base = first
                .split('-')
                .next()
                .and_then(|text| u64::from_str_radix(text, 16).ok());
            assert_eq!(
                Some(number(row, "runtime") - number(row, "address")),
                base,
                "{row}"
            );
        }
        let one = rows(&["-p", &pid.to_string(), "libc:/^puts$/"]);
        assert_eq!(one.len(), 1, "{one:?}");
        let text = text(&symbols(&["-p", &pid.to_string(), "libc.so.6:puts"]).stdout);
        let header =
            "ADDRESS            IN FILE                SIZE  KIND        UPROBE     MODULE";
        assert!(text.starts_with(header), "{text}");
        assert!(text.contains("  libc.so.6  puts\n"), "{text}");
        Ok(())
    });
}

/// Where instructions begin, by objdump: address and length, function by function.
fn instructions(file: &Path) -> Result<Vec<Vec<(u64, u64)>>, Missing> {
    let text = tool(
        "objdump",
        &["-d", "--no-show-raw-insn", "-j", ".text"],
        file,
    )?;
    let starts = |block: &str| -> Vec<u64> {
        let lines = block.lines().skip(1);
        lines
            .filter_map(|line| u64::from_str_radix(line.trim().split_once(':')?.0, 16).ok())
            .collect()
    };
    let functions = text.split("\n\n").filter(|block| block.contains(">:"));
    Ok(functions
        .map(starts)
        .map(|starts| starts.windows(2).map(|w| (w[0], w[1] - w[0])).collect())
        .collect())
}

/// Code without symbols is addressed by number, and a number that is no instruction is refused with the
/// two instructions beside it and the function that it is in.
#[test]
fn numbers_in_stripped_code_are_checked() {
    test(|| {
        let program = testapp("formats-stripped")?.display().to_string();
        let break_at = |place: &str| -> Result<String, Missing> {
            let mut app = Tracer::Trapline.batch(&["-ex", &format!("break {place}"), &program])?;
            Ok(app.finish().1)
        };
        let main = rows(&[&testapp("formats-fixed")?.display().to_string(), "/^main$/"]);
        let (start, size) = (
            number(&main[0], "address"),
            main[0]["size"].as_str().map(str::parse::<u64>),
        );
        let end = start + size.and_then(Result::ok).expect("a size");
        let functions = instructions(&testapp("formats-fixed")?)?;
        let code = functions
            .iter()
            .find(|code| code.first().is_some_and(|(at, _)| *at == start));
        let code = code.expect("main is disassembled");
        for (at, length) in code.iter().take(12) {
            let text = break_at(&format!("formats-stripped+{at:#x}"))?;
            assert!(text.contains(&format!("Breakpoint 1 at {at:#x}")), "{text}");
            if *length > 1 {
                let inside = at + length - 1;
                let next = at + length;
                // Not loaded elsewhere, and one segment: offsets in the file are known from the address.
                let text = break_at(&format!("formats-stripped+{inside:#x}"))?;
                let wanted = format!(
                    "{inside:#x} is inside an instruction: instructions begin at {at:#x} and {next:#x}."
                );
                assert!(text.contains(&wanted), "{text}");
                let range = format!(
                    "in the function formats-stripped+{start:#x} to formats-stripped+{end:#x}."
                );
                assert!(text.contains(&range), "{text}");
            }
        }
        Ok(())
    });
}
