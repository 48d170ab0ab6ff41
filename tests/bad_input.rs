//! What cannot be done is said in a line: what, where, and the cure.

mod support;

use support::{App, TempFile, Tracer, test, testapp};

fn batch(arguments: &[&str]) -> (bool, String) {
    match Tracer::Trapline.batch(arguments) {
        Ok(mut app) => {
            let (status, text) = app.finish();
            (status.success(), text)
        }
        Err(_) => unreachable!("trapline is built before its tests"),
    }
}

fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn an_unknown_function_lists_the_nearest() {
    test(|| {
        let program = testapp("fibon")?.display().to_string();
        let (_, text) = batch(&["-ex", "break Fibn", &program]);
        says(&text, &["\"Fibn\" not defined", "Fibon"]);
        Ok(())
    });
}

#[test]
fn no_such_process() {
    let (success, text) = batch(&["-p", "4194305"]);
    says(&text, &["No such process"]);
    assert!(!success, "{text}");
}

#[test]
fn no_program_file() {
    let file = TempFile::new("#!/bin/sh\nexit 0\n");
    let (success, text) = batch(&[&file.path(), "-ex", "run"]);
    says(&text, &[&file.path(), "not in executable format"]);
    assert!(!success, "{text}");
}

/// The header of a 32-bit ELF file is enough to be told apart.
#[test]
fn a_32_bit_program() {
    let mut header = vec![0_u8; 52];
    header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    header[16..20].copy_from_slice(&[2, 0, 3, 0]); // ET_EXEC, EM_386
    header[20] = 1;
    header[40] = 52; // e_ehsize
    let file = TempFile::bytes(&header);
    let (success, text) = batch(&[&file.path(), "-ex", "run"]);
    says(&text, &["32-bit"]);
    assert!(!success, "{text}");
}

#[test]
fn an_error_in_a_script_names_file_and_line() {
    let script = TempFile::new("echo fine\\n\n\nfrobnicate 3\necho never\\n\n");
    let (success, text) = batch(&["-x", &script.path()]);
    says(
        &text,
        &[
            "fine",
            &format!("{}:3: Error in sourced command file:", script.path()),
            "Undefined command: \"frobnicate\"",
        ],
    );
    assert!(!text.contains("never") && !success, "{text}");
}

#[test]
fn an_unreadable_address_does_not_end_the_tracing() {
    test(|| {
        let program = testapp("fibon")?.display().to_string();
        let script = TempFile::new("break *Fibon\ncommands\nsilent\nx/xb 8\ncont\nend\nrun\n");
        let (_, text) = batch(&["-x", &script.path(), "--args", &program, "--calls", "50"]);
        assert_eq!(
            text.matches("Cannot access memory at address 0x8").count(),
            50,
            "{text}"
        );
        says(&text, &["calls=50 "]);
        Ok(())
    });
}

#[test]
fn strict_ends_the_script_as_gdb_does() {
    test(|| {
        let program = testapp("fibon")?.display().to_string();
        let script = TempFile::new(
            "set compat strict\nbreak *Fibon\ncommands\nsilent\nx/xb 8\ncont\nend\nrun\n",
        );
        let (_, text) = batch(&["-x", &script.path(), "--args", &program, "--calls", "50"]);
        assert_eq!(
            text.matches("Cannot access memory at address 0x8").count(),
            1,
            "{text}"
        );
        assert!(!text.contains("calls=50 "), "{text}");
        Ok(())
    });
}

#[test]
fn another_tracer_is_named() {
    test(|| {
        let mut target = App::start(&testapp("fibon")?, &["--wait"]);
        target.expect("ready");
        let pid = target.pid().to_string();
        let mut first = Tracer::Gdb.start(&["-p", &pid, "-ex", "echo attached\\n"])?;
        first.line("attached", |line| line.contains("attached"));
        let (success, text) = batch(&["-p", &pid]);
        says(&text, &["ptrace", &format!("{}", first.pid())]);
        assert!(!success, "{text}");
        first.send("quit");
        Ok(())
    });
}

#[test]
fn a_register_eaten_by_the_shell_is_recognised() {
    test(|| {
        let program = testapp("fibon")?.display().to_string();
        let (_, text) = batch(&[
            "-ex",
            "break *Fibon",
            "-ex",
            "run",
            "-ex",
            "x/s +30",
            "--args",
            &program,
        ]);
        says(&text, &["single quotes"]);
        Ok(())
    });
}
