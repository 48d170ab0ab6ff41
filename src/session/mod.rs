//! One session: the program that is looked at, its probes, its variables, and what happens to it.
//!
//! The commands above it ask for changes and for the next thing that happens ([`Session::wait`]);
//! the engine below it knows sites and threads only. A *probe* is what the user asked for
//! ([`breakpoint`]); where it is ([`sites`]) and what each *site* runs is made from it before a target
//! goes on ([`arming`]).

mod announce;
pub(crate) mod arming;
pub(crate) mod breakpoint;
pub(crate) mod catching;
pub(crate) mod children;
mod decide;
pub(crate) mod event_stops;
pub(crate) mod events;
mod foreign;
pub(crate) mod images;
pub(crate) mod inferiors;
pub(crate) mod libraries;
pub(crate) mod lifecycle;
pub(crate) mod messages;
pub(crate) mod named;
pub(crate) mod numbers;
pub(crate) mod output;
pub(crate) mod plan;
pub(crate) mod process;
pub(crate) mod replay;
pub(crate) mod returns;
pub(crate) mod search;
pub(crate) mod settings;
pub(crate) mod signals;
pub(crate) mod sites;
pub(crate) mod table;
pub(crate) mod threads;
pub(crate) mod variables;
pub(crate) mod view;
pub(crate) mod watching;
pub(crate) mod wording;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::engine::client::{EngineError, Keeper};
use crate::engine::protocol::{
    Birth, Calls, Children, Failure, Reason, SignalPolicy, SiteId, TargetId, Tid, WatchSpec,
};
use crate::error::Error;
use crate::lang::examine::ExamineState;
use crate::lang::script::Resolver;
use crate::lang::{ScopeError, Unreadable};
use crate::probe::named::Registry;
use crate::record::sink::Sinks;

use breakpoint::Probes;
use events::Stop;
use images::Images;
use inferiors::Inferiors;
use libraries::Watch;
use output::Output;
use settings::Settings;
use sites::Site;
use threads::Threads;
use variables::Variables;
use view::{Source, View};

/// A process under the keeper.
pub struct Target {
    /// The engine's number.
    pub id: TargetId,
    /// gdb's number of the inferior whose process it is.
    pub inferior: u32,
    /// Its process id.
    pub pid: i32,
    /// We started it (it is killed at the end), or attached (it is left running).
    pub launched: bool,
    /// What it runs.
    pub program: PathBuf,
    /// Its modules.
    pub images: Images,
    /// Its threads.
    pub threads: Threads,
    /// Every thread stands.
    pub stopped: bool,
    /// The thread that commands are about.
    pub selected: Tid,
    /// The thread that was selected when the target went on last.
    pub previous: Tid,
    /// Stops that were not presented yet.
    pub waiting: VecDeque<Stop>,
    /// By address.
    pub sites: BTreeMap<u64, Site>,
    /// The site where the dynamic linker tells that it has mapped something.
    pub watch: Option<Watch>,
    /// What is watched in it at present.
    pub watches: Vec<WatchSpec>,
    /// The system calls that stop it at present.
    pub calls: Calls,
    /// What libraries were loaded and unloaded since that was told of last.
    pub loads: catching::Loads,
    /// What its signals do at present.
    pub policy: SignalPolicy,
    /// It ends with this process, as far as the keeper knows.
    pub exit_kill: bool,
    /// What the keeper does with the processes that it makes.
    pub children: Children,
    /// A Ctrl-C was presented while the program's own SIGINT for it was still on its way.
    pub late_interrupt: bool,
    /// What its sites run is to be looked at, and of no other target.
    pub stale: bool,
    /// The probes that are in other processes and not in this one, which was said.
    pub nowhere: BTreeSet<u32>,
    next_site: u32,
}

impl Target {
    /// Its modules are known. Those of one that has just executed a program are not yet.
    fn is_read(&self) -> bool {
        !self.images.modules.loaded().is_empty()
    }

