//! `info breakpoints`, and what else lists probes, as gdb prints it.

use std::fmt::Write as _;

use super::breakpoint::{Disposition, Event, Location, Origin, Probe, Probes};
use super::returns::WayOut;
use crate::lang::script::Node;

impl Probes {
    /// What `info breakpoints` prints; `chosen` empty means all, `typed` is how they were chosen.
    /// `running`: there is a process, where what is watched has its place.
    pub fn table(&self, chosen: &[u32], typed: &str, running: bool) -> String {
        let found = self.rows(chosen, running, |_| true);
        found.unwrap_or_else(|| match chosen {
            [] => "No breakpoints or watchpoints.\n".into(),
            _ => format!("No breakpoint or watchpoint matching '{typed}'.\n"),
        })
    }

    /// The same of `info watchpoints`.
    pub fn watch_table(&self, chosen: &[u32], typed: &str, running: bool) -> String {
        let watch = |probe: &Probe| matches!(probe.event, Some(Event::Watch(_)));
        let found = self.rows(chosen, running, watch);
        found.unwrap_or_else(|| match chosen {
            [] => "No watchpoints.\n".into(),
            _ => format!("No watchpoint matching '{typed}'.\n"),
        })
    }

    fn rows(
        &self,
        chosen: &[u32],
        running: bool,
        which: impl Fn(&Probe) -> bool,
    ) -> Option<String> {
        let shown: Vec<&Probe> = self
            .iter()
            .filter(|p| chosen.is_empty() || chosen.contains(&p.number))
            .filter(|p| which(p))
            .collect();
        if shown.is_empty() {
            return None;
        }
        // Without any address the column is narrow.
        let never = |probe: &&Probe| match &probe.event {
            Some(Event::Watch(_)) => !running,
            Some(Event::Catch(_)) => true,
            None => probe.locations.is_empty() && !probe.resolved,
        };
        let width = match shown.iter().all(never) {
            true => 10,
            false => 18,
        };
        let kinds = shown.iter().map(|probe| kind(probe).len());
        let kind = kinds.max().unwrap_or(0).max(14);
        let mut out = format!(
            "Num     {:<kind$} Disp Enb {:<width$} What\n",
            "Type", "Address"
        );
        for probe in shown {
            rows(probe, (kind, width), &mut out);
        }
        Some(out)
    }
}

/// The type of a breakpoint at a function that is not chosen yet.
const CHOOSER: &str = "STT_GNU_IFUNC resolver";

fn kind(probe: &Probe) -> &'static str {
    match (probe.origin, &probe.event) {
        _ if probe.chooser.is_some() => CHOOSER,
        (_, Some(Event::Watch(watched))) => watched.kind(),
        (_, Some(Event::Catch(_))) => "catchpoint",
        (Origin::Break | Origin::Event, _) => "breakpoint",
        (Origin::Trace, _) => "trace",
        (Origin::Dprintf, _) => "dprintf",
    }
}

/// The rows of a probe; `widths` are those of the type and of the address.
fn rows(probe: &Probe, widths: (usize, usize), out: &mut String) {
    let (type_width, width) = widths;
    let locations = match &probe.chooser {
        Some(chooser) => std::slice::from_ref(chooser),
        None => probe.locations.as_slice(),
    };
    let kind = kind(probe);
    let disposition = match probe.disposition {
        Disposition::Keep => "keep",
        Disposition::Delete => "del",
        Disposition::Disable => "dis",
    };
    let only_off = matches!(locations, [only] if !only.enabled);
    let enabled = if probe.enabled && !only_off { 'y' } else { 'n' };
    let _ = write!(
        out,
        "{:<7} {kind:<type_width$} {disposition:<4} {enabled}   ",
        probe.number
    );
    match locations {
        [] if probe.event.is_some() => {
            let what = match &probe.event {
                Some(Event::Catch(catch)) => catch.row(),
                _ => probe.spec.clone(),
            };
            let _ = writeln!(out, "{:<width$} {what}", "");
        }
        [] => {
            let what = if probe.resolved {
                &probe.spec
            } else {
                &probe.typed
            };
            let _ = writeln!(out, "{:<width$} {what}", "<PENDING>");
        }
        [only] => place(only, out),
        _ => {
            let _ = writeln!(out, "{:<width$} ", "<MULTIPLE>");
        }
    }
    if let Some(condition) = &probe.condition
        && !probe.shows_condition_as_typed()
    {
        let _ = writeln!(out, "\tstop only if {condition}");
    }
    if let Some(rate) = probe.sample {
        let _ = writeln!(out, "\tsample {rate} of the hits");
    }
    if probe.hits > 0 {
        let s = if probe.hits == 1 { "" } else { "s" };
        let noun = match probe.event {
            Some(Event::Catch(_)) => "catchpoint",
            _ => "breakpoint",
        };
        let _ = writeln!(out, "\t{noun} already hit {} time{s}", probe.hits);
    }
    if probe.ignore > 0 {
        let _ = writeln!(out, "\tignore next {} hits", probe.ignore);
    }
    // gdb counts the last one with the disposition alone.
    if probe.left > 1 {
        let _ = writeln!(out, "\tdisable after next {} hits", probe.left);
    }
    // What a dprintf prints stands behind its location until that is found.
    let pending = !probe.resolved && probe.locations.is_empty();
    if let Some(body) = &probe.body
        && !(pending && probe.origin == Origin::Dprintf)
    {
        lines(body, 8, out);
    }
    if locations.len() > 1 {
        for (index, location) in locations.iter().enumerate() {
            let number = format!("{}.{}", probe.number, index + 1);
            let enabled = match (location.enabled, probe.enabled) {
                (false, _) => "n ",
                (true, true) => "y ",
                (true, false) => "y-",
            };
            let _ = write!(out, "{number:<7} {:<type_width$} {:<4} {enabled}  ", "", "");
            place(location, out);
        }
    }
    for remark in super::returns::remarks(&probe.locations) {
        let _ = writeln!(out, "\t{remark}");
    }
}

