//! `display`: expressions that are shown at each stop.

use super::interpreter::{Call, Interpreter};
use crate::error::{Error, fail};
use crate::lang;
use crate::lang::examine::{Spec, address_of, examine};

/// One expression.
#[derive(Debug, Clone)]
pub struct Display {
    number: u32,
    /// As it was typed, without the format.
    expression: String,
    /// What stood behind the slash, completed.
    format: Option<Spec>,
    enabled: bool,
}

/// All of them, in number order.
#[derive(Debug, Default)]
pub struct Displays {
    list: Vec<Display>,
    last: u32,
}

impl Display {
    /// Whether it shows memory at an address, as `x` does, instead of a value.
    fn examines(&self) -> Option<Spec> {
        self.format.filter(|format| format.size.is_some())
    }

    /// `1: x/i $pc` and what follows, up to where the value begins.
    fn head(&self) -> String {
        let number = self.number;
        let expression = &self.expression;
        if let Some(Spec {
            count,
            format,
            size,
        }) = self.examines()
        {
            let letter = format.unwrap_or('x');
            let times = match count {
                1 => String::new(),
                count => count.to_string(),
            };
            let size = size.filter(|_| !matches!(letter, 'i' | 's'));
            let size = size.map(String::from).unwrap_or_default();
            let behind = if count != 1 || letter == 'i' {
                "\n"
            } else {
                "  "
            };
            return format!("{number}: x/{times}{letter}{size} {expression}{behind}");
        }
        let letter = self.format.and_then(|format| format.format);
        let letter = letter
            .map(|letter| format!("/{letter} "))
            .unwrap_or_default();
        format!("{number}: {letter}{expression} = ")
    }

    /// Its line in `info display`.
    fn row(&self) -> String {
        let enabled = if self.enabled { 'y' } else { 'n' };
        let format = match (self.examines(), self.format.and_then(|f| f.format)) {
            (Some(spec), letter) => format!(
                "/{}{}{} ",
                spec.count,
                spec.size.unwrap_or('b'),
                letter.unwrap_or('x')
            ),
            (None, Some(letter)) => format!("/{letter} "),
            (None, None) => String::new(),
        };
        format!(
            "{}:   {enabled}  {format}{}\n",
            self.number, self.expression
        )
    }
}

/// The format behind a slash as `display` completes it: with a size, or as instruction or string,
/// it is memory that is shown.
fn complete(spec: Spec) -> Option<Spec> {
    match (spec.format, spec.size) {
        (None, None) => None,
        (None, size) => Some(Spec {
            format: Some('x'),
            size,
            ..spec
        }),
        (Some('i' | 's'), None) => Some(Spec {
            size: Some('b'),
            ..spec
        }),
        _ => Some(spec),
    }
}

/// `display[/FMT] [EXPRESSION]`
pub fn display(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        show_all(i);
        return Ok(());
    }
    let (format, expression) = match call.arguments.strip_prefix('/') {
        Some(rest) => {
            let (spec, expression) = Spec::parse(rest);
            (complete(spec), expression)
        }
        None => (None, call.arguments),
    };
    i.session
        .with_view(|view, _| lang::parse(expression, view).map(drop))
        .map_err(|e| Error::new(e.to_string()))?;
    i.displays.last += 1;
    let display = Display {
        number: i.displays.last,
        expression: expression.into(),
        format,
        enabled: true,
    };
    i.displays.list.push(display.clone());
    changed(i);
    if call.from_tty {
        show(i, &display);
    }
    Ok(())
}

/// Whether there is anything to show decides whether hits go through the front.
fn changed(i: &mut Interpreter) {
    i.session.displays = i.displays.list.iter().any(|display| display.enabled);
    i.session.stale = true;
}

/// All that are enabled.
pub fn show_all(i: &mut Interpreter) {
    let list = i.displays.list.clone();
    for display in list.iter().filter(|display| display.enabled) {
        show(i, display);
    }
}

fn show(i: &mut Interpreter, display: &Display) {
    let selected = i.session.target().map(|t| t.selected);
    let text = i.session.with_all(selected, |view, _, state| {
        let result = match display.examines() {
            Some(spec) => memory(display, spec, view, state),
            None => value(display, view),
        };
        let (text, error) = result;
        let tail = error
            .map(|error| format!("<error: {error}>\n"))
            .unwrap_or_default();
        format!("{}{text}{tail}", display.head())
    });
    i.print(&text);
}

/// What was shown, and what ended it.
type Shown = (String, Option<String>);

