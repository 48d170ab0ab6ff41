//! Commands that start, continue, leave and end the program.

use std::path::Path;

use super::breakpoints::ignore_text;
use super::interpreter::{Call, Interpreter};
use super::table::split;
use crate::error::{Error, fail};
use crate::session::breakpoint::{Disposition, Origin, Probe};
use crate::session::images::Unresolved;
use crate::session::search;

/// `run [ARGUMENTS]`
pub fn run(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if i.session.target().is_some() {
        if call.from_tty
            && !i.query(
                "The program being debugged has been started already.\nStart it from the beginning? ",
            )?
        {
            fail!("Program not restarted.");
        }
        i.may_kill()?;
        i.session.kill(i.session.current)?;
    }
    let (arguments, background) = in_background(call.arguments);
    if !arguments.is_empty() {
        i.session.settings.arguments = arguments.into();
    }
    if call.from_tty
        && let Some(images) = &i.session.program
    {
        let text = format!(
            "Starting program: {} {}\n",
            images.program.display(),
            i.session.settings.arguments
        );
        i.print(&text);
    }
    i.session.output.flush();
    i.session.launch()?;
    go(i, background)
}

/// A command's arguments without the `&` that lets the program run while more is typed.
pub(super) fn in_background(arguments: &str) -> (&str, bool) {
    match arguments.strip_suffix('&') {
        Some(rest) => (rest.trim_end(), true),
        None => (arguments, false),
    }
}

/// Lets the program go on, in the background or until something happens.
pub(super) fn go(i: &mut Interpreter, background: bool) -> Result<(), Error> {
    let before = i.to_background;
    i.to_background |= background;
    let result = i.go();
    i.to_background = before;
    result
}

/// `interrupt`
pub fn interrupt(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    if i.session.background {
        i.session.background = false;
        i.session.interrupted_stop()?;
        i.present();
    }
    Ok(())
}

/// `start [ARGUMENTS]`: `tbreak main` and `run`.
pub fn start(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let at = match i.session.locate("main", Origin::Break) {
        Ok(locations) => locations,
        Err(Unresolved::Bad(error)) => return Err(error),
        Err(Unresolved::NotFound { message, .. }) => {
            if i.session.images().is_none() {
                fail!("No symbol table loaded.  Use the \"file\" command.");
            }
            fail!("{message}");
        }
    };
    let number = i.session.probes.add(|number, place| Probe {
        number,
        place,
        origin: Origin::Break,
        spec: "main".into(),
        typed: "main".into(),
        condition: None,
        sample: None,
        body: None,
        disposition: Disposition::Delete,
        enabled: true,
        hits: 0,
        ignore: 0,
        left: 0,
        locations: at,
        off: Vec::new(),
        resolved: true,
        missing: None,
        chooser: None,
        event: None,
    })?;
    if let Some(probe) = i.session.probes.get(number) {
        let text = format!("{}\n", probe.mention());
        i.print(&text);
    }
    run(i, call)
}

/// `continue [N]`
pub fn continue_(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.session.need_target()?;
    if i.asking {
        i.resumed = true;
        return Ok(());
    }
    if i.session.background {
        fail!("Cannot execute this command while the selected thread is running.");
    }
    let (arguments, background) = in_background(call.arguments);
    if !arguments.is_empty() {
        let count = super::data::number(i, arguments)? as i64;
        let at = i.session.stopped_at();
        match at {
            Some(number) => {
                let count = (count - 1).max(0) as u64;
                i.session.set_ignore(number, count);
                if call.from_tty {
                    let text = ignore_text(number, count);
                    i.print(&format!("{}  ", text.trim_end()));
                }
            }
            None => {
                if call.from_tty {
                    i.print("Not stopped at any breakpoint; argument ignored.\n");
                }
            }
        }
    }
    if call.from_tty {
        i.print("Continuing.\n");
    }
    go(i, background)
}

/// `kill`
pub fn kill(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if let Some(numbers) = inferiors_of(call.arguments) {
        i.may_kill()?;
        for number in several(i, numbers, "kill")? {
            if let Some(index) = i.session.index_of_inferior(number) {
                i.session.kill(index)?;
            }
        }
        return Ok(());
    }
    i.session.need_target()?;
    i.may_kill()?;
    if !i.query("Kill the program being debugged? ")? {
        fail!("Not confirmed.");
    }
    let (text, index) = (ended(i, i.session.current, "killed"), i.session.current);
    i.session.kill(index)?;
    i.print(&text);
    Ok(())
}

/// `detach`
pub fn detach(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if let Some(numbers) = inferiors_of(call.arguments) {
        for number in several(i, numbers, "detach")? {
            if let Some(index) = i.session.index_of_inferior(number) {
                detach_one(i, index)?;
            }
        }
        return Ok(());
    }
    let target = i.session.need_target()?;
    if call.from_tty {
        let pid = target.pid;
        let text = format!(
            "Detaching from program: {}, process {pid}\n",
            target.program.display()
        );
        i.print(&text);
    }
    detach_one(i, i.session.current)
}

/// `[Inferior 1 (process 7) detached]`
fn ended(i: &Interpreter, index: usize, how: &str) -> String {
    let target = i.session.targets.get(index);
    let told = target.map(|it| format!("[Inferior {} (process {}) {how}]\n", it.inferior, it.pid));
    told.unwrap_or_default()
}

fn detach_one(i: &mut Interpreter, index: usize) -> Result<(), Error> {
    let text = ended(i, index, "detached");
    i.session.detach(index)?;
    i.print(&text);
    Ok(())
}