fn place(location: &Location, out: &mut String) {
    let _ = write!(out, "{:#018x} ", location.address);
    if let Some(symbol) = &location.symbol {
        let _ = write!(out, "<{symbol}>");
    }
    if let Some(remark) = location.out.as_ref().and_then(WayOut::remark) {
        let _ = write!(out, " ({remark})");
    }
    out.push('\n');
}

/// The text of a body, indented as gdb shows it.
pub fn lines(body: &[Node], indent: usize, out: &mut String) {
    let line = |text: &str, out: &mut String| {
        // A backslash at a line's end would join it with the next.
        let end = if text.ends_with('\\') { " " } else { "" };
        let _ = writeln!(out, "{:indent$}{text}{end}", "");
    };
    let joined = |word: &str, rest: &str| {
        if rest.is_empty() {
            word.to_string()
        } else {
            format!("{word} {rest}")
        }
    };
    for node in body {
        match node {
            Node::Simple(simple) | Node::LoopBreak(simple) | Node::LoopContinue(simple) => {
                line(&simple.text, out);
            }
            Node::If {
                condition,
                then,
                otherwise,
            } => {
                line(&format!("if {}", condition.text), out);
                lines(then, indent + 2, out);
                if !otherwise.is_empty() {
                    line("else", out);
                    lines(otherwise, indent + 2, out);
                }
                line("end", out);
            }
            Node::While { condition, body } => {
                line(&format!("while {}", condition.text), out);
                lines(body, indent + 2, out);
                line("end", out);
            }
            Node::Commands { arguments, body } => {
                line(&joined("commands", &arguments.text), out);
                lines(body, indent + 2, out);
                line("end", out);
            }
            Node::Define { name, body } => {
                line(&joined("define", &name.text), out);
                lines(body, indent + 2, out);
                line("end", out);
            }
            Node::Document { name, .. } => line(&joined("document", &name.text), out),
            Node::Foreign { line: foreign } => line(&foreign.text, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::breakpoint::tests::{body, probe};
    use super::*;

    #[test]
    fn the_table_is_gdbs() {
        let mut probes = Probes::default();
        probes
            .add(|n, p| probe(n, p, &[(0x1198, "main+4")]))
            .unwrap();
        probes
            .add(|n, p| Probe {
                disposition: Disposition::Delete,
                enabled: false,
                hits: 2,
                ignore: 1,
                ..probe(n, p, &[(0x1139, "n::ov(int)"), (0x113d, "n::ov(char*)")])
            })
            .unwrap();
        probes.add(|n, p| probe(n, p, &[])).unwrap();
        let first = probes.get_mut(1).unwrap();
        first.condition = Some("1==1".into());
        first.body = Some(body("if $rdi\nx/i $pc\nelse\nwhile 1\np 1\nend\nend"));
        let expected = "\
Num     Type           Disp Enb Address            What
1       breakpoint     keep y   0x0000000000001198 <main+4>
\tstop only if 1==1
        if $rdi
          x/i $pc
        else
          while 1
            p 1
          end
        end
2       breakpoint     del  n   <MULTIPLE>         
\tbreakpoint already hit 2 times
\tignore next 1 hits
2.1                         y-  0x0000000000001139 <n::ov(int)>
2.2                         y-  0x000000000000113d <n::ov(char*)>
3       breakpoint     keep y   <PENDING>          f
";
        assert_eq!(probes.table(&[], "", false), expected);
        assert_eq!(
            probes.table(&[99], "99", false),
            "No breakpoint or watchpoint matching '99'.\n"
        );
    }
}