    /// A site by its number. `pc` is where it is if the thread's registers are still those of the
    /// hit, and the program is still the same one.
    fn site(&self, id: SiteId, pc: Option<u64>) -> Option<&Site> {
        let there = pc.and_then(|pc| self.sites.get(&pc));
        there
            .filter(|site| site.id == id)
            .or_else(|| self.sites.values().find(|site| site.id == id))
    }
}

/// No target has this index.
const NOBODY: usize = usize::MAX;

/// What is said of a stop; what a user wants to happen at each stop comes before and behind it.
#[derive(Debug)]
pub struct Announced {
    /// The text, nothing for a silent breakpoint.
    pub text: String,
    /// Whether the stop is shown at all.
    pub shown: bool,
}

/// See the module.
pub struct Session {
    /// Where text goes.
    pub output: Output,
    /// The commands by their names and abbreviations.
    names: Rc<dyn Resolver>,
    /// What the user asked for.
    pub probes: Probes,
    /// The named probes that are known.
    pub named: Registry,
    /// The place of a named probe, if any, that expressions are about instead of where a thread is.
    pub naming: Option<named::Place>,
    /// Convenience variables and history.
    pub variables: Variables,
    /// What `set` changes.
    pub settings: Settings,
    /// What happens to signals.
    pub signals: signals::Signals,
    /// The program's file and its symbols, before there is a process.
    pub program: Option<Images>,
    /// `--batch`: nobody looks at a stop; the next command follows at once.
    pub unattended: bool,
    /// The processes. At the prompt there are several only where children are followed or kept.
    pub targets: Vec<Target>,
    /// Which of them expressions and commands are about; [`NOBODY`], if the current inferior has none.
    pub current: usize,
    /// The processes by gdb's numbers.
    pub inferiors: Inferiors,
    /// How hits are shown.
    pub show: replay::Show,
    /// Where hits are written, in a front that never stops its targets.
    pub sinks: Option<Sinks>,
    /// The processes are looked at and not changed.
    pub read_only: bool,
    /// The processes that targets make are traced too.
    pub follow_children: bool,
    /// A launched program's standard output goes to standard error.
    pub stdout_to_stderr: bool,
    /// The targets are meant to run: nothing is presented at the moment.
    pub running: bool,
    /// They run while a person types commands.
    pub background: bool,
    /// Probes, modules or types changed since the sites were made.
    pub stale: bool,
    /// Some probe was found in another target than the first one.
    elsewhere: bool,
    /// What `x` goes on with.
    pub examine: ExamineState,
    /// How many hits are still to be shown (`--count`).
    pub limit: Option<u64>,
    /// The user has commands that run at each stop (`define hook-stop`).
    pub stop_hook: bool,
    /// Expressions are displayed at each stop.
    pub displays: bool,
    /// The text of the stop that is to be presented.
    pub announced: Option<Announced>,
    /// What the last arming did.
    pub arming: arming::Arming,
    /// The probes that the others go without, since none of their places could be armed, and why.
    pub unarmed: BTreeMap<u32, String>,
    keeper: Option<Keeper>,
    /// A thread that was caught when it had made a process, what that is, and how it came to be.
    forking: Option<(TargetId, Stop, i32, Birth)>,
    /// What is said of a process that was let go, when its parent has been looked at.
    detaching: Option<String>,
    /// When Ctrl-C came, as long as nothing was stopped for it.
    asked_to_stop: Option<Instant>,
    /// When text was made visible last.
    flushed: Instant,
}

/// How long text may wait to be made visible while more comes.
const FLUSH: Duration = Duration::from_millis(50);

impl Session {
    /// With nothing loaded.
    /// A session without a process; `names` tells what the words of a body stand for.
    pub fn new(output: Output, names: Rc<dyn Resolver>) -> Session {
        Session {
            output,
            names,
            probes: Probes::default(),
            named: Registry::builtin(),
            naming: None,
            variables: Variables::default(),
            settings: Settings::default(),
            signals: signals::Signals::default(),
            program: None,
            unattended: false,
            targets: Vec::new(),
            current: 0,
            inferiors: Inferiors::default(),
            show: replay::Show::default(),
            sinks: None,
            read_only: false,
            flushed: Instant::now(),
            arming: arming::Arming::default(),
            unarmed: BTreeMap::new(),
            follow_children: false,
            stdout_to_stderr: false,
            running: false,
            background: false,
            stale: false,
            elsewhere: false,
            examine: ExamineState::default(),
            limit: None,
            stop_hook: false,
            displays: false,
            announced: None,
            forking: None,
            detaching: None,
            asked_to_stop: None,
            keeper: None,
        }
    }

