//! `testapps/blocked`: threads in calls that block, and the report of how those ended.

use super::App;
use super::app::number;

/// Asks for the report, in which each of `zero` is 0 for every call; how many rounds each call has
/// done at least.
pub fn rounds(target: &mut App, zero: &[&str]) -> u64 {
    target.send("report");
    let mut rounds = u64::MAX;
    loop {
        let line = target.line("a report", |_| true);
        if line == "end" {
            return rounds;
        }
        for key in zero {
            assert_eq!(number(&line, key), 0, "{line}");
        }
        rounds = rounds.min(number(&line, "rounds"));
    }
}

/// Waits until each call has come to its end twice.
pub fn two_rounds_more(target: &mut App, zero: &[&str]) {
    let before = rounds(target, zero);
    while rounds(target, zero) < before + 2 {
        std::thread::yield_now();
    }
}
