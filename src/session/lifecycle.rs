//! How targets begin and end.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::images::Images;
use super::sites::{INTERNAL, Site};
use super::threads::Threads;
use super::{Session, Target, engine_error, process, settings, signals};
use crate::arch::Register;
use crate::engine::client::{EngineError, Started};
use crate::engine::protocol::{
    Call, Failure, Launch, SignalPolicy, SiteId, SiteProbe, SiteSpec, Then, Tid,
};
use crate::error::{Error, fail};
use crate::probe::program::{Op, Program};

/// The front's own site in the dynamic linker has this number in every target.
const INTERNAL_SITE: SiteId = SiteId(0);

impl Session {
    /// Loads the symbols of a program that does not run yet.
    pub fn load(&mut self, path: &Path) -> Result<(), Error> {
        self.program = Some(Images::of_file(path)?);
        if self.targets.is_empty() {
            self.relocate();
        }
        Ok(())
    }

    fn policy(&self) -> SignalPolicy {
        if self.show.never_stops() {
            SignalPolicy::TRANSPARENT
        } else {
            signals::GDB
        }
    }

    /// Launches the program; its thread stands at the first instruction.
    pub fn launch(&mut self) -> Result<(), Error> {
        let Some(images) = &self.program else {
            fail!("No executable file specified.\nUse the \"file\" or \"exec-file\" command.");
        };
        let program = images.program.clone();
        check_executable(&program)?;
        let launch = self.launch_request(&program);
        let started = self.keeper()?.launch(launch);
        let started = started.map_err(|error| launch_error(&program, &error))?;
        self.begin(started, program, true)
    }

    fn launch_request(&self, program: &Path) -> Launch {
        let path = program.as_os_str();
        let environment = self
            .environment()
            .into_iter()
            .map(|(mut name, value)| {
                name.push("=");
                name.push(value);
                name.into_vec()
            })
            .collect();
        let directory = self.launch_directory();
        let plain = settings::plain_words(&self.settings.arguments).filter(|_| directory.is_none());
        let shell = plain.is_none();
        let (file, arguments) = match plain {
            Some(words) => {
                let mut arguments = vec![path.as_bytes().to_vec()];
                arguments.extend(words.into_iter().map(String::into_bytes));
                (path.as_bytes().to_vec(), arguments)
            }
            None => {
                let path = std::path::absolute(program).unwrap_or_else(|_| program.into());
                let quoted = settings::quote([&*path.to_string_lossy()]);
                let to = directory.map(|directory| settings::quote([&*directory]));
                let to = to
                    .map(|directory| format!("cd {directory} && "))
                    .unwrap_or_default();
                let line = format!("{to}exec {quoted} {}", self.settings.arguments);
                let arguments = ["/bin/sh", "-c", &line].map(|s| s.as_bytes().to_vec());
                (b"/bin/sh".to_vec(), arguments.to_vec())
            }
        };
        Launch {
            program: file,
            arguments,
            environment,
            randomize: !self.settings.disable_randomization,
            skip_execs: shell.into(),
            stdout_to_stderr: self.stdout_to_stderr,
            signals: self.policy(),
        }
    }

    /// Where a launched program begins, if that is not where the keeper is.
    fn launch_directory(&self) -> Option<String> {
        if let Some(directory) = &self.settings.cwd {
            return Some(directory.clone());
        }
        let here = std::env::current_dir()
            .ok()
            .filter(|_| self.settings.moved)?;
        Some(here.to_string_lossy().into_owned())
    }

