//! What values a setting takes, and what is said of others, as gdb says it.

use crate::command::data::signed_number;
use crate::command::interpreter::Interpreter;
use crate::error::{Error, fail};

/// The kinds of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// on or off.
    Switch,
    /// on or off, shown as enabled or disabled.
    Ability,
    /// on, off or auto.
    Auto,
    /// Any number.
    Integer,
    /// A number; 0 stands for `unlimited`.
    FromOne,
    /// A number from 0 on, -1 stands for `unlimited`.
    FromZero,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any text, nothing included.
    Text,
    /// Any text.
    File,
    /// The name of a file, shown from the root on.
    Path,
}

impl Kind {
    /// The value as it is shown.
    pub fn read(self, i: &mut Interpreter, text: &str) -> Result<String, Error> {
        Ok(match self {
            Kind::Switch => on_off(switch(text)?).into(),
            Kind::Ability if switch(text)? => "enabled".into(),
            Kind::Ability => "disabled".into(),
            Kind::Auto => match auto(text)? {
                Some(on) => on_off(on).into(),
                None => "auto".into(),
            },
            Kind::Integer if text.is_empty() => {
                fail!("Argument required (integer to set it to).")
            }
            Kind::Integer => signed_number(i, text)?.to_string(),
            Kind::FromOne => amount(size(i, text)?),
            Kind::FromZero => match limited(i, text)? {
                -1 => "unlimited".into(),
                number => number.to_string(),
            },
            Kind::OneOf(words) => one_of(words, text)?.into(),
            Kind::Text => text.into(),
            Kind::File if text.is_empty() => {
                fail!("Argument required (filename to set it to.).")
            }
            Kind::File => text.into(),
            Kind::Path => absolute(text),
        })
    }
}

/// A word, or the beginning of one, as gdb reads a switch; nothing is on.
pub fn switch(word: &str) -> Result<bool, Error> {
    let begins = |whole: &[&str]| whole.iter().any(|whole| whole.starts_with(word));
    if begins(&["on", "1", "yes", "enable"]) {
        Ok(true)
    } else if begins(&["off", "0", "no", "disable"]) {
        Ok(false)
    } else {
        fail!("\"on\" or \"off\" expected.")
    }
}

/// The same with `auto`, which is `None`.
pub fn auto(word: &str) -> Result<Option<bool>, Error> {
    if word.len() > 1 && ("auto".starts_with(word) || word == "-1") {
        return Ok(None);
    }
    match switch(word) {
        Ok(on) => Ok(Some(on)),
        Err(_) => fail!("\"on\", \"off\" or \"auto\" expected."),
    }
}

/// How a switch is shown.
pub fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn is_unlimited(text: &str) -> bool {
    !text.is_empty() && "unlimited".starts_with(text)
}

/// A number from 1 on; `None` is unlimited.
pub fn size(i: &mut Interpreter, text: &str) -> Result<Option<u32>, Error> {
    if text.is_empty() {
        fail!("Argument required (integer to set it to, or \"unlimited\").");
    }
    if is_unlimited(text) {
        return Ok(None);
    }
    match signed_number(i, text)? {
        0 => Ok(None),
        number => match u32::try_from(number).ok().filter(|n| *n <= i32::MAX as u32) {
            Some(number) => Ok(Some(number)),
            None => fail!("integer {number} out of range"),
        },
    }
}

/// How such a number is shown.
pub fn amount(size: Option<u32>) -> String {
    size.map_or_else(|| "unlimited".into(), |n| n.to_string())
}

/// A number from -1 on, which stands for unlimited.
fn limited(i: &mut Interpreter, text: &str) -> Result<i64, Error> {
    if text.is_empty() {
        fail!("Argument required (integer to set it to, or \"unlimited\").");
    }
    if is_unlimited(text) {
        return Ok(-1);
    }
    match signed_number(i, text)? {
        number if number < -1 => fail!("only -1 is allowed to set as unlimited"),
        number => Ok(number),
    }
}

/// The word that `text` is or begins.
pub fn one_of(words: &'static [&'static str], text: &str) -> Result<&'static str, Error> {
    if text.is_empty() {
        fail!(
            "Requires an argument. Valid arguments are {}.",
            words.join(", ")
        );
    }
    if let Some(word) = words.iter().find(|word| **word == text) {
        return Ok(word);
    }
    let found: Vec<_> = words.iter().filter(|word| word.starts_with(text)).collect();
    match found.as_slice() {
        [word] => Ok(word),
        [] => fail!("Undefined item: \"{text}\"."),
        _ => fail!("Ambiguous item \"{text}\"."),
    }
}

fn absolute(text: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let text = match text.strip_prefix("~/") {
        Some(rest) => format!("{home}/{rest}"),
        None => text.into(),
    };
    match std::path::absolute(&text) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_may_be_shortened() {
        for (word, on) in [
            ("on", true),
            ("", true),
            ("1", true),
            ("ye", true),
            ("enab", true),
        ] {
            assert_eq!(switch(word), Ok(on), "{word}");
        }
        for word in ["off", "of", "0", "no", "dis"] {
            assert_eq!(switch(word), Ok(false), "{word}");
        }
        assert!(switch("maybe").is_err());
        assert_eq!(auto("auto"), Ok(None));
        assert_eq!(auto("off"), Ok(Some(false)));
    }

    #[test]
    fn a_word_is_found_by_its_beginning() {
        const WORDS: &[&str] = &["att", "intel", "interval"];
        assert_eq!(one_of(WORDS, "a"), Ok("att"));
        assert_eq!(one_of(WORDS, "intel"), Ok("intel"));
        let message = |text| one_of(WORDS, text).err().map(|e| e.message);
        assert_eq!(message("arm").as_deref(), Some("Undefined item: \"arm\"."));
        assert_eq!(message("int").as_deref(), Some("Ambiguous item \"int\"."));
    }
}
