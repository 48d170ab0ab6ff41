//! `set …` and `show …`.

use super::data::set_expression;
use super::interpreter::{Action, Call, Interpreter};
use super::table::{Entry, Table, split};
use crate::error::{Error, fail};

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
            name: "breakpoint",
            aliases: &[],
            help: "set breakpoint pending on|off|auto: what `break' does with a name that is not loaded yet.",
            action: |i, call| match split(call.arguments) {
                ("pending", value) => {
                    i.session.settings.pending = match value {
                        "auto" => None,
                        value => Some(switch(value)?),
                    };
                    Ok(())
                }
                (other, _) => fail!(
                    "Undefined set breakpoint command: \"{other}\".  Try \"help set breakpoint\"."
                ),
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
            name: "disable-randomization",
            aliases: &[],
            help: "Whether a launched program gets the same addresses each time.",
            action: |i, call| {
                i.session.settings.disable_randomization = switch(call.arguments)?;
                Ok(())
            },
        },
        Entry {
            name: "height",
            aliases: &[],
            help: "Accepted: nothing is ever paged.",
            action: |i, call| {
                i.session.settings.height = size(call.arguments)?;
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
                i.session.settings.width = size(call.arguments)?;
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
            name: "breakpoint",
            aliases: &[],
            help: "What `break' does with a name that is not loaded yet.",
            action: |i, _| {
                say(i, |s| {
                    let word = match s.pending {
                        None => "auto",
                        Some(on) => on_off(on),
                    };
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

/// `set …`: a setting if the first word is one, otherwise an expression.
pub fn set(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        fail!("Argument required (expression to compute).");
    }
    let (word, rest) = split(call.arguments);
    // `set width=3` and `set w = 3` mean a variable of the program.
    let assigns = rest.starts_with('=') && !rest.starts_with("==");
    if word.is_empty() || assigns || SET.find(word).is_err() {
        return set_expression(i, call);
    }
    i.sub(&SET, call)
}

/// `show …`
pub fn show(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if !call.arguments.is_empty() {
        return i.sub(&SHOW, call);
    }
    for entry in SHOW.entries {
        i.print(&format!("{}:  ", entry.name));
        (entry.action)(i, call)?;
    }
    Ok(())
}

fn say(
    i: &mut Interpreter,
    text: impl FnOnce(&crate::session::settings::Settings) -> String,
) -> Result<(), Error> {
    let line = text(&i.session.settings);
    i.print(&format!("{line}\n"));
    Ok(())
}

fn switch(word: &str) -> Result<bool, Error> {
    match word {
        "on" | "1" | "yes" | "enable" | "" => Ok(true),
        "off" | "of" | "0" | "no" | "disable" => Ok(false),
        _ => fail!("\"on\" or \"off\" expected."),
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn size(word: &str) -> Result<Option<u32>, Error> {
    match word {
        "unlimited" | "0" => Ok(None),
        "" => fail!("Argument required (integer to set it to, or \"unlimited\".)."),
        word => match word.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => fail!("No symbol \"{word}\" in current context."),
        },
    }
}

fn amount(size: Option<u32>) -> String {
    size.map_or_else(|| "unlimited".into(), |n| n.to_string())
}
