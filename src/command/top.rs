//! The commands of the top level, of `info` and of `maint`.

use super::interpreter::{Action, Call, Interpreter};
use super::table::{self, Entry, Table};
use super::user::Found;
use super::{
    breakpoints, catch, data, display, info, lists, probes, rbreak, returning, running, save,
    settings, shell, signals, source, user, watch,
};
use crate::error::{Error, fail};

/// Every command.
pub static TOP: Table<Action> = Table {
    prefix: "",
    // Of commands that gdb has and that do not exist here.
    taken: &[
        "s", "n", "u", "l", "f", "j", "w", "si", "ni", "bt", "where", "disas", "fin", "o", "co",
        "comp",
    ],
    entries: &[
        Entry {
            name: "alias",
            aliases: &[],
            help: "Give a command another name.\nUsage: alias [-a] [--] ALIAS = COMMAND [DEFAULT-ARGS...]\n-a: the name is found by all its letters only.",
            action: user::alias,
        },
        Entry {
            name: "apropos",
            aliases: &[],
            help: "Look for commands by their names and help.\nUsage: apropos [-v] REGEXP\n-v: with all of their help.",
            action: super::help::apropos,
        },
        Entry {
            name: "attach",
            aliases: &[],
            help: "Attach to a running process.\nUsage: attach TARGET\nTARGET is a process id, the exact name of a program, or /REGEX/ on the command line.",
            action: running::attach,
        },
        Entry {
            name: "awatch",
            aliases: &[],
            help: "Stop the program when memory is read or written.\nUsage: awatch [-l|-location] EXPRESSION [if CONDITION]\nAs watch.",
            action: watch::awatch,
        },
        Entry {
            name: "break",
            aliases: &["brea", "bre", "br", "b"],
            help: "Set a breakpoint.\nUsage: break [LOCATION] [if CONDITION]\nLOCATION is a function, Class::method, Class::method(int), a mangled name, LIB.so:FUNCTION,\nLIB+0xOFFSET, FILE:0xOFFSET, /REGEX/ or LIB:/REGEX/ (every function whose demangled name matches),\nor *EXPRESSION (that very address).\nLOCATION%return is every way out of the function: there $_retval is what it returns, and\n$_entry(EXPRESSION) what the expression was when that call began.\nWithout LOCATION: where the selected thread stands.",
            action: breakpoints::break_,
        },
        Entry {
            name: "call",
            aliases: &[],
            help: "Show the value of an expression, unless it is void.\nUsage: call[/F] EXPRESSION\nFunctions of the program are never called.",
            action: data::call,
        },
        Entry {
            name: "catch",
            aliases: &[],
            help: "Stop the program when something happens.\nUsage: catch exec|fork|load|signal|syscall|unload|vfork [WHAT...]\nWhat each takes: help catch EVENT.",
            action: catch::catch,
        },
        Entry {
            name: "cd",
            aliases: &[],
            help: "Change the working directory.\nUsage: cd [DIRECTORY]",
            action: settings::cd,
        },
        Entry {
            name: "clear",
            aliases: &["cl"],
            help: "Delete the breakpoints at a location.\nUsage: clear [LOCATION]\nWithout LOCATION: where the selected thread stands.",
            action: lists::clear,
        },
        Entry {
            name: "commands",
            aliases: &[],
            help: "Set the commands that run when a breakpoint is hit.\nUsage: commands [N...]\nThey follow, one a line, up to `end'. Without N: those of the last breakpoint.\n`silent' as the first leaves out the announcement of the hit.\nA body that says `continue' runs without stopping the program where that is possible.",
            action: |_, _| fail!("commands: a body must follow."),
        },
        Entry {
            name: "condition",
            aliases: &[],
            help: "Give a breakpoint a condition, or take it away.\nUsage: condition N [EXPRESSION]",
            action: lists::condition,
        },
        Entry {
            name: "continue",
            aliases: &["fg", "c"],
            help: "Let the program go on.\nUsage: continue [N] [&]\nN: stop at this breakpoint only the Nth time.\n&: in the background; the prompt comes back at once, and what happens is shown above it.",
            action: running::continue_,
        },
        Entry {
            name: "define",
            aliases: &["def"],
            help: "Define a command of your own.\nUsage: define NAME\nIts commands follow, one a line, up to `end'. In them $argc is the number of arguments of a\ncall and $arg0, $arg1 and so on are the arguments, put in as text.\nA command `hook-NAME' runs before NAME, `hookpost-NAME' behind it; `hook-stop' runs at each stop.",
            action: |_, _| fail!("Argument required (name of command to define)."),
        },
        Entry {
            name: "define-prefix",
            aliases: &[],
            help: "Define a name that begins the names of other commands.\nUsage: define-prefix NAME",
            action: user::define_prefix,
        },
        Entry {
            name: "delay",
            aliases: &[],
            help: "In a probe's body: hold the thread that hit, and nobody else.\nUsage: delay TIME\nTIME has a unit: 5ms, 100us, 1s.",
            action: returning::delay,
        },
        Entry {
            name: "delete",
            aliases: &["del", "d"],
            help: "Delete breakpoints, or displayed expressions.\nUsage: delete [N...]\n       delete display [N...]\nWithout N: all.",
            action: lists::delete,
        },
        Entry {
            name: "detach",
            aliases: &[],
            help: "Leave the process; it runs on as if nobody had been there.\nUsage: detach\n       detach inferiors N...",
            action: running::detach,
        },
        Entry {
            name: "disable",
            aliases: &["disa", "dis"],
            help: "Disable breakpoints, locations of them, or displayed expressions.\nUsage: disable [N|N.LOCATION...]\n       disable display [N...]\nWithout N: all.",
            action: lists::disable,
        },
        Entry {
            name: "display",
            aliases: &["disp"],
            help: "Show the value of an expression at each stop.\nUsage: display[/FMT] [EXPRESSION]\nFMT is a format letter, or a count, a format and a size as for x, which shows memory.\nWithout EXPRESSION: show all now.",
            action: display::display,
        },
        Entry {
            name: "document",
            aliases: &[],
            help: "Give a command of your own a help text.\nUsage: document NAME\nThe text follows, up to a line that says `end'.",
            action: |_, _| fail!("Argument required (name of command to define)."),
        },
        Entry {
            name: "dprintf",
            aliases: &[],
            help: "Print at each hit of a location, and go on.\nUsage: dprintf LOCATION,\"FORMAT\",EXPRESSION...",
            action: breakpoints::dprintf,
        },
        Entry {
            name: "echo",
            aliases: &[],
            help: "Print a text; \\n and the other escapes of C are read.\nUsage: echo TEXT",
            action: data::echo,
        },
        Entry {
            name: "enable",
            aliases: &["en"],
            help: "Enable breakpoints, locations of them, or displayed expressions.\nUsage: enable [once|delete|count C] [N|N.LOCATION...]\n       enable display [N...]\nWithout N: all. once: disable at the next stop there; delete: delete then; count: disable at the Cth.",
            action: lists::enable,
        },
        Entry {
            name: "file",
            aliases: &[],
            help: "Use a program: its symbols, and for `run'.\nUsage: file [PROGRAM]",
            action: running::file,
        },
        Entry {
            name: "guile",
            aliases: &["gu"],
            help: "Scripts in other languages are left out: a block of theirs is skipped, which is said.",
            action: foreign,
        },
        Entry {
            name: "guile-repl",
            aliases: &["gr"],
            help: "Scripts in other languages are left out: a block of theirs is skipped, which is said.",
            action: foreign,
        },
        Entry {
            name: "handle",
            aliases: &[],
            help: "Say what happens when the program gets a signal.\nUsage: handle SIGNAL... [ACTION...]\nSIGNAL is a name, a number from 1 to 15, a range of such numbers, or `all' (but for those that the\ndebugger uses itself).\nACTION is stop or nostop (does the program stop), print or noprint (is it told), pass or nopass\n(does the program get it; also noignore, ignore). stop implies print, noprint implies nostop.\nWith trapline trace, where nothing stops, only nopass means something.",
            action: signals::handle,
        },
        Entry {
            name: "help",
            aliases: &["h"],
            help: "Tell about commands.\nUsage: help [COMMAND|TOPIC]\nWithout COMMAND: all of them, by topic.",
            action: help,
        },
        Entry {
            name: "hexdump",
            aliases: &[],
            help: "Show memory as hexadecimal numbers and text.\nUsage: hexdump ADDRESS, LENGTH",
            action: data::hexdump,
        },
        Entry {
            name: "if",
            aliases: &[],
            help: "Run commands if an expression is not zero.\nUsage: if EXPRESSION\nThe commands follow, one a line, up to `else' or `end'.",
            action: |_, _| fail!("if command requires an argument."),
        },
        Entry {
            name: "ignore",
            aliases: &[],
            help: "Let a breakpoint's next hits pass.\nUsage: ignore N COUNT",
            action: lists::ignore,
        },
        Entry {
            name: "inferior",
            aliases: &[],
            help: "Select the process that commands are about.\nUsage: inferior [N]\n`set detach-on-fork off' and `set follow-fork-mode child' make more than one.",
            action: running::inferior,
        },
        Entry {
            name: "info",
            aliases: &["inf", "i"],
            help: "Tell about the program and the session.",
            action: |i, call| {
                if call.arguments.is_empty() {
                    let text = format!("List of info subcommands:\n\n{}\n", INFO.list());
                    i.print(&text);
                    return Ok(());
                }
                i.sub(&INFO, call)
            },
        },
        Entry {
            name: "init-if-undefined",
            aliases: &[],
            help: "Give a convenience variable a value if it has none.\nUsage: init-if-undefined $VARIABLE = EXPRESSION",
            action: data::init_if_undefined,
        },
        Entry {
            name: "interrupt",
            aliases: &[],
            help: "Stop the program that runs in the background.\nUsage: interrupt",
            action: running::interrupt,
        },
        Entry {
            name: "kill",
            aliases: &["k"],
            help: "End the program.\nUsage: kill\n       kill inferiors N...",
            action: running::kill,
        },
        Entry {
            name: "maintenance",
            aliases: &["maint", "mt"],
            help: "maintenance print program N: what breakpoint N runs at its sites.",
            action: maintenance,
        },
        Entry {
            name: "output",
            aliases: &[],
            help: "Show the value of an expression, without a new line and without the history.\nUsage: output[/F] EXPRESSION",
            action: data::output,
        },
        Entry {
            name: "print",
            aliases: &["inspect", "p"],
            help: "Show the value of an expression and keep it in the history.\nUsage: print[/F] [EXPRESSION]\nF is a format letter: o x d u t f a c s z.\nWithout EXPRESSION: the last value.",
            action: data::print,
        },
        Entry {
            name: "printf",
            aliases: &[],
            help: "Print values by a format, as in C.\nUsage: printf \"FORMAT\", EXPRESSION...",
            action: data::printf,
        },
        Entry {
            name: "pwd",
            aliases: &[],
            help: "Show the working directory.",
            action: settings::pwd,
        },
        Entry {
            name: "python",
            aliases: &["py"],
            help: "Scripts in other languages are left out: a block of theirs is skipped, which is said.",
            action: foreign,
        },
        Entry {
            name: "python-interactive",
            aliases: &["pi"],
            help: "Scripts in other languages are left out: a block of theirs is skipped, which is said.",
            action: foreign,
        },
        Entry {
            name: "queue-signal",
            aliases: &[],
            help: "Say which signal the selected thread gets when it goes on.\nUsage: queue-signal SIGNAL\nSIGNAL is as for `signal'; one that `handle' keeps from the program is refused.",
            action: signals::queue_signal,
        },
        Entry {
            name: "quit",
            aliases: &["exit", "q"],
            help: "Leave trapline: a launched program is ended, another one is left running.\nUsage: quit [STATUS]",
            action: running::quit,
        },
        Entry {
            name: "rbreak",
            aliases: &["rb"],
            help: "Set a breakpoint on each function that a regular expression matches.\nUsage: rbreak [LIB:]REGEX\nREGEX has grep's syntax and is looked for in the demangled names. `commands' that follows is for all of them.\nOne breakpoint on all of them together: break /REGEX/.",
            action: rbreak::rbreak,
        },
        Entry {
            name: "return",
            aliases: &["ret"],
            help: "Make the function return to its caller now.\nUsage: return [VALUE]\nAt the prompt where the return address is known: at a function's first instruction, behind its\nprologue, at its returns. In the body of a `trace' at a function's first instruction: the function\nis skipped.",
            action: returning::return_,
        },
        Entry {
            name: "run",
            aliases: &["r"],
            help: "Launch the program.\nUsage: run [ARGUMENTS] [&]\n&: in the background.\nWithout ARGUMENTS: those of the last time, or of --args.",
            action: running::run,
        },
        Entry {
            name: "rwatch",
            aliases: &[],
            help: "Stop the program when memory is read.\nUsage: rwatch [-l|-location] EXPRESSION [if CONDITION]\nAs watch.",
            action: watch::rwatch,
        },
        Entry {
            name: "save",
            aliases: &[],
            help: "Save the breakpoints as a script that makes them again.\nUsage: save breakpoints FILE",
            action: save::save,
        },
        Entry {
            name: "set",
            aliases: &[],
            help: "Change a setting, or evaluate an expression for what it changes.\nUsage: set SETTING VALUE\n       set EXPRESSION: set $x = 1, set $rdi = 2, set {char}($rsi+3) = 0x61\n       set variable EXPRESSION",
            action: settings::set,
        },
        Entry {
            name: "shell",
            aliases: &[],
            help: "Run a command of the shell; `!' is short for it.\nUsage: shell [COMMAND]",
            action: shell::shell,
        },
        Entry {
            name: "show",
            aliases: &[],
            help: "Show a setting.\nUsage: show [SETTING]",
            action: settings::show,
        },
        Entry {
            name: "signal",
            aliases: &[],
            help: "Go on, and give the selected thread a signal.\nUsage: signal SIGNAL [&]\nSIGNAL is a name or a number from 1 to 15; 0: none, so that the signal that the thread stopped with is\ndropped. It is given whatever `handle' says. With & the program runs while more is typed.",
            action: signals::signal,
        },
        Entry {
            name: "silent",
            aliases: &["sil"],
            help: "First in a breakpoint's commands: do not announce the hit.",
            action: |_, _| fail!("Undefined command: \"silent\".  Try \"help\"."),
        },
        Entry {
            name: "source",
            aliases: &[],
            help: "Run the commands in a file.\nUsage: source [-s] [-v] FILE\n-v: each command is shown when it runs. -s changes nothing: there is no search path.",
            action: source::source,
        },
        Entry {
            name: "start",
            aliases: &["sta"],
            help: "Launch the program and stop in main.\nUsage: start [ARGUMENTS]",
            action: running::start,
        },
        Entry {
            name: "tbreak",
            aliases: &["tb", "tbr", "tbre"],
            help: "Set a breakpoint for one hit.\nUsage: tbreak [LOCATION] [if CONDITION]",
            action: breakpoints::tbreak,
        },
        Entry {
            name: "tcatch",
            aliases: &[],
            help: "Stop the program once when something happens.\nUsage: tcatch exec|fork|load|signal|syscall|unload|vfork [WHAT...]\nAs catch.",
            action: catch::tcatch,
        },
        Entry {
            name: "thread",
            aliases: &["t"],
            help: "Select a thread, or say which one is selected.\nUsage: thread [N]",
            action: info::thread,
        },
        Entry {
            name: "trace",
            aliases: &[],
            help: "Show every hit of a function without stopping the program.\nUsage: trace LOCATION [in TARGET] [if CONDITION] [sample RATE] [{ COMMAND; ... }]\nOf several processes, TARGET is the one that is meant: its id, its program's name, or /REGEX/.\nWithout a body the arguments are shown. With a RATE, `sample 10%' or `sample 1/100', so many of\nthe hits are looked at, evenly spread; all are counted.\nLOCATION%return is every way out of the function.",
            action: breakpoints::trace,
        },
        Entry {
            name: "undisplay",
            aliases: &[],
            help: "Show expressions at each stop no more.\nUsage: undisplay [N...]\nWithout N: all.",
            action: display::undisplay,
        },
        Entry {
            name: "unset",
            aliases: &[],
            help: "Take something back that `set' has set.\nUsage: unset environment [NAME]",
            action: settings::unset,
        },
        Entry {
            name: "watch",
            aliases: &[],
            help: "Stop the program when memory changes.\nUsage: watch [-l|-location] EXPRESSION [if CONDITION]\nThe memory that EXPRESSION reads is watched, in all threads: `watch *(int *)&total'. The processor has\nroom for four places of at most 8 bytes; what is not in memory cannot be watched.\n-location: EXPRESSION is evaluated now, and the place that it stands for is watched.",
            action: watch::watch,
        },
        Entry {
            name: "whatis",
            aliases: &[],
            help: "Show the type of an expression.\nUsage: whatis [EXPRESSION]",
            action: data::whatis,
        },
        Entry {
            name: "while",
            aliases: &[],
            help: "Run commands as long as an expression is not zero.\nUsage: while EXPRESSION\nThe commands follow, one a line, up to `end'.",
            action: |_, _| fail!("while command requires an argument."),
        },
        Entry {
            name: "x",
            aliases: &[],
            help: "Examine memory.\nUsage: x[/NFU] [ADDRESS]\nN is a count, F a format letter (o x d u t f a i c s z), U a size letter (b h w g: 1, 2, 4, 8 bytes).\nWhat is left out is as the last time. Without ADDRESS: behind what was shown last.",
            action: data::x,
        },
    ],
};

