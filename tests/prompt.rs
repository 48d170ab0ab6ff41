//! The prompt, at a terminal and off one: history, repetition, bodies, Ctrl-C, the end of the input.

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use support::app::number;
use support::terminal::{CTRL_C, CTRL_D, Terminal, UP};
use support::{Missing, TempDir, Tracer, test, testapp};

/// A prompt of its own, not one that is drawn again with what is typed.
const PROMPT: &str = "\n(trapline) ";

/// A directory for the history, which is still to be made in it.
fn state() -> TempDir {
    TempDir::new("trapline-state")
}

fn command(state: &TempDir, arguments: &[&str]) -> Result<Command, Missing> {
    let mut command = Tracer::Trapline.command()?;
    command.args(arguments).env("XDG_STATE_HOME", state.path());
    Ok(command)
}

/// A prompt over `program`, on a terminal of the kind `term`.
fn prompt(state: &TempDir, term: &str, program: &[&str]) -> Result<Terminal, Missing> {
    let path = testapp(program[0])?.display().to_string();
    let mut arguments = vec!["--args", &path];
    arguments.extend(&program[1..]);
    let mut terminal = Terminal::start(&command(state, &arguments)?, term);
    terminal.expect(PROMPT);
    Ok(terminal)
}

/// Types a line; what is shown up to the next prompt.
fn line(terminal: &mut Terminal, line: &str) -> String {
    terminal.keys(&format!("{line}\r"));
    terminal.expect(PROMPT)
}

fn leave(mut terminal: Terminal) {
    terminal.keys(CTRL_D);
    let (status, text) = terminal.end();
    assert!(status.success(), "{text}");
}

#[test]
fn enter_repeats_and_arrows_recall() {
    test(|| {
        let state = state();
        let mut terminal = prompt(&state, "xterm", &["formats"])?;
        assert!(line(&mut terminal, "print 7").contains("$1 = 7"));
        assert!(line(&mut terminal, "").contains("$2 = 7"));
        let first = line(&mut terminal, "x/2xb main");
        let second = line(&mut terminal, "");
        assert!(
            first.contains("<main>:") && second.contains("<main+2>:"),
            "{first}{second}"
        );
        line(&mut terminal, "echo past\\n");
        terminal.keys(UP);
        terminal.expect("echo past");
        assert!(line(&mut terminal, "").contains("past\n"));
        leave(terminal);

        // The next session remembers.
        let mut terminal = prompt(&state, "xterm", &["formats"])?;
        terminal.keys(UP);
        terminal.expect("echo past");
        assert!(line(&mut terminal, "").contains("past\n"));
        leave(terminal);
        Ok(())
    });
}

#[test]
fn a_body_is_typed_line_by_line() {
    for term in ["xterm", "dumb"] {
        test(|| {
            let state = state();
            let mut terminal = prompt(&state, term, &["fibon", "--calls", "10"])?;
            line(&mut terminal, "break *Fibon");
            terminal.keys("commands\r");
            terminal.expect("Type commands for breakpoint(s) 1, one per line.");
            terminal.expect("End with a line saying just \"end\".\n>");
            for (typed, next) in [
                ("silent", ">"),
                ("if $rdi >= 0", " >"),
                ("echo hit\\n", " >"),
                ("end", ">"),
                ("continue", ">"),
                ("end", "(trapline) "),
            ] {
                terminal.keys(&format!("{typed}\r"));
                terminal.expect("\n");
                terminal.expect(next);
            }
            let text = line(&mut terminal, "run");
            assert_eq!(text.matches("hit\n").count(), 10, "{text}");
            assert!(text.contains("exited normally"), "{text}");
            leave(terminal);
            Ok(())
        });
    }
}

