//! `set …` and `show …`.
//!
//! Settings that mean something here have an entry in [`SET`] and [`SHOW`]; those of gdb that mean
//! nothing are in [`known`]. A name of several words is found word by word, each shortened as gdb
//! allows it.

mod environment;
mod kind;
mod known;
mod logging;

use std::collections::BTreeSet;

pub use environment::{UNSET, cd, pwd, unset};
use kind::{amount, auto, on_off, size, switch};
use known::Known;
pub use logging::Logging;

use super::data::set_expression;
use super::interpreter::{Action, Call, Interpreter};
use super::table::{Entry, Table, split};
use super::user;
use crate::error::{Error, fail};
use crate::session::settings::Settings;
use crate::symbols::DebugDirectories;

/// What stands behind `set`.
pub static SET: Table<Action> = Table {
    prefix: "set ",
    taken: &[],
    entries: &[
        Entry {
            name: "args",
            aliases: &[],
            help: "The arguments of the program at the next run.",
            action: |i, call| {
                i.session.settings.arguments = call.arguments.into();
                Ok(())
            },
        },
        Entry {
            name: "breakpoint pending",
            aliases: &[],
            help: "What `break' does with a name that is not loaded yet.\nUsage: set breakpoint pending on|off|auto",
            action: |i, call| {
                i.session.settings.pending = auto(call.arguments)?;
                Ok(())
            },
        },
        Entry {
            name: "compat",
            aliases: &[],
            help: "set compat strict: an address that cannot be read ends the script, as in gdb.\nset compat trace: it is shown with the hit, counted, and tracing goes on (the default).",
            action: |i, call| {
                i.session.settings.strict = match call.arguments {
                    "strict" => true,
                    "trace" => false,
                    _ => fail!("\"strict\" or \"trace\" expected."),
                };
                i.session.stale = true;
                Ok(())
            },
        },
        Entry {
            name: "confirm",
            aliases: &[],
            help: "Whether questions are asked.",
            action: |i, call| {
                i.session.settings.confirm = switch(call.arguments)?;
                Ok(())
            },
        },
        Entry {
            name: "cwd",
            aliases: &[],
            help: "The working directory of the program at the next run.\nUsage: set cwd [DIRECTORY]",
            action: environment::set_cwd,
        },
        Entry {
            name: "debug-file-directory",
            aliases: &[],
            help: "Where the separate debug files of what is loaded from now on are looked for.\nUsage: set debug-file-directory [DIRECTORY[:DIRECTORY]...]",
            action: |i, call| {
                let text = kind::home(call.arguments);
                i.session.settings.debug_directories = DebugDirectories::new(&text);
                Ok(())
            },
        },
        Entry {
            name: "disable-randomization",
            aliases: &[],
            help: "Whether a launched program gets the same addresses each time.",
            action: |i, call| {
                i.session.settings.disable_randomization = switch(call.arguments)?;
                Ok(())
            },
        },
        Entry {
            name: "environment",
            aliases: &[],
            help: "A variable of the program's environment at the next run.\nUsage: set environment NAME [VALUE]",
            action: environment::set,
        },
        Entry {
            name: "exit-kill",
            aliases: &[],
            help: "Whether a launched program is ended when trapline itself is killed.\nUsage: set exit-kill on|off",
            action: |i, call| {
                i.session.settings.exit_kill = switch(call.arguments)?;
                i.session.sync_exit_kill()
            },
        },
        Entry {
            name: "height",
            aliases: &[],
            help: "Accepted: nothing is ever paged.",
            action: |i, call| {
                i.session.settings.height = size(i, call.arguments)?;
                Ok(())
            },
        },
        Entry {
            name: "logging debugredirect",
            aliases: &[],
            help: "Whether debug output goes only to the log file. There is none.\nUsage: set logging debugredirect on|off",
            action: logging::set_debug_redirect,
        },
        Entry {
            name: "logging enabled",
            aliases: &[],
            help: "Whether what is printed is also written to the log file.\nUsage: set logging enabled on|off",
            action: logging::set_enabled,
        },
        Entry {
            name: "logging file",
            aliases: &[],
            help: "The log file.\nUsage: set logging file FILE",
            action: logging::set_file,
        },
        Entry {
            name: "logging off",
            aliases: &[],
            help: "As `set logging enabled off'.",
            action: logging::old_off,
        },
        Entry {
            name: "logging on",
            aliases: &[],
            help: "As `set logging enabled on'.",
            action: logging::old_on,
        },
        Entry {
            name: "logging overwrite",
            aliases: &[],
            help: "Whether the log file begins anew each time.\nUsage: set logging overwrite on|off",
            action: logging::set_overwrite,
        },
        Entry {
            name: "logging redirect",
            aliases: &[],
            help: "Whether output goes only to the log file.\nUsage: set logging redirect on|off",
            action: logging::set_redirect,
        },
        Entry {
            name: "max-user-call-depth",
            aliases: &[],
            help: "How many of the user's commands may run inside of each other.",
            action: |i, call| {
                let depth = size(i, call.arguments)?;
                i.session.settings.max_user_call_depth = depth;
                Ok(())
            },
        },
        Entry {
            name: "pagination",
            aliases: &[],
            help: "Accepted: nothing is ever paged.",
            action: |i, call| {
                i.session.settings.pagination = switch(call.arguments)?;
                Ok(())
            },
        },
        Entry {
            name: "trace-commands",
            aliases: &[],
            help: "Whether each command of a script is shown when it runs.\nUsage: set trace-commands on|off",
            action: |i, call| {
                i.session.settings.trace_commands = switch(call.arguments)?;
                Ok(())
            },
        },
        Entry {
            name: "variable",
            aliases: &["var"],
            help: "Evaluate an expression for what it changes: set variable $x = 1.",
            action: set_expression,
        },
        Entry {
            name: "width",
            aliases: &[],
            help: "Accepted: lines are never broken.",
            action: |i, call| {
                i.session.settings.width = size(i, call.arguments)?;
                Ok(())
            },
        },
    ],
};

