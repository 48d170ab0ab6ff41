//! Commands that look at values: the language's own statements, run over the selected thread.

use super::interpreter::{Call, Interpreter};
use crate::error::{Error, fail};
use crate::lang;
use crate::lang::examine::Failure;
use crate::lang::statement::{Context, Flow, parse_statement};
use crate::session::output::Output;
use crate::session::view::View;

/// What a failed statement says; a closed output is no error of the statement.
pub fn failure(failure: Failure) -> Error {
    match failure {
        Failure::Command(error) => Error::new(error.to_string()),
        Failure::Output(_) => Error::new("Quit"),
    }
}

impl Interpreter {
    /// Runs one of the language's statements.
    fn statement(&mut self, name: &str, arguments: &str) -> Result<(), Error> {
        if needs_thread(name, arguments) {
            self.session.need_stand()?;
        } else {
            self.session.arm_early();
        }
        let selected = self.session.target().map(|t| t.selected);
        self.session.with_all(selected, |view, output, state| {
            let Some(statement) =
                parse_statement(name, arguments, view).map_err(|e| Error::new(e.to_string()))?
            else {
                fail!("{name} {arguments}: not understood.");
            };
            let mut context = Context {
                scope: view,
                out: output,
                state,
                disassemble: &crate::session::disassemble,
            };
            match statement.run(&mut context) {
                Ok(Flow::Next) => Ok(()),
                Ok(_) => fail!("{name}: not possible here."),
                Err(error) => Err(failure(error)),
            }
        })
    }

    /// Whether an expression is not zero.
    pub fn is_true(&mut self, expression: &str) -> Result<bool, Error> {
        self.evaluate(expression, |value, view| value.is_true(view))
    }

    /// Evaluates an expression over the selected thread.
    pub fn evaluate<R>(
        &mut self,
        expression: &str,
        f: impl FnOnce(lang::Value, &View<'_>) -> Result<R, lang::Error>,
    ) -> Result<R, Error> {
        if needs_thread("print", expression) {
            self.session.need_stand()?;
        }
        self.session
            .with_view(|view: &mut View<'_>, _: &mut Output| {
                let expr = lang::parse(expression, view)?;
                let value = lang::evaluate(&expr, view)?;
                f(value, view)
            })
            .map_err(|e| Error::new(e.to_string()))
    }
}

/// Whether a statement is about a thread, which must stand for it then: it names a register or an
/// argument, or shows where the program counter is. Memory is read of a running process as well,
/// and a process that nobody asks for more is not stopped.
fn needs_thread(name: &str, arguments: &str) -> bool {
    if name == "echo" {
        return false;
    }
    let instructions = name == "x" && arguments.starts_with('/');
    let names = arguments.split('$').skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    });
    let thread = |name: &str| {
        let argument = name.trim_start_matches('_').strip_prefix("arg");
        lang::registers::lookup(name).is_some()
            || argument.is_some_and(|number| number.parse::<u32>().is_ok())
            || matches!(name, "_tid" | "_cpu")
    };
    instructions || names.into_iter().any(thread)
}

/// The value of an expression as a number.
pub fn number(i: &mut Interpreter, expression: &str) -> Result<u64, Error> {
    i.evaluate(expression, |value, view| value.as_u64(view))
}

/// The same, negative numbers included.
pub fn signed_number(i: &mut Interpreter, expression: &str) -> Result<i64, Error> {
    i.evaluate(expression, |value, view| {
        let number = value.as_i128(view)?;
        i64::try_from(number).map_err(|_| lang::Error::new("Numeric constant too large."))
    })
}

/// `init-if-undefined $VARIABLE = EXPRESSION`
pub fn init_if_undefined(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        fail!("Argument required (expression to compute).");
    }
    let variable = i
        .session
        .with_view(|view, _| -> Result<_, lang::Error> {
            let lang::Expr::Assign(left, _) = lang::parse(call.arguments, view)? else {
                return Ok(Err("Init-if-undefined requires an assignment expression."));
            };
            Ok(match *left {
                lang::Expr::Variable(name) => Ok(lang::Scope::variable(view, &name).is_some()),
                _ => Err("The first parameter to init-if-undefined should be a GDB variable."),
            })
        })
        .map_err(|e| Error::new(e.to_string()))?;
    match variable {
        Ok(true) => Ok(()),
        Ok(false) => i.statement("set variable", call.arguments),
        Err(message) => fail!("{message}"),
    }
}

