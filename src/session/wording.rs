//! Locations that no library will ever make right: said at once, where a name that is nowhere may
//! only be early.

use crate::error::{Error, fail};
use crate::symbols::{Location, Pattern};

use super::returns;

/// Refuses a location whose wording is wrong, with the cure.
pub fn check(location: &str) -> Result<(), Error> {
    let (place, returns) = returns::strip(location);
    let place = place.trim();
    if returns && place.is_empty() {
        fail!("`%return' stands behind a function, which is missing: FUNCTION%return.");
    }
    // There `%` is the remainder.
    if place.starts_with('*') {
        return Ok(());
    }
    if let Some((function, word)) = suffix(place) {
        if returns && word == "return" {
            fail!("`%return' stands twice behind {function}; once is enough.");
        }
        fail!(
            "`%{word}' behind {function} is nothing that is known; use {function}%return for its ways out."
        );
    }
    match Location::parse(place) {
        Location::Pattern { regex, .. } => expression(&regex),
        Location::Function { name, .. } if name == "//" => {
            fail!("// has no regular expression; use /./ for every function.")
        }
        _ => Ok(()),
    }
}

/// `%WORD` at the end. C++ has `operator%`, and Go's names hold `%2e` in their middle.
fn suffix(place: &str) -> Option<(&str, &str)> {
    let (function, word) = place.rsplit_once('%')?;
    let function = function.trim_end();
    let plain = word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let names = plain && !function.is_empty() && !function.ends_with("operator");
    // The `%` of a regular expression stands between its slashes.
    names.then_some((function, word))
}

fn expression(regex: &str) -> Result<(), Error> {
    let Err(error) = Pattern::regex(regex) else {
        return Ok(());
    };
    let text = error.to_string();
    // The last line has the reason; those before it draw where.
    let why = text.lines().last().unwrap_or_default();
    let why = why.strip_prefix("error: ").unwrap_or(why);
    fail!(
        "Invalid regexp /{regex}/: {why}. A character that means something there is written behind a backslash: \\( \\[ \\* \\+."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_never_be_found_is_refused_with_the_cure() {
        for (location, part) in [
            (
                "main%ret",
                "`%ret' behind main is nothing that is known; use main%return",
            ),
            ("main%", "use main%return"),
            ("n::f(int) %Return ", "use n::f(int)%return"),
            ("f%return%return", "stands twice behind f"),
            ("%return", "FUNCTION%return"),
            (" %return", "FUNCTION%return"),
            ("/(/", "Invalid regexp /(/: unclosed group. "),
            (
                "libc.so.6:/a[/%return",
                "Invalid regexp /a[/: unclosed character class. ",
            ),
            ("//", "use /./"),
        ] {
            let error = check(location).unwrap_err();
            assert!(error.message.contains(part), "{location}: {error}");
            assert!(!error.message.contains('\n'), "{location}: {error}");
        }
    }

    #[test]
    fn what_may_come_later_is_none_of_them() {
        for location in [
            "main",
            "main%return",
            "n::operator%",
            "n::operator %",
            "n::operator%=",
            "n::operator%(n::a, n::b)%return",
            "gopkg.in/yaml%2ev2.Unmarshal",
            "*0x1000 % n",
            "/a%b/",
            "libx.so:/^f/%return",
            "libx.so+0x10",
        ] {
            assert_eq!(check(location), Ok(()), "{location}");
        }
    }
}
