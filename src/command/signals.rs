//! What happens to the program's signals (`handle`, `info signals`), and which one a thread gets as it
//! goes on (`signal`, `queue-signal`).

use super::interpreter::{Call, Interpreter};
use super::running::{go, in_background};
use crate::engine::protocol::Reason;
use crate::error::{Error, fail};
use crate::session::signals::{HEAD, ONLY, Row, Signals, describe};

/// What a word of `handle` changes; it may be shortened to so many letters.
type Word = (&'static str, usize, fn(&mut Row));

const ACTIONS: &[Word] = &[
    ("stop", 1, |row| (row.stop, row.print) = (true, true)),
    ("ignore", 1, |row| row.pass = false),
    ("print", 2, |row| row.print = true),
    ("pass", 2, |row| row.pass = true),
    ("nostop", 3, |row| row.stop = false),
    ("noignore", 3, |row| row.pass = true),
    ("noprint", 4, |row| (row.print, row.stop) = (false, false)),
    ("nopass", 4, |row| row.pass = false),
];

/// `handle SIGNAL… ACTION…`
pub fn handle(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        fail!("Argument required (signal to handle).");
    }
    let mut chosen = Vec::new();
    for word in call.arguments.split_ascii_whitespace() {
        if "all".starts_with(word) {
            let signals = &i.session.signals;
            let all = 0..signals.rows().len();
            chosen.extend(all.filter(|place| !signals.is_own(*place)));
            continue;
        }
        let action = ACTIONS
            .iter()
            .find(|(name, least, _)| word.len() >= *least && name.starts_with(word));
        match action {
            Some((.., change)) => i.session.signals.chosen(&chosen).for_each(change),
            None => {
                for place in named(&i.session.signals, word)? {
                    choose(i, place, &mut chosen)?;
                }
            }
        }
    }
    if call.from_tty && !chosen.is_empty() {
        let text = format!("{HEAD}{}", i.session.signals.lines(&chosen));
        i.print(&text);
    }
    Ok(())
}

/// Adds a signal to those that are changed; asks, where the debugger uses it itself.
fn choose(i: &mut Interpreter, place: usize, chosen: &mut Vec<usize>) -> Result<(), Error> {
    if chosen.contains(&place) {
        return Ok(());
    }
    if i.session.signals.is_own(place) {
        let name = &i.session.signals.rows()[place].name;
        let question =
            format!("{name} is used by the debugger.\nAre you sure you want to change it? ");
        if !i.query(&question)? {
            i.print("Not confirmed, unchanged.\n");
            return Ok(());
        }
    }
    chosen.push(place);
    Ok(())
}

/// The signals that a word names: `SIGUSR1`, `14`, `14-15`.
fn named(signals: &Signals, word: &str) -> Result<std::ops::RangeInclusive<usize>, Error> {
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        let (first, rest) = leading(word);
        let last = match rest.strip_prefix('-') {
            Some(last) => leading(last).0,
            None => first,
        };
        let (first, last) = (numbered(first)?, numbered(last)?);
        return Ok(first.min(last)..=first.max(last));
    }
    match signals.named(word) {
        Some(place) => Ok(place..=place),
        None => fail!("Unrecognized or ambiguous flag word: \"{word}\"."),
    }
}

fn numbered(number: i64) -> Result<usize, Error> {
    Signals::numbered(number).ok_or_else(|| Error::new(ONLY))
}

/// The number that a text begins with (0: none), and what follows.
fn leading(text: &str) -> (i64, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    (number.parse().unwrap_or(0), rest)
}

/// The signal that an argument means: its name, or an expression for gdb's number of it.
pub fn one(i: &mut Interpreter, text: &str) -> Result<usize, Error> {
    match i.session.signals.named(text) {
        Some(place) => Ok(place),
        None => numbered(super::data::signed_number(i, text)?),
    }
}

