//! Processes that a target makes: let go, or followed.

use super::sites::{Site, is_gone};
use super::threads::Threads;
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

impl Session {
    /// What the keeper does with the processes that a target makes.
    pub(super) fn children(&self) -> Children {
        Children {
            keep: self.follow_children,
            stop: false,
        }
    }

    /// Tells the keeper what becomes of children now.
    pub(super) fn sync_children(&mut self) -> Result<(), Error> {
        let children = self.children();
        for index in 0..self.targets.len() {
            let target = &mut self.targets[index];
            if target.children == children {
                continue;
            }
            target.children = children;
            let id = target.id;
            match self.keeper()?.set_children(id, children) {
                Err(error) if !is_gone(&error) => return Err(engine_error(&error)),
                // It has ended meanwhile, which an event tells.
                Ok(()) | Err(_) => {}
            }
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
                    self.tell_followed(index, child.executed);
                    self.sync()?;
                }
                Ok(())
            }
            Fate::LetGo if child.executed && child.birth == Birth::Vfork => Ok(()),
            // Its passes count until then, but gdb says so now.
            Fate::Shares if child.birth != Birth::Vfork || self.follow_children => Ok(()),
            Fate::LetGo | Fate::Shares => {
                let how = match child.birth {
                    Birth::Vfork => "vfork",
                    Birth::Fork | Birth::Clone => "fork",
                };
                self.tell(&format!(
                    "[Detaching after {how} from child process {}]\n",
                    child.pid
                ));
                Ok(())
            }
        }
    }

    /// A new process is a target like its parent; gives its index.
    fn adopt(&mut self, parent: usize, id: TargetId, child: &Child) -> usize {
        let parent = &self.targets[parent];
        let leader = Tid(child.pid);
        let mut threads = Threads::default();
        threads.add(leader);
        threads.iter_mut().for_each(|it| it.learn_name(child.pid));
        let (images, sites, watch) = match child.executed {
            true => Default::default(),
            false => {
                let sites = parent.sites.iter().map(|(at, site)| (*at, site.clone()));
                (parent.images.clone(), sites.collect(), parent.watch.clone())
            }
        };
        let target = Target {
            id,
            pid: child.pid,
            launched: parent.launched,
            program: parent.program.clone(),
            images,
            threads,
            stopped: false,
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

    fn tell_followed(&mut self, index: usize, executed: bool) {
        // Of one that has executed a program, which program that is is told next.
        if self.show.never_stops() && !executed {
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
