//! Runs commands one after the other: from the prompt, the command line, files and bodies.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::display::{self, Displays};
use super::settings::Logging;
use super::source;
use super::table::{self, Table};
use super::user::{self, Found, Names};
use crate::error::{Error, fail};
use crate::lang::arguments::Arguments;
use crate::lang::script::{Node, Position, Read, Reader};
use crate::repl::input::{Input, Next};
use crate::session::Session;
use crate::session::events::Wake;
use crate::symbols::catalog::Catalog;

/// How deep files may source each other, and bodies nest.
const MAX_DEPTH: usize = 64;

/// How long one look at a program in the background takes.
const GLANCE: Duration = Duration::from_millis(2);

/// One command with its arguments.
pub struct Call<'a> {
    /// The command's full name.
    pub name: &'static str,
    /// What follows the name.
    pub arguments: &'a str,
    /// The same with the blanks at its end, which `echo` prints.
    pub untrimmed: &'a str,
    /// A person typed it (or `-ex` stands for one): it says what it did.
    pub from_tty: bool,
    /// Where it was written.
    pub at: &'a Position,
}

impl<'a> Call<'a> {
    /// The same, of another command.
    pub fn of(&self, name: &'static str, arguments: &'a str) -> Call<'a> {
        Call {
            name,
            arguments,
            untrimmed: arguments,
            ..*self
        }
    }
}

/// What a command does.
pub type Action = fn(&mut Interpreter, &Call<'_>) -> Result<(), Error>;

/// How a list of commands goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    /// The target went on: what stands behind never runs.
    Resumed,
    LoopBreak,
    LoopContinue,
}

/// See the module.
pub struct Interpreter {
    /// What the commands are about.
    pub session: Session,
    /// Where lines come from that a command's own source does not have.
    pub terminal: Box<dyn Input>,
    /// `--batch`.
    pub batch: bool,
    /// `quit` was typed, with this status.
    pub quit: Option<u8>,
    /// What `Enter` repeats.
    pub again: Option<String>,
    /// Bodies of the stop that was presented last, still to run.
    pub due: Vec<Arc<[Node]>>,
    /// A body runs for a thread that goes on by itself: `continue` ends the body and no more.
    pub asking: bool,
    /// A command let the target go on.
    pub resumed: bool,
    /// A suspicion that is told once was told.
    pub hinted: bool,
    /// The names that the prompt completes.
    pub catalog: Arc<Catalog>,
    /// The next resumption leaves the program in the background.
    pub to_background: bool,
    /// The expressions that are shown at each stop.
    pub displays: Displays,
    /// What `set logging` changes.
    pub logging: Logging,
    /// `source -v`: each command is shown when it runs.
    pub(super) verbose: bool,
    /// The commands by their names, the user's among them.
    pub names: Names,
    /// The arguments of the user's commands that run; `None` for a body or a file in between,
    /// which has none.
    pub(super) calls: Vec<Option<Arguments>>,
    /// The hooks that run.
    pub(super) hooking: Vec<String>,
    /// How deep blocks, files and bodies are nested.
    pub(super) depth: usize,
    /// How deep blocks and the user's commands are nested, as far as commands are shown with it.
    pub(super) nesting: usize,
    /// How many bodies of breakpoints run inside of each other.
    bodies: usize,
    /// Where the stack was when nothing ran yet.
    stack: usize,
}

impl Interpreter {
    /// With nothing run yet.
    pub fn new(
        session: Session,
        names: Names,
        terminal: Box<dyn Input>,
        batch: bool,
    ) -> Interpreter {
        Interpreter {
            session,
            terminal,
            batch,
            quit: None,
            again: None,
            due: Vec::new(),
            asking: false,
            resumed: false,
            hinted: false,
            catalog: Arc::default(),
            to_background: false,
            displays: Displays::default(),
            logging: Logging::default(),
            verbose: false,
            names,
            calls: Vec::new(),
            hooking: Vec::new(),
            depth: 0,
            nesting: 0,
            bodies: 0,
            stack: stack_pointer(),
        }
    }