/// `info signals [NAME|NUMBER]`
pub fn info(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        let table = i.session.signals.table();
        i.print(&table);
        return Ok(());
    }
    let known = i.session.signals.named(call.arguments);
    // The head comes before an error, too.
    i.print(HEAD);
    let place = match known {
        Some(place) => place,
        None => one(i, call.arguments)?,
    };
    let line = i.session.signals.lines(&[place]);
    i.print(&line);
    Ok(())
}

/// `signal SIGNAL`
pub fn signal(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (argument, background) = in_background(call.arguments);
    let place = of_thread(i, argument)?;
    if !i.asking && !confirm_others(i)? {
        fail!("Not confirmed.");
    }
    let number = number_of(i, place);
    i.session.queue_signal(number)?;
    if call.from_tty {
        let text = match place {
            Some(place) => format!("signal {}", i.session.signals.rows()[place].name),
            None => "no signal".into(),
        };
        i.print(&format!("Continuing with {text}.\n"));
    }
    if i.asking {
        i.resumed = true;
        return Ok(());
    }
    go(i, background)
}

/// `queue-signal SIGNAL`
pub fn queue_signal(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let place = of_thread(i, call.arguments)?;
    if let Some(place) = place
        && !i.session.signals.rows()[place].pass
    {
        fail!("Signal handling set to not pass this signal to the program.");
    }
    let number = number_of(i, place);
    i.session.queue_signal(number)
}

/// The signal that an argument means for the thread that stands; `None`: no signal.
fn of_thread(i: &mut Interpreter, argument: &str) -> Result<Option<usize>, Error> {
    i.session.need_target()?;
    if i.session.background {
        fail!("Cannot execute this command while the selected thread is running.");
    }
    if argument.is_empty() {
        fail!("Argument required (signal number).");
    }
    let place = match i.session.signals.named(argument) {
        Some(place) => place,
        None => match super::data::signed_number(i, argument)? {
            0 => return Ok(None),
            number => numbered(number)?,
        },
    };
    if i.session.signals.rows()[place].number == 0 {
        fail!("{argument} is no signal of this system.");
    }
    Ok(Some(place))
}

fn number_of(i: &Interpreter, place: Option<usize>) -> i32 {
    place.map_or(0, |place| i.session.signals.rows()[place].number)
}

/// Asks if other threads will get the signals that they stopped with.
fn confirm_others(i: &mut Interpreter) -> Result<bool, Error> {
    let target = i.session.need_target()?;
    let policy = i.session.signals.policy(0);
    let passed = |number: i32| policy.pass >> (number - 1).clamp(0, 63) & 1 == 1;
    let mut note = String::new();
    let mut selected = 1;
    for thread in target.threads.iter() {
        if thread.tid == target.selected {
            selected = thread.number;
            continue;
        }
        let presented = !target.waiting.iter().any(|stop| stop.tid == thread.tid);
        if let Some(Reason::Signal { number, .. }) = thread.reason
            && presented
            && passed(number)
        {
            let what = describe(number);
            let line = format!(
                "  Thread {} previously stopped with signal {what}.\n",
                thread.number
            );
            note.push_str(&line);
        }
    }
    if note.is_empty() {
        return Ok(true);
    }
    let text = format!(
        "Note:\n{note}Continuing thread {selected} (the current thread) with specified signal will\nstill deliver the signals noted above to their respective threads.\nContinue anyway? "
    );
    i.query(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_named_one_by_one_or_in_ranges() {
        let signals = Signals::default();
        let list = |word| named(&signals, word).map_err(|error| error.message);
        assert_eq!(list("SIGHUP"), Ok(0..=0));
        assert_eq!(list("2"), Ok(1..=1));
        assert_eq!(list("15-14"), Ok(13..=14));
        // What follows a number is not looked at.
        assert_eq!(list("1,2"), Ok(0..=0));
        for word in ["0", "16", "1-16", "3-"] {
            assert_eq!(list(word), Err(ONLY.into()), "{word}");
        }
        let unknown = Err("Unrecognized or ambiguous flag word: \"USR1\".".into());
        assert_eq!(list("USR1"), unknown);
    }
}