#[test]
fn interrupts() {
    for term in ["xterm", "dumb"] {
        test(|| {
            let state = state();
            let mut terminal = prompt(&state, term, &["fibon", "--wait"])?;
            // At the prompt a line is given up, and so is a body.
            terminal.keys("print 1");
            terminal.expect("print 1");
            terminal.keys(CTRL_C);
            terminal.expect("Quit");
            terminal.expect(PROMPT);
            line(&mut terminal, "break main");
            terminal.keys("commands\r");
            terminal.expect("\n>");
            terminal.keys(CTRL_C);
            terminal.expect("Quit");
            terminal.expect(PROMPT);
            assert!(!line(&mut terminal, "info breakpoints").contains("silent"));
            line(&mut terminal, "delete 1");

            // While the program runs the program is stopped, each time once.
            terminal.keys("run\r");
            terminal.expect("ready ");
            for _ in 0..3 {
                terminal.keys(CTRL_C);
                terminal.expect("received signal SIGINT, Interrupt.");
                terminal.expect(PROMPT);
                terminal.keys("print 3\r");
                terminal.expect("= 3");
                terminal.expect(PROMPT);
                terminal.keys("continue\r");
                terminal.expect("Continuing.");
            }
            terminal.keys(CTRL_C);
            terminal.expect("received signal SIGINT, Interrupt.");
            terminal.expect(PROMPT);

            // Neither the end nor `quit` ends a program without a question.
            terminal.keys("quit\r");
            terminal.expect("Quit anyway? (y or n) ");
            assert!(line(&mut terminal, "n").contains("Not confirmed."));
            terminal.keys(CTRL_D);
            terminal.expect("Quit anyway? (y or n) ");
            terminal.keys("y\r");
            let (status, text) = terminal.end();
            assert!(status.success(), "{text}");
            Ok(())
        });
    }
}

#[test]
fn a_pipe_gets_no_prompt() {
    test(|| {
        let state = state();
        let program = testapp("fibon")?.display().to_string();
        let mut tracer = command(&state, &["--args", &program, "--calls", "10"])?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("trapline runs");
        let script =
            "break *Fibon\ncommands\nsilent\ncontinue\nend\n\nnosuch\nrun\ninfo breakpoints";
        let mut stdin = tracer.stdin.take().expect("a pipe");
        stdin.write_all(script.as_bytes()).expect("a reader");
        drop(stdin);
        let output = tracer.wait_with_output().expect("our child");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains(PROMPT) && !text.contains("\n>"), "{text}");
        assert!(
            text.contains("breakpoint already hit 10 times"),
            "{text}{errors}"
        );
        assert!(errors.contains("Undefined command: \"nosuch\""), "{errors}");
        let last = text.lines().find(|line| line.starts_with("calls="));
        assert_eq!(number(last.unwrap_or_default(), "calls"), 10);
        assert!(output.status.success(), "{errors}");
        Ok(())
    });
}

/// Tab, once where one word fits and twice where several do.
#[test]
fn tab_completes() {
    test(|| {
        let state = state();
        let mut terminal = prompt(&state, "xterm", &["fibon", "--calls", "3"])?;
        for (typed, completed) in [
            ("tbr\t", "tbreak"),
            ("info reg\t", "info registers"),
            ("print $rf\t\x08\x08rsi\t", "print $rsi"),
            ("help info symb\t", "help info symbol"),
        ] {
            terminal.keys(typed);
            terminal.expect(completed);
            terminal.keys(CTRL_C);
            terminal.expect(PROMPT);
        }
        terminal.keys("define mydump\rprint 1\rend\r");
        terminal.expect(PROMPT);
        terminal.keys("myd\t");
        terminal.expect("mydump");
        terminal.keys(CTRL_C);
        terminal.expect(PROMPT);
        // The names are read in the background.
        terminal.keys("break mai\t");
        terminal.expect("break main");
        terminal.keys("\r");
        terminal.expect("Breakpoint 1 at");
        terminal.expect(PROMPT);
        terminal.keys("delete \t");
        terminal.expect("delete 1");
        terminal.keys(CTRL_C);
        terminal.expect(PROMPT);
        let script = state.join("only.gdb");
        std::fs::write(&script, "echo sourced\\n\n").expect("a file");
        let path = script.display().to_string();
        terminal.keys(&format!("source {}\t", &path[..path.len() - 5]));
        terminal.expect(&path);
        assert!(line(&mut terminal, "").contains("sourced\n"));
        terminal.keys("info \t\t");
        terminal.expect("breakpoints");
        terminal.expect("threads");
        terminal.expect("(trapline) info ");
        terminal.keys(CTRL_C);
        terminal.expect(PROMPT);
        leave(terminal);
        Ok(())
    });
}

/// What a command takes is shown behind its name, and is not part of the line.
#[test]
fn the_usage_is_hinted() {
    test(|| {
        let state = state();
        let mut terminal = prompt(&state, "xterm", &["formats"])?;
        terminal.keys("echo ");
        terminal.expect("TEXT");
        assert!(line(&mut terminal, "plain\\n").contains("plain\n"));
        leave(terminal);
        Ok(())
    });
}

