//! Hostile input for every reader: real inputs, changed at random, from a seed.
//!
//! [`hostile!`] makes a test of a reader. `cargo test` tries each with a few inputs, the same each
//! time; `scripts/test fuzz MINUTES` goes on for so long with each. The inputs are tried in a process
//! of their own, so that a stack that overflows, memory without end or an endless loop is caught and
//! told like a panic: with the seed, and with the input in a file.
//!
//! | variable | |
//! |---|---|
//! | `TRAPLINE_FUZZ_MINUTES` | how long each reader is tried |
//! | `TRAPLINE_FUZZ_SEED` | the first input's seed; the next one has the next number |

mod change;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::time::{ClockId, clock_gettime};

pub(crate) use change::Random;
use change::change;

/// In the process that tries: the file that holds the seed of the input that is being tried.
const TRYING: &str = "TRAPLINE_FUZZ_TRYING";

/// As much memory as the process that tries may map, bytes.
const MAPPED: u64 = 4 << 30;

/// A reader and what it is given.
pub(crate) struct Subject {
    /// The test's path in the test program.
    pub path: &'static str,
    /// Real inputs.
    pub corpus: Vec<Vec<u8>>,
    /// What inputs are made of.
    pub words: &'static [&'static str],
    /// Where in an input changes matter most; empty: anywhere.
    pub focus: fn(&[u8]) -> Vec<usize>,
    /// How many inputs are tried when no time is given.
    pub cases: u64,
    /// The most processor time that one input may take.
    pub time: Duration,
    /// The most memory that one input may take, bytes.
    pub memory: u64,
}

impl Subject {
    pub(crate) fn new(path: &'static str, corpus: Vec<Vec<u8>>) -> Subject {
        let (_, path) = path.split_once("::").unwrap_or(("", path));
        Subject {
            path,
            corpus,
            words: &[],
            focus: |_| Vec::new(),
            cases: 400,
            time: Duration::from_secs(5),
            memory: 128 << 20,
        }
    }

    /// Inputs that were trouble once, tried first.
    fn known(&self) -> Vec<Vec<u8>> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/corpus/hostile")
            .join(self.path.replace("::", "."));
        let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
        paths.sort();
        paths
            .iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect()
    }

    fn input(&self, places: &[Vec<usize>], seed: u64) -> Vec<u8> {
        change(&mut Random::new(seed), &self.corpus, places, self.words)
    }

    fn places(&self) -> Vec<Vec<usize>> {
        self.corpus
            .iter()
            .map(|input| (self.focus)(input))
            .collect()
    }

    /// Tries `run` with known and changed inputs.
    pub(crate) fn try_all(&self, run: fn(&[u8])) {
        assert!(!self.corpus.is_empty(), "nothing to begin with");
        match std::env::var_os(TRYING) {
            Some(file) => self.tries(run, Path::new(&file)),
            None => self.in_a_process(),
        }
    }

    /// In the process of its own.
    fn tries(&self, run: fn(&[u8]), trying: &Path) {
        let (seed, end) = (seed(), end());
        setrlimit(Resource::RLIMIT_AS, MAPPED, MAPPED).unwrap();
        setrlimit(Resource::RLIMIT_CORE, 0, 0).unwrap();
        let unchanged = self.known().into_iter().chain(self.corpus.clone());
        for input in unchanged {
            std::fs::write(trying, &input).unwrap();
            self.try_one(run, &input);
        }
        let places = self.places();
        for number in 0.. {
            let over = end.map_or(number >= self.cases, |end| Instant::now() >= end);
            if over {
                break;
            }
            let seed = seed.wrapping_add(number);
            std::fs::write(trying, format!("seed {seed}")).unwrap();
            self.try_one(run, &self.input(&places, seed));
        }
    }

    fn try_one(&self, run: fn(&[u8]), input: &[u8]) {
        // Who computes for ever is ended by SIGXCPU.
        let all = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap();
        let most = (all.tv_sec() as u64) + 4 * self.time.as_secs() + 2;
        let (_, hard) = getrlimit(Resource::RLIMIT_CPU).unwrap();
        setrlimit(Resource::RLIMIT_CPU, most.min(hard), hard).unwrap();
        let (time, memory) = (thread_time(), most_memory());
        run(input);
        let (time, memory) = (thread_time() - time, most_memory() - memory);
        assert!(time <= self.time, "it took {time:?}");
        assert!(memory <= self.memory, "it took {} KiB", memory >> 10);
    }

    /// Has a process try, and tells what ended it.
    fn in_a_process(&self) {
        let trying = std::env::temp_dir().join(format!(
            "trapline-fuzz-{}-{}",
            self.path.replace("::", "."),
            std::process::id()
        ));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([self.path, "--exact", "--nocapture", "--test-threads=1"])
            .env(TRYING, &trying)
            .env("TRAPLINE_FUZZ_SEED", seed().to_string());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() && said.contains("1 passed") {
            std::fs::remove_file(&trying).unwrap();
            return;
        }
        let last = std::fs::read(&trying).unwrap_or_default();
        let text = String::from_utf8_lossy(&last);
        let again = text
            .strip_prefix("seed ")
            .and_then(|seed| seed.parse().ok());
        let what = match again {
            Some(seed) => {
                std::fs::write(&trying, self.input(&self.places(), seed)).unwrap();
                format!("TRAPLINE_FUZZ_SEED={seed} tries it again")
            }
            None => "it is one of the unchanged inputs".into(),
        };
        panic!(
            "{}: {}; the input is {}; {what}\n{said}{}",
            self.path,
            output.status,
            trying.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// The first input's seed.
fn seed() -> u64 {
    let given = std::env::var("TRAPLINE_FUZZ_SEED").ok();
    given.map_or(1, |text| {
        text.parse().expect("TRAPLINE_FUZZ_SEED is a number")
    })
}

/// When to end; `None`: after so many inputs.
fn end() -> Option<Instant> {
    let minutes: f64 = std::env::var("TRAPLINE_FUZZ_MINUTES").ok()?.parse().ok()?;
    Some(Instant::now() + Duration::from_secs_f64(minutes * 60.0))
}

/// The processor time of this thread.
fn thread_time() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap())
}

