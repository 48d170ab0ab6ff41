//! The environment and the working directory of a program that is launched; `cd` and `pwd`.

use std::path::Path;

use crate::command::interpreter::{Action, Call, Interpreter};
use crate::command::table::{Entry, Table, split};
use crate::error::{Error, fail};

/// What stands behind `unset`.
pub static UNSET: Table<Action> = Table {
    prefix: "unset ",
    taken: &[],
    entries: &[
        Entry {
            name: "environment",
            aliases: &["env"],
            help: "Take a variable out of the program's environment at the next run, or all.\nUsage: unset environment [NAME]",
            action: unset_variable,
        },
        Entry {
            name: "exec-wrapper",
            aliases: &[],
            help: "Forget what `set exec-wrapper' said.",
            action: |i, _| {
                i.session.settings.known.remove("exec-wrapper");
                Ok(())
            },
        },
        Entry {
            name: "substitute-path",
            aliases: &[],
            help: "Accepted: there are no source files.",
            action: |_, _| Ok(()),
        },
    ],
};

/// `unset …`
pub fn unset(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        let text = format!("List of unset subcommands:\n\n{}\n", UNSET.list());
        i.print(&text);
        return Ok(());
    }
    i.sub(&UNSET, call)
}

/// `set environment NAME [=] [VALUE]`
pub fn set(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    const REQUIRED: &str = "Argument required (environment variable and value).";
    if call.arguments.is_empty() {
        fail!("{REQUIRED}");
    }
    let end = call.arguments.find(['=', ' ', '\t']);
    let (name, rest) = call.arguments.split_at(end.unwrap_or(call.arguments.len()));
    if name.is_empty() {
        fail!("{REQUIRED}");
    }
    let rest = rest.trim_start();
    let value = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    if value.is_empty() {
        i.print(&format!(
            "Setting environment variable \"{name}\" to null value.\n"
        ));
    }
    let environment = &mut i.session.settings.environment;
    environment.insert(name.into(), Some(value.into()));
    Ok(())
}

/// `show environment [NAME]`
pub fn show(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let environment = i.session.environment();
    let name = call.arguments.trim();
    if name.is_empty() {
        let text: String = environment
            .iter()
            .map(|(name, value)| {
                format!("{}={}\n", name.to_string_lossy(), value.to_string_lossy())
            })
            .collect();
        i.print(&text);
        return Ok(());
    }
    let found = environment.iter().find(|(n, _)| n.to_str() == Some(name));
    i.print(&match found {
        Some((name, value)) => {
            format!("{} = {}\n", name.to_string_lossy(), value.to_string_lossy())
        }
        None => format!("Environment variable \"{name}\" not defined.\n"),
    });
    Ok(())
}

fn unset_variable(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (name, _) = split(call.arguments);
    if !name.is_empty() {
        i.session.settings.environment.insert(name.into(), None);
        return Ok(());
    }
    if call.from_tty && !i.query("Delete all environment variables? ")? {
        return Ok(());
    }
    let names: Vec<String> = i
        .session
        .environment()
        .into_iter()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    for name in names {
        i.session.settings.environment.insert(name, None);
    }
    Ok(())
}

/// `set cwd [DIRECTORY]`
pub fn set_cwd(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.session.settings.cwd = match call.arguments {
        "" => None,
        directory => Some(directory.into()),
    };
    Ok(())
}

/// `show cwd`
pub fn show_cwd(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    let text = match &i.session.settings.cwd {
        None => "You have not set the inferior's current working directory.\nThe inferior will inherit GDB's cwd if native debugging, or the remote\nserver's cwd if remote debugging.\n".into(),
        Some(directory) => format!(
            "Current working directory that will be used when starting the inferior is \"{directory}\".\n"
        ),
    };
    i.print(&text);
    Ok(())
}

/// `cd [DIRECTORY]`
pub fn cd(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let home = std::env::var("HOME").unwrap_or_default();
    let directory = match call.arguments {
        "" | "~" => home,
        text => match text.strip_prefix("~/") {
            Some(rest) => format!("{home}/{rest}"),
            None => text.into(),
        },
    };
    if let Err(error) = std::env::set_current_dir(Path::new(&directory)) {
        let why = crate::session::lifecycle::plain(&error);
        fail!("{directory}: {why}.");
    }
    i.session.settings.moved = true;
    if call.from_tty {
        return pwd(i, call);
    }
    Ok(())
}

/// `pwd`
pub fn pwd(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    match std::env::current_dir() {
        Ok(directory) => {
            i.print(&format!("Working directory {}.\n", directory.display()));
            Ok(())
        }
        Err(error) => fail!(
            "Error finding name of working directory: {}",
            crate::session::lifecycle::plain(&error)
        ),
    }
}
