//! Which breakpoints a list of numbers means: `2`, `2.1`, `3-5`, `$n`.

use crate::error::{Error, fail};

/// What a word like `3`, `3-5` or `2.1` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A whole probe.
    Probe(u32),
    /// One of its locations, from 1.
    Location(u32, u32),
}

/// Reads one word of a list as `enable` and `disable` do; `variable` gives the value of a
/// convenience variable, 0 if it has none.
pub fn choices(word: &str, variable: &mut dyn FnMut(&str) -> u64) -> Result<Vec<Choice>, Error> {
    if let Some((first, locations)) = word.split_once('.') {
        let Some(probe) = plain(first, variable) else {
            fail!("Bad breakpoint number '{word}'");
        };
        return locations_of(probe, locations, variable);
    }
    if word.starts_with('-') {
        fail!("Negative breakpoint number '{word}'");
    }
    let Some((first, last)) = word.split_once('-') else {
        return match plain(word, variable) {
            Some(number) => Ok(vec![Choice::Probe(number)]),
            None => fail!("Bad breakpoint number '{word}'"),
        };
    };
    if last.is_empty() {
        fail!("Bad breakpoint number at or near: '{word}'");
    }
    let Some(from) = plain(first, variable) else {
        fail!("Bad breakpoint number '{first}'");
    };
    let Some(to) = plain(last, variable) else {
        fail!("Bad breakpoint number '{last}'");
    };
    if to < from {
        fail!("Inverted breakpoint range at '{word}'");
    }
    Ok(range(from, to).map(Choice::Probe).collect())
}

fn locations_of(
    probe: u32,
    text: &str,
    variable: &mut dyn FnMut(&str) -> u64,
) -> Result<Vec<Choice>, Error> {
    let mut one = |text: &str| match plain(text, variable) {
        Some(number) => Ok(number),
        None => fail!("Bad breakpoint location number '{text}'"),
    };
    let Some((first, last)) = text.split_once('-') else {
        return Ok(vec![Choice::Location(probe, one(text)?)]);
    };
    if last.is_empty() {
        fail!("Bad breakpoint location number at or near: '{text}'");
    }
    let (from, to) = (one(first)?, one(last)?);
    if to < from {
        fail!("Inverted breakpoint location range at '{text}'");
    }
    let list = range(from, to).map(|location| Choice::Location(probe, location));
    Ok(list.collect())
}

/// A range names at most what can exist.
fn range(from: u32, to: u32) -> std::ops::RangeInclusive<u32> {
    from..=to.min(from.saturating_add(crate::record::shared::PROBES as u32))
}

/// A number that is not 0.
fn plain(word: &str, variable: &mut dyn FnMut(&str) -> u64) -> Option<u32> {
    let number = match word.strip_prefix('$') {
        Some(name) => u32::try_from(variable(name)).ok()?,
        None => word.parse().ok()?,
    };
    (number > 0).then_some(number)
}

/// The numbers of a list as `delete` and most others read it: up to the first word that cannot be
/// one. `None` stands for a word that is none.
pub fn numbers(
    text: &str,
    variable: &mut dyn FnMut(&str) -> u64,
) -> Result<Vec<Option<u32>>, Error> {
    let mut list = Vec::new();
    for word in text.split_ascii_whitespace() {
        match word.bytes().next() {
            Some(b'-') => fail!("negative value"),
            Some(b'$' | b'0'..=b'9') => {}
            _ => break,
        }
        match word.split_once('-') {
            None => list.push(plain(word, variable)),
            Some((first, last)) => {
                let to = plain(last, variable).unwrap_or(0);
                match plain(first, variable) {
                    None => list.push(None),
                    Some(from) if to < from => fail!("inverted range"),
                    Some(from) => list.extend(range(from, to).map(Some)),
                }
            }
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_enable_and_disable_take() {
        let list = |text| choices(text, &mut |_| 0).map_err(|e| e.message);
        use Choice::{Location, Probe};
        assert_eq!(list("3-4"), Ok(vec![Probe(3), Probe(4)]));
        assert_eq!(list("2.1"), Ok(vec![Location(2, 1)]));
        assert_eq!(list("2.1-2"), Ok(vec![Location(2, 1), Location(2, 2)]));
        for (text, message) in [
            ("x", "Bad breakpoint number 'x'"),
            ("0", "Bad breakpoint number '0'"),
            ("$x", "Bad breakpoint number '$x'"),
            ("-1", "Negative breakpoint number '-1'"),
            ("2-1", "Inverted breakpoint range at '2-1'"),
            ("1-", "Bad breakpoint number at or near: '1-'"),
            ("1.x", "Bad breakpoint location number 'x'"),
            ("1.3-2", "Inverted breakpoint location range at '3-2'"),
        ] {
            assert_eq!(list(text), Err(message.into()), "{text}");
        }
        assert!(list("1-4294967295").unwrap().len() < 10_000);
    }

    #[test]
    fn lists_that_delete_takes() {
        let list = |text| numbers(text, &mut |_| 7).map_err(|e| e.message);
        assert_eq!(
            list("1 3-4 $x"),
            Ok(vec![Some(1), Some(3), Some(4), Some(7)])
        );
        assert_eq!(list("1 x 2"), Ok(vec![Some(1)]));
        assert_eq!(list("0 1x"), Ok(vec![None, None]));
        assert_eq!(list("-1"), Err("negative value".into()));
        assert_eq!(list("2-x"), Err("inverted range".into()));
    }
}
