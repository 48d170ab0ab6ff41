//! The names nearest to one that is not there.

use std::collections::BTreeSet;

use super::demangle;
use super::name::Name;
use super::table::{SymbolTable, unversioned};

/// How many names a message can bear.
const MOST: usize = 5;
/// Longer names are not compared.
const LONGEST: usize = 64;

/// The names of a list that are near to `name`, the nearest first.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut best = Best::new(name);
    for other in names {
        best.offer(other.as_bytes(), || Some(other.to_string()));
    }
    best.take()
}

/// Functions of the tables whose last component is near to the name's.
///
/// Mangled names are not demangled for it: their identifiers stand in them literally, and only
/// those that are near are demangled.
pub fn functions<'a>(name: &str, tables: impl Iterator<Item = &'a SymbolTable>) -> Vec<String> {
    let typed = Name::parse(name);
    let base = typed.as_ref().map_or(name, Name::base);
    let mut best = Best::new(base);
    for table in tables {
        for symbol in table.all().iter().filter(|symbol| symbol.kind.is_code()) {
            let linkage = unversioned(table.name_bytes(symbol), symbol.origin);
            if !demangle::is_mangled(linkage) {
                best.offer(linkage, || {
                    std::str::from_utf8(linkage).ok().map(str::to_string)
                });
                continue;
            }
            for identifier in identifiers(linkage) {
                best.offer(identifier, || {
                    let linkage = std::str::from_utf8(linkage).ok()?;
                    let text = demangle::demangle_for_lookup(linkage)?;
                    let full = Name::parse(&text)?;
                    // An identifier elsewhere in the name is a namespace's or a parameter's.
                    (full.base().as_bytes() == identifier).then(|| path_text(&full))
                });
            }
        }
    }
    best.take()
}

/// The path without template arguments and parameters.
fn path_text(name: &Name) -> String {
    name.path
        .iter()
        .map(|component| component.name.as_str())
        .collect::<Vec<_>>()
        .join("::")
}

/// The identifiers of a mangled name: decimal lengths with that many bytes behind them.
fn identifiers(mangled: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 2;
    std::iter::from_fn(move || {
        while at < mangled.len() {
            let mut length = 0;
            let start = at;
            while let Some(digit) = mangled.get(at).filter(|byte| byte.is_ascii_digit()) {
                length = length * 10 + usize::from(digit - b'0');
                at += 1;
                if at - start == 6 {
                    break;
                }
            }
            if at == start {
                at += 1;
            } else if let Some(identifier) = mangled.get(at..at + length)
                && length > 0
            {
                at += length;
                return Some(identifier);
            }
        }
        None
    })
}

/// The best names so far, by distance.
struct Best<'n> {
    name: &'n [u8],
    letters: u64,
    limit: usize,
    found: BTreeSet<(usize, String)>,
}

impl<'n> Best<'n> {
    fn new(name: &'n str) -> Best<'n> {
        // One slip in three letters, three at most: beyond that it is another name.
        let limit = if name.len() > LONGEST {
            0
        } else {
            (name.chars().count() / 3).clamp(1, 3)
        };
        Best {
            name: name.as_bytes(),
            letters: letters(name.as_bytes()),
            limit,
            found: BTreeSet::new(),
        }
    }

    /// The distance, if it is near enough to matter.
    fn near(&self, other: &[u8]) -> Option<usize> {
        let limit = match self.found.last() {
            Some((worst, _)) if self.found.len() == MOST => (*worst).min(self.limit),
            _ => self.limit,
        };
        if self.name.len().abs_diff(other.len()) > limit {
            return None;
        }
        // A slip takes one letter away and brings another in, at most.
        let strange = (self.letters ^ letters(other)).count_ones() as usize;
        (strange <= 2 * limit).then(|| distance(self.name, other, limit))?
    }

    fn offer(&mut self, other: &[u8], text: impl FnOnce() -> Option<String>) {
        let Some(distance) = self.near(other) else {
            return;
        };
        let Some(text) = text() else { return };
        // The same name by several symbols counts once.
        self.found.insert((distance, text));
        if self.found.len() > MOST {
            self.found.pop_last();
        }
    }

    fn take(self) -> Vec<String> {
        self.found.into_iter().map(|(_, text)| text).collect()
    }
}

/// Which letters a name has, a bit for each: upper and lower case share one.
fn letters(name: &[u8]) -> u64 {
    name.iter().fold(0, |letters, byte| {
        letters | 1 << (byte.to_ascii_lowercase() & 63)
    })
}

/// The edit distance (two letters exchanged count once), if it is at most `limit`.
fn distance(a: &[u8], b: &[u8], limit: usize) -> Option<usize> {
    const WIDTH: usize = LONGEST + 8;
    if a.len().abs_diff(b.len()) > limit || a.len() > LONGEST || b.len() >= WIDTH {
        return None;
    }
    let mut before = [0; WIDTH];
    let mut row: [usize; WIDTH] = std::array::from_fn(|index| index);
    for i in 1..=a.len() {
        let mut next = [i; WIDTH];
        for j in 1..=b.len() {
            let same = a[i - 1].eq_ignore_ascii_case(&b[j - 1]);
            let mut cost = (row[j - 1] + usize::from(!same))
                .min(row[j] + 1)
                .min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                cost = cost.min(before[j - 2] + 1);
            }
            next[j] = cost;
        }
        if next[..=b.len()]
            .iter()
            .min()
            .is_some_and(|least| *least > limit)
        {
            return None;
        }
        before = std::mem::replace(&mut row, next);
    }
    Some(row[b.len()]).filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance(b"main", b"mian", 1), Some(1));
        assert_eq!(distance(b"on_message", b"on_mesage", 3), Some(1));
        assert_eq!(distance(b"main", b"printf", 3), None);
        assert_eq!(
            nearest("mian", ["main", "min", "puts", "mean"].into_iter()),
            ["main", "mean", "min"]
        );
        assert_eq!(
            identifiers(b"_ZN2ns1C4funcEi").collect::<Vec<_>>(),
            [&b"ns"[..], b"C", b"func"]
        );
    }
}
