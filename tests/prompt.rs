//! The prompt, at a terminal and off one: history, repetition, bodies, Ctrl-C, the end of the input.

mod support;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use support::app::number;
use support::terminal::{CTRL_C, CTRL_D, Terminal, UP};
use support::{Missing, Tracer, test, testapp, unique};

const PROMPT: &str = "(trapline) ";

/// A directory for the history that is gone when this is dropped.
struct State(PathBuf);

impl State {
    fn new() -> State {
        State(std::env::temp_dir().join(unique("trapline-state")))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn command(state: &State, arguments: &[&str]) -> Result<Command, Missing> {
    let mut command = Tracer::Trapline.command()?;
    command.args(arguments).env("XDG_STATE_HOME", &state.0);
    Ok(command)
}

/// A prompt over `program`, on a terminal of the kind `term`.
fn prompt(state: &State, term: &str, program: &[&str]) -> Result<Terminal, Missing> {
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
        let state = State::new();
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
            let state = State::new();
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
                ("end", PROMPT),
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
            let state = State::new();
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
                assert!(line(&mut terminal, "print 3").contains("= 3"));
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
        let state = State::new();
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