/// What stands behind `info`.
pub static INFO: Table<Action> = Table {
    prefix: "info ",
    taken: &["s"],
    entries: &[
        Entry {
            name: "breakpoints",
            aliases: &["b"],
            help: "The breakpoints: where, conditions, counts, commands.\nUsage: info breakpoints [N...]",
            action: info::breakpoints,
        },
        Entry {
            name: "probes",
            aliases: &[],
            help: "The named probes: what each is hit by, and where it is in the program.\nUsage: info probes [NAME...]\nA name stands for a location: `break someip:recv', `trace ros2:publish'.",
            action: probes::info,
        },
        Entry {
            name: "display",
            aliases: &[],
            help: "The expressions that are shown at each stop.",
            action: display::info,
        },
        Entry {
            name: "inferiors",
            aliases: &[],
            help: "The processes and their numbers, the current one marked.\nUsage: info inferiors [N...]",
            action: info::inferiors,
        },
        Entry {
            name: "program",
            aliases: &[],
            help: "Where the program stands and why.",
            action: info::program_state,
        },
        Entry {
            name: "registers",
            aliases: &["r"],
            help: "The general registers of the selected thread, or those named.\nUsage: info registers [NAME...]",
            action: info::registers,
        },
        Entry {
            name: "sharedlibrary",
            aliases: &["dll"],
            help: "The shared libraries of the program, or those whose path fits a regular expression.\nUsage: info sharedlibrary [REGEX]",
            action: info::sharedlibrary,
        },
        Entry {
            name: "signals",
            aliases: &["handle"],
            help: "What happens to signals.\nUsage: info signals [NAME|NUMBER]",
            action: signals::info,
        },
        Entry {
            name: "symbol",
            aliases: &[],
            help: "The symbol at an address.\nUsage: info symbol ADDRESS",
            action: info::symbol,
        },
        Entry {
            name: "threads",
            aliases: &[],
            help: "The threads of the program.",
            action: info::threads,
        },
        Entry {
            name: "watchpoints",
            aliases: &[],
            help: "The watchpoints: what is watched, conditions, counts, commands.\nUsage: info watchpoints [N...]",
            action: info::watchpoints,
        },
    ],
};

