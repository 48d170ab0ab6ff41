//! How a probe runs at its sites: by a program in the keeper, or by asking the front.

use std::cell::RefCell;
use std::sync::Arc;

use super::Session;
use super::breakpoint::{Location, Origin, Probe};
use super::variables::Variables;
use super::view::{self, Names, View};
use super::{named, returns};
use crate::engine::protocol::Then;
use crate::error::{Error, fail};
use crate::lang::rate::Rate;
use crate::lang::scope::{Unavailable, WayOut};
use crate::lang::script::{Node, Position, Resolver};
use crate::lang::statement::{Command, Statement};
use crate::lang::{self, Expr, Type, body};
use crate::probe::compile::{self, Source};
use crate::probe::named::{Shown, shown};
use crate::probe::program::{Op, Program};
use crate::record::shared::Counters;

/// How one probe runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What the keeper runs.
    pub program: Program,
    /// What follows a hit.
    pub then: Then,
    /// The program decides about the condition; otherwise the front does at each stop.
    pub condition_compiled: bool,
    /// Why the body asks the front, if it goes on by itself and yet does not compile.
    pub asks: Option<String>,
    /// The body as it is run again over a record.
    pub commands: Arc<[Command]>,
    /// The place of a named probe.
    pub place: named::Place,
    /// What each record holds of what is known there.
    pub shown: Arc<[Shown]>,
    /// What is kept at the entry of the function that is left here, an expression each.
    pub at_entry: Vec<Program>,
    /// What is known of the values there.
    pub returns: Returns,
}

/// What expressions can ask at a way out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Returns {
    /// How the function is left.
    pub way: WayOut,
    /// The expressions whose values at the entry are kept.
    pub entries: Arc<[Expr]>,
}

impl Plan {
    /// Whether its hits stop the thread.
    pub fn stops(&self) -> bool {
        matches!(self.then, Then::Stop | Then::StopOnFault)
    }
}

/// The name of a simple command, in full.
fn command(node: &Node, names: &dyn Resolver) -> Option<&'static str> {
    match node {
        Node::Simple(line) => names.resolve(&line.text).map(|(name, _)| name),
        _ => None,
    }
}

/// Whether a probe's body ends in `continue`: its hits need nobody. Commands behind it never run.
pub fn continues(probe: &Probe, names: &dyn Resolver) -> bool {
    if !probe.origin.stops() {
        return true;
    }
    probe.body.as_ref().is_some_and(|body| {
        let body = body::expand(body, names);
        body.iter().any(|node| always_continues(node, names))
    })
}

fn always_continues(node: &Node, names: &dyn Resolver) -> bool {
    let continues = |nodes: &[Node]| nodes.iter().any(|node| always_continues(node, names));
    match node {
        Node::If {
            then, otherwise, ..
        } => continues(then) && continues(otherwise),
        node => command(node, names) == Some("continue"),
    }
}

/// Whether a probe's body begins with `silent`.
pub fn is_silent(probe: &Probe) -> bool {
    match &probe.body {
        Some(body) => body
            .first()
            .is_some_and(|node| matches!(node, Node::Simple(line) if line.text == "silent")),
        None => false,
    }
}

/// A plan that leaves everything to the front.
fn stopping(parsed: Parsed, asks: Option<String>) -> Plan {
    Plan {
        program: Program {
            ops: vec![Op::Hit],
            ..Program::default()
        },
        then: Then::Stop,
        condition_compiled: matches!(parsed.condition, Ok(None)),
        asks,
        commands: parsed.body.unwrap_or_default().into(),
        place: parsed.place,
        shown: Arc::default(),
        at_entry: Vec::new(),
        returns: Returns::default(),
    }
}

/// The command number of what is recorded in front of a body, which no command of a body has.
pub const PIECES: u16 = u16::MAX;

/// What every record of a named probe holds: all that it knows where nothing else is asked for,
/// else the message's place.
fn recorded(probe: &Probe, place: &named::Place, view: &View<'_>) -> Result<Vec<Shown>, String> {
    let Some(pieces) = &place.pieces else {
        return Ok(Vec::new());
    };
    let mut list = shown(pieces, view).map_err(|error| error.to_string())?;
    if probe.body.is_some() {
        list.retain(|piece| matches!(piece.name.as_str(), "_msg.address" | "_msg.length"));
    }
    Ok(list)
}