fn value(display: &Display, view: &mut dyn lang::Scope) -> Shown {
    let letter = display.format.and_then(|format| format.format);
    let text = lang::parse(&display.expression, view)
        .and_then(|expr| lang::evaluate(&expr, view)?.fetched(view))
        .and_then(|value| {
            lang::examine::check_letter(letter)?;
            lang::print_value(&value, letter, view)
        });
    match text {
        Ok(text) => (format!("{text}\n"), None),
        Err(error) => (String::new(), Some(error.to_string())),
    }
}

fn memory(
    display: &Display,
    spec: Spec,
    view: &mut dyn lang::Scope,
    state: &lang::examine::ExamineState,
) -> Shown {
    // What `x` goes on with is not touched.
    let mut state = state.clone();
    let mut out = Vec::new();
    let result = lang::parse(&display.expression, view)
        .and_then(|expr| lang::evaluate(&expr, view))
        .and_then(|value| address_of(&value, view))
        .map_err(|error| error.to_string())
        .and_then(|address| {
            state.count = spec.count;
            let disassemble = &crate::session::disassemble;
            examine(
                Some(spec),
                Some(address),
                &mut state,
                view,
                disassemble,
                &mut out,
            )
            .map_err(|failure| failure.to_string())
        });
    (String::from_utf8_lossy(&out).into_owned(), result.err())
}

/// `undisplay [N…]`
pub fn undisplay(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    delete(i, call.arguments, call.from_tty)
}

/// `undisplay [N…]` and `delete display [N…]`
pub fn delete(i: &mut Interpreter, list: &str, _: bool) -> Result<(), Error> {
    if list.is_empty() {
        if i.query("Delete all auto-display expressions? ")? {
            i.displays.list.clear();
        }
        changed(i);
        return Ok(());
    }
    for number in chosen(i, list)? {
        i.displays.list.retain(|display| display.number != number);
    }
    changed(i);
    Ok(())
}

/// `enable display [N…]` and `disable display [N…]`
pub fn switch(i: &mut Interpreter, list: &str, on: bool) -> Result<(), Error> {
    let numbers = match list {
        "" => i
            .displays
            .list
            .iter()
            .map(|display| display.number)
            .collect(),
        list => chosen(i, list)?,
    };
    for display in &mut i.displays.list {
        if numbers.contains(&display.number) {
            display.enabled = on;
        }
    }
    changed(i);
    Ok(())
}

/// The numbers of a list that exist; the others are told.
fn chosen(i: &mut Interpreter, list: &str) -> Result<Vec<u32>, Error> {
    let mut numbers = i.numbers(list, "display")?;
    numbers.retain(|number| {
        let exists = i.displays.list.iter().any(|d| d.number == *number);
        if !exists {
            i.print(&format!("No display number {number}.\n"));
        }
        exists
    });
    Ok(numbers)
}

/// `info display`
pub fn info(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if !call.arguments.is_empty() {
        fail!("info display takes no arguments.");
    }
    if i.displays.list.is_empty() {
        i.print("There are no auto-display expressions now.\n");
        return Ok(());
    }
    let rows: String = i.displays.list.iter().map(Display::row).collect();
    i.print(&format!(
        "Auto-display expressions now in effect:\nNum Enb Expression\n{rows}"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(format: &str, expression: &str) -> Display {
        let format = Some(format).filter(|f| !f.is_empty());
        Display {
            number: 2,
            expression: expression.into(),
            format: format.and_then(|format| complete(Spec::parse(format).0)),
            enabled: true,
        }
    }

    #[test]
    fn heads_and_rows_are_gdbs() {
        for (format, head, row) in [
            ("", "2: $rdi = ", "2:   y  $rdi\n"),
            ("x", "2: /x $rdi = ", "2:   y  /x $rdi\n"),
            ("3x", "2: /x $rdi = ", "2:   y  /x $rdi\n"),
            ("i", "2: x/i $rdi\n", "2:   y  /1bi $rdi\n"),
            ("s", "2: x/s $rdi  ", "2:   y  /1bs $rdi\n"),
            ("3dw", "2: x/3dw $rdi\n", "2:   y  /3wd $rdi\n"),
            ("b", "2: x/xb $rdi  ", "2:   y  /1bx $rdi\n"),
        ] {
            let display = of(format, "$rdi");
            assert_eq!(display.head(), head, "{format}");
            assert_eq!(display.row(), row, "{format}");
        }
    }
}
