//! What a user adds to the commands: `define`, `document`, hooks, aliases; and how a word is found
//! among gdb's commands, ours and theirs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::gdb_names;
use super::interpreter::{Action, Call, Interpreter};
use super::table::{Entry, split};
use super::top::{self, TOP};
use crate::error::{Error, fail};
use crate::lang::arguments::Arguments;
use crate::lang::script::{Line, Node, Resolver};
use crate::session::table::lines;

/// A command that a user defined.
#[derive(Debug, Clone)]
pub struct UserCommand {
    /// What it runs.
    pub body: Arc<[Node]>,
    /// What `document` gave it.
    pub help: Option<String>,
    /// Made by `define-prefix`: other commands' names begin with this one.
    pub is_prefix: bool,
}

/// Another name for a command.
#[derive(Debug, Clone)]
struct Alias {
    /// The command, with arguments that come in front of those given.
    line: String,
    /// `-a`: found by its full name only, not listed.
    hidden: bool,
}

#[derive(Debug, Default)]
struct Defined {
    /// By full name, one blank between its words.
    commands: BTreeMap<String, UserCommand>,
    aliases: BTreeMap<String, Alias>,
}

/// All commands, as the reader of scripts and the interpreter ask for them.
#[derive(Debug, Clone, Default)]
pub struct Names(Rc<RefCell<Defined>>);

/// What a line calls.
pub enum Found<'a> {
    /// A command of the table, with what follows its name.
    Built(&'static Entry<Action>, &'a str),
    /// A command of the user's: its full name, itself, and what follows.
    User(String, UserCommand, &'a str),
    /// An alias: the line that it stands for.
    Alias(String),
}

/// The words of a name, with one blank between them.
fn joined(name: &str) -> String {
    name.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

impl Names {
    /// What a line calls. The user's own come before ours and gdb's.
    pub fn find<'a>(&self, line: &'a str) -> Result<Found<'a>, Error> {
        if let Some(rest) = line.trim_start().strip_prefix('!') {
            return Ok(Found::Built(TOP.find("shell")?, rest.trim_start()));
        }
        let (word, rest) = split(line);
        if let Some(found) = self.exact(word, rest)? {
            return Ok(found);
        }
        if let Some(entry) = TOP.exact(word) {
            return self.below(entry, rest);
        }
        let built = TOP.find(word);
        let theirs = self.beginning("", word);
        match (&built, theirs.as_slice()) {
            (Ok(entry), []) => self.below(entry, rest),
            (Err(error), [name])
                if TOP.beginning(word).is_empty() && !TOP.taken.contains(&word) =>
            {
                match self.exact(name, rest)? {
                    Some(found) => Ok(found),
                    None => Err(error.clone()),
                }
            }
            (Err(error), []) => Err(error.clone()),
            (_, theirs) => {
                let mut names: Vec<String> = theirs.to_vec();
                names.extend(TOP.beginning(word).into_iter().map(String::from));
                names.sort_unstable();
                names.dedup();
                fail!("Ambiguous command \"{word}\": {}.", names.join(", "))
            }
        }
    }

    /// A command of the user's by its full name, or one below that name.
    fn exact<'a>(&self, word: &str, rest: &'a str) -> Result<Option<Found<'a>>, Error> {
        let defined = self.0.borrow();
        if let Some(alias) = defined.aliases.get(word) {
            return Ok(Some(Found::Alias(format!("{} {rest}", alias.line))));
        }
        let Some(command) = defined.commands.get(word).cloned() else {
            return Ok(None);
        };
        drop(defined);
        if command.is_prefix && !rest.is_empty() {
            let (next, behind) = split(rest);
            let prefix = format!("{word} ");
            let names = self.beginning(&prefix, next);
            let full = format!("{prefix}{next}");
            return match names.as_slice() {
                names if names.contains(&full) => self.exact(&full, behind),
                [name] => self.exact(name, behind),
                [] if command.body.is_empty() => {
                    fail!("Undefined {word} command: \"{rest}\".  Try \"help {word}\".")
                }
                [] => Ok(Some(Found::User(word.into(), command, rest))),
                names => fail!(
                    "Ambiguous {word} command \"{rest}\": {}.",
                    names
                        .iter()
                        .map(|n| &n[prefix.len()..])
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            };
        }
        Ok(Some(Found::User(word.into(), command, rest)))
    }

    /// A command of the table; below `set`, `show` and the like the user may have defined others.
    fn below<'a>(&self, entry: &'static Entry<Action>, rest: &'a str) -> Result<Found<'a>, Error> {
        if gdb_names::is_prefix(entry.name) {
            let (next, behind) = split(rest);
            let full = format!("{} {next}", entry.name);
            if !next.is_empty()
                && let Some(found) = self.exact(&full, behind)?
            {
                return Ok(found);
            }
        }
        Ok(Found::Built(entry, rest))
    }

    /// Full names of the user's that begin with `prefix` and then `start`, without a further word.
    fn beginning(&self, prefix: &str, start: &str) -> Vec<String> {
        let defined = self.0.borrow();
        let begins = format!("{prefix}{start}");
        let own = |name: &&String| name.starts_with(&begins) && !name[prefix.len()..].contains(' ');
        let shown = defined.aliases.iter().filter(|(_, alias)| !alias.hidden);
        let mut names: Vec<String> = defined.commands.keys().filter(own).cloned().collect();
        names.extend(shown.map(|(name, _)| name).filter(own).cloned());
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The first words of the user's commands.
    pub fn first_words(&self) -> Vec<String> {
        self.beginning("", "")
    }

    /// A command of the user's by its full name.
    pub fn user(&self, name: &str) -> Option<UserCommand> {
        self.0.borrow().commands.get(&joined(name)).cloned()
    }

    /// All of the user's commands, by full name.
    pub fn all(&self) -> Vec<(String, UserCommand)> {
        let defined = self.0.borrow();
        let commands = defined.commands.iter();
        commands
            .map(|(name, c)| (name.clone(), c.clone()))
            .collect()
    }

    /// What `hook-NAME` or `hookpost-NAME` runs.
    pub fn hook(&self, kind: &str, name: &str) -> Option<UserCommand> {
        let defined = self.0.borrow();
        // A hook for a command below another stands below it as well.
        let full = match name.rsplit_once(' ') {
            Some((prefix, last)) => format!("{prefix} {kind}-{last}"),
            None => format!("{kind}-{name}"),
        };
        defined.commands.get(&full).cloned()
    }

    fn is_hooked(&self, name: &str) -> bool {
        self.hook("hook", name).is_some() || self.hook("hookpost", name).is_some()
    }
}

