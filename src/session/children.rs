//! Processes that a target makes: let go, or followed.

use super::events::Stop;
use super::sites::{Site, unless_gone};
use super::threads::{Thread, Threads};
use super::{Session, Target, engine_error};
use crate::engine::protocol::{Birth, Children, Event, Fate, SiteSpec, TargetId, Tid};
use crate::error::Error;

/// A process that was made, as the keeper tells of it.
struct Child {
    target: TargetId,
    pid: i32,
    birth: Birth,
    fate: Fate,
    /// It has executed a program since: there is nothing of its parent's in it.
    executed: bool,
}

/// What gdb calls a way of making a process.
fn word(birth: Birth) -> &'static str {
    match birth {
        Birth::Vfork => "vfork",
        Birth::Fork | Birth::Clone => "fork",
    }
}

impl Session {
    /// What the keeper does with the processes that a target makes.
    pub(super) fn children(&self) -> Children {
        if self.show.never_stops() {
            return Children {
                keep: self.follow_children,
                stop: false,
            };
        }
        let looked_at = self.follows_child() || !self.detaches_on_fork();
        Children {
            keep: looked_at,
            stop: looked_at || self.catches_forks(),
        }
    }

    /// `set follow-fork-mode`
    fn follows_child(&self) -> bool {
        let mode = self.settings.known.get("follow-fork-mode");
        mode.is_some_and(|mode| mode == "child")
    }

    /// `set detach-on-fork`
    fn detaches_on_fork(&self) -> bool {
        let detaches = self.settings.known.get("detach-on-fork");
        detaches.is_none_or(|on| on == "on")
    }

    /// Tells the keeper what becomes of children now.
    pub fn sync_children(&mut self) -> Result<(), Error> {
        let children = self.children();
        for index in 0..self.targets.len() {
            let target = &mut self.targets[index];
            if target.children == children {
                continue;
            }
            target.children = children;
            let id = target.id;
            unless_gone(self.keeper()?.set_children(id, children))?;
        }
        Ok(())
    }

