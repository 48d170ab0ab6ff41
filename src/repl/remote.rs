//! Lines are read on a thread of their own, so that targets are served while one is typed.

use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use nix::sys::termios::{self, SetArg, Termios};

use super::Kind;
use super::complete::Words;
use super::input::{Input, Next, Source};
use super::screen::{Printer, Screen};
use crate::error::Error;

enum Ask {
    Line(String),
    Remember(String),
    Learn(Box<Words>),
}

/// See the module.
pub struct Remote {
    asks: Sender<Ask>,
    answers: Receiver<Result<Next, Error>>,
    /// A line was asked for and has not come yet.
    pending: bool,
    screen: Option<Screen>,
    kind: Kind,
    /// How the terminal was, for an end while a line is typed.
    before: Option<Termios>,
}

/// A source, and what prints above its line where it has a way to.
pub type Parts = (Box<dyn Source>, Option<Printer>);

impl Remote {
    /// Makes the source on its thread.
    pub fn start(
        kind: Kind,
        make: impl FnOnce() -> Result<Parts, Error> + Send + 'static,
    ) -> Result<Remote, Error> {
        let (asks, questions) = channel();
        let (replies, answers) = channel();
        let (made, result) = channel();
        thread::spawn(move || match make() {
            Ok((source, printer)) => {
                let _ = made.send(Ok(printer));
                serve(source, &questions, &replies);
            }
            Err(error) => drop(made.send(Err(error))),
        });
        let printer = result.recv().map_err(|_| gone())??;
        Ok(Remote {
            asks,
            answers,
            pending: false,
            screen: printer.map(Screen::start),
            kind,
            before: termios::tcgetattr(std::io::stdin().as_fd()).ok(),
        })
    }
}

fn gone() -> Error {
    Error::new("Cannot read from the terminal.")
}

fn serve(mut source: Box<dyn Source>, asks: &Receiver<Ask>, answers: &Sender<Result<Next, Error>>) {
    while let Ok(ask) = asks.recv() {
        match ask {
            Ask::Line(prompt) => {
                if answers.send(source.read(&prompt)).is_err() {
                    return;
                }
            }
            Ask::Remember(line) => source.remember(&line),
            Ask::Learn(words) => source.learn(*words),
        }
    }
}

impl Input for Remote {
    fn begin(&mut self, prompt: &str) {
        self.pending = self.asks.send(Ask::Line(prompt.into())).is_ok();
    }

    fn ready(&mut self, wait: Duration) -> Option<Result<Next, Error>> {
        let answer = match self.answers.recv_timeout(wait) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        };
        self.pending = false;
        Some(answer)
    }

    fn line(&mut self, prompt: &str) -> Result<Next, Error> {
        if self.pending {
            return Ok(Next::End);
        }
        self.asks
            .send(Ask::Line(prompt.into()))
            .map_err(|_| gone())?;
        self.answers.recv().map_err(|_| gone())?
    }

    fn answer(&mut self, question: &str) -> Result<Next, Error> {
        self.line(question)
    }

    fn is_terminal(&self) -> bool {
        self.kind != Kind::Pipe
    }

    fn completes(&self) -> bool {
        self.kind == Kind::Terminal
    }

    fn remember(&mut self, line: &str) {
        let _ = self.asks.send(Ask::Remember(line.into()));
    }

    fn learn(&mut self, words: Words) {
        let _ = self.asks.send(Ask::Learn(Box::new(words)));
    }

    fn screen(&self) -> Option<Screen> {
        self.screen.clone()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let (true, Some(before)) = (self.pending, &self.before) {
            // The editor still waits for a key, in its own mode.
            let _ = termios::tcsetattr(std::io::stdin().as_fd(), SetArg::TCSADRAIN, before);
        }
    }
}