/// Commands that read what is to be recorded.
fn reading(shown: &[Shown]) -> Vec<Command> {
    let output = |piece: &Shown| Command {
        index: PIECES,
        at: Position {
            file: piece.title.as_str().into(),
            line: 0,
        },
        statement: Statement::Output {
            letter: piece.letter,
            value: piece.expr.clone(),
        },
    };
    shown.iter().map(output).collect()
}

fn parse(probe: &Probe, names: &dyn Resolver, view: &View<'_>, place: named::Place) -> Parsed {
    let condition = match place.condition(probe.condition.as_deref()) {
        None => Ok(None),
        Some(text) => lang::parse(&text, view)
            .map(Some)
            .map_err(|e| e.to_string()),
    };
    let nodes = probe.body.as_deref().unwrap_or_default();
    let (_, nodes) = body::strip_silent(nodes);
    let nodes = body::expand(nodes, names);
    let body = body::parse_body(&nodes, names, view).map_err(|e| e.to_string());
    Parsed {
        condition,
        body,
        continues: continues(probe, names),
        shown: recorded(probe, &place, view),
        place,
    }
}

/// What decides how a probe runs at one place, beside its text.
struct Place<'a> {
    /// A function's first instruction.
    entry: bool,
    /// A way out of a function.
    out: Option<&'a returns::WayOut>,
    strict: bool,
    sample: Option<Rate>,
    always_continues: bool,
    /// Why every hit goes through the front.
    attended: Option<&'static str>,
    /// A condition that cannot be evaluated counts as true.
    doubt_stops: bool,
}

impl Place<'_> {
    /// What follows a hit that the front is told of.
    fn stopping(&self) -> Then {
        match self.doubt_stops {
            true => Then::StopOnFault,
            false => Then::Stop,
        }
    }
}

fn make(place: &Place<'_>, parsed: Parsed, view: &View<'_>, sharing: &mut Sharing<'_>) -> Plan {
    let Some(out) = place.out else {
        return make_at(place, None, parsed, view, sharing);
    };
    let kept = keep(out, &parsed, view, sharing);
    let (entries, at_entry) = kept.clone().unwrap_or_default();
    let compiled = compile::Out {
        kind: out.kind,
        function: out.function.entry,
        parts: &out.function.parts,
        entries: match &kept {
            Ok(_) => Ok(&entries),
            Err(why) => Err(*why),
        },
    };
    Plan {
        at_entry,
        returns: Returns {
            way: out.way(),
            entries: entries.as_slice().into(),
        },
        ..make_at(place, Some(compiled), parsed, view, sharing)
    }
}

/// The expressions of `$_entry` that can be kept, and the programs that keep them.
fn keep(
    out: &returns::WayOut,
    parsed: &Parsed,
    view: &View<'_>,
    sharing: &mut Sharing<'_>,
) -> Result<(Vec<Expr>, Vec<Program>), Unavailable> {
    let condition = parsed.condition.as_ref().ok().and_then(Option::as_ref);
    let commands = parsed.whole();
    let (mut kept, mut programs) = (Vec::new(), Vec::new());
    for expr in body::entries(condition, &commands) {
        if out.function.starts_again {
            return Err(Unavailable::EntryInLoop);
        }
        kept.push(expr);
        let source = compile::Out {
            kind: out.kind,
            function: out.function.entry,
            parts: &out.function.parts,
            entries: Ok(&kept),
        };
        match compile::compile_entry(kept.len() - 1, source, view, sharing) {
            Ok(program) if !program.capabilities.writes => programs.push(program),
            // The program says at the return that it was not kept.
            _ => drop(kept.pop()),
        }
    }
    Ok((kept, programs))
}

