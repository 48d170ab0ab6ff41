//! The names of gdb's commands: who defines one of them anew is asked, as there, also where the
//! command does not exist here.

/// In alphabetic order (`complete` in gdb 13.1).
const COMMANDS: &[&str] = &[
    "actions", "add-auto-load-safe-path", "add-auto-load-scripts-directory", "add-inferior",
    "add-symbol-file", "add-symbol-file-from-memory", "advance", "agent-printf", "alias",
    "append", "apropos", "attach", "awatch", "backtrace", "bookmark", "break", "break-range",
    "bt", "call", "catch", "cd", "checkpoint", "clear", "clone-inferior", "collect", "commands",
    "compare-sections", "compile", "complete", "condition", "continue", "core-file", "define",
    "define-prefix", "delete", "demangle", "detach", "directory", "disable", "disassemble",
    "disconnect", "display", "document", "dont-repeat", "down", "down-silently", "dprintf",
    "dump", "echo", "edit", "enable", "end", "eval", "exec-file", "explore", "expression",
    "faas", "file", "find", "finish", "flash-erase", "focus", "forward-search", "frame", "fs",
    "ftrace", "function", "generate-core-file", "goto-bookmark", "guile", "guile-repl",
    "handle", "hbreak", "help", "if", "ignore", "inferior", "info", "init-if-undefined",
    "interpreter-exec", "interrupt", "jit-reader-load", "jit-reader-unload", "jump", "kill",
    "layout", "list", "load", "macro", "maintenance", "make", "mem", "memory-tag", "monitor",
    "new-ui", "next", "nexti", "ni", "nosharedlibrary", "output", "overlay", "passcount",
    "path", "pipe", "print", "print-object", "printf", "ptype", "pwd", "python",
    "python-interactive", "queue-signal", "quit", "rbreak", "rc", "record", "refresh", "remote",
    "remove-inferiors", "remove-symbol-file", "restart", "restore", "return",
    "reverse-continue", "reverse-finish", "reverse-next", "reverse-nexti", "reverse-search",
    "reverse-step", "reverse-stepi", "rni", "rsi", "run", "rwatch", "save", "search", "section",
    "select-frame", "set", "sharedlibrary", "shell", "show", "si", "signal", "skip", "source",
    "start", "starti", "step", "stepi", "stepping", "stop", "strace", "symbol-file", "taas",
    "target", "task", "tbreak", "tcatch", "tdump", "teval", "tfaas", "tfind", "thbreak",
    "thread", "tp", "trace", "tsave", "tstart", "tstatus", "tstop", "tty", "tui", "tvariable",
    "undisplay", "unset", "until", "up", "up-silently", "update", "watch", "wh", "whatis",
    "where", "while", "while-stepping", "winheight", "winwidth", "with", "ws", "x",
];

/// Those that other commands stand below.
const PREFIXES: &[&str] = &[
    "append", "catch", "compile", "delete", "disable", "dump", "enable", "frame", "function",
    "info", "macro", "maintenance", "memory-tag", "overlay", "record", "restore", "save", "set",
    "show", "skip", "target", "task", "tcatch", "thread", "tui", "unset",
];

/// Whether gdb has a command of that full name.
pub fn is_command(name: &str) -> bool {
    COMMANDS.binary_search(&name).is_ok()
}

/// Whether other commands stand below one of gdb's.
pub fn is_prefix(name: &str) -> bool {
    PREFIXES.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_in_order() {
        assert!(COMMANDS.is_sorted() && PREFIXES.is_sorted());
        assert!(is_command("tbreak") && !is_command("hexdump"));
        assert!(is_prefix("set") && !is_prefix("x"));
    }
}