    /// Whether a script has used up most of the stack by calling itself.
    pub(super) fn stack_is_short(&self) -> bool {
        let used = self.stack.abs_diff(stack_pointer());
        used > stack_size() / 4 * 3
    }

    /// Prints.
    pub fn print(&mut self, text: &str) {
        self.session.output.print(text);
    }

    /// One command of the command line. A body that it begins is read from the terminal.
    pub fn command(&mut self, text: &str) -> Result<(), Error> {
        let names = self.names.clone();
        let mut reader = Reader::new("-ex", &names).not_joining();
        let mut node = None;
        for line in text.lines() {
            if let Read::Node(complete) = reader.line(line).map_err(script)? {
                self.top(&complete, !self.batch)?;
                node = Some(());
            }
        }
        while reader.depth() > 0 {
            match self.terminal.line(">")? {
                Next::Line(line) => {
                    if let Read::Node(complete) = reader.line(&line).map_err(script)? {
                        return self.top(&complete, !self.batch);
                    }
                }
                Next::End | Next::Interrupted => break,
            }
        }
        match (reader.finish().map_err(script)?, node) {
            (Some(last), _) => self.top(&last, !self.batch),
            (None, _) => Ok(()),
        }
    }

    /// A file of commands, up to its first error.
    pub fn source(&mut self, path: &Path) -> Result<(), Error> {
        let text = source::read(path)?;
        self.source_read(path, &text)
    }

    /// The same for a file that was read already.
    pub fn source_read(&mut self, path: &Path, text: &str) -> Result<(), Error> {
        // What is read as a script is named like one.
        let path = match source::is_input(path) {
            true => Path::new("stdin"),
            false => path,
        };
        self.calls.push(None);
        let result = self.deeper(|i| i.source_text(&path.to_string_lossy(), text));
        self.calls.pop();
        result
    }

    fn source_text(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let names = self.names.clone();
        let mut reader = Reader::new(name, &names);
        let failed = |line: usize, error: Error| {
            let message = format!("{name}:{line}: Error in sourced command file:\n{error}");
            Error { message, ..error }
        };
        let mut last = 0;
        for (index, line) in text.lines().enumerate() {
            last = index + 1;
            let read = reader
                .line(line)
                .map_err(|e| failed(e.at.line as usize, Error::new(e.message)))?;
            if let Read::Node(node) = read {
                let at = error_line(&node, last);
                self.top(&node, false).map_err(|e| failed(at, e))?;
            }
            if self.quit.is_some() {
                return Ok(());
            }
        }
        let rest = reader
            .finish()
            .map_err(|e| failed(e.at.line as usize, Error::new(e.message)))?;
        match rest {
            Some(node) => self.top(&node, false).map_err(|e| failed(last, e)),
            None => Ok(()),
        }
    }

    /// The commands of a block.
    fn block(&mut self, nodes: &[Node]) -> Result<Flow, Error> {
        self.nesting += 1;
        let result = self.deeper(|i| i.list(nodes));
        self.nesting -= 1;
        result
    }

