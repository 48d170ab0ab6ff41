//! Programs of vsomeip that talk with each other, and with nobody else.

use std::path::PathBuf;
use std::process::Command;

use super::{App, Missing, stack, testapp, unique};

/// A network of its own, and the libraries that its programs load.
pub struct Vsomeip {
    libraries: PathBuf,
    network: String,
}

impl Vsomeip {
    /// With the libraries of a directory of the stack (`lib` or `stripped`).
    pub fn new(directory: &str) -> Result<Vsomeip, Missing> {
        Ok(Vsomeip {
            libraries: stack("VSOMEIP")?.join(directory),
            network: unique("trapline"),
        })
    }

    /// Starts one of the test programs; it is ready.
    pub fn start(&self, program: &str, arguments: &[&str]) -> Result<App, Missing> {
        let mut command = Command::new(testapp(program)?);
        command
            .args(["--network", &self.network])
            .args(arguments)
            .env("LD_LIBRARY_PATH", &self.libraries);
        let mut app = App::spawn(command);
        app.expect("ready");
        Ok(app)
    }
}
