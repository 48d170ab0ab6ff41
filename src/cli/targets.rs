//! Which processes `trapline trace` attaches to, those that are still to come included.

use std::time::Duration;

use crate::error::{Error, fail};
use crate::session::search::{Search, Wanted, listed};
use crate::session::{Session, events, process};

/// How often those that come are looked for while others are traced.
pub const LOOK: Duration = Duration::from_millis(20);

/// What was asked for.
pub struct Choice<'a> {
    /// `-p`
    pub targets: &'a [String],
    /// `--using`
    pub using: &'a [String],
    /// `--all`
    pub all: bool,
    /// `--wait`
    pub wait: bool,
}

impl Choice<'_> {
    /// More than one process may be traced.
    pub fn several(&self) -> bool {
        self.all || self.targets.len() > 1 || !self.using.is_empty()
    }

    /// What is wanted, and whether all that fit are.
    fn wanted(&self) -> Result<Vec<(Wanted, bool)>, Error> {
        let mut wanted = Vec::new();
        for target in self.targets {
            wanted.push((Wanted::parse(target)?, self.all));
        }
        let libraries = self.using.iter().cloned();
        wanted.extend(libraries.map(|name| (Wanted::Library(name), true)));
        Ok(wanted)
    }

    /// What is wrong with it, before anything is touched.
    pub fn check(&self) -> Result<(), Error> {
        self.wanted().map(drop)
    }

    /// Attaches to all that are there, and waits for the first one if none is and that was asked
    /// for. Gives the search for those that are still to come; `None`: there is none.
    pub fn attach(&self, session: &mut Session) -> Result<Option<Search>, Error> {
        // It begins first, so that nobody can come in between.
        let mut search = self.wait.then(Search::new);
        let mut pids: Vec<i32> = Vec::new();
        let mut missing = Vec::new();
        for (wanted, several) in self.wanted()? {
            let found = wanted.processes();
            match found.as_slice() {
                [] if !self.wait => return Err(wanted.nothing()),
                [] => missing.push(wanted.to_string()),
                [_] => {}
                many if !several => fail!(
                    "{wanted}: there are {}; give the id of one, or --all for all of them:\n{}",
                    many.len(),
                    listed(many)
                ),
                _ => {}
            }
            if let Some(search) = &mut search
                && (several || found.is_empty())
            {
                found.iter().for_each(|pid| search.knows(*pid));
                search.add(wanted, several);
            }
            pids.extend(found);
        }
        pids.sort_unstable();
        pids.dedup();
        match pids.as_slice() {
            [pid] if !self.several() => session.attach(*pid)?,
            many => {
                let refused = attach_each(session, many);
                if session.targets.is_empty() && !self.wait {
                    fail!("None of {} processes can be traced.", refused);
                }
            }
        }
        if let Some(search) = &mut search
            && session.targets.is_empty()
        {
            eprintln!(
                "trapline: waiting for {}; Ctrl-C ends that",
                missing.join(" or ")
            );
            wait(session, search);
        }
        Ok(search)
    }
}

/// Waits until one can be traced, or somebody has had enough.
fn wait(session: &mut Session, search: &mut Search) {
    while session.targets.is_empty() && !search.is_over() {
        if events::interrupted() || events::must_end() {
            return;
        }
        attach_each(session, &search.next(LOOK));
    }
}

/// Attaches to those that can be, and says which cannot; gives how many those are.
fn attach_each(session: &mut Session, pids: &[i32]) -> usize {
    let mut refused = 0;
    for pid in pids {
        if session.targets.iter().any(|target| target.pid == *pid) {
            continue;
        }
        if let Err(error) = session.attach(*pid) {
            refused += 1;
            let name = process::thread_name(*pid);
            session.output.complain(&format!(
                "warning: Process {pid} ({name}) is not traced: {error}"
            ));
        }
    }
    refused
}

/// Attaches to those that came meanwhile; true if there are any.
pub fn admit(session: &mut Session, search: &mut Search, wait: Duration) -> bool {
    let before: Vec<i32> = session.targets.iter().map(|target| target.pid).collect();
    attach_each(session, &search.next(wait));
    let new = |target: &&crate::session::Target| !before.contains(&target.pid);
    let mut any = false;
    for target in session.targets.iter().filter(new) {
        any = true;
        announce(target);
    }
    if any && let Err(error) = session.sync() {
        // The others are traced on.
        session.output.complain(&error.to_string());
    }
    any
}

/// Says that a process is traced.
pub fn announce(target: &crate::session::Target) {
    eprintln!(
        "trapline: tracing process {} ({})",
        target.pid,
        target.program.display()
    );
}