/// `show convenience`
pub fn show_convenience(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    let text = i.session.with_view(|view, _| {
        let mut text = String::new();
        let keeper = view.keeper.as_ref().map(std::cell::RefCell::borrow);
        let counters = keeper.as_ref().map(|keeper| keeper.counters());
        for (name, value) in view.variables.all(counters) {
            let shown = lang::print_value(&value, None, view)
                .unwrap_or_else(|error| format!("<error: {error}>"));
            text.push_str(&format!("${name} = {shown}\n"));
        }
        text
    });
    i.print(&text);
    Ok(())
}

/// `show values [N]`: ten of the history.
pub fn show_values(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    const SHOWN: usize = 10;
    let first = match call.arguments {
        "" => i
            .session
            .variables
            .history_length()
            .saturating_sub(SHOWN - 1)
            .max(1),
        expression => {
            let middle = signed_number(i, expression)?;
            usize::try_from(middle.saturating_sub(5))
                .unwrap_or(1)
                .max(1)
        }
    };
    let text = i.session.with_view(|view, _| {
        let mut text = String::new();
        for number in first..first.saturating_add(SHOWN) {
            let Some(value) = lang::Scope::history(view, number) else {
                break;
            };
            let shown = lang::print_value(&value, None, view)
                .unwrap_or_else(|error| format!("<error: {error}>"));
            text.push_str(&format!("${number} = {shown}\n"));
        }
        text
    });
    i.print(&text);
    Ok(())
}

/// `print[/F] [EXPRESSION]`
pub fn print(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.statement("print", call.arguments)
}

/// `call[/F] EXPRESSION`: functions of the program are not called.
pub fn call(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.statement("call", call.arguments)
}

/// `output[/F] EXPRESSION`
pub fn output(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.statement("output", call.arguments)
}

/// `whatis [EXPRESSION]`
pub fn whatis(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.session.need_stand()?;
    let expression = match call.arguments {
        "" => "$",
        expression => expression,
    };
    let ty = i
        .session
        .with_view(|view, _| lang::type_of(&lang::parse(expression, view)?, view))
        .map_err(|e| Error::new(e.to_string()))?;
    i.print(&format!("type = {ty}\n"));
    Ok(())
}

/// `x[/NFU] [ADDRESS]`
pub fn x(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.statement("x", call.arguments)
}

/// `printf "FORMAT", ARGUMENT…`
pub fn printf(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.statement("printf", call.arguments)
}

/// `echo TEXT`
pub fn echo(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.statement("echo", call.untrimmed)
}

/// `hexdump ADDRESS, LENGTH`
pub fn hexdump(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.statement("hexdump", call.arguments)
}

/// `set EXPRESSION`, `set variable EXPRESSION`
pub fn set_expression(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.statement("set variable", call.arguments)
}

#[cfg(test)]
mod tests {
    use super::needs_thread;

    #[test]
    fn only_what_is_about_a_thread_stops_one() {
        for (name, arguments) in [
            ("print", "$rsi + 4"),
            ("print", "1 + $_arg1"),
            ("output", "$arg2"),
            ("x", "/i 0x1000"),
            ("printf", "\"%d\\n\", $eax"),
        ] {
            assert!(needs_thread(name, arguments), "{name} {arguments}");
        }
        for (name, arguments) in [
            ("echo", "costs 5$rax"),
            ("print", "*(int*)&counter"),
            ("set var", "$n = $n + 1"),
            ("print", "$1"),
            ("print", "$argument"),
            ("x", "&counter"),
        ] {
            assert!(!needs_thread(name, arguments), "{name} {arguments}");
        }
    }
}