/// Two sessions at once keep each other's lines; nobody else may read them.
#[test]
fn the_history_is_shared_and_private() {
    use std::os::unix::fs::PermissionsExt;
    test(|| {
        let state = state();
        let mut one = prompt(&state, "xterm", &["formats"])?;
        let mut two = prompt(&state, "xterm", &["formats"])?;
        line(&mut one, "echo first\\n");
        line(&mut two, "echo second\\n");
        line(&mut one, "echo third\\n");
        leave(two);
        leave(one);
        let file = state.join("trapline/history");
        let text = std::fs::read_to_string(&file).expect("a history");
        for word in ["first", "second", "third"] {
            assert_eq!(text.matches(word).count(), 1, "{text}");
        }
        let mode = |path: &std::path::Path| {
            let data = std::fs::metadata(path).expect("it is there");
            data.permissions().mode() & 0o777
        };
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(&state.join("trapline")), 0o700);

        // Ctrl-R finds.
        let mut terminal = prompt(&state, "xterm", &["formats"])?;
        terminal.keys("\x12econd");
        terminal.expect("echo second");
        terminal.keys("\r");
        terminal.expect("second\n(trapline) ");
        leave(terminal);
        Ok(())
    });
}

/// Braces that are not closed yet, and lines that are pasted together.
#[test]
fn several_lines_are_one_command() {
    test(|| {
        let state = state();
        let mut terminal = prompt(&state, "xterm", &["fibon", "--calls", "5"])?;
        terminal.keys("trace *Fibon if $rdi >= 0 {\r");
        terminal.expect("\n>");
        terminal.keys("printf \"n=%d\\n\", $rdi\r");
        terminal.expect("\n>");
        terminal.keys("}\r");
        terminal.expect("Trace 1 at");
        terminal.expect(PROMPT);
        let text = line(&mut terminal, "run");
        assert_eq!(text.matches("\nn=").count(), 5, "{text}");
        line(&mut terminal, "delete 1");

        let pasted = "break *Fibon\rcommands\rsilent\recho pasted\\n\rcontinue\rend";
        terminal.keys(&format!("\x1b[200~{pasted}\x1b[201~"));
        let text = line(&mut terminal, "");
        assert!(text.contains("Breakpoint 2 at"), "{text}");
        let text = line(&mut terminal, "run");
        assert_eq!(text.matches("pasted\n").count(), 5, "{text}");
        leave(terminal);
        Ok(())
    });
}

/// The program runs while a line is typed: what happens appears above it, and the line stays.
#[test]
fn hits_in_the_background_leave_the_line_alone() {
    for term in ["xterm", "dumb"] {
        test(|| {
            let state = state();
            let mut terminal = prompt(&state, term, &["ticks"])?;
            line(&mut terminal, "set $n = 0");
            line(&mut terminal, "break *tick");
            for typed in ["commands", "silent", "set $n = $n + 1", "if $n % 50 == 0"] {
                terminal.keys(&format!("{typed}\r"));
                terminal.expect("\n");
            }
            terminal.keys("echo above\\n\rend\rcontinue\r");
            terminal.expect("continue");
            terminal.keys("end\r");
            terminal.expect("(trapline) ");
            let text = line(&mut terminal, "run &");
            assert!(!text.contains("received signal"), "{text}");
            let text = line(&mut terminal, "continue");
            let running = "Cannot execute this command while the selected thread is running.";
            assert!(text.contains(running), "{text}");
            assert!(line(&mut terminal, "print $rdi").contains("Selected thread is running."));
            assert!(line(&mut terminal, "info threads").contains("(running)"));
            // A line is half typed, and hits come.
            terminal.keys("prin");
            for _ in 0..3 {
                terminal.expect("above\n");
            }
            if term == "xterm" {
                terminal.expect("(trapline) prin");
            }
            terminal.keys("t 12345\r");
            terminal.expect("= 12345\n");
            // A stop ends it, and the prompt is the same.
            terminal.keys("tbreak *tick\r");
            terminal.expect("Temporary breakpoint 2, ");
            terminal.expect("\n");
            if term == "xterm" {
                terminal.expect("(trapline) ");
            }
            terminal.keys("print $rip == (long)&tick\r");
            terminal.expect("= 1\n(trapline) ");
            terminal.keys("continue &\r");
            terminal.expect("above\n");
            terminal.keys("interrupt\r");
            terminal.expect("received signal SIGINT, Interrupt.");
            terminal.expect("(trapline) ");
            assert!(line(&mut terminal, "print $rip != 0").contains("= 1"));
            terminal.keys(CTRL_D);
            terminal.expect("Quit anyway? (y or n) ");
            terminal.keys("y\r");
            let (status, text) = terminal.end();
            assert!(status.success(), "{text}");
            Ok(())
        });
    }
}
