//! `source FILE`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::interpreter::{Call, Interpreter};
use crate::error::{Error, fail};

/// `source [-s] [-v] FILE`
pub fn source(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let mut file = call.arguments;
    let mut verbose = i.verbose;
    loop {
        if let Some(rest) = file.strip_prefix("-v ") {
            (verbose, file) = (true, rest.trim_start());
        } else if let Some(rest) = file.strip_prefix("-s ") {
            file = rest.trim_start();
        } else {
            break;
        }
    }
    if file.is_empty() {
        fail!("source command requires file name of file to source.");
    }
    let home = std::env::var("HOME").unwrap_or_default();
    let path = match file.strip_prefix("~/") {
        Some(rest) => format!("{home}/{rest}"),
        None => file.into(),
    };
    let path = Path::new(&path);
    if let Err(error) = std::fs::metadata(path) {
        let why = crate::session::lifecycle::plain(&error);
        // A script goes on without it.
        if call.from_tty {
            fail!("{file}: {why}.");
        }
        let text = format!("warning: {file}: {why}");
        i.session.output.complain(&text);
        return Ok(());
    }
    if path.extension().is_some_and(|e| e == "py" || e == "scm") {
        let text = format!(
            "warning: {}: {file} is no script of commands; left out.",
            call.at
        );
        i.session.output.complain(&text);
        return Ok(());
    }
    let before = std::mem::replace(&mut i.verbose, verbose);
    let result = i.source(path);
    i.verbose = before;
    result
}

/// No script is that long; what has no end (`/dev/zero`) is none.
const LONGEST: u64 = 16 << 20;

/// The text of a script.
pub fn read(path: &Path) -> Result<String, Error> {
    let text = match is_input(path) {
        true => bounded(io::stdin().lock()),
        false => File::open(path).and_then(bounded),
    };
    match text {
        Ok(Some(text)) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Ok(None) => fail!(
            "{}: it has more than {} MiB, which no script of commands has.",
            path.display(),
            LONGEST >> 20
        ),
        Err(error) => fail!(
            "{}: {}.",
            path.display(),
            crate::session::lifecycle::plain(&error)
        ),
    }
}

/// `-` stands for the standard input.
pub fn is_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// All that comes; `None` if that is too much.
fn bounded(from: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    from.take(LONGEST + 1).read_to_end(&mut text)?;
    Ok((text.len() as u64 <= LONGEST).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_read_to_it() {
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(
            error.message,
            "/dev/zero: it has more than 16 MiB, which no script of commands has."
        );
        let longest = bounded(io::repeat(b'#').take(LONGEST)).unwrap();
        assert_eq!(longest.map(|text| text.len() as u64), Some(LONGEST));
        assert_eq!(read(Path::new("/dev/null")), Ok(String::new()));
        let error = read(Path::new("/no/such/file")).unwrap_err();
        assert_eq!(error.message, "/no/such/file: No such file or directory.");
    }
}