    /// Guards against endless nesting.
    fn deeper<R>(
        &mut self,
        f: impl FnOnce(&mut Interpreter) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if self.depth >= MAX_DEPTH {
            fail!("Command nesting is deeper than {MAX_DEPTH}.");
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// One complete command, and then the bodies of the stop that it led to.
    pub fn top(&mut self, node: &Node, from_tty: bool) -> Result<(), Error> {
        self.resumed = false;
        let result = self.run(node, from_tty).map(|_| ());
        if result.is_err() {
            self.due.clear();
            return result;
        }
        self.run_due()
    }

    /// The bodies of presented stops; one that continues leads to the next stop's.
    fn run_due(&mut self) -> Result<(), Error> {
        while !self.due.is_empty() {
            let bodies = std::mem::take(&mut self.due);
            for body in bodies {
                self.resumed = false;
                let flow = self.body(&body).inspect_err(|_| self.due.clear())?;
                if flow == Flow::Resumed {
                    break;
                }
            }
        }
        Ok(())
    }

    /// A body's commands; `silent` in front has done its work already.
    fn body(&mut self, body: &[Node]) -> Result<Flow, Error> {
        let rest = match body.first() {
            Some(Node::Simple(line)) if line.text == "silent" => &body[1..],
            _ => body,
        };
        self.bodies += 1;
        self.calls.push(None);
        let result = self.list(rest);
        self.calls.pop();
        self.bodies -= 1;
        result
    }

    /// The commands of a user's command. In the body of a breakpoint they end where the program
    /// goes on.
    pub(super) fn user_body(&mut self, body: &[Node]) -> Result<(), Error> {
        for node in body {
            let flow = self.run(node, false)?;
            if self.quit.is_some() || flow == Flow::Resumed {
                break;
            }
        }
        Ok(())
    }

    /// A line with the arguments of the user's command that it stands in.
    fn filled<'a>(&self, text: &'a str) -> Result<Cow<'a, str>, Error> {
        let Some(Some(arguments)) = self.calls.last() else {
            return Ok(Cow::Borrowed(text));
        };
        match arguments.fill(text) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(number) => fail!("Missing argument {number} in user function."),
        }
    }

    fn list(&mut self, nodes: &[Node]) -> Result<Flow, Error> {
        for node in nodes {
            let flow = self.run(node, false)?;
            if flow != Flow::Next || self.quit.is_some() {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn run(&mut self, node: &Node, from_tty: bool) -> Result<Flow, Error> {
        if self.verbose || self.session.settings.trace_commands {
            self.trace_command(node)?;
        }
        match node {
            Node::Simple(line) => {
                self.resumed = false;
                let text = self.filled(&line.text)?;
                self.line(&text, &line.at, from_tty)?;
                Ok(if self.resumed && self.bodies > 0 {
                    Flow::Resumed
                } else {
                    Flow::Next
                })
            }
            Node::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.filled(&condition.text)?;
                let chosen = if self.is_true(&condition)? {
                    then
                } else {
                    otherwise
                };
                self.block(chosen)
            }
            Node::While { condition, body } => {
                let condition = self.filled(&condition.text)?;
                while self.is_true(&condition)? {
                    match self.block(body)? {
                        Flow::LoopBreak => break,
                        Flow::Resumed => return Ok(Flow::Resumed),
                        Flow::Next | Flow::LoopContinue => {}
                    }
                    if self.quit.is_some() {
                        break;
                    }
                    if crate::session::events::interrupted() {
                        fail!("Quit");
                    }
                }
                Ok(Flow::Next)
            }
            Node::LoopBreak(_) => Ok(Flow::LoopBreak),
            Node::LoopContinue(_) => Ok(Flow::LoopContinue),
            Node::Commands { arguments, body } => {
                self.set_body(&arguments.text, body.clone().into())?;
                Ok(Flow::Next)
            }
            Node::Define { name, body } => {
                user::define(self, name, body)?;
                Ok(Flow::Next)
            }
            Node::Document { name, text } => {
                user::document(self, name, text)?;
                Ok(Flow::Next)
            }
            Node::Foreign { line } => {
                self.foreign(&line.text, &line.at);
                Ok(Flow::Next)
            }
        }
    }

    /// Shows a command that is about to run, as deep as it stands.
    fn trace_command(&mut self, node: &Node) -> Result<(), Error> {
        let (word, line) = match node {
            Node::Simple(line) | Node::LoopBreak(line) | Node::LoopContinue(line) => ("", line),
            Node::Foreign { line } => ("", line),
            Node::If { condition, .. } => ("if ", condition),
            Node::While { condition, .. } => ("while ", condition),
            Node::Commands { arguments, .. } => ("commands ", arguments),
            Node::Define { name, .. } => ("define ", name),
            Node::Document { name, .. } => ("document ", name),
        };
        let text = self.filled(&line.text)?;
        let text = format!("{word}{text}");
        let depth = self.nesting + 1;
        self.print(&format!("{}{}\n", "+".repeat(depth), text.trim_end()));
        Ok(())
    }

    /// A script in another language: told, and left out, since what follows it may not need it.
    pub fn foreign(&mut self, what: &str, at: &Position) {
        let (name, _) = table::split(what);
        let text = format!("warning: {at}: {name} is not supported; left out.");
        self.session.output.complain(&text);
    }

    /// One line that is no block.
    fn line(&mut self, text: &str, at: &Position, from_tty: bool) -> Result<(), Error> {
        let names = self.names.clone();
        match names.find(text)? {
            Found::Alias(line) => self.line(&line, at, from_tty),
            Found::User(name, command, rest) => {
                if command.is_prefix && command.body.is_empty() {
                    fail!("\"{name}\" must be followed by the name of a subcommand.");
                }
                self.run_hook("hook", &name)?;
                self.call_user(&command, rest)?;
                self.run_hook("hookpost", &name)
            }
            Found::Built(entry, arguments) => {
                let call = Call {
                    name: entry.name,
                    arguments: arguments.trim_end(),
                    untrimmed: arguments,
                    from_tty,
                    at,
                };
                self.run_hook("hook", entry.name)?;
                let result = (entry.action)(self, &call);
                self.hint(text, result)?;
                self.run_hook("hookpost", entry.name)
            }
        }
    }

    /// Looks `call`'s first word up in a sub-table and runs it.
    pub fn sub(&mut self, table: &Table<Action>, call: &Call<'_>) -> Result<(), Error> {
        let (name, arguments) = table::split(call.arguments);
        let entry = table.find(name)?;
        (entry.action)(self, &call.of(entry.name, arguments))
    }

    /// Lets the target go on and waits until a person must see something.
    pub fn go(&mut self) -> Result<(), Error> {
        self.session.output.flush();
        self.resumed = true;
        if self.session.background {
            fail!("Cannot execute this command while the selected thread is running.");
        }
        self.session.resume()?;
        if self.to_background {
            self.session.background = true;
            return Ok(());
        }
        loop {
            match self.session.wait(None)? {
                Wake::Stopped(bodies) => {
                    self.session.read_counters();
                    self.present();
                    self.session.prune_inferiors();
                    self.due = bodies;
                    return Ok(());
                }
                Wake::Ask {
                    tid,
                    number,
                    bodies,
                } => self.asked(tid, number, &bodies)?,
                Wake::Ended => {
                    self.session.prune_inferiors();
                    return Ok(());
                }
                Wake::Interrupted | Wake::TimeOver => {
                    self.quit = Some(0);
                    return Ok(());
                }
            }
        }
    }

    /// Refuses a command whose purpose is to stop the program where nothing ever does.
    pub fn may_stop(&self, call: &Call<'_>) -> Result<(), Error> {
        if self.session.show.never_stops() {
            fail!(
                "{} stops the program, which trapline trace never does.",
                call.name
            );
        }
        Ok(())
    }

    /// Shows a stop: what hooks it, its text, and what is displayed at each.
    pub fn present(&mut self) {
        let Some(announced) = self.session.announced.take() else {
            return;
        };
        if self.session.stop_hook
            && let Err(error) = self.run_hook("hook", "stop")
        {
            let text = format!("Error while running hook_stop:\n{error}");
            self.session.output.complain(&text);
        }
        self.print(&announced.text);
        if announced.shown {
            display::show_all(self);
        }
    }

    /// Deals with what has happened to a program in the background.
    pub fn serve(&mut self) -> Result<(), Error> {
        let woken = self.session.wait(Some(Instant::now() + GLANCE))?;
        // What bodies do now is about a thread that stands; one that continues goes back.
        self.session.background = false;
        self.to_background = true;
        let result = match woken {
            Wake::Stopped(bodies) => {
                self.session.read_counters();
                self.present();
                self.due = bodies;
                let result = self.run_due();
                // Nobody may type for long.
                self.session.flush();
                result
            }
            Wake::Ask {
                tid,
                number,
                bodies,
            } => {
                let result = self.asked(tid, number, &bodies);
                self.session.background = self.session.running;
                result
            }
            Wake::Interrupted | Wake::TimeOver => {
                self.session.background = true;
                Ok(())
            }
            Wake::Ended => Ok(()),
        };
        self.to_background = false;
        result
    }

    /// A probe that was set while the program runs in the background is there at once.
    pub fn arm_in_background(&mut self) {
        if self.session.background
            && let Err(error) = self.session.sync()
        {
            self.session.output.complain(&error.message);
        }
    }

    /// Bodies that go on by themselves, run over the thread that waits for them.
    pub fn asked(
        &mut self,
        tid: crate::engine::protocol::Tid,
        number: u32,
        bodies: &[Arc<[Node]>],
    ) -> Result<(), Error> {
        // A line is shown with what the body printed in it.
        let record = self.session.asked_record(tid, number);
        if record.is_some() {
            self.session.output.keep();
        }
        let was = std::mem::replace(&mut self.asking, true);
        let place = self.session.place_where(tid, number);
        let before = self.session.naming.replace(place);
        self.present();
        let result = self.asked_bodies(bodies);
        self.session.naming = before;
        self.asking = was;
        let strict = self.session.settings.strict;
        let error = result.as_ref().err().map(|error| error.message.clone());
        if let Some(record) = record {
            let out = self.session.output.kept();
            self.session.show_asked(record, number, out, error);
        } else if let Some(error) = error.filter(|_| !strict) {
            self.print(&format!("{error}\n"));
        }
        if result.is_err() {
            self.session.count_fault();
            if strict && self.session.target().is_some() {
                self.session.stand(self.session.current)?;
                return result;
            }
        }
        self.session.resume_thread(tid)
    }

    /// Up to the first error; without `compat strict` it ends one body only.
    fn asked_bodies(&mut self, bodies: &[Arc<[Node]>]) -> Result<(), Error> {
        let mut result = Ok(());
        for body in bodies {
            self.resumed = false;
            let ended = self.body(body).map(drop);
            if ended.is_err() && self.session.settings.strict {
                return ended;
            }
            result = result.and(ended);
        }
        result
    }

    /// Asks; off a terminal the answer is yes and is printed.
    pub fn query(&mut self, question: &str) -> Result<bool, Error> {
        if !self.session.settings.confirm {
            return Ok(true);
        }
        self.session.output.flush();
        if self.batch || !self.terminal.is_terminal() {
            self.print(&format!(
                "{question}(y or n) [answered Y; input not from terminal]\n"
            ));
            return Ok(true);
        }
        loop {
            match self.terminal.answer(&format!("{question}(y or n) "))? {
                Next::Line(answer) => match answer.trim().to_ascii_lowercase().as_str() {
                    "y" | "yes" => return Ok(true),
                    "n" | "no" => return Ok(false),
                    _ => self.print("Please answer y or n.\n"),
                },
                Next::End => return Ok(true),
                Next::Interrupted => fail!("Quit"),
            }
        }
    }

    /// Asks; off a terminal the answer is no and is printed.
    pub fn query_no(&mut self, question: &str) -> Result<bool, Error> {
        if !self.session.settings.confirm {
            return Ok(false);
        }
        self.session.output.flush();
        if self.batch || !self.terminal.is_terminal() {
            self.print(&format!(
                "{question}(y or [n]) [answered N; input not from terminal]\n"
            ));
            return Ok(false);
        }
        match self.terminal.answer(&format!("{question}(y or [n]) "))? {
            Next::Line(answer) => Ok(answer.trim().to_ascii_lowercase().starts_with('y')),
            Next::End | Next::Interrupted => Ok(false),
        }
    }
}

/// Which line an error in a command of a file is told with: what defines something is looked at
/// where it begins, everything else when it is complete.
fn error_line(node: &Node, last: usize) -> usize {
    match node {
        Node::Define { name: head, .. }
        | Node::Document { name: head, .. }
        | Node::Commands {
            arguments: head, ..
        } => head.at.line as usize,
        _ => last,
    }
}

/// About where the stack is now.
fn stack_pointer() -> usize {
    let here = 0u8;
    std::ptr::from_ref(&here).addr()
}

/// How much stack a program has.
fn stack_size() -> usize {
    use nix::sys::resource::{Resource, getrlimit};
    const USUAL: usize = 8 << 20;
    match getrlimit(Resource::RLIMIT_STACK) {
        Ok((soft, _)) => usize::try_from(soft).unwrap_or(USUAL).min(USUAL),
        Err(_) => USUAL,
    }
}

/// A block that cannot be.
fn script(error: crate::lang::script::ScriptError) -> Error {
    Error::new(error.message)
}
