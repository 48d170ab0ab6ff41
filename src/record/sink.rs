//! Where records go: standard output and files, each in its format.
//!
//! A sink that cannot be written any more (a full disk) is given up, which is told once; what it
//! does not get is counted, and the others go on. A reader that has gone (`| head -1`) is no
//! failure.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::destination::{Destination, Format};
use super::hit::Hit;
use super::json;
use super::text::{self, Palette};
use crate::error::plain;

/// How much is collected before it is written.
const BUFFER: usize = 64 * 1024;

/// Which time a line for people shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// CLOCK_MONOTONIC.
    #[default]
    Monotonic,
    /// CLOCK_REALTIME, since the epoch.
    Wall,
    /// Since the line before.
    Delta,
}

/// What became of a sink.
#[derive(Debug)]
enum State {
    Open,
    /// Nobody reads the pipe any more.
    Closed,
    /// It could not be written for that reason.
    Failed(io::Error),
}

/// One destination.
struct Sink {
    name: String,
    format: Format,
    palette: Palette,
    file: File,
    regular: bool,
    buffer: Vec<u8>,
    /// Where in the buffer each line ends, and whether it is a record.
    ends: Vec<(usize, bool)>,
    state: State,
    lost: u64,
}

/// All destinations.
pub(crate) struct Sinks {
    sinks: Vec<Sink>,
    stamp: Stamp,
    previous_ns: Option<u64>,
    /// How many records each probe gave.
    records: BTreeMap<u32, u64>,
    /// What is to be told.
    notes: Vec<String>,
}

impl Sinks {
    /// Opens every destination; a file that is there is overwritten. `default` is the format of
    /// standard output, which alone may be colored.
    pub(crate) fn open(
        destinations: &[Destination],
        default: Format,
        stamp: Stamp,
        palette: Palette,
    ) -> Result<Sinks, String> {
        let mut sinks: Vec<Sink> = Vec::new();
        for destination in destinations {
            let format = destination.format.unwrap_or(default);
            let sink = match &destination.path {
                Some(path) => file(path, format),
                None => standard(format, palette),
            };
            let name = |path: &Path| path.display().to_string();
            let of = destination.path.as_deref().map_or("-".into(), name);
            let sink = sink.map_err(|error| format!("{of}: {}", plain(&error)))?;
            if sinks.iter().any(|other| same(&other.file, &sink.file)) {
                return Err(format!("{of}: it is given twice"));
            }
            sinks.push(sink);
        }
        for sink in sinks.iter().filter(|sink| sink.regular) {
            let emptied = sink.file.set_len(0);
            emptied.map_err(|error| format!("{}: {}", sink.name, plain(&error)))?;
        }
        Ok(Sinks {
            sinks,
            stamp,
            previous_ns: None,
            records: BTreeMap::new(),
            notes: Vec::new(),
        })
    }

    /// Several processes are traced: each line says which one.
    pub(crate) fn name_processes(&mut self) {
        for sink in &mut self.sinks {
            sink.palette.process = true;
        }
    }

    /// Writes a hit everywhere.
    pub(crate) fn hit(&mut self, hit: &Hit) {
        *self.records.entry(hit.probe).or_default() += 1;
        let before = self.previous_ns.replace(hit.mono_ns);
        let stamp_ns = match self.stamp {
            Stamp::Monotonic => hit.mono_ns as i64,
            Stamp::Wall => hit.wall_ns as i64,
            Stamp::Delta => before.map_or(0, |before| hit.mono_ns.wrapping_sub(before) as i64),
        };
        let mut lines = None;
        for sink in &mut self.sinks {
            match sink.format {
                Format::Text => {
                    let text = text::hit(hit, stamp_ns, sink.palette);
                    self.notes.extend(sink.add(&text, true));
                }
                Format::JsonLines => {
                    let text = lines.get_or_insert_with(|| json::hit(hit).join("\n") + "\n");
                    self.notes.extend(sink.add(text, true));
                }
            }
        }
    }

    /// Writes a line that is no hit where there is JSON; false where there is none.
    pub(crate) fn json(&mut self, line: &str) -> bool {
        let mut any = false;
        for sink in &mut self.sinks {
            if sink.format == Format::JsonLines {
                any = true;
                self.notes.extend(sink.add(&format!("{line}\n"), false));
            }
        }
        any
    }