/// What stands behind `maintenance print`.
static MAINT_PRINT: Table<Action> = Table {
    prefix: "maintenance print ",
    taken: &[],
    entries: &[Entry {
        name: "program",
        aliases: &[],
        help: "What a breakpoint runs at its sites.\nUsage: maintenance print program N",
        action: info::program,
    }],
};

/// What stands behind `maintenance`.
pub static MAINT: Table<Action> = Table {
    prefix: "maintenance ",
    taken: &[],
    entries: &[Entry {
        name: "print",
        aliases: &["p"],
        help: "maintenance print program N",
        action: |i, call| {
            if call.arguments.is_empty() {
                let text = format!(
                    "List of maintenance print subcommands:\n\n{}\n",
                    MAINT_PRINT.list()
                );
                i.print(&text);
                return Ok(());
            }
            i.sub(&MAINT_PRINT, call)
        },
    }],
};

/// `help [COMMAND]`
fn help(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (word, rest) = table::split(call.arguments);
    if word.is_empty() {
        let text = format!(
            "{}Type \"help\" followed by command name for full documentation.\nCommand name abbreviations are allowed if unambiguous.\n",
            super::help::by_topic()
        );
        i.print(&text);
        return Ok(());
    }
    if let Some(text) = super::help::topic(call.arguments) {
        i.print(&text);
        return Ok(());
    }
    let names = i.names.clone();
    let entry = match names.find(call.arguments)? {
        Found::Built(entry, _) => entry,
        Found::User(_, command, _) => {
            let text = command.help.as_deref().unwrap_or("User-defined.");
            i.print(&format!("{text}\n"));
            return Ok(());
        }
        Found::Alias(line) => {
            let line = line.trim_end().to_string();
            return help(i, &call.of(call.name, &line));
        }
    };
    let below: Option<(&Table<Action>, &str)> = match entry.name {
        "catch" => Some((&catch::CATCH, rest)),
        "info" => Some((&INFO, rest)),
        "set" => Some((&settings::SET, rest)),
        "tcatch" => Some((&catch::TCATCH, rest)),
        "show" => Some((&settings::SHOW, rest)),
        _ => None,
    };
    let text = match below {
        Some((table, "")) => format!(
            "{}\nList of {}subcommands:\n\n{}\n",
            TOP.help(entry),
            table.prefix,
            table.list()
        ),
        Some((table, rest)) => table.help(table.find(table::split(rest).0)?),
        None => TOP.help(entry),
    };
    i.print(&text);
    Ok(())
}