    /// The environment of a launched program.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let changed = &self.settings.environment;
        let unchanged = |(name, _): &(OsString, OsString)| {
            name.to_str().is_none_or(|name| !changed.contains_key(name))
        };
        let set = changed
            .iter()
            .filter_map(|(name, value)| Some((name.into(), value.as_ref()?.into())));
        std::env::vars_os()
            .filter(|(name, _)| name != "LINES" && name != "COLUMNS")
            .chain(self.sizes())
            .filter(unchanged)
            .chain(set)
            .collect()
    }

    /// gdb sets these for the program that it launches.
    fn sizes(&self) -> Vec<(OsString, OsString)> {
        if self.show.never_stops() {
            let own = ["LINES", "COLUMNS"].map(|n| std::env::var_os(n).map(|v| (n.into(), v)));
            return own.into_iter().flatten().collect();
        }
        let (rows, columns) = crate::repl::terminal_size();
        vec![
            ("LINES".into(), rows.to_string().into()),
            ("COLUMNS".into(), columns.to_string().into()),
        ]
    }

    /// Attaches; nothing is stopped by that.
    pub fn attach(&mut self, pid: i32) -> Result<(), Error> {
        process::check(pid)?;
        let policy = self.policy();
        let started = match self.keeper()?.attach(pid, policy) {
            Ok(started) => started,
            Err(EngineError::Refused(failure)) => {
                return Err(process::explain_attach(pid, &failure));
            }
            Err(error) => return Err(engine_error(&error)),
        };
        let program = process::executable(pid).unwrap_or_default();
        let id = started.target;
        if let Err(error) = self.begin(started, program, false) {
            // What cannot be looked at is left as it was.
            if let Ok(keeper) = self.keeper() {
                let _ = keeper.detach(id);
            }
            return Err(error);
        }
        Ok(())
    }

    fn begin(&mut self, started: Started, program: PathBuf, launched: bool) -> Result<(), Error> {
        check_class(started.pid)?;
        let leader = started.threads.first().copied();
        let mut threads = Threads::default();
        let mut tids = started.threads;
        tids.sort_by_key(|t| (Some(*t) != leader, *t));
        for tid in tids {
            threads.add(tid);
        }
        for thread in threads.iter_mut() {
            // gdb tells of threads that were there at an attach as new ones of a running program.
            thread.announced |= !launched;
        }
        let selected = leader.unwrap_or(crate::engine::protocol::Tid(started.pid));
        for thread in threads.iter_mut() {
            thread.learn_name(started.pid);
        }
        self.targets.push(Target {
            id: started.target,
            pid: started.pid,
            launched,
            program,
            images: Images::default(),
            threads,
            stopped: launched,
            selected,
            previous: selected,
            waiting: Default::default(),
            sites: Default::default(),
            internal: None,
            late_interrupt: false,
            next_site: 0,
        });
        let index = self.targets.len() - 1;
        self.read_modules(index)?;
        if self.program.is_none() && index == 0 {
            let path = self.targets[0].program.clone();
            self.program = Images::of_file(&path).ok();
        }
        if launched {
            // Its libraries are still to come. One that was attached to has them.
            self.watch_libraries(index);
        }
        self.relocate();
        Ok(())
    }

    /// Reads which modules a target has now.
    fn read_modules(&mut self, index: usize) -> Result<(), Error> {
        let target = &self.targets[index];
        let Some(keeper) = &self.keeper else {
            return Ok(());
        };
        let id = target.id;
        let before = if target.images.modules.loaded().is_empty() {
            self.program.as_ref()
        } else {
            Some(&target.images)
        };
        let read = |address: u64, buf: &mut [u8]| keeper.read(id, address, buf).is_ok();
        let images = Images::of_process(target.pid, &read, before)?;
        for unreadable in images.modules.unreadable() {
            self.output
                .complain(&format!("warning: {}", unreadable.error));
        }
        self.targets[index].images = images;
        Ok(())
    }

    /// Puts a site where the dynamic linker tells of what it maps: probes in libraries are found
    /// again there, before their constructors run.
    fn watch_libraries(&mut self, index: usize) {
        let target = &self.targets[index];
        let Some(address) = target.images.linker_event(target.pid) else {
            return;
        };
        let spec = SiteSpec {
            id: INTERNAL_SITE,
            address,
            code: target.images.code(address),
            probes: vec![SiteProbe {
                probe: INTERNAL,
                program: Program {
                    ops: vec![Op::Hit],
                    ..Program::default()
                },
                then: Then::Stop,
            }],
        };
        let id = target.id;
        let armed = self
            .keeper()
            .is_ok_and(|keeper| keeper.arm(id, spec.clone()).is_ok());
        if armed {
            let target = &mut self.targets[index];
            target.internal = Some(address);
            target.sites.insert(
                address,
                Site {
                    id: INTERNAL_SITE,
                    armed: Some(spec),
                    probes: Vec::new(),
                    lost: false,
                },
            );
        }
    }

    /// The linker's function for debuggers only returns: the front does that for the thread, so
    /// that no slot is mapped among the libraries and their addresses stay what they would be.
    pub(super) fn return_from_linker(&mut self, index: usize, tid: Tid) {
        const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
        const RET: u8 = 0xc3;
        let target = &self.targets[index];
        let id = target.id;
        let Some(mut registers) = target.threads.get(tid).and_then(|t| t.registers.clone()) else {
            return;
        };
        let code = target.images.code(registers.pc());
        let first = code.strip_prefix(&ENDBR64).unwrap_or(&code).first();
        if first != Some(&RET) {
            return;
        }
        let Ok(keeper) = self.keeper() else {
            return;
        };
        let mut word = [0; 8];
        if keeper.read(id, registers.sp(), &mut word).is_ok() {
            registers.set(Register::Rip, u64::from_le_bytes(word));
            registers.set(Register::Rsp, registers.sp().wrapping_add(8));
            // Where this is refused the thread passes the site like any other.
            let _ = keeper.set_registers(id, tid, *registers);
        }
    }

    /// The dynamic linker has mapped or unmapped something.
    pub(super) fn libraries_changed(&mut self, index: usize) -> Result<(), Error> {
        let before = self.targets[index].images.modules.loaded().len();
        self.read_modules(index)?;
        if self.targets[index].images.modules.loaded().len() != before {
            self.relocate();
        }
        Ok(())
    }

    /// Another program runs in the process: the keeper has forgotten every site.
    pub(super) fn executed(&mut self, index: usize) -> Result<(), Error> {
        let target = &mut self.targets[index];
        target.sites.clear();
        target.internal = None;
        target.images = Images::default();
        target.program = process::executable(target.pid).unwrap_or_default();
        let text = format!(
            "process {} is executing new program: {}\n",
            target.pid,
            target.program.display()
        );
        self.tell(&text);
        self.read_modules(index)?;
        self.watch_libraries(index);
        self.relocate();
        Ok(())
    }

    /// Leaves a target as it was found.
    pub fn detach(&mut self, index: usize) -> Result<(), Error> {
        let id = self.targets[index].id;
        self.drain();
        let result = self.keeper()?.detach(id).map_err(|e| engine_error(&e));
        self.drain();
        self.forget(index);
        result
    }

    /// What a target came to is told, and the front knows it no more.
    fn forget(&mut self, index: usize) {
        self.read_counters();
        self.tell_drops();
        if index < self.targets.len() {
            let target = self.take_target(index);
            self.forget_addresses(&target);
        }
    }

    /// Ends a target.
    pub fn kill(&mut self, index: usize) -> Result<(), Error> {
        let id = self.targets[index].id;
        self.drain();
        let result = self.keeper()?.kill(id).map_err(|e| engine_error(&e));
        self.forget(index);
        result
    }

    /// Shows the hits that are there already.
    pub fn drain(&mut self) {
        use crate::engine::client::Happening;
        while let Some(keeper) = &mut self.keeper {
            match keeper.next(std::time::Duration::ZERO) {
                Ok(Some(Happening::Hit(target, record))) => {
                    if let Some(index) = self.targets.iter().position(|t| t.id == target) {
                        self.replay(index, &record);
                    }
                }
                Ok(Some(Happening::Event(_))) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }

    /// Without the process only the file's addresses are left; gdb keeps showing the old ones,
    /// and so do we: they are found again at the next `run`.
    pub(super) fn forget_addresses(&mut self, target: &Target) {
        let _ = target;
        self.stale = true;
    }
}

/// Not a file, not executable: said before anything is started.
fn check_executable(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let data = fs::metadata(path)
        .map_err(|e| Error::new(format!("{}: {}.", path.display(), plain(&e))))?;
    if data.permissions().mode() & 0o111 == 0 {
        fail!(
            "{}: Permission denied (it is not executable).",
            path.display()
        );
    }
    Ok(())
}

/// An i/o error without its number.
pub fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

/// Only 64-bit x86-64 processes.
fn check_class(pid: i32) -> Result<(), Error> {
    let mut head = [0u8; 20];
    let read = fs::File::open(format!("/proc/{pid}/exe"))
        .and_then(|mut f| std::io::Read::read_exact(&mut f, &mut head));
    if read.is_err() || !head.starts_with(b"\x7fELF") {
        return Ok(());
    }
    if head[4] == 1 {
        fail!("Process {pid} is a 32-bit program; only 64-bit x86-64 ones are supported.");
    }
    Ok(())
}

fn launch_error(program: &Path, error: &EngineError) -> Error {
    match error {
        EngineError::Refused(Failure::System {
            call: Call::Exec,
            errno,
        }) => Error::new(format!(
            "Cannot execute {}: {}.",
            program.display(),
            plain(&std::io::Error::from_raw_os_error(*errno))
        )),
        other => engine_error(other),
    }
}