/// What stands behind the word `inferiors`, which may be shortened.
fn inferiors_of(arguments: &str) -> Option<&str> {
    let (word, rest) = split(arguments);
    (!word.is_empty() && "inferiors".starts_with(word)).then_some(rest)
}

/// The inferiors of a list that have a process, each by its number.
fn several(i: &mut Interpreter, numbers: &str, what: &str) -> Result<Vec<u32>, Error> {
    if numbers.is_empty() {
        fail!("Requires argument (inferior id(s) to {what})");
    }
    let mut list = i.numbers(numbers, "inferior")?;
    list.retain(|number| match i.session.know_inferior(*number) {
        Err(error) => {
            i.session.output.complain(&format!("warning: {error}"));
            false
        }
        Ok(()) if i.session.index_of_inferior(*number).is_none() => {
            let text = format!("warning: Inferior ID {number} is not running.");
            i.session.output.complain(&text);
            false
        }
        Ok(()) => true,
    });
    Ok(list)
}

/// `inferior [N]`
pub fn inferior(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        let text = i.session.current_inferior();
        i.print(&text);
        return Ok(());
    }
    let number = super::data::number(i, call.arguments)? as u32;
    i.session.know_inferior(number)?;
    if i.session.background {
        fail!("Cannot execute this command while the selected thread is running.");
    }
    i.session.need_stand()?;
    let text = i.session.switch_inferior(number)?;
    i.print(&text);
    Ok(())
}

/// `attach TARGET`
pub fn attach(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        fail!("Argument required (process-id to attach).");
    }
    if let Some(target) = i.session.target() {
        if target.launched {
            if call.from_tty && !i.query("A program is being debugged already.  Kill it? ")? {
                fail!("Not killed.");
            }
            i.session.kill(i.session.current)?;
        } else {
            i.session.detach(i.session.current)?;
        }
    }
    let pid = search::find(call.arguments)?;
    attach_to(i, pid, call.from_tty)
}

/// Attaches to a process and says so.
pub fn attach_to(i: &mut Interpreter, pid: i32, from_tty: bool) -> Result<(), Error> {
    if from_tty {
        let text = match &i.session.program {
            Some(images) => format!(
                "Attaching to program: {}, process {pid}\n",
                images.program.display()
            ),
            None => format!("Attaching to process {pid}\n"),
        };
        i.print(&text);
        i.session.output.flush();
    }
    i.session.attach(pid)?;
    // A script goes on at once: the program need not be stopped before something asks for it.
    if i.terminal.is_terminal() && !i.batch {
        i.session.need_stand()?;
        show_frame(i)?;
    }
    Ok(())
}

/// The line that says where the selected thread stands.
pub fn show_frame(i: &mut Interpreter) -> Result<(), Error> {
    let Some(tid) = i.session.target().map(|t| t.selected) else {
        return Ok(());
    };
    if let Some(registers) = i.session.registers(tid) {
        let text = format!("{}\n", i.session.frame(i.session.current, &registers));
        i.print(&text);
    }
    Ok(())
}

/// `file [PROGRAM]`
pub fn file(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        i.session.program = None;
        return Ok(());
    }
    load(i, Path::new(call.arguments), call.from_tty)
}

/// Loads a program's symbols and says what gdb says.
pub fn load(i: &mut Interpreter, path: &Path, tell: bool) -> Result<(), Error> {
    i.session.load(path)?;
    if tell {
        i.print(&format!("Reading symbols from {}...\n", path.display()));
        let images = i.session.program.as_ref();
        let main = images.and_then(|images| images.modules.loaded().first());
        let separate = main.and_then(|main| main.module.debug_file().map(Path::to_path_buf));
        let debug = main.is_some_and(|main| main.module.has_debug_info());
        if let Some(file) = &separate {
            i.print(&format!("Reading symbols from {}...\n", file.display()));
        }
        if !debug {
            i.print(&format!(
                "(No debugging symbols found in {})\n",
                separate.as_deref().unwrap_or(path).display()
            ));
        }
    }
    Ok(())
}

/// `quit [STATUS]`
pub fn quit(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let status = match call.arguments {
        "" => 0,
        expression => super::data::number(i, expression)? as u8,
    };
    if call.from_tty && !confirm_quit(i)? {
        fail!("Not confirmed.");
    }
    i.quit = Some(status);
    Ok(())
}

/// Asks before a process is ended or left.
pub fn confirm_quit(i: &mut Interpreter) -> Result<bool, Error> {
    if i.session.targets.is_empty() {
        return Ok(true);
    }
    let mut text = String::from("A debugging session is active.\n\n");
    for target in &i.session.targets {
        let fate = if target.launched {
            "killed"
        } else {
            "detached"
        };
        let (inferior, pid) = (target.inferior, target.pid);
        text += &format!("\tInferior {inferior} [process {pid}] will be {fate}.\n");
    }
    text += "\nQuit anyway? ";
    i.query(&text)
}

/// Leaves every process as gdb does at its end: launched ones are killed, others let go.
pub fn leave(i: &mut Interpreter) -> Result<(), Error> {
    let mut result = Ok(());
    while let Some(target) = i.session.targets.first() {
        let (pid, launched) = (target.pid, target.launched);
        let text = ended(i, 0, "detached");
        let target = &i.session.targets[0];
        let before = i.session.targets.len();
        if launched {
            result = i.session.kill(0);
        } else {
            if !i.batch {
                let text = format!(
                    "Detaching from program: {}, process {pid}\n",
                    target.program.display()
                );
                i.print(&text);
            }
            result = i.session.detach(0);
            i.print(&text);
        }
        if i.session.targets.len() == before {
            break;
        }
    }
    i.session.output.flush();
    result
}
