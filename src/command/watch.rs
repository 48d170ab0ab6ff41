//! `watch`, `rwatch`, `awatch`.

use super::breakpoints::{add_event, split_condition};
use super::interpreter::{Call, Interpreter};
use crate::engine::protocol::Access;
use crate::error::{Error, fail};
use crate::session::breakpoint::{Disposition, Event};

/// `watch [-location] EXPRESSION [if CONDITION]`
pub fn watch(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    set(i, call, Access::Write)
}

/// `rwatch [-location] EXPRESSION [if CONDITION]`
pub fn rwatch(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    set(i, call, Access::Read)
}

/// `awatch [-location] EXPRESSION [if CONDITION]`
pub fn awatch(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    set(i, call, Access::Any)
}

fn set(i: &mut Interpreter, call: &Call<'_>, access: Access) -> Result<(), Error> {
    i.may_stop(call)?;
    let (text, location) = without_location(call.arguments);
    let (expression, condition) = split_condition(text);
    if expression.is_empty() {
        fail!("Argument required (expression to compute).");
    }
    for word in ["thread", "task", "mask"] {
        if names_word(expression, word) {
            fail!(
                "{} … {word}: that is not supported; use a condition.",
                call.name
            );
        }
    }
    i.may_evaluate(expression)?;
    // What is there before matters, and so nobody may change it meanwhile.
    i.session.need_stand()?;
    let watched = i.session.watched(access, expression, location)?;
    let shown = match location {
        true => format!("-location {expression}"),
        false => expression.to_string(),
    };
    add_event(
        i,
        Event::Watch(watched),
        shown,
        condition,
        Disposition::Keep,
    )
}

/// What follows `-l` or `-location`, if that is there.
fn without_location(text: &str) -> (&str, bool) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match word {
        "-l" | "-location" => (rest.trim_start(), true),
        _ => (text, false),
    }
}

/// True for `EXPRESSION thread 2`.
fn names_word(expression: &str, word: &str) -> bool {
    let mut words = expression
        .rsplit(char::is_whitespace)
        .filter(|w| !w.is_empty());
    words.next().is_some() && words.next() == Some(word) && words.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_around_the_expression() {
        assert_eq!(without_location("-l x"), ("x", true));
        assert_eq!(
            without_location("-location  *(int *)x"),
            ("*(int *)x", true)
        );
        assert_eq!(without_location("-lx"), ("-lx", false));
        assert_eq!(without_location("-l"), ("", true));
        assert!(names_word("x thread 1", "thread"));
        assert!(!names_word("thread + 1", "thread"));
        assert!(!names_word("x mask", "mask"));
    }
}