    /// Makes visible what was written.
    pub fn flush(&mut self) {
        self.flushed = Instant::now();
        self.output.flush();
        if let Some(sinks) = &mut self.sinks {
            sinks.flush();
            for note in sinks.notes() {
                self.output.complain(&note);
            }
        }
    }

    /// The same, now and then.
    pub fn flush_in_time(&mut self) {
        if self.flushed.elapsed() > FLUSH {
            self.flush();
        }
    }

    /// Nothing of what is shown would be read by anybody.
    pub fn nobody_reads(&self) -> bool {
        match &self.sinks {
            Some(sinks) => sinks.is_over(),
            None => self.output.is_closed(),
        }
    }

    /// The process that commands are about.
    pub fn target(&self) -> Option<&Target> {
        self.targets.get(self.current)
    }

    /// The process that commands are about.
    pub fn target_mut(&mut self) -> Option<&mut Target> {
        self.targets.get_mut(self.current)
    }

    /// Makes every thread stand, if there is a process that runs.
    pub fn need_stand(&mut self) -> Result<(), Error> {
        match self.target() {
            Some(target) if !target.stopped && self.background => {
                Err(Error::new("Selected thread is running."))
            }
            Some(target) if !target.stopped && !self.running => self.stand(self.current),
            _ => Ok(()),
        }
    }

    /// Runs `f` with another process as the one that expressions are about.
    fn about<R>(&mut self, index: usize, f: impl FnOnce(&mut Session) -> R) -> R {
        let before = std::mem::replace(&mut self.current, index);
        let result = f(self);
        self.current = before;
        result
    }

    /// A process is gone. At the prompt its inferior stays the current one; elsewhere the first of the
    /// others is the one that expressions are about.
    fn take_target(&mut self, index: usize) -> Target {
        let target = self.targets.remove(index);
        self.inferiors.ended(&target);
        match self.show.never_stops() {
            true => self.current = 0,
            false => self.select_inferior(self.inferiors.current),
        }
        if self.targets.is_empty() {
            self.background = false;
        } else if (index == 0 || self.elsewhere) && self.targets.iter().any(Target::is_read) {
            self.relocate();
        }
        target
    }

    /// The same, or gdb's complaint.
    pub fn need_target(&self) -> Result<&Target, Error> {
        self.target()
            .ok_or_else(|| Error::new("The program is not being run."))
    }

    /// The modules that names are looked up in.
    pub fn images(&self) -> Option<&Images> {
        self.target().map(|t| &t.images).or(self.program.as_ref())
    }

    /// The keeper, started now if it was not yet.
    pub fn keeper(&mut self) -> Result<&mut Keeper, Error> {
        if self.keeper.is_none() {
            let keeper = Keeper::start(RING_BYTES).map_err(|e| engine_error(&e))?;
            // `ignore` may have been said before there was anything to run.
            for probe in self.probes.iter() {
                sites::store_ignore(&keeper, probe);
            }
            self.keeper = Some(keeper);
        }
        self.keeper
            .as_mut()
            .ok_or_else(|| engine_error(&EngineError::KeeperGone))
    }

