//! `trapline symbols`: what can be probed in a file or a process, instead of `nm`, `c++filt` and `grep`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Parser;
use serde::Serialize;

use crate::error::{Error, fail};
use crate::record::text::escaped;
use crate::session::images::Images;
use crate::session::output::Output;
use crate::session::{process, search};
use crate::symbols::listing::{self, Probed, Row};
use crate::symbols::{
    DebugDirectories, Loaded, Modules, Pattern, memory_of, nearest_functions, split_module,
};

/// Lists the functions of a program, library or process that can be probed.
///
/// UPROBE is what a kernel uprobe on the first instruction costs: optimised (0.4 us), emulated (0.7 us),
/// stepped (10 us), refused. trapline's own engine costs 9 us on any of them.
#[derive(Debug, Parser)]
#[command(
    name = "trapline symbols",
    no_binary_name = true,
    override_usage = "trapline symbols [OPTIONS] FILE [PATTERN]\n       trapline symbols [OPTIONS] -p TARGET [[LIB:]PATTERN]"
)]
pub struct Options {
    /// A running process: its id, its program's name, or /REGEX/ on its command line.
    #[arg(short = 'p', long = "pid", value_name = "TARGET")]
    pub target: Option<String>,

    /// One JSON object a line, as schema/symbols-v1.json says.
    #[arg(long)]
    pub json: bool,

    /// Where separate debug files are looked for, with colons between; without it /usr/lib/debug.
    #[arg(long, value_name = "DIR[:DIR]")]
    pub debug_file_directory: Option<String>,

    /// Without -p the file; then what the names must contain, or /REGEX/ for the demangled names.
    /// With -p, LIB: in front keeps to one library.
    #[arg(value_name = "FILE|PATTERN")]
    pub operands: Vec<OsString>,
}

/// Runs `trapline symbols`; `arguments` is what follows that word.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Result<u8, Error> {
    let options: Options = match super::read(arguments) {
        Ok(options) => options,
        Err(status) => return Ok(status),
    };
    let (file, pattern) = operands(&options)?;
    let live = options.target.is_some();
    let (module, piece) = match &pattern {
        Some(text) if live => split_module(text),
        Some(text) => (None, text.as_str()),
        None => (None, ""),
    };
    let pattern = match piece {
        "" => Pattern::all(),
        text => Pattern::parse(text)
            .map_err(|error| Error::usage(format!("trapline symbols: {text}: {error}")))?,
    };
    let debug = options.debug_file_directory.as_deref();
    let debug = debug.map_or_else(DebugDirectories::default, DebugDirectories::new);
    let images = match (&options.target, &file) {
        (Some(target), _) => of_process(search::find(target)?, &debug)?,
        (None, Some(file)) => Images::of_file(file, &debug)?,
        (None, None) => return usage("no file: give one, or a running process with -p TARGET"),
    };
    let modules = &images.modules;
    let among = modules.among(module).map_err(|error| {
        let hint = error
            .hint()
            .map_or_else(String::new, |hint| format!("\n{hint}"));
        Error::new(format!("{error}{hint}"))
    })?;
    let printer = Printer {
        output: Output::standard(),
        json: options.json,
        live,
        wide: among
            .iter()
            .map(|&at| modules.loaded()[at].name().len())
            .max()
            .unwrap_or(0),
        found: 0,
    };
    report(printer, modules, &among, &pattern, piece)
}

fn usage<T>(text: &str) -> Result<T, Error> {
    Err(super::usage("symbols", text))
}

/// The file, without a process, and the pattern.
fn operands(options: &Options) -> Result<(Option<PathBuf>, Option<String>), Error> {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    match (&options.target, options.operands.as_slice()) {
        (None, [file]) => Ok((Some(file.into()), None)),
        (None, [file, pattern]) => Ok((Some(file.into()), Some(text(pattern)))),
        (Some(_), []) => Ok((None, None)),
        (Some(_), [pattern]) => Ok((None, Some(text(pattern)))),
        (None, []) => usage("no file: give one, or a running process with -p TARGET"),
        (None, _) => usage("more than a file and a pattern"),
        (Some(_), _) => usage("more than a pattern; -p TARGET takes the place of the file"),
    }
}

/// The modules of a process that is only looked at.
pub(super) fn of_process(pid: i32, debug: &DebugDirectories) -> Result<Images, Error> {
    process::check(pid)?;
    Images::of_process(pid, &memory_of(pid), None, debug)
}