fn make_at(
    place: &Place<'_>,
    out: Option<compile::Out<'_>>,
    parsed: Parsed,
    view: &View<'_>,
    sharing: &mut Sharing<'_>,
) -> Plan {
    let allowed = |program: Program| match program.capabilities.writes && view.read_only {
        true => Err(view::READ_ONLY.to_string()),
        false => Ok(program),
    };
    let condition = match &parsed.condition {
        Ok(condition) => condition.as_ref(),
        Err(error) => {
            let error = error.clone();
            return stopping(parsed, Some(error));
        }
    };
    let whole = parsed.whole();
    let source = |body, continues| Source {
        condition,
        body,
        continues,
        entry: place.entry,
        sample: place.sample,
        out,
    };
    let mut asks = None;
    if parsed.continues {
        let compiled = match &parsed.body {
            Ok(_) if place.strict => Err("compat is strict".into()),
            Ok(_) if place.attended.is_some() => Err(place.attended.unwrap_or_default().into()),
            Err(error) => Err(error.clone()),
            Ok(_) => parsed.shown.clone().and_then(|shown| {
                let source = source(&whole, place.always_continues);
                let compiled = compile::compile(&source, view, sharing);
                let compiled = compiled.map_err(|why| why.to_string()).and_then(allowed);
                compiled.map(|program| (program, shown))
            }),
        };
        match compiled {
            Ok((program, shown)) => {
                return Plan {
                    program,
                    then: Then::Continue,
                    condition_compiled: true,
                    asks: None,
                    commands: parsed.body.unwrap_or_default().into(),
                    place: parsed.place,
                    shown: shown.into(),
                    at_entry: Vec::new(),
                    returns: Returns::default(),
                };
            }
            Err(why) => asks = Some(why),
        }
    }
    let compiled = compile::compile(&source(&[], true), view, sharing);
    match compiled.map_err(|why| why.to_string()).and_then(allowed) {
        Ok(program) => Plan {
            program,
            condition_compiled: true,
            then: place.stopping(),
            ..stopping(parsed, asks)
        },
        Err(why) => {
            let why = asks.unwrap_or(why);
            stopping(parsed, Some(why))
        }
    }
}

/// Gives variables their shared places while a program is compiled.
struct Sharing<'a> {
    variables: &'a mut Variables,
    counters: &'a Counters,
}

impl compile::Variables for Sharing<'_> {
    fn share(&mut self, name: &str, ty: &Type) -> Option<u16> {
        self.variables.share(name, ty, self.counters)
    }
}

/// What a probe's text means where it is.
struct Parsed {
    /// `Err`: it does not parse there; the front says so at the stop.
    condition: Result<Option<Expr>, String>,
    body: Result<Vec<Command>, String>,
    /// The body ends in `continue`, or the probe always does.
    continues: bool,
    /// The place of a named probe.
    place: named::Place,
    /// What is to be recorded of what is known there.
    shown: Result<Vec<Shown>, String>,
}

impl Parsed {
    /// All that is run at a hit.
    fn whole(&self) -> Vec<Command> {
        let mut commands = reading(self.shown.as_deref().unwrap_or_default());
        commands.extend_from_slice(self.body.as_deref().unwrap_or_default());
        commands
    }
}