/// What stands behind `show`.
pub static SHOW: Table<Action> = Table {
    prefix: "show ",
    taken: &[],
    entries: &[
        Entry {
            name: "args",
            aliases: &[],
            help: "The arguments of the program at the next run.",
            action: |i, _| {
                say(i, |s| {
                    format!(
                        "Argument list to give program being debugged when it is started is \"{}\".",
                        s.arguments
                    )
                })
            },
        },
        Entry {
            name: "breakpoint pending",
            aliases: &[],
            help: "What `break' does with a name that is not loaded yet.",
            action: |i, _| {
                say(i, |s| {
                    let word = s.pending.map_or("auto", on_off);
                    format!("Debugger's behavior regarding pending breakpoints is {word}.")
                })
            },
        },
        Entry {
            name: "compat",
            aliases: &[],
            help: "What an address that cannot be read does to a script.",
            action: |i, _| {
                say(i, |s| {
                    let word = if s.strict { "strict" } else { "trace" };
                    format!("What an unreadable address does to a script is \"{word}\".")
                })
            },
        },
        Entry {
            name: "confirm",
            aliases: &[],
            help: "Whether questions are asked.",
            action: |i, _| {
                say(i, |s| {
                    format!(
                        "Whether to confirm potentially dangerous operations is {}.",
                        on_off(s.confirm)
                    )
                })
            },
        },
        Entry {
            name: "convenience",
            aliases: &["conv"],
            help: "The convenience variables and their values.",
            action: super::data::show_convenience,
        },
        Entry {
            name: "cwd",
            aliases: &[],
            help: "The working directory of the program at the next run.",
            action: environment::show_cwd,
        },
        Entry {
            name: "debug-file-directory",
            aliases: &[],
            help: "Where separate debug files are looked for.",
            action: |i, _| {
                say(i, |s| {
                    format!(
                        "The directory where separate debug symbols are searched for is \"{}\".",
                        s.debug_directories.text()
                    )
                })
            },
        },
        Entry {
            name: "disable-randomization",
            aliases: &[],
            help: "Whether a launched program gets the same addresses each time.",
            action: |i, _| {
                say(i, |s| {
                    format!(
                        "Disabling randomization of debuggee's virtual address space is {}.",
                        on_off(s.disable_randomization)
                    )
                })
            },
        },
        Entry {
            name: "environment",
            aliases: &[],
            help: "The program's environment at the next run.\nUsage: show environment [NAME]",
            action: environment::show,
        },
        Entry {
            name: "exit-kill",
            aliases: &[],
            help: "Whether a launched program is ended when trapline itself is killed.",
            action: |i, _| {
                say(i, |s| {
                    format!(
                        "Whether a launched program ends when trapline is killed is {}.",
                        on_off(s.exit_kill)
                    )
                })
            },
        },
        Entry {
            name: "height",
            aliases: &[],
            help: "Accepted: nothing is ever paged.",
            action: |i, _| {
                say(i, |s| {
                    format!(
                        "Number of lines gdb thinks are in a page is {}.",
                        amount(s.height)
                    )
                })
            },
        },
        Entry {
            name: "logging debugredirect",
            aliases: &[],
            help: "Whether debug output goes only to the log file.",
            action: logging::show_debug_redirect,
        },
        Entry {
            name: "logging enabled",
            aliases: &[],
            help: "Whether what is printed is also written to the log file.",
            action: logging::show_enabled,
        },
        Entry {
            name: "logging file",
            aliases: &[],
            help: "The log file.",
            action: logging::show_file,
        },
        Entry {
            name: "logging overwrite",
            aliases: &[],
            help: "Whether the log file begins anew each time.",
            action: logging::show_overwrite,
        },
        Entry {
            name: "logging redirect",
            aliases: &[],
            help: "Whether output goes only to the log file.",
            action: logging::show_redirect,
        },
        Entry {
            name: "max-user-call-depth",
            aliases: &[],
            help: "How many of the user's commands may run inside of each other.",
            action: |i, _| {
                say(i, |s| {
                    format!(
                        "The max call depth for user-defined commands is {}.",
                        amount(s.max_user_call_depth)
                    )
                })
            },
        },
        Entry {
            name: "pagination",
            aliases: &[],
            help: "Accepted: nothing is ever paged.",
            action: |i, _| {
                say(i, |s| {
                    format!("State of pagination is {}.", on_off(s.pagination))
                })
            },
        },
        Entry {
            name: "trace-commands",
            aliases: &[],
            help: "Whether each command of a script is shown when it runs.",
            action: |i, _| {
                say(i, |s| {
                    let on = on_off(s.trace_commands);
                    format!("State of GDB CLI command tracing is {on}.")
                })
            },
        },
        Entry {
            name: "user",
            aliases: &[],
            help: "The commands that were defined.\nUsage: show user [NAME]",
            action: user::show_user,
        },
        Entry {
            name: "values",
            aliases: &[],
            help: "The last values of the history, or those around value N.\nUsage: show values [N]",
            action: super::data::show_values,
        },
        Entry {
            name: "version",
            aliases: &[],
            help: "The version of trapline.",
            action: |i, _| {
                i.print(concat!("trapline ", env!("CARGO_PKG_VERSION"), "\n"));
                Ok(())
            },
        },
        Entry {
            name: "width",
            aliases: &[],
            help: "Accepted: lines are never broken.",
            action: |i, _| {
                say(i, |s| {
                    format!(
                        "Number of characters gdb thinks are in a line is {}.",
                        amount(s.width)
                    )
                })
            },
        },
    ],
};

