//! How a probe runs at its sites: by a program in the keeper, or by asking the front.

use std::sync::Arc;

use super::Session;
use super::breakpoint::{Origin, Probe};
use crate::engine::protocol::Then;
use crate::lang::script::{Node, Resolver};
use crate::lang::statement::Command;
use crate::probe::program::{Op, Program};

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
}

impl Plan {
    /// Whether its hits stop the thread.
    pub fn stops(&self) -> bool {
        self.then == Then::Stop
    }
}

/// The name of a simple command, in full.
fn command(node: &Node) -> Option<&'static str> {
    match node {
        Node::Simple(line) => crate::command::NAMES
            .resolve(&line.text)
            .map(|(name, _)| name),
        _ => None,
    }
}

/// Whether a probe's body ends in `continue`: its hits need nobody. Commands behind it never run.
pub fn continues(probe: &Probe) -> bool {
    if probe.origin == Origin::Trace {
        return true;
    }
    probe
        .body
        .as_ref()
        .is_some_and(|body| body.iter().any(always_continues))
}

fn always_continues(node: &Node) -> bool {
    match node {
        Node::If {
            then, otherwise, ..
        } => then.iter().any(always_continues) && otherwise.iter().any(always_continues),
        node => command(node) == Some("continue"),
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

impl Session {
    /// Decides how a probe runs.
    pub fn plan(&mut self, probe: &Probe) -> Plan {
        Plan {
            program: Program {
                ops: vec![Op::Hit],
                ..Program::default()
            },
            then: Then::Stop,
            condition_compiled: probe.condition.is_none(),
            asks: None,
            commands: Arc::default(),
        }
    }

    /// What `maint print program` prints.
    pub fn program_text(&mut self, probe: &Probe) -> String {
        let plan = self.plan(probe);
        let mut out = String::new();
        for (at, op) in plan.program.ops.iter().enumerate() {
            out.push_str(&format!("{at:4}  {op:?}\n"));
        }
        out.push_str(match plan.then {
            Then::Continue => "then the program goes on\n",
            Then::Stop => "then the thread stops\n",
        });
        if let Some(why) = &plan.asks {
            out.push_str(&format!("The front runs the body: {why}\n"));
        }
        out
    }
}