impl Resolver for Names {
    fn resolve<'a>(&self, line: &'a str) -> Option<(&'static str, &'a str)> {
        match self.find(line).ok()? {
            Found::Built(entry, rest) => {
                (!self.is_hooked(entry.name)).then_some((entry.name, rest))
            }
            Found::User(..) => None,
            Found::Alias(whole) => {
                let (_, rest) = split(line);
                let (word, behind) = split(whole.strip_suffix(rest)?);
                match (behind, self.find(word).ok()?) {
                    ("", Found::Built(entry, _)) => Some((entry.name, rest)),
                    _ => None,
                }
            }
        }
    }

    fn expand(&self, line: &str) -> Option<Vec<Node>> {
        let Ok(Found::User(name, command, rest)) = self.find(line) else {
            return None;
        };
        if self.is_hooked(&name) {
            return None;
        }
        Arguments::split(rest).fill_body(&command.body)
    }
}

/// A name that `define` or `document` is given: its words, checked.
fn checked_name(i: &Interpreter, text: &str) -> Result<String, Error> {
    if text.is_empty() {
        fail!("Argument required (name of command to define).");
    }
    let bad = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '\t'));
    if let Some(at) = text.find(bad) {
        fail!("Junk in argument list: \"{}\"", &text[at..]);
    }
    let name = joined(text);
    let Some((prefix, last)) = name.rsplit_once(' ') else {
        return Ok(name);
    };
    match i.names.find(prefix)? {
        Found::Built(entry, "") if gdb_names::is_prefix(entry.name) => {
            Ok(format!("{} {last}", entry.name))
        }
        Found::User(full, command, "") if command.is_prefix => Ok(format!("{full} {last}")),
        _ => fail!("\"{prefix}\" is not a prefix command."),
    }
}

/// Whether gdb itself has a command of that full name.
fn is_gdbs(name: &str) -> bool {
    match name.split_once(' ') {
        None => gdb_names::is_command(name),
        Some((prefix, rest)) => top::has_sub(prefix, rest),
    }
}

/// `define NAME`
pub fn define(i: &mut Interpreter, name: &Line, body: &[Node]) -> Result<(), Error> {
    let name = checked_name(i, &name.text)?;
    if i.names.user(&name).is_some() {
        if !i.query(&format!("Redefine command \"{name}\"? "))? {
            fail!("Command \"{name}\" not redefined.");
        }
    } else if is_gdbs(&name)
        && !i.query(&format!("Really redefine built-in command \"{name}\"? "))?
    {
        fail!("Command \"{name}\" not redefined.");
    }
    if let Some(hooked) = hooked_name(&name) {
        let exists = hooked == "stop"
            || is_gdbs(&hooked)
            || i.names.user(&hooked).is_some()
            || TOP.exact(&hooked).is_some();
        if !exists
            && !i.query(&format!(
                "warning: Your new `{name}' command does not hook any existing command.\nProceed? "
            ))?
        {
            fail!("Not redefined.");
        }
    }
    let mut defined = i.names.0.borrow_mut();
    let old = defined.commands.remove(&name);
    let command = UserCommand {
        body: body.into(),
        help: old.as_ref().and_then(|old| old.help.clone()),
        is_prefix: old.is_some_and(|old| old.is_prefix),
    };
    defined.commands.insert(name, command);
    drop(defined);
    i.commands_changed();
    Ok(())
}