/// What a name stands for.
enum Setting {
    /// It means something here.
    Own(&'static Entry<Action>),
    /// It is only remembered.
    Known(&'static Known),
    /// Other names begin with it.
    Prefix(String),
}

/// Words that gdb shortens so although others begin with them too.
const SHORT: &[(&str, &str)] = &[
    ("p", "print"),
    ("pr", "print"),
    ("env", "environment"),
    ("var", "variable"),
    ("conv", "convenience"),
];

/// Whether a setting has that full name.
pub fn exists(name: &str) -> bool {
    let own = |table: &Table<Action>| table.exact(name).is_some();
    own(&SET) || own(&SHOW) || known::find(name).is_some()
}

/// Finds a setting; `None` if the first word begins none.
fn find<'a>(
    table: &'static Table<Action>,
    line: &'a str,
) -> Result<Option<(Setting, &'a str)>, Error> {
    let names = || {
        let own = table.entries.iter().map(|entry| entry.name);
        own.chain(known::KNOWN.iter().map(|known| known.name))
    };
    let command = table.prefix;
    let mut prefix = String::new();
    let mut rest = line;
    loop {
        let (word, behind) = split(rest);
        let next: BTreeSet<&str> = names()
            .filter_map(|name| name.strip_prefix(prefix.as_str()))
            .filter_map(|name| name.split(' ').next())
            .collect();
        let short = SHORT
            .iter()
            .find(|(short, _)| prefix.is_empty() && *short == word);
        let word = short.map_or(word, |(_, full)| full);
        let fitting: Vec<&str> = next
            .iter()
            .copied()
            .filter(|n| n.starts_with(word))
            .collect();
        let chosen = match fitting.as_slice() {
            _ if !word.is_empty() && next.contains(word) => word,
            [only] if !word.is_empty() => only,
            [] if prefix.is_empty() => return Ok(None),
            _ if word.is_empty() || fitting.is_empty() => fail!(
                "Undefined {command}{prefix}command: \"{rest}\".  Try \"help {command}{}\".",
                prefix.trim_end()
            ),
            several => fail!(
                "Ambiguous {command}{prefix}command \"{rest}\": {}.",
                several.join(", ")
            ),
        };
        let full = format!("{prefix}{chosen}");
        if let Some(entry) = table.exact(&full) {
            return Ok(Some((Setting::Own(entry), behind)));
        }
        if let Some(known) = known::find(&full) {
            return Ok(Some((Setting::Known(known), behind)));
        }
        if behind.is_empty() {
            return Ok(Some((Setting::Prefix(full), "")));
        }
        prefix = format!("{full} ");
        rest = behind;
    }
}

/// `set …`: a setting if the first word is one, otherwise an expression.
pub fn set(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        fail!("Argument required (expression to compute).");
    }
    let (word, rest) = split(call.arguments);
    // `set width=3` and `set w = 3` mean a variable of the program.
    let assigns = rest.starts_with('=') && !rest.starts_with("==");
    if word.is_empty() || assigns {
        return set_expression(i, call);
    }
    match find(&SET, call.arguments)? {
        None => set_expression(i, call),
        Some((Setting::Own(entry), arguments)) => {
            (entry.action)(i, &call.of(entry.name, arguments))
        }
        Some((Setting::Known(known), text)) => {
            let value = known.kind.read(i, text)?;
            let settings = &mut i.session.settings.known;
            if value == "auto" && known.first.starts_with("auto") {
                // What `auto` comes to is shown with it.
                settings.remove(known.name);
                return Ok(());
            }
            if known.name == "charset" {
                settings.insert("host-charset", value.clone());
                settings.insert("target-charset", value.clone());
            }
            settings.insert(known.name, value);
            // A program that runs already makes processes at any moment.
            i.session.sync_children()
        }
        Some((Setting::Prefix(prefix), _)) => {
            let begins = format!("{prefix} ");
            let mut names: Vec<&str> = SET.entries.iter().map(|entry| entry.name).collect();
            names.extend(known::KNOWN.iter().map(|known| known.name));
            names.retain(|name| name.starts_with(&begins));
            names.sort_unstable();
            let list: String = names.iter().map(|name| format!("set {name}\n")).collect();
            i.print(&format!("List of set {prefix} subcommands:\n\n{list}\n"));
            Ok(())
        }
    }
}