/// Prints all rows, in the order of addresses, then says how many there were.
fn report(
    mut printer: Printer,
    modules: &Modules,
    among: &[usize],
    pattern: &Pattern,
    text: &str,
) -> Result<u8, Error> {
    for unreadable in modules.unreadable() {
        printer
            .output
            .complain(&format!("warning: {}", unreadable.error));
    }
    for line in modules.warnings() {
        printer.output.complain(&format!("warning: {line}"));
    }
    let mut order: Vec<&Loaded> = among.iter().map(|&at| &modules.loaded()[at]).collect();
    if printer.live {
        order.sort_by_key(|loaded| loaded.bias.0);
    }
    // What one module imports another one has: it is listed there.
    let mut defined: HashSet<String> = HashSet::new();
    let mut imported: Vec<(&Loaded, Row)> = Vec::new();
    let mut all = 0;
    for loaded in order {
        all += listing::list(&loaded.module, pattern, &mut |row| {
            match row.kind {
                Probed::Imported => imported.push((loaded, row)),
                _ => {
                    if printer.live {
                        defined.insert(row.linkage.clone());
                    }
                    printer.row(loaded, &row);
                }
            }
            match printer.output.is_closed() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
    }
    imported.retain(|(_, row)| defined.insert(row.linkage.clone()));
    for (loaded, row) in &imported {
        printer.row(loaded, row);
    }
    printer.output.flush();
    if printer.output.is_closed() {
        return Ok(0);
    }
    if printer.found == 0 {
        fail!("{}", nothing(modules, among, text));
    }
    eprintln!("{} of {all} symbols", printer.found);
    Ok(0)
}

/// An honest empty answer, with the names that come near.
fn nothing(modules: &Modules, among: &[usize], text: &str) -> String {
    let place = match among {
        [only] => modules.loaded()[*only].path.display().to_string(),
        many => format!("{} modules", many.len()),
    };
    if text.is_empty() {
        return format!(
            "{place}: no symbols: it was stripped (LIB+0xOFFSET still names an address)."
        );
    }
    let tables = among
        .iter()
        .map(|&at| modules.loaded()[at].module.symbols());
    let nearest = match text.starts_with('/') {
        true => Vec::new(),
        false => nearest_functions(text, tables),
    };
    match nearest.as_slice() {
        [] => format!("{place}: no function is named like {text}."),
        names => format!(
            "{place}: no function is named like {text}.  The nearest: {}.",
            names.join(", ")
        ),
    }
}

struct Printer {
    output: Output,
    json: bool,
    live: bool,
    /// The longest module name.
    wide: usize,
    found: usize,
}

impl Printer {
    fn header(&mut self) {
        let (live, wide) = (self.live, self.wide.max(6));
        match (self.json, live) {
            (true, _) => {}
            (false, false) => self.output.print(&format!(
                "{:<18} {:>8}  {:<10}  {:<9}  NAME\n",
                "ADDRESS", "SIZE", "KIND", "UPROBE"
            )),
            (false, true) => self.output.print(&format!(
                "{:<18} {:<18} {:>8}  {:<10}  {:<9}  {:<wide$}  NAME\n",
                "ADDRESS", "IN FILE", "SIZE", "KIND", "UPROBE", "MODULE"
            )),
        }
    }

    fn row(&mut self, loaded: &Loaded, row: &Row) {
        if self.found == 0 {
            self.header();
        }
        self.found += 1;
        let line = match self.json {
            true => json(loaded, row, self.live),
            false => self.text(loaded, row),
        };
        self.output.print(&line);
    }

    fn text(&self, loaded: &Loaded, row: &Row) -> String {
        let address = |address: Option<u64>| match address {
            Some(address) => format!("{address:#018x}"),
            None => "-".into(),
        };
        let file = row.address.map(|address| address.0);
        let size = match (row.address, row.size) {
            (None, _) => "-".into(),
            // Up to the next symbol: the file does not say.
            (_, 0) => format!("~{}", row.extent),
            (_, size) => size.to_string(),
        };
        let places = match self.live {
            true => {
                let runtime = row.address.map(|address| address.runtime(loaded.bias));
                format!("{:<18} {:<18}", address(runtime), address(file))
            }
            false => format!("{:<18}", address(file)),
        };
        let module = match self.live {
            true => format!("{:<1$}  ", escaped(&loaded.name()), self.wide.max(6)),
            false => String::new(),
        };
        let (kind, price) = (row.kind.word(), row.price.map_or("-", |price| price.word()));
        format!(
            "{places} {size:>8}  {kind:<10}  {price:<9}  {module}{}{}\n",
            escaped(&row.name),
            escaped(&linkage(row))
        )
    }
}

/// What stands behind the demangled name: the mangled one, and a version that is not the default.
fn linkage(row: &Row) -> String {
    let version = match &row.version {
        Some((version, false)) if row.kind != Probed::Imported => format!("@{version}"),
        _ => String::new(),
    };
    match row.name == row.linkage {
        true => version,
        false => format!("  {}{version}", row.linkage),
    }
}

/// A line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    v: u8,
    #[serde(rename = "type")]
    kind_of_line: &'a str,
    name: &'a str,
    linkage: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    module: &'a str,
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<String>,
    size: String,
    extent: String,
    kind: &'a str,
    uprobe: Option<&'a str>,
}

fn json(loaded: &Loaded, row: &Row, live: bool) -> String {
    let runtime = row.address.filter(|_| live);
    let line = Line {
        v: 1,
        kind_of_line: "symbol",
        name: &row.name,
        linkage: &row.linkage,
        version: row.version.as_ref().map(|(version, _)| version.as_str()),
        module: &loaded.path.to_string_lossy(),
        address: row.address.map(|address| format!("{:#x}", address.0)),
        runtime: runtime.map(|address| format!("{:#x}", address.runtime(loaded.bias))),
        size: row.size.to_string(),
        extent: row.extent.to_string(),
        kind: row.kind.word(),
        uprobe: row.price.map(|price| price.word()),
    };
    let mut text = serde_json::to_string(&line).unwrap_or_default();
    text.push('\n');
    text
}
