//! A tracer comes, counts and goes, in every way and at every moment, and the program that is traced is as
//! if nobody had been there: n passes are n hits, every thread has its signals, its state and its text.
//!
//! The table of [`table::CASES`] says with which programs. `cargo test` makes a few rounds with each;
//! `scripts/test torture [MINUTES]` goes on with all of them for so long, and prints what came of it.

#[path = "../support/mod.rs"]
mod support;

mod case;
mod middleware;
mod points;
mod table;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use case::{Rounds, Tally};
use support::{Missing, test};

/// The rounds with one case in `cargo test`.
const SHORT: u32 = 9;
/// The rounds with one case at a time in the long form.
const LONG: u32 = 27;

/// A test for each case of the table, under its name.
macro_rules! short {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                let name = stringify!($name);
                let case = table::CASES.iter().find(|case| case.name == name);
                let case = case.expect("the case is in the table");
                test(|| Rounds::new(case).make(SHORT, &mut Tally::default()));
            }
        )*

        /// Each case has its test.
        #[test]
        fn every_case_has_its_test() {
            let names = [$(stringify!($name)),*];
            let cases: Vec<_> = table::CASES.iter().map(|case| case.name).collect();
            assert_eq!(cases, names);
        }
    };
}

short! {
    eight_sites
    hundreds_of_threads
    a_storm_of_threads
    threads_end_on_sites
    realtime_signals
    stopped_and_continued
    blocked_calls
    blocked_calls_begun_anew
    sigtrap_default
    sigtrap_ignored
    sigtrap_handled
    signals_blocked_for_a_while
    sigtrap_handled_and_blocked
    twenty_busy_threads
    forks
}

/// The front is killed wherever the keeper comes by.
#[test]
fn the_front_dies_at_every_point() {
    test(|| points::at_every_point(points::SHORT, &mut Tally::default()));
}

#[test]
fn a_vsomeip_client_under_load() {
    test(|| middleware::vsomeip(middleware::SHORT, &mut Tally::default()));
}

#[test]
fn cyber_rt_under_load() {
    test(|| middleware::cyber(middleware::SHORT, &mut Tally::default()));
}

/// The long form: only where it is asked for.
#[test]
fn for_minutes() {
    let Some(minutes) = std::env::var_os("TRAPLINE_TORTURE_MINUTES") else {
        return;
    };
    let minutes: f64 = minutes
        .to_str()
        .and_then(|text| text.parse().ok())
        .expect("TRAPLINE_TORTURE_MINUTES is a number");
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let mut rows: Vec<_> = table::CASES
        .iter()
        .map(|case| (case.name, Rounds::new(case), Tally::default()))
        .collect();
    let [mut killed, mut vsomeip, mut cyber] = [const { Tally::NONE }; 3];
    survive("vsomeip", &mut vsomeip, |tally| {
        middleware::vsomeip(middleware::LONG, tally)
    });
    survive("cyber", &mut cyber, |tally| {
        middleware::cyber(middleware::LONG, tally)
    });
    let mut first = true;
    while first || Instant::now() < end {
        for (name, rounds, tally) in &mut rows {
            if first || Instant::now() < end {
                survive(name, tally, |tally| rounds.make(LONG, tally));
            }
        }
        if first || Instant::now() < end {
            survive("the_front_dies_at_every_point", &mut killed, |tally| {
                points::at_every_point(points::LONG, tally)
            });
        }
        first = false;
    }
    let mut all = Tally::default();
    say(&Tally::head());
    for (name, tally) in rows.iter().map(|(name, _, tally)| (*name, tally)) {
        say(&tally.row(name));
        all.add(tally);
    }
    for (name, tally) in [
        ("the_front_dies_at_every_point", &killed),
        ("a_vsomeip_client_under_load", &vsomeip),
        ("cyber_rt_under_load", &cyber),
    ] {
        say(&tally.row(name));
        all.add(tally);
    }
    say(&all.row("all"));
    assert_eq!(all.lost, 0, "targets were lost or changed");
}

/// A case that fails has lost its target, and the others go on.
fn survive(name: &str, tally: &mut Tally, make: impl FnOnce(&mut Tally) -> Result<(), Missing>) {
    match catch_unwind(AssertUnwindSafe(|| make(tally))) {
        Ok(Ok(())) => {}
        Ok(Err(Missing(reason))) => say(&format!("{name}: skipped: {reason}")),
        Err(_) => tally.lost += 1,
    }
}

/// Writes a line past the capture of libtest, which would hide it.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
