//! The cases.

use super::case::{Case, Run, UNSTOPPED, WAYS};

const SITE: &[(&str, &str)] = &[("*site", "site")];

pub const CASES: &[Case] = &[
    Case {
        name: "eight_sites",
        program: "sites",
        arguments: &[],
        sites: &[
            ("*s0", "s0"),
            ("*s1", "s1"),
            ("*s2", "s2"),
            ("*s3", "s3"),
            ("*s4", "s4"),
            ("*s5", "s5"),
            ("*s6", "s6"),
            ("*s7", "s7"),
        ],
        run: Run::Asked("go 500", "did "),
        ways: WAYS,
    },
    Case {
        name: "hundreds_of_threads",
        program: "sites",
        arguments: &["--threads", "500"],
        sites: &[("*s0", "s0"), ("*s2", "s2"), ("*s3", "s3")],
        run: Run::Asked("go 20", "did "),
        ways: WAYS,
    },
    Case {
        name: "a_storm_of_threads",
        program: "storm",
        arguments: &[],
        sites: &[("*site", ""), ("*die", "")],
        run: Run::Busy("alive", "alive 4"),
        ways: WAYS,
    },
    Case {
        name: "threads_end_on_sites",
        program: "storm",
        arguments: &["--rounds", "40"],
        sites: &[("*site", "site"), ("*die", "die")],
        run: Run::Launched("site="),
        ways: WAYS,
    },
    Case {
        name: "realtime_signals",
        program: "queued",
        arguments: &[],
        sites: SITE,
        run: Run::Asked("go 300", "did "),
        ways: UNSTOPPED,
    },
    Case {
        name: "stopped_and_continued",
        program: "halted",
        arguments: &[],
        sites: SITE,
        run: Run::Asked("go 100", "did "),
        ways: UNSTOPPED,
    },
    Case {
        name: "blocked_calls",
        program: "blocked",
        arguments: &["--ms", "150"],
        sites: &[("*returned", ""), ("*site", "site")],
        run: Run::Asked("go 1000", "did "),
        ways: UNSTOPPED,
    },
    // At the prompt Ctrl-C stops every thread, and the calls are begun anew. A traced thread is told of
    // signals that it ignores, which end no call of an untraced one.
    Case {
        name: "blocked_calls_begun_anew",
        program: "blocked",
        arguments: &["--ms", "150", "--late-after", "5000", "--children"],
        sites: &[("*returned", ""), ("*site", "site")],
        run: Run::Asked("go 1000", "did "),
        ways: WAYS,
    },
    Case {
        name: "sigtrap_default",
        program: "signals",
        arguments: &["--trap", "default"],
        sites: SITE,
        run: Run::Asked("hit 100", "hit 100"),
        ways: WAYS,
    },
    Case {
        name: "sigtrap_ignored",
        program: "signals",
        arguments: &["--trap", "ignore"],
        sites: SITE,
        run: Run::Asked("hit 100", "hit 100"),
        ways: WAYS,
    },
    Case {
        name: "sigtrap_handled",
        program: "signals",
        arguments: &["--trap", "handle"],
        sites: SITE,
        run: Run::Asked("hit 100", "hit 100"),
        ways: WAYS,
    },
    Case {
        name: "twenty_busy_threads",
        program: "hot",
        arguments: &["--nice", "--threads", "20"],
        sites: &[("*site", "")],
        run: Run::Busy("alive", "alive 20"),
        ways: WAYS,
    },
    Case {
        name: "forks",
        program: "forks",
        arguments: &[],
        sites: &[("*site", "")],
        run: Run::Busy("report", "children="),
        ways: WAYS,
    },
];