    /// Writes out what was collected, and looks whether somebody still reads.
    pub(crate) fn flush(&mut self) {
        for sink in &mut self.sinks {
            self.notes.extend(sink.flush());
        }
    }

    /// What is to be told, once each.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// No destination is left.
    pub(crate) fn is_over(&self) -> bool {
        let open = |sink: &Sink| matches!(sink.state, State::Open);
        !self.sinks.iter().any(open)
    }

    /// How many records a probe gave.
    pub(crate) fn records(&self, probe: u32) -> u64 {
        self.records.get(&probe).copied().unwrap_or(0)
    }

    /// Of each destination that was given up: its name, how many records it lacks, and why.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&str, u64, String)> {
        self.sinks.iter().filter_map(|sink| match &sink.state {
            State::Failed(error) => Some((sink.name.as_str(), sink.lost, plain(error))),
            State::Open | State::Closed => None,
        })
    }
}

impl Sink {
    /// Collects a line or several; gives what is to be told.
    fn add(&mut self, text: &str, record: bool) -> Option<String> {
        match self.state {
            State::Open => {
                self.buffer.extend_from_slice(text.as_bytes());
                self.ends.push((self.buffer.len(), record));
                if self.buffer.len() < BUFFER {
                    return None;
                }
                self.write()
            }
            State::Closed => None,
            State::Failed(_) => {
                self.lost += u64::from(record);
                None
            }
        }
    }

    fn flush(&mut self) -> Option<String> {
        if !matches!(self.state, State::Open) {
            return None;
        }
        if self.buffer.is_empty() {
            // A pipe tells of its reader's end without being written to.
            if !self.regular && is_hung_up(&self.file) {
                self.state = State::Closed;
            }
            return None;
        }
        self.write()
    }

    fn write(&mut self) -> Option<String> {
        let (done, result) = write_all(&mut self.file, &self.buffer);
        let note = match result {
            Ok(()) => None,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.state = State::Closed;
                None
            }
            Err(error) => {
                let note = format!(
                    "warning: {}: {}: no more records are written there.",
                    self.name,
                    plain(&error)
                );
                self.lost += self.not_whole(done);
                self.cut(done);
                self.state = State::Failed(error);
                Some(note)
            }
        };
        self.buffer.clear();
        self.ends.clear();
        note
    }

    /// How many records of the buffer are not in its first `done` bytes.
    fn not_whole(&self, done: usize) -> u64 {
        let missing = self
            .ends
            .iter()
            .filter(|(end, record)| *record && *end > done);
        missing.count() as u64
    }

    /// Takes the beginning of a line off the end of a file.
    fn cut(&mut self, done: usize) {
        let whole = self.ends.iter().map(|(end, _)| *end);
        let whole = whole.take_while(|end| *end <= done).last().unwrap_or(0);
        if self.regular
            && let Ok(position) = self.file.stream_position()
        {
            // Where that fails too the file ends in a line that is cut off, as a reader sees.
            let _ = self.file.set_len(position - (done - whole) as u64);
        }
    }
}

/// How many bytes were written, and why not all.
fn write_all(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut done = 0;
    while done < bytes.len() {
        match file.write(&bytes[done..]) {
            Ok(0) => return (done, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Somebody else made this terminal or pipe non-blocking.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut ready = [PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
                let _ = poll(&mut ready, PollTimeout::NONE);
            }
            Err(error) => return (done, Err(error)),
        }
    }
    (done, Ok(()))
}

fn is_hung_up(file: &File) -> bool {
    let mut state = [PollFd::new(file.as_fd(), PollFlags::empty())];
    let polled = poll(&mut state, PollTimeout::ZERO);
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
    polled.is_ok() && state[0].revents().is_some_and(|it| it.intersects(gone))
}

fn standard(format: Format, palette: Palette) -> io::Result<Sink> {
    let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let palette = match format {
        Format::Text => palette,
        Format::JsonLines => text::PLAIN,
    };
    // What it is redirected to may hold more than ours.
    Ok(sink("standard output".into(), format, palette, file, false))
}

fn file(path: &Path, format: Format) -> io::Result<Sink> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let regular = file.metadata()?.is_file();
    let name = path.display().to_string();
    Ok(sink(name, format, text::PLAIN, file, regular))
}