    /// A target has made a process; other events are nothing here.
    pub(super) fn followed(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Forked {
                target,
                tid,
                child: pid,
                birth,
                fate,
                ..
            } => self.forked(&Child {
                target,
                pid,
                birth,
                fate,
                executed: tid.0 == 0,
            }),
            _ => Ok(()),
        }
    }

    fn forked(&mut self, child: &Child) -> Result<(), Error> {
        match child.fate {
            Fate::Kept(id) => {
                if let Some(parent) = self.index_of(child.target) {
                    let index = self.adopt(parent, id, child);
                    self.take_over_sites(parent, index, child)?;
                    match self.show.never_stops() {
                        true => self.tell_followed(index, child.executed),
                        false if child.executed => self.sharer_executed(index)?,
                        // The stop of the thread that has made it tells more.
                        false => {}
                    }
                    self.sync()?;
                }
                Ok(())
            }
            Fate::LetGo if child.executed && child.birth == Birth::Vfork => Ok(()),
            // Its passes count until then, but gdb says so now.
            Fate::Shares if child.birth != Birth::Vfork || self.show.never_stops() => Ok(()),
            Fate::Shares if self.children().keep => Ok(()),
            Fate::LetGo | Fate::Shares => {
                let how = word(child.birth);
                let text = format!("[Detaching after {how} from child process {}]\n", child.pid);
                let parent = self.index_of(child.target);
                let stops = parent.is_some_and(|index| self.targets[index].children.stop);
                // The thread that has made it may be caught: that comes first.
                match stops && child.birth != Birth::Clone {
                    true => self.detaching = Some(text),
                    false => self.tell(&text),
                }
                Ok(())
            }
        }
    }

    /// What is to become of a child is done now, after its parent was looked at.
    pub(super) fn finish_fork(&mut self, all_stand: bool) -> Result<(), Error> {
        if let Some(text) = self.detaching.take() {
            self.tell(&text);
        }
        let Some((parent, stop, child, birth)) = self.forking.take() else {
            return Ok(());
        };
        match self.index_of(parent) {
            Some(index) => self.forks(index, &stop, child, birth, all_stand),
            None => Ok(()),
        }
    }

    /// A new process is a target like its parent; gives its index.
    fn adopt(&mut self, parent: usize, id: TargetId, child: &Child) -> usize {
        let parent = &self.targets[parent];
        let leader = Tid(child.pid);
        let mut threads = Threads::default();
        threads.add(leader);
        threads.iter_mut().for_each(|it| it.learn_name());
        let (images, sites, watch) = match child.executed {
            true => Default::default(),
            false => {
                let sites = parent.sites.iter().map(|(at, site)| (*at, site.clone()));
                (parent.images.clone(), sites.collect(), parent.watch.clone())
            }
        };
        let target = Target {
            id,
            inferior: parent.inferior,
            pid: child.pid,
            launched: parent.launched,
            exit_kill: false,
            program: parent.program.clone(),
            images,
            threads,
            stopped: parent.children.stop && !child.executed,
            selected: leader,
            previous: leader,
            waiting: Default::default(),
            sites,
            watch,
            watches: Vec::new(),
            calls: Default::default(),
            loads: Default::default(),
            policy: parent.policy,
            children: parent.children,
            late_interrupt: false,
            stale: false,
            nowhere: parent.nowhere.clone(),
            next_site: parent.next_site,
        };
        self.targets.push(target);
        self.targets.len() - 1
    }

    /// The keeper holds the parent's sites in the new process, as they were when that was made; what
    /// the front has changed since is made up for.
    fn take_over_sites(&mut self, parent: usize, index: usize, child: &Child) -> Result<(), Error> {
        let (parent, id) = (self.targets[parent].id, self.targets[index].id);
        self.targets[index].stale = self.has_exceptions(index);
        if child.executed || self.keeper()?.has_sites_of(id, parent) {
            return Ok(());
        }
        let armed = |site: &Site| site.armed.clone();
        let specs: Vec<SiteSpec> = self.targets[index]
            .sites
            .values()
            .filter_map(armed)
            .collect();
        let keeper = self.keeper()?;
        let mut others = keeper.sites(id);
        others.retain(|held| specs.iter().all(|spec| spec.id != *held));
        let others: Vec<_> = others.into_iter().map(|site| (site, false)).collect();
        // A process that has ended meanwhile is told of by an event.
        let _ = keeper.disarm_all(id, &others);
        let refused = keeper.arm_all(id, specs).unwrap_or_default();
        for (site, _) in refused {
            let mut sites = self.targets[index].sites.values_mut();
            if let Some(site) = sites.find(|it| it.id == site) {
                site.armed = None;
            }
        }
        Ok(())
    }

    /// True if some probe is for one process only, so that a new one may not have it.
    fn has_exceptions(&self, index: usize) -> bool {
        let mut probes = self.probes.iter();
        probes.any(|probe| self.is_for_another(index, &probe.spec, probe.origin))
    }

    /// A thread stands that has made a process, and if that is kept, it stands too: one of them goes
    /// on, as the user wants.
    pub(super) fn forks(
        &mut self,
        index: usize,
        stop: &Stop,
        child: i32,
        birth: Birth,
        all_stand: bool,
    ) -> Result<(), Error> {
        let kept = self.targets.iter().position(|it| it.pid == child);
        let follows = self.follows_child();
        if kept.is_none() && !(birth == Birth::Vfork && follows) {
            // Killed before it began, or with its parent's memory: then its parent waits for it.
            return self.pass_by(index, stop.tid, all_stand);
        }
        let how = word(birth);
        if follows {
            let thread = self.targets[index].threads.get(stop.tid);
            let title = thread.map(Thread::title).unwrap_or_default();
            self.tell(&format!(
                "[Attaching after {title} {how} to child process {child}]\n"
            ));
        }
        let number = self.inferiors.add();
        self.tell(&format!("[New inferior {number} (process {child})]\n"));
        let Some(kept) = kept else {
            let parent = self.targets[index].id;
            self.inferiors.sharer = Some((child, number, parent));
            // The child runs on; its parent is to see nothing of what follows.
            return Ok(());
        };
        self.targets[kept].inferior = number;
        if !follows {
            return self.pass_by(index, stop.tid, all_stand);
        }
        self.targets[kept].previous = stop.tid;
        let parent = self.targets[index].id;
        if self.detaches_on_fork() {
            let pid = self.targets[index].pid;
            self.tell(&format!(
                "[Detaching after fork from parent process {pid}]\n"
            ));
            self.let_parent_go(parent)?;
        } else {
            self.stand(index)?;
            self.running = true;
        }
        self.go_on_with(number)
    }

    /// Leaves the parent of a child that is followed instead.
    fn let_parent_go(&mut self, parent: TargetId) -> Result<(), Error> {
        let Some(index) = self.index_of(parent) else {
            return Ok(());
        };
        let result = self.keeper()?.detach(parent).map_err(|e| engine_error(&e));
        let target = self.take_target(index);
        let (inferior, pid) = (target.inferior, target.pid);
        self.inferiors.emptied(inferior);
        self.tell(&format!("[Inferior {inferior} (process {pid}) detached]\n"));
        result
    }

    /// Another inferior is the one that runs now.
    fn go_on_with(&mut self, number: u32) -> Result<(), Error> {
        self.select_inferior(number);
        match self.target() {
            Some(_) => self.release(self.current),
            None => Ok(()),
        }
    }

    /// A child has left its parent's memory by executing a program, and stands there.
    fn sharer_executed(&mut self, index: usize) -> Result<(), Error> {
        let pid = self.targets[index].pid;
        let sharer = self.inferiors.sharer.take_if(|(child, ..)| *child == pid);
        let Some((_, number, parent)) = sharer else {
            let number = self.inferiors.add();
            self.targets[index].inferior = number;
            self.tell(&format!("[New inferior {number} (process {pid})]\n"));
            return Ok(());
        };
        self.targets[index].inferior = number;
        self.targets[index].previous = Tid(0);
        let before = self.index_of(parent);
        if let Some(before) = before
            && self.detaches_on_fork()
        {
            let pid = self.targets[before].pid;
            self.tell(&format!(
                "[Detaching vfork parent process {pid} after child exec]\n"
            ));
            self.let_parent_go(parent)?;
        } else if let Some(before) = before {
            self.stand(before)?;
            self.running = true;
        }
        self.select_inferior(number);
        Ok(())
    }

    /// A child has ended with its parent's memory.
    pub(super) fn sharer_ended(
        &mut self,
        child: i32,
        code: Option<i32>,
        signal: Option<i32>,
    ) -> Result<(), Error> {
        let followed = self.inferiors.sharer.take_if(|(pid, ..)| *pid == child);
        let Some((_, number, parent)) = followed else {
            return Ok(());
        };
        if let Some(before) = self.index_of(parent)
            && self.detaches_on_fork()
        {
            let pid = self.targets[before].pid;
            self.tell(&format!(
                "[Detaching vfork parent process {pid} after child exit]\n"
            ));
            self.let_parent_go(parent)?;
        } else if let Some(before) = self.index_of(parent) {
            self.stand(before)?;
        }
        self.select_inferior(number);
        self.tell_end(number, child, code, signal);
        Ok(())
    }

    fn tell_followed(&mut self, index: usize, executed: bool) {
        // Of one that has executed a program, which program that is is told next.
        if !executed {
            let target = &self.targets[index];
            let text = format!(
                "trapline: following process {} ({})",
                target.pid,
                target.program.display()
            );
            self.output.complain(&text);
        }
    }
}