/// A line for another language's interpreter.
fn foreign(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    i.foreign(call.name, call.at);
    Ok(())
}

/// Whether one of our commands stands below `prefix`.
pub fn has_sub(prefix: &str, name: &str) -> bool {
    match prefix {
        "info" => INFO.exact(name).is_some(),
        "set" | "show" => settings::exists(name),
        "unset" => settings::UNSET.exact(name).is_some(),
        _ => false,
    }
}

/// `maintenance print program N`
fn maintenance(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        let text = format!("List of maintenance subcommands:\n\n{}\n", MAINT.list());
        i.print(&text);
        return Ok(());
    }
    i.sub(&MAINT, call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gdbs_abbreviations_mean_what_they_mean_there() {
        for (typed, name) in [
            ("b", "break"),
            ("br", "break"),
            ("c", "continue"),
            ("cont", "continue"),
            ("i", "info"),
            ("p", "print"),
            ("h", "help"),
            ("k", "kill"),
            ("r", "run"),
            ("q", "quit"),
            ("d", "delete"),
            ("tb", "tbreak"),
            ("sil", "silent"),
            ("x", "x"),
            ("dis", "disable"),
            ("en", "enable"),
            ("t", "thread"),
            ("maint", "maintenance"),
            ("comm", "commands"),
        ] {
            assert_eq!(TOP.find(typed).map(|e| e.name), Ok(name), "{typed}");
        }
        for absent in ["s", "n", "u", "l", "f"] {
            let error = TOP.find(absent).err().map(|e| e.message);
            let text = format!("Undefined command: \"{absent}\".  Try \"help\".");
            assert_eq!(error, Some(text));
        }
    }

    #[test]
    fn names_are_unique() {
        let mut seen = std::collections::HashSet::new();
        for entry in TOP.entries {
            for name in std::iter::once(&entry.name).chain(entry.aliases) {
                assert!(seen.insert(*name), "{name}");
                assert!(!TOP.taken.contains(name), "{name}");
            }
        }
    }
}
