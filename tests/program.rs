//! What a breakpoint will run is shown before there is a process, and why it will not run by itself.

mod support;

use support::{TempFile, Tracer, test, testapp};

fn listing(script: &str, program: &str) -> Result<String, support::Missing> {
    let script = TempFile::new(script);
    let program = testapp(program)?.display().to_string();
    Ok(Tracer::Trapline
        .batch(&["-x", &script.path(), &program])?
        .finish()
        .1)
}

#[test]
fn a_body_is_compiled_against_the_file() {
    test(|| {
        let text = listing(
            "break *Fibon if $_arg1 > 2 && *(long*)$rsp != 0\ncommands\nsilent\nx/2xg $rsp\n\
             set {char}($rsp-128) = 0x61\ncontinue\nend\nmaint print program 1\n",
            "fibon",
        )?;
        assert!(text.contains("then the program goes on"), "{text}");
        assert!(!text.contains("The front runs the body"), "{text}");
        Ok(())
    });
}

#[test]
fn what_does_not_compile_is_told_with_its_reason() {
    test(|| {
        let text = listing(
            "break *Fibon\ncommands\nsilent\nwhile $rdi < 0\nprint 1\nend\ncontinue\nend\n\
             break Fibon\ncommands\nprint $_arg1\ncontinue\nend\n\
             maint print program 1\nmaint print program 2\n",
            "fibon",
        )?;
        assert_eq!(text.matches("then the thread stops").count(), 2, "{text}");
        assert_eq!(
            text.matches("The front runs the body: ").count(),
            2,
            "{text}"
        );
        assert!(text.contains("at a function's entry only"), "{text}");
        Ok(())
    });
}

#[test]
fn each_location_has_its_own() {
    test(|| {
        let text = listing(
            "break ns::f\ncommands\nsilent\ncontinue\nend\nmaint print program 1\n",
            "corpus-print-cc",
        )?;
        assert!(
            text.contains("1.1 at 0x") && text.contains("<ns::f(int)+4>:"),
            "{text}"
        );
        assert!(text.contains("1.2 at 0x"), "{text}");
        assert_eq!(
            text.matches("then the program goes on").count(),
            2,
            "{text}"
        );
        Ok(())
    });
}

/// gdb takes the stub that jumps to it; here the breakpoint waits for the library.
#[test]
fn an_imported_function_is_found_when_the_program_runs() {
    test(|| {
        let text = listing(
            "break setvbuf\nrun --calls 5\ninfo breakpoints\nkill\n",
            "fibon",
        )?;
        assert!(text.contains("Breakpoint 1 (setvbuf) pending."), "{text}");
        assert!(text.contains("in setvbuf () from"), "{text}");
        assert!(text.contains("breakpoint already hit 1 time"), "{text}");
        Ok(())
    });
}