fn sink(name: String, format: Format, palette: Palette, file: File, regular: bool) -> Sink {
    Sink {
        name,
        format,
        palette,
        file,
        regular,
        buffer: Vec::new(),
        ends: Vec::new(),
        state: State::Open,
        lost: 0,
    }
}

/// Two ways to one file would write over each other.
fn same(a: &File, b: &File) -> bool {
    let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) else {
        return false;
    };
    a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Whether lines for people on standard output are to be colored unless told otherwise:
/// <https://no-color.org>.
pub(crate) fn wants_color() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    io::stdout().is_terminal()
        && set("NO_COLOR").is_none()
        && set("TERM").is_some_and(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("trapline-sink-{}-{name}", std::process::id()))
    }

    fn open(names: &[&str], stamp: Stamp) -> Result<Sinks, String> {
        let list: Vec<Destination> = names
            .iter()
            .map(|name| Destination::parse(name.as_ref()).unwrap())
            .collect();
        Sinks::open(&list, Format::Text, stamp, text::PLAIN)
    }

    fn at(mono_ns: u64) -> Hit {
        Hit {
            mono_ns,
            wall_ns: 5_000_000_000 + mono_ns,
            probe: 1,
            ..Hit::default()
        }
    }

    #[test]
    fn each_format_gets_every_hit() {
        let (text, json) = (temporary("a.txt"), temporary("a.jsonl"));
        let names = [text.to_str().unwrap(), json.to_str().unwrap()];
        for (stamp, times) in [
            (Stamp::Monotonic, ["1.000000007", "1.000000002"]),
            (Stamp::Wall, ["6.000000007", "6.000000002"]),
            (Stamp::Delta, ["0.000000000", "-0.000000005"]),
        ] {
            let mut sinks = open(&names, stamp).unwrap();
            sinks.hit(&at(1_000_000_007));
            sinks.hit(&at(1_000_000_002));
            assert!(sinks.json("{}"));
            sinks.flush();
            assert_eq!((sinks.records(1), sinks.records(2)), (2, 0));
            let written = std::fs::read_to_string(&text).unwrap();
            let shown: Vec<&str> = written
                .lines()
                .filter_map(|line| line.split(' ').nth(2))
                .collect();
            assert_eq!(shown, times.map(|time| format!("{time}:")));
            assert_eq!(std::fs::read_to_string(&json).unwrap().lines().count(), 3);
        }
        let _ = (std::fs::remove_file(text), std::fs::remove_file(json));
    }

    #[test]
    fn a_full_disk_is_told_once_and_what_is_lost_is_counted() {
        let good = temporary("good.txt");
        let mut sinks = open(&["jsonl:/dev/full", good.to_str().unwrap()], Stamp::Wall).unwrap();
        sinks.hit(&at(1));
        sinks.hit(&at(2));
        sinks.flush();
        sinks.hit(&at(3));
        sinks.flush();
        let notes = sinks.notes();
        assert_eq!(
            notes,
            ["warning: /dev/full: No space left on device: no more records are written there."]
        );
        assert!(!sinks.is_over());
        let failures: Vec<_> = sinks.failures().map(|(_, lost, _)| lost).collect();
        assert_eq!(failures, [3]);
        let _ = std::fs::remove_file(good);
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        let (reader, writer) = std::io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let mut sinks = open(&[], Stamp::Wall).unwrap();
        let sink = sink("p".into(), Format::Text, text::PLAIN, file, false);
        sinks.sinks.push(sink);
        sinks.hit(&at(1));
        sinks.flush();
        assert!(!sinks.is_over());
        drop(reader);
        sinks.flush();
        assert!(sinks.is_over());
        assert_eq!(sinks.failures().count(), 0);
        assert!(sinks.notes().is_empty());
    }

    #[test]
    fn one_file_is_not_written_twice() {
        let path = temporary("twice.txt");
        let name = path.to_str().unwrap();
        let error = open(&[name, &format!("jsonl:{name}")], Stamp::Wall).err();
        assert!(error.unwrap().ends_with("it is given twice"));
        let _ = std::fs::remove_file(path);
    }
}
