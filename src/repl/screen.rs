//! Text that appears above a line that is being typed.
//!
//! The thread that serves the targets hands text over and goes on; another one prints it, which
//! may have to wait for the editor.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Prints whole lines while the editor shows its own.
pub type Printer = Box<dyn FnMut(String) + Send>;

/// How many pieces of text may wait; then whoever prints waits.
const QUEUE: usize = 256;
/// Pieces are joined up to about this length.
const PIECE: usize = 64 * 1024;
/// How long the end of the text is waited for: a terminal that is stopped (Ctrl-S) stops nothing.
const PATIENCE: Duration = Duration::from_secs(1);

enum Piece {
    Text(String),
    /// To be answered when everything before has been printed.
    Drained(SyncSender<()>),
}

/// The way to the terminal.
#[derive(Clone)]
pub struct Screen(SyncSender<Piece>);

impl Screen {
    /// Begins to print with `printer`.
    pub fn start(printer: Printer) -> Screen {
        let (sender, receiver) = sync_channel(QUEUE);
        thread::spawn(move || serve(&receiver, printer));
        Screen(sender)
    }

    /// Shows whole lines.
    pub fn show(&self, text: String) {
        // Without a printer there is no terminal any more.
        let _ = self.0.send(Piece::Text(text));
    }

    /// Waits until everything is shown.
    pub fn drain(&self) {
        let (done, shown) = sync_channel(1);
        if self.0.send(Piece::Drained(done)).is_ok() {
            let _ = shown.recv_timeout(PATIENCE);
        }
    }
}

fn serve(pieces: &Receiver<Piece>, mut printer: Printer) {
    let mut next = pieces.recv().ok();
    while let Some(piece) = next.take() {
        match piece {
            Piece::Drained(done) => {
                let _ = done.try_send(());
            }
            Piece::Text(mut text) => {
                while text.len() < PIECE && next.is_none() {
                    match pieces.try_recv() {
                        Ok(Piece::Text(more)) => text.push_str(&more),
                        Ok(other) => next = Some(other),
                        Err(_) => break,
                    }
                }
                printer(text);
            }
        }
        if next.is_none() {
            next = pieces.recv().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn text_comes_in_order_and_is_there_when_drained() {
        let shown = Arc::new(Mutex::new(String::new()));
        let printed = shown.clone();
        let screen = Screen::start(Box::new(move |text| {
            printed.lock().unwrap().push_str(&text);
        }));
        let mut expected = String::new();
        for number in 0..2000 {
            let line = format!("{number}\n");
            expected.push_str(&line);
            screen.show(line);
        }
        screen.drain();
        assert_eq!(*shown.lock().unwrap(), expected);
    }
}
