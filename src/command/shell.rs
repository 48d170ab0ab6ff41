//! `shell` and `!`: a command for the shell.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use super::interpreter::{Call, Interpreter};
use crate::error::{Error, fail};
use crate::lang;

/// `shell [COMMAND]`, `!COMMAND`
pub fn shell(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.session.output.flush();
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut command = Command::new(shell);
    if !call.arguments.is_empty() {
        command.arg("-c").arg(call.arguments);
    }
    match command.status() {
        Ok(status) => remember(i, status),
        Err(error) => fail!(
            "Cannot execute {}: {}",
            command.get_program().to_string_lossy(),
            crate::session::lifecycle::plain(&error)
        ),
    }
}

/// `$_shell_exitcode` and `$_shell_exitsignal`, one of them void.
fn remember(i: &mut Interpreter, status: ExitStatus) -> Result<(), Error> {
    let parts = [
        ("_shell_exitcode", status.code()),
        ("_shell_exitsignal", status.signal()),
    ];
    for (name, number) in parts {
        let value = match number {
            Some(number) => lang::Value::from_u64(lang::Type::int(), number as u64),
            None => lang::Value::void(),
        };
        i.session
            .with_view(|view, _| lang::Scope::set_variable(view, name, value))
            .map_err(|e| Error::new(e.to_string()))?;
    }
    Ok(())
}