/// `show …`
pub fn show(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        return show_all(i, "", call);
    }
    match find(&SHOW, call.arguments)? {
        None => fail!(
            "Undefined show command: \"{}\".  Try \"help show\".",
            call.arguments
        ),
        Some((Setting::Own(entry), arguments)) => {
            (entry.action)(i, &call.of(entry.name, arguments))
        }
        Some((Setting::Known(known), _)) => show_known(i, known),
        Some((Setting::Prefix(prefix), _)) => show_all(i, &format!("{prefix} "), call),
    }
}

/// The settings whose names begin so, each with its name in front.
fn show_all(i: &mut Interpreter, prefix: &str, call: &Call<'_>) -> Result<(), Error> {
    // What is no setting is left out, as in gdb.
    const OTHERS: &[&str] = &["convenience", "environment", "user", "values", "version"];
    let mut names: Vec<&str> = SHOW.entries.iter().map(|entry| entry.name).collect();
    names.extend(known::KNOWN.iter().map(|known| known.name));
    names.retain(|name| name.starts_with(prefix) && !OTHERS.contains(name));
    names.sort_unstable();
    for name in names {
        i.print(&format!("{name}:  "));
        match (SHOW.exact(name), known::find(name)) {
            (Some(entry), _) => (entry.action)(i, &call.of(call.name, ""))?,
            (None, Some(known)) => show_known(i, known)?,
            (None, None) => {}
        }
    }
    Ok(())
}

fn show_known(i: &mut Interpreter, known: &Known) -> Result<(), Error> {
    say(i, |s| {
        known.line(s.known.get(known.name).map(String::as_str))
    })
}

fn say(i: &mut Interpreter, text: impl FnOnce(&Settings) -> String) -> Result<(), Error> {
    let line = text(&i.session.settings);
    i.print(&format!("{line}\n"));
    Ok(())
}