    /// Runs `f` over what the selected thread can reach; over the files without a process.
    pub fn with_view<R>(&mut self, f: impl FnOnce(&mut View<'_>, &mut Output) -> R) -> R {
        let selected = self.target().map(|t| t.selected);
        self.with_view_of(selected, f)
    }

    /// The same for a given thread of the current target.
    pub fn with_view_of<R>(
        &mut self,
        tid: Option<Tid>,
        f: impl FnOnce(&mut View<'_>, &mut Output) -> R,
    ) -> R {
        self.with_all(tid, |view, output, _| f(view, output))
    }

    /// The same, with what `x` remembers.
    pub fn with_all<R>(
        &mut self,
        tid: Option<Tid>,
        f: impl FnOnce(&mut View<'_>, &mut Output, &mut ExamineState) -> R,
    ) -> R {
        let registers = tid.and_then(|tid| self.registers(tid));
        let here = registers.as_ref().map(|registers| registers.pc());
        let reading = match &self.naming {
            Some(place) => place.reading(),
            None => here.and_then(|pc| self.place_at(self.current, pc, None).reading()),
        };
        let returns = tid.map_or_else(Vec::new, |tid| self.returns_at(tid));
        let site = tid.and_then(|tid| self.site_at(tid));
        let (source, names): (_, &dyn view::Names) =
            match (self.targets.get(self.current), &self.program) {
                (Some(target), _) => (
                    Source::Live {
                        target: target.id,
                        pid: target.pid,
                        tid: tid.unwrap_or(target.selected),
                    },
                    &target.images,
                ),
                (None, Some(images)) => (Source::Files, images),
                (None, None) => (Source::Files, &images::NOTHING),
            };
        let mut view = View {
            source,
            names,
            variables: &mut self.variables,
            keeper: self.keeper.as_mut().map(RefCell::new),
            registers: registers.as_deref().copied(),
            returns,
            site,
            comm: None,
            read_only: self.read_only,
            wrote: false,
            warnings: RefCell::default(),
            reading,
        };
        let result = f(&mut view, &mut self.output, &mut self.examine);
        for text in view.warnings.take() {
            self.output.complain(&format!("warning: {text}"));
        }
        let (after, wrote) = (view.registers, view.wrote);
        if wrote {
            self.watched_memory_written();
        }
        if after != registers.as_deref().copied()
            && let (Some(tid), Some(after)) = (tid, after)
            && let Some(target) = self.targets.get_mut(self.current)
            && let Some(thread) = target.threads.get_mut(tid)
        {
            thread.registers = Some(Box::new(after));
        }
        self.stale |= std::mem::take(&mut self.variables.retyped);
        result
    }

    /// The breakpoint at which the selected thread stands.
    pub fn stopped_at(&self) -> Option<u32> {
        let target = self.target()?;
        match target.threads.get(target.selected)?.reason? {
            Reason::Probe { probe, .. } => self.probes.at_place(probe).map(|p| p.number),
            _ => target.threads.get(target.selected)?.stopped_by,
        }
    }

    /// The registers of a thread of the current target, if it stands.
    pub fn registers(&mut self, tid: Tid) -> Option<Box<crate::arch::Registers>> {
        let target = self.targets.get_mut(self.current)?;
        let thread = target.threads.get_mut(tid)?;
        if thread.registers.is_none() && target.stopped {
            let registers = self.keeper.as_mut()?.registers(target.id, tid).ok()?;
            thread.stands(None, Box::new(registers));
        }
        thread.registers.clone()
    }
}

/// How much of the hits waits for a slow reader before hits are dropped: bytes per target.
const RING_BYTES: usize = 64 << 20;

/// The instruction decoder as statements want it.
pub fn disassemble(
    bytes: &[u8],
    address: u64,
    symbol: &dyn Fn(u64) -> Option<String>,
) -> Option<(usize, String)> {
    let instruction = crate::arch::disassemble(bytes, address, symbol)?;
    Some((instruction.length, instruction.text))
}

/// What the engine refused, as an error of a command.
pub fn engine_error(error: &EngineError) -> Error {
    Error::new(error.to_string())
}

/// What a failed write means for an expression.
fn write_error(address: u64, error: EngineError) -> ScopeError {
    match error {
        EngineError::Refused(Failure::Memory { address }) => Unreadable { address }.into(),
        EngineError::Refused(Failure::System { .. }) => Unreadable { address }.into(),
        other => ScopeError::Refused(engine_error(&other).message),
    }
}