/// The command that `hook-NAME` or `hookpost-NAME` hooks.
fn hooked_name(name: &str) -> Option<String> {
    let (prefix, last) = match name.rsplit_once(' ') {
        Some((prefix, last)) => (format!("{prefix} "), last),
        None => (String::new(), name),
    };
    let hooked = last
        .strip_prefix("hook-")
        .or(last.strip_prefix("hookpost-"))?;
    Some(format!("{prefix}{hooked}"))
}

/// `document NAME`
pub fn document(i: &mut Interpreter, name: &Line, text: &[String]) -> Result<(), Error> {
    let name = checked_name(i, &name.text)?;
    let full = match i.names.find(&name) {
        Ok(Found::User(full, _, "")) => full,
        _ if is_gdbs(&name) || TOP.exact(&name).is_some() => {
            fail!("Command \"{name}\" is built-in.")
        }
        _ => fail!("Undefined command: \"{name}\"."),
    };
    if let Some(command) = i.names.0.borrow_mut().commands.get_mut(&full) {
        command.help = Some(text.join("\n"));
    }
    Ok(())
}

/// `define-prefix NAME`
pub fn define_prefix(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let name = checked_name(i, call.arguments)?;
    if i.names.user(&name).is_none() && is_gdbs(&name) {
        fail!("Command \"{name}\" is built-in.");
    }
    let mut defined = i.names.0.borrow_mut();
    let command = defined.commands.entry(name).or_insert(UserCommand {
        body: Arc::default(),
        help: None,
        is_prefix: true,
    });
    command.is_prefix = true;
    Ok(())
}

/// `show user [NAME]`
pub fn show_user(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let name = call.arguments.trim();
    let shown = if name.is_empty() {
        let all = i.names.all();
        all.into_iter().filter(|(_, c)| !c.is_prefix).collect()
    } else {
        match i.names.find(name)? {
            Found::User(full, command, _) => vec![(full, command)],
            _ => fail!("Not a user command."),
        }
    };
    let mut text = String::new();
    for (name, command) in shown {
        text.push_str(&format!("User command \"{name}\":\n"));
        lines(&command.body, 2, &mut text);
        text.push('\n');
    }
    i.print(&text);
    Ok(())
}

/// `alias [-a] [--] ALIAS = COMMAND [DEFAULT-ARGS...]`
pub fn alias(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    const USAGE: &str = "Usage: alias [-a] [--] ALIAS = COMMAND [DEFAULT-ARGS...]";
    let mut text = call.arguments.trim_start();
    let mut hidden = false;
    loop {
        if let Some(rest) = text.strip_prefix("-- ") {
            text = rest;
            break;
        }
        match text.strip_prefix("-a ") {
            Some(rest) => (hidden, text) = (true, rest.trim_start()),
            None => break,
        }
    }
    let Some((name, command)) = text.split_once('=') else {
        fail!("{USAGE}");
    };
    let (name, command) = (joined(name), command.trim());
    if name.is_empty() || command.is_empty() {
        fail!("{USAGE}");
    }
    let invalid = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' '));
    if name.contains(invalid) {
        fail!("Invalid command name: {name}");
    }
    let line = match i.names.find(command)? {
        Found::Built(entry, rest) => format!("{} {rest}", entry.name),
        Found::User(full, _, rest) => format!("{full} {rest}"),
        Found::Alias(line) => line,
    };
    let mut defined = i.names.0.borrow_mut();
    if defined.aliases.contains_key(&name) {
        fail!("Alias already exists: {name}");
    }
    if defined.commands.contains_key(&name) || is_gdbs(&name) {
        fail!("Alias {name} is the name of an existing command");
    }
    let line = line.trim_end().to_string();
    defined.aliases.insert(name, Alias { line, hidden });
    drop(defined);
    i.commands_changed();
    Ok(())
}

impl Interpreter {
    /// What the words of bodies stand for may be something else now.
    fn commands_changed(&mut self) {
        self.session.stale = true;
        let hooked = self.names.user("hook-stop").is_some();
        self.session.stop_hook = hooked;
    }

    /// Runs a command of the user's.
    pub fn call_user(&mut self, command: &UserCommand, arguments: &str) -> Result<(), Error> {
        let limit = self.session.settings.max_user_call_depth;
        let calls = self.calls.iter().flatten().count();
        if limit.is_some_and(|limit| calls >= limit as usize) || self.stack_is_short() {
            fail!("Max user call depth exceeded -- command aborted.");
        }
        self.calls.push(Some(Arguments::split(arguments)));
        let depth = std::mem::take(&mut self.depth);
        self.nesting += 1;
        let result = self.user_body(&command.body);
        self.nesting -= 1;
        self.depth = depth;
        self.calls.pop();
        result
    }

    /// Runs what hooks a command, unless that is what runs already.
    pub fn run_hook(&mut self, kind: &str, name: &str) -> Result<(), Error> {
        let Some(command) = self.names.hook(kind, name) else {
            return Ok(());
        };
        let running = format!("{kind}-{name}");
        if self.hooking.contains(&running) {
            return Ok(());
        }
        self.hooking.push(running);
        let result = self.call_user(&command, "");
        self.hooking.pop();
        result
    }
}