/// The most memory that the process had so far, bytes.
fn most_memory() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF).unwrap().max_rss() as u64 * 1024
}

/// Files of the repository, those that are there.
pub(crate) fn files(names: &[&str]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &&str| std::fs::read(root.join(name)).expect("a file of ours");
    names.iter().map(read).collect()
}

/// Each line of files of the repository is an input.
pub(crate) fn lines(names: &[&str]) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for text in files(names) {
        let own = text.split(|byte| *byte == b'\n');
        lines.extend(own.filter(|line| !line.is_empty()).map(<[u8]>::to_vec));
    }
    lines
}

/// A test `NAME` that gives a reader hostile input: `hostile!(NAME, CORPUS, |input| …)`, with
/// fields of [`Subject`] in braces behind the corpus where they are not the usual ones.
macro_rules! hostile {
    ($(#[$about:meta])* $name:ident, $corpus:expr, { $($field:ident: $value:expr),* $(,)? }, $run:expr) => {
        $(#[$about])*
        #[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            #[allow(unused_mut)]
            let mut subject = crate::hostile::Subject::new(path, $corpus);
            $(subject.$field = $value;)*
            subject.try_all($run);
        }
    };
    ($(#[$about:meta])* $name:ident, $corpus:expr, $run:expr) => {
        crate::hostile::hostile!($(#[$about])* $name, $corpus, {}, $run);
    };
}
pub(crate) use hostile;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the test below asks it to.
    #[test]
    fn fails() {
        let path = concat!(module_path!(), "::fails");
        let run: fn(&[u8]) = match std::env::var("TRAPLINE_FUZZ_FAILURE").as_deref() {
            Ok("panic") => |input| assert!(input.len() < 3),
            Ok("overflow") => |input| {
                fn deeper(n: u64) -> u64 {
                    let space = std::hint::black_box([n; 1000]);
                    match space[999] {
                        u64::MAX => 0,
                        n => std::hint::black_box(deeper(n + 1)) + space[1],
                    }
                }
                if input.len() > 2 {
                    deeper(0);
                }
            },
            Ok("memory") => |input| {
                if input.len() > 2 {
                    drop(std::hint::black_box(vec![1_u8; 300 << 20]));
                }
            },
            Ok("loop") => |input| while input.len() > 2 {},
            _ => return,
        };
        let mut subject = Subject::new(path, vec![b"x".to_vec()]);
        subject.words = &["word"];
        subject.time = Duration::from_secs(1);
        subject.try_all(run);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_makes_it_again() {
        for failure in ["panic", "overflow", "memory", "loop"] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["hostile::tests::fails", "--exact"])
                .env("TRAPLINE_FUZZ_FAILURE", failure)
                .env_remove("TRAPLINE_FUZZ_MINUTES");
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(!output.status.success(), "{failure}: {said}");
            let (_, behind) = said.split_once("; the input is ").unwrap();
            let (file, behind) = behind.split_once("; TRAPLINE_FUZZ_SEED=").unwrap();
            assert!(behind.contains(" tries it again"), "{failure}: {said}");
            assert!(std::fs::read(file).unwrap().len() > 2, "{failure}: {said}");
            std::fs::remove_file(file).unwrap();
        }
    }

    /// Every input is the same each time, and they are not all alike.
    #[test]
    fn a_seed_is_an_input() {
        let corpus = vec![b"break *main if $rdi == 3".to_vec(), b"x/4xb $rsp".to_vec()];
        let input = |seed| change(&mut Random::new(seed), &corpus, &[], &["end"]);
        let inputs: std::collections::HashSet<_> = (0..1000).map(input).collect();
        assert!(inputs.len() > 700, "{}", inputs.len());
        assert!((0..1000).map(input).all(|again| inputs.contains(&again)));
    }
}