impl Session {
    /// What a user wants to happen at each stop, if the front has to do it at this probe's.
    fn attended(&self, probe: &Probe) -> Option<&'static str> {
        if probe.origin != Origin::Break || self.show.never_stops() {
            None
        } else if self.stop_hook {
            Some("`hook-stop' runs at each stop")
        } else if self.displays && !is_silent(probe) {
            Some("`display' shows values at each stop")
        } else if probe.left > 1 {
            Some("`enable count' counts its stops")
        } else {
            None
        }
    }

    /// Decides how a probe runs at an address of a target.
    pub fn plan(&mut self, index: usize, probe: &Probe, location: &Location) -> Plan {
        let mut variables = self.variables.clone();
        let plan = self.about(index, |session| {
            session.plan_over(index, probe, location, None, &mut variables)
        });
        self.variables = variables;
        plan
    }

    /// Whether a function begins at an address of a target: where its arguments are valid.
    pub(super) fn is_entry(&self, index: usize, address: u64) -> bool {
        self.images_of(index).is_some_and(|images| {
            let symbol = images.symbol_at(address);
            symbol.is_none_or(|(_, offset)| offset == 0)
        })
    }

    /// `counters` stands for the keeper's where there is none.
    fn plan_over(
        &mut self,
        index: usize,
        probe: &Probe,
        location: &Location,
        counters: Option<&Counters>,
        variables: &mut Variables,
    ) -> Plan {
        let place = Place {
            entry: self.is_entry(index, location.address),
            out: location.out.as_ref(),
            strict: self.settings.strict,
            sample: probe.sample,
            always_continues: probe.origin != Origin::Break,
            attended: self.attended(probe),
            doubt_stops: probe.origin == Origin::Break && !self.show.never_stops(),
        };
        let names = self.names.clone();
        let named_by = Session::named_by(probe, location.address);
        let site = Some((named_by, probe.spec.clone()));
        let known = named::Place::of(location);
        let mut decide = |view: &mut View<'_>| {
            view.site = site.clone();
            let parsed = parse(probe, &*names, view, known.clone());
            let keeper = view.keeper.as_ref().map(RefCell::borrow);
            let own = keeper.as_ref().map(|keeper| keeper.counters());
            let Some(counters) = own.or(counters) else {
                return stopping(parsed, Some("there is no process yet".into()));
            };
            let mut sharing = Sharing {
                variables,
                counters,
            };
            make(&place, parsed, view, &mut sharing)
        };
        self.naming(known.clone(), |session| {
            session.with_view(|view, _| decide(view))
        })
    }

    /// A condition that is looked at wherever something happens, as a program that counts the hit too;
    /// `None` if it must be looked at here.
    pub(super) fn condition_program(&mut self, condition: Option<&str>) -> Option<Program> {
        let mut variables = self.variables.clone();
        let program = self.with_view(|view, _| {
            let parsed = condition.map(|text| lang::parse(text, view));
            let condition = parsed.transpose().ok()?;
            let source = Source {
                condition: condition.as_ref(),
                body: &[],
                continues: true,
                entry: false,
                sample: None,
                out: None,
            };
            let keeper = view.keeper.as_ref().map(RefCell::borrow);
            let mut sharing = Sharing {
                variables: &mut variables,
                counters: keeper.as_ref()?.counters(),
            };
            let program = compile::compile(&source, view, &mut sharing).ok()?;
            (!program.capabilities.writes).then_some(program)
        });
        self.variables = variables;
        program
    }

    /// What `maint print program` prints: what each of a probe's sites runs, or will run.
    pub fn program_text(&mut self, probe: &Probe) -> Result<String, Error> {
        if probe.locations.is_empty() {
            fail!("Breakpoint {} has no location yet.", probe.number);
        }
        let mut out = String::new();
        for (index, location) in probe.locations.iter().enumerate() {
            if probe.locations.len() > 1 {
                let symbol = match &location.symbol {
                    Some(symbol) => format!(" <{symbol}>"),
                    None => String::new(),
                };
                let (number, address) = (probe.number, location.address);
                out.push_str(&format!(
                    "{number}.{} at {address:#x}{symbol}:\n",
                    index + 1
                ));
            }
            out.push_str(&self.listing(probe, location)?);
        }
        Ok(out)
    }

    fn listing(&mut self, probe: &Probe, location: &Location) -> Result<String, Error> {
        // What is only shown takes no variable's place.
        let mut variables = self.variables.clone();
        let scratch = match &self.keeper {
            Some(_) => None,
            None => Some(Counters::create().map_err(|e| Error::new(e.to_string()))?),
        };
        let plan = self.plan_over(0, probe, location, scratch.as_ref(), &mut variables);
        let mut out = String::new();
        if let (Some(way), [_, ..]) = (&location.out, plan.at_entry.as_slice()) {
            out.push_str(&format!("at the entry, {:#x}:\n", way.function.entry));
            out.extend(plan.at_entry.iter().map(Program::to_string));
            out.push_str("at the way out:\n");
        }
        out.push_str(&plan.program.to_string());
        out.push_str(match plan.then {
            Then::Continue | Then::Nothing => "then the program goes on\n",
            Then::Stop => "then the thread stops\n",
            Then::StopOnFault => "then the thread stops, also if the condition fails\n",
        });
        if let Some(why) = &plan.asks {
            out.push_str(&format!("The front runs the body: {why}\n"));
        }
        Ok(out)
    }
}
