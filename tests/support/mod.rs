//! What the integration tests share: programs that are reaped whatever happens, lines that are waited for
//! with a deadline, gdb and trapline driven with the same arguments, and the state of a process that a
//! tracer must not change.
#![allow(dead_code, unused_imports)] // each test binary uses its own part

pub mod app;
pub mod blocked;
pub mod network;
pub mod process;
pub mod someip;
pub mod terminal;
pub mod tracer;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

pub use app::App;
pub use network::Network;
pub use tracer::{Tracer, normalise};

/// Why a test cannot run here.
pub struct Missing(pub String);

static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Runs the body; a [`Missing`] part skips the test, out loud. Under `scripts/test`, which provides
/// every part (`TRAPLINE_NO_SKIP=1`), it fails instead.
pub fn test(body: impl FnOnce() -> Result<(), Missing>) {
    if let Err(Missing(reason)) = body() {
        assert!(
            std::env::var_os("TRAPLINE_NO_SKIP").is_none(),
            "would be skipped: {reason}"
        );
        let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
        // Written past the capture of libtest, which would hide it.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {reason} ({count} so far in this file)"
        );
    }
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A script of `scripts/`.
pub fn script(name: &str) -> String {
    root().join("scripts").join(name).display().to_string()
}

/// A program of `testapps/`.
pub fn testapp(name: &str) -> Result<PathBuf, Missing> {
    let built = std::env::var_os("TRAPLINE_TESTAPPS")
        .map_or_else(|| root().join("testapps/build"), PathBuf::from);
    let path = built.join(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(Missing(format!(
            "{} is not built (make -C testapps)",
            path.display()
        )))
    }
}

/// The directory that `scripts/vsomeip-build` prints.
pub fn vsomeip() -> Result<PathBuf, Missing> {
    stack("VSOMEIP")
}

/// The directory that the build script of a real stack prints: VSOMEIP, OPENSOMEIP, ROS2, CYBER,
/// CYCLONEDDS.
pub fn stack(name: &str) -> Result<PathBuf, Missing> {
    let variable = format!("TRAPLINE_{name}");
    let directory = std::env::var_os(&variable).map(PathBuf::from);
    directory
        .filter(|path| path.join("complete").exists())
        .ok_or_else(|| Missing(format!("{variable} is not set (scripts/test)")))
}

/// A name that no other test of this machine uses at the moment.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!(
        "{prefix}-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// What a program wrote.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Each line is a JSON value.
#[track_caller]
pub fn json_lines<'t>(lines: impl IntoIterator<Item = &'t str>) -> Vec<Value> {
    let mut values = Vec::new();
    for line in lines {
        values.push(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    }
    values
}

/// A schema of `schema/`.
pub fn schema(name: &str) -> jsonschema::Validator {
    let text = std::fs::read_to_string(root().join("schema").join(name)).expect("the schema");
    let schema = serde_json::from_str(&text).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

/// A path in the directory for temporary files that nothing has yet.
pub fn temp_path(prefix: &str) -> PathBuf {
    std::env::temp_dir().join(unique(prefix))
}

/// A file that is gone when this is dropped.
pub struct TempFile(PathBuf);

impl TempFile {
    pub fn new(text: &str) -> TempFile {
        TempFile::bytes(text.as_bytes())
    }

    pub fn bytes(bytes: &[u8]) -> TempFile {
        let file = TempFile::at(temp_path("trapline-test"));
        std::fs::write(&file.0, bytes).expect("a temporary file");
        file
    }

    /// A copy of a file, with its permissions.
    pub fn copy(of: &Path) -> TempFile {
        let file = TempFile::at(temp_path("trapline-copy"));
        // By another process: a child that another test just starts could still have our descriptor, and
        // what is open for writing cannot be executed.
        let copied = std::process::Command::new("cp")
            .arg("-p")
            .args([of, file.as_ref()])
            .status();
        assert!(
            copied.is_ok_and(|status| status.success()),
            "cp {}",
            of.display()
        );
        file
    }

    /// One that is still to be made, there.
    pub fn at(path: PathBuf) -> TempFile {
        TempFile(path)
    }

    pub fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl AsRef<Path> for TempFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A directory that is gone when this is dropped, with all that is in it.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new(prefix: &str) -> TempDir {
        let path = temp_path(prefix);
        std::fs::create_dir(&path).expect("a temporary directory");
        TempDir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, inside: impl AsRef<Path>) -> PathBuf {
        self.0.join(inside)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
