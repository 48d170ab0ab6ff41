//! How targets begin and end.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::images::Images;
use super::threads::Threads;
use super::{Session, Target, engine_error, process, settings, sites::unless_gone};
use crate::engine::client::{EngineError, Started};
use crate::engine::protocol::{Call, Calls, Failure, Launch, SignalPolicy, Tid};
pub use crate::error::plain;
use crate::error::{Error, fail};

impl Session {
    /// Loads the symbols of a program that does not run yet.
    pub fn load(&mut self, path: &Path) -> Result<(), Error> {
        let images = Images::of_file(path, &self.settings.debug_directories)?;
        for line in images.modules.warnings() {
            self.output.complain(&format!("warning: {line}"));
        }
        self.program = Some(images);
        if self.targets.is_empty() {
            self.relocate();
        }
        Ok(())
    }

    fn policy(&self) -> SignalPolicy {
        if self.show.never_stops() {
            self.signals.policy_without_stops()
        } else {
            self.signals.policy(self.caught_signals())
        }
    }

    /// The selected thread gets a signal (0: none) when it goes on, instead of the one that it stopped
    /// with.
    pub fn queue_signal(&mut self, signal: i32) -> Result<(), Error> {
        self.need_stand()?;
        let target = self.need_target()?;
        let (id, tid) = (target.id, target.selected);
        let queued = self.keeper()?.queue_signal(id, tid, signal);
        queued.map_err(|error| engine_error(&error))
    }

    /// Tells the keeper what signals do now.
    pub(super) fn sync_signals(&mut self) -> Result<(), Error> {
        let policy = self.policy();
        for index in 0..self.targets.len() {
            if self.targets[index].policy == policy {
                continue;
            }
            let id = self.targets[index].id;
            unless_gone(self.keeper()?.set_signals(id, policy))?;
            self.targets[index].policy = policy;
        }
        Ok(())
    }

    /// Launches the program; its thread stands at the first instruction.
    pub fn launch(&mut self) -> Result<(), Error> {
        let Some(images) = &self.program else {
            fail!("No executable file specified.\nUse the \"file\" or \"exec-file\" command.");
        };
        let program = images.program.clone();
        check_executable(&program)?;
        self.signals.with_threads();
        let launch = self.launch_request(&program);
        let started = self.keeper()?.launch(launch);
        let started = started.map_err(|error| launch_error(&program, &error))?;
        self.begin(started, program, true)?;
        self.sync_exit_kill()
    }

    /// Tells the keeper which programs end with this process.
    pub fn sync_exit_kill(&mut self) -> Result<(), Error> {
        let on = self.settings.exit_kill;
        for index in 0..self.targets.len() {
            let target = &self.targets[index];
            if !target.launched || target.exit_kill == on {
                continue;
            }
            let id = target.id;
            unless_gone(self.keeper()?.set_exit_kill(id, on))?;
            self.targets[index].exit_kill = on;
        }
        Ok(())
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
            children: self.children(),
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
        self.signals.with_threads();
        let (policy, children) = (self.policy(), self.children());
        let started = match self.keeper()?.attach(pid, policy, children) {
            Ok(started) => started,
            Err(EngineError::Refused(failure)) => {
                return Err(process::explain_attach(pid, &failure));
            }
            Err(error) => return Err(engine_error(&error)),
        };
        let shown = process::living_thread(pid).unwrap_or(pid);
        let program = process::executable(shown).unwrap_or_default();
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
        let selected = leader.unwrap_or(Tid(started.pid));
        for thread in threads.iter_mut() {
            thread.learn_name();
        }
        let inferior = self.inferiors.begins(self.targets.is_empty());
        self.targets.push(Target {
            id: started.target,
            inferior,
            pid: started.pid,
            launched,
            exit_kill: false,
            program,
            images: Images::default(),
            threads,
            stopped: launched,
            selected,
            previous: selected,
            waiting: Default::default(),
            sites: Default::default(),
            watch: None,
            watches: Vec::new(),
            calls: Calls::default(),
            loads: Default::default(),
            policy: self.policy(),
            children: self.children(),
            late_interrupt: false,
            stale: false,
            nowhere: Default::default(),
            next_site: 0,
        });
        let index = self.targets.len() - 1;
        if !self.show.never_stops() {
            self.current = index;
        }
        if index == 0 {
            self.forget_watched();
        }
        self.read_modules(index)?;
        if self.program.is_none() && index == 0 {
            let path = self.targets[0].program.clone();
            self.program = Images::of_file(&path, &self.settings.debug_directories).ok();
        }
        self.watch_libraries(index)?;
        self.relocate();
        Ok(())
    }

    /// A thread has executed a program, and with that ended all others. If it was not the leader, it is
    /// another leader now.
    fn others_are_gone(&mut self, index: usize, former: Tid) {
        let leader = Tid(self.targets[index].pid);
        let threads = &mut self.targets[index].threads;
        let gone = threads.iter().map(|thread| thread.tid);
        let gone: Vec<Tid> = gone.filter(|tid| *tid != leader).collect();
        gone.into_iter().for_each(|tid| drop(threads.remove(tid)));
        if former == leader {
            return;
        }
        let before = threads.remove(leader);
        threads.add(leader);
        if let Some(thread) = threads.get_mut(leader) {
            thread.announced = true;
        }
        if let Some(before) = before.filter(|_| !self.show.never_stops()) {
            self.tell(&format!(
                "[{} exited]\n[New LWP {}]\n",
                before.title(),
                leader.0
            ));
        }
    }

    /// Another program runs in the process: the keeper has forgotten every site.
    pub(super) fn executed(&mut self, index: usize, former: Tid) -> Result<(), Error> {
        self.others_are_gone(index, former);
        let target = &mut self.targets[index];
        target.sites.clear();
        target.watch = None;
        target.watches.clear();
        target.nowhere.clear();
        target.images = Images::default();
        target.program = process::executable(target.pid).unwrap_or_default();
        let text = format!(
            "process {} is executing new program: {}\n",
            target.pid,
            target.program.display()
        );
        self.tell(&text);
        if index == 0 {
            self.delete_watched();
        }
        self.read_modules(index)?;
        self.watch_libraries(index)?;
        self.relocate_in(index);
        Ok(())
    }

    /// Leaves a target as it was found.
    pub fn detach(&mut self, index: usize) -> Result<(), Error> {
        let id = self.targets[index].id;
        self.drain();
        self.tell_foreign(index);
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
            drop(self.take_target(index));
            self.forget_addresses();
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
                Ok(Some(Happening::Event(event))) => drop(self.followed(event)),
                Ok(None) | Err(_) => break,
            }
        }
    }

    /// Without the process only the file's addresses are left; gdb keeps showing the old ones,
    /// and so do we: they are found again at the next `run`.
    pub(super) fn forget_addresses(&mut self) {
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
