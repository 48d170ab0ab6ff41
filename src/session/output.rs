//! Where text goes: standard output, and standard error for what is not output.
//!
//! A closed pipe is no error of the program that is looked at: it is remembered, nothing more is
//! written, and the front ends as if the user had asked for it.

use std::fs::File;
use std::io::{self, Write};

use crate::repl::Screen;

/// The two streams.
pub struct Output {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    closed: bool,
    /// What is printed is kept instead.
    kept: Option<Vec<u8>>,
    /// A line is being typed: text goes above it, by whole lines.
    screen: Option<Screen>,
    partial: Vec<u8>,
    log: Option<Log>,
}

/// A file that gets what is printed (`set logging`).
pub struct Log {
    file: File,
    /// Nothing is printed any more.
    only: bool,
}

impl Log {
    /// Opens it; `only`: what is printed goes nowhere else.
    pub fn open(path: &str, overwrite: bool, only: bool) -> io::Result<Log> {
        let mut options = File::options();
        options.create(true).write(true);
        if overwrite {
            options.truncate(true);
        } else {
            options.append(true);
        }
        let file = options.open(path)?;
        Ok(Log { file, only })
    }

    /// Gives whether the bytes go nowhere else. A log that cannot be written is no reason to stop.
    fn take(&mut self, bytes: &[u8]) -> bool {
        let _ = self.file.write_all(bytes);
        self.only
    }
}

impl Output {
    /// The process's own streams.
    pub fn standard() -> Output {
        Output {
            out: Box::new(io::BufWriter::with_capacity(64 * 1024, io::stdout())),
            err: Box::new(io::stderr()),
            closed: false,
            kept: None,
            log: None,
            screen: None,
            partial: Vec::new(),
        }
    }

    /// Everything goes to standard error: standard output is somebody else's.
    pub fn errors() -> Output {
        Output {
            out: Box::new(io::stderr()),
            ..Output::standard()
        }
    }

    /// Writes to standard output; [`Output::flush`] makes it visible.
    pub fn print(&mut self, text: &str) {
        self.print_bytes(text.as_bytes());
    }

    /// The same for what need not be text.
    pub fn print_bytes(&mut self, bytes: &[u8]) {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
            return;
        }
        if self.log.as_mut().is_some_and(|log| log.take(bytes)) {
            return;
        }
        if self.screen.is_some() {
            self.partial.extend_from_slice(bytes);
        } else if !self.closed && self.out.write_all(bytes).is_err() {
            self.closed = true;
        }
    }

    /// From here on what is printed goes to this file too.
    pub fn set_log(&mut self, log: Option<Log>) {
        self.log = log;
    }

    /// From here on what is printed is kept, for [`Output::kept`].
    pub fn keep(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// What was printed since [`Output::keep`]; it ends here.
    pub fn kept(&mut self) -> Vec<u8> {
        self.kept.take().unwrap_or_default()
    }

    /// While a line is typed text goes above it; `None`: as usual again.
    pub fn set_screen(&mut self, screen: Option<Screen>) {
        self.flush();
        if let (Some(before), None) = (&self.screen, &screen) {
            before.drain();
        }
        self.screen = screen;
        if self.screen.is_none() {
            let rest = std::mem::take(&mut self.partial);
            self.print_bytes(&rest);
            self.flush();
        }
    }

    /// Makes visible what was printed.
    pub fn flush(&mut self) {
        if let Some(screen) = &self.screen {
            let whole = self.partial.iter().rposition(|byte| *byte == b'\n');
            if let Some(at) = whole {
                let lines: Vec<u8> = self.partial.drain(..=at).collect();
                screen.show(String::from_utf8_lossy(&lines).into_owned());
            }
            return;
        }
        if !self.closed && self.out.flush().is_err() {
            self.closed = true;
        }
    }

    /// Writes a line to standard error, behind everything that was printed before.
    pub fn complain(&mut self, text: &str) {
        self.flush();
        let line = format!("{text}\n");
        let log = self.log.as_mut();
        if log.is_some_and(|log| log.take(line.as_bytes())) {
            return;
        }
        if let Some(screen) = &self.screen {
            screen.show(line);
            return;
        }
        // Nobody is left to be told.
        let _ = self.err.write_all(line.as_bytes());
    }

    /// Whether the reader of standard output has gone.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.print_bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Output::flush(self);
        Ok(())
    }
}
