//! Settings of gdb that scripts and start-up files hold: they are taken, remembered and shown as there
//! (names, first values and texts are those of gdb 13.1). Most have no meaning here; `detach-on-fork` and
//! `follow-fork-mode` are looked up where processes are made.

use super::kind::Kind::{
    self, Ability, Auto, File, FromOne, FromZero, Integer, OneOf, Path, Switch, Text,
};

/// A setting that is only remembered.
pub struct Known {
    /// Its full name.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Its value until it is set, as it is shown.
    pub first: &'static str,
    /// What `show` says; `{}` stands for the value.
    pub shown: &'static str,
}

const fn known(name: &'static str, kind: Kind, first: &'static str, shown: &'static str) -> Known {
    Known {
        name,
        kind,
        first,
        shown,
    }
}

/// In alphabetic order.
#[rustfmt::skip]
pub const KNOWN: &[Known] = &[
    known("annotate", Integer, "0", "Annotation_level is {}."),
    known("auto-connect-native-target", Switch, "on", "Whether GDB may automatically connect to the native target is {}."),
    known("auto-load gdb-scripts", Switch, "on", "Auto-loading of canned sequences of commands scripts is {}."),
    known("auto-load libthread-db", Switch, "on", "Auto-loading of inferior specific libthread_db is {}."),
    known("auto-load local-gdbinit", Switch, "on", "Auto-loading of .gdbinit script from current directory is {}."),
    known("auto-load python-scripts", Switch, "on", "Auto-loading of Python scripts is {}."),
    known("auto-load safe-path", Text, "$debugdir:$datadir/auto-load", "List of directories from which it is safe to auto-load files is {}."),
    known("auto-load scripts-directory", Text, "$debugdir:$datadir/auto-load", "List of directories from which to load auto-loaded scripts is {}."),
    known("auto-solib-add", Switch, "on", "Autoloading of shared library symbols is {}."),
    known("backtrace limit", FromOne, "unlimited", "An upper bound on the number of backtrace levels is {}."),
    known("backtrace past-entry", Switch, "off", "Whether backtraces should continue past the entry point of a program is {}."),
    known("backtrace past-main", Switch, "off", "Whether backtraces should continue past \"main\" is {}."),
    known("basenames-may-differ", Switch, "off", "Whether a source file may have multiple base names is {}."),
    known("breakpoint always-inserted", Switch, "off", "Always inserted breakpoint mode is {}."),
    known("breakpoint auto-hw", Switch, "on", "Automatic usage of hardware breakpoints is {}."),
    known("breakpoint condition-evaluation", OneOf(&["auto", "host"]), "auto (currently host)", "Breakpoint condition evaluation mode is {}."),
    known("can-use-hw-watchpoints", Integer, "1", "Debugger's willingness to use watchpoint hardware is {}."),
    known("case-sensitive", OneOf(&["auto", "off", "on"]), "auto; currently on", "Case sensitivity in name search is \"{}\"."),
    known("charset", Text, "auto; currently UTF-8", "The host character set is \"{}\"."),
    known("check range", OneOf(&["auto", "off", "on", "warn"]), "auto; currently off", "Range checking is \"{}\"."),
    known("check type", Switch, "on", "Strict type checking is {}."),
    known("code-cache", Switch, "on", "Cache use for code accesses is {}."),
    known("complaints", Integer, "0", "Max number of complaints about incorrect symbols is {}."),
    known("debuginfod enabled", OneOf(&["ask", "off", "on"]), "ask", "Debuginfod functionality is currently set to \"{}\"."),
    known("debuginfod urls", Text, "", "Debuginfod URLs are currently set to:\n{}"),
    known("detach-on-fork", Switch, "on", "Whether gdb will detach the child of a fork is {}."),
    known("disassemble-next-line", Auto, "off", "Debugger's willingness to use disassemble-next-line is {}."),
    known("disassembly-flavor", OneOf(&["att", "intel"]), "att", "The disassembly flavor is \"{}\"."),
    known("disconnected-dprintf", Switch, "on", "Whether dprintf continues after GDB disconnects is {}."),
    known("disconnected-tracing", Switch, "off", "Whether tracing continues after GDB disconnects is {}."),
    known("displaced-stepping", Auto, "auto (currently off)", "Debugger's willingness to use displaced stepping to step over breakpoints is {}."),
    known("dprintf-channel", Text, "", "The channel to use for dynamic printf is \"{}\"."),
    known("dprintf-function", Text, "printf", "The function to use for dynamic printf is \"{}\"."),
    known("dprintf-style", OneOf(&["agent", "call", "gdb"]), "gdb", "The style of usage for dynamic printf is \"{}\"."),
    known("editing", Switch, "off", "Editing of command lines as they are typed is {}."),
    known("exec-file-mismatch", OneOf(&["ask", "off", "warn"]), "ask", "exec-file-mismatch handling is currently \"{}\"."),
    known("exec-wrapper", File, "", "The wrapper for running programs is \"{}\"."),
    known("extended-prompt", Text, "", "The extended prompt is: {}"),
    known("filename-display", OneOf(&["absolute", "basename", "relative"]), "relative", "Filenames are displayed as \"{}\"."),
    known("follow-exec-mode", OneOf(&["new", "same"]), "same", "Follow exec mode is \"{}\"."),
    known("follow-fork-mode", OneOf(&["child", "parent"]), "parent", "Debugger response to a program call of fork or vfork is \"{}\"."),
    known("guile print-stack", OneOf(&["full", "message", "none"]), "message", "The mode of Guile exception printing on error is \"{}\"."),
    known("history expansion", Switch, "off", "History expansion on command input is {}."),
    known("history filename", Path, "", "The filename in which to record the command history is \"{}\"."),
    known("history remove-duplicates", FromZero, "0", "The number of history entries to look back at for duplicates is {}."),
    known("history save", Switch, "off", "Saving of the history record on exit is {}."),
    known("history size", FromZero, "256", "The size of the command history is {}."),
    known("host-charset", Text, "auto; currently UTF-8", "The host character set is \"{}\"."),
    known("index-cache enabled", Switch, "off", "The index cache is {}."),
    known("input-radix", Integer, "10", "Default input radix for entering numbers is {}."),
    known("language", OneOf(&["ada", "asm", "auto", "c", "c++", "d", "fortran", "go", "local", "minimal", "modula-2", "objective-c", "opencl", "pascal", "rust", "unknown"]), "auto; currently c", "The current source language is \"{}\"."),
    known("libthread-db-search-path", Text, "$sdir:$pdir", "The current search path or libthread_db is \"{}\"."),
    known("listsize", FromOne, "10", "Number of source lines gdb will list by default is {}."),
    known("max-completions", FromZero, "200", "Maximum number of completion candidates is {}."),
    known("max-value-size", FromZero, "65536", "Maximum value size is {} bytes."),
    known("may-call-functions", Switch, "on", "Permission to call functions in the program is {}."),
    known("may-insert-breakpoints", Switch, "on", "Permission to insert breakpoints in the target is {}."),
    known("may-insert-fast-tracepoints", Switch, "on", "Permission to insert fast tracepoints in the target is {}."),
    known("may-insert-tracepoints", Switch, "on", "Permission to insert tracepoints in the target is {}."),
    known("may-interrupt", Switch, "on", "Permission to interrupt or signal the target is {}."),
    known("may-write-memory", Switch, "on", "Permission to write into target memory is {}."),
    known("may-write-registers", Switch, "on", "Permission to write into registers is {}."),
    known("mi-async", Switch, "off", "Whether MI is in asynchronous mode is {}."),
    known("multiple-symbols", OneOf(&["all", "ask", "cancel"]), "all", "How the debugger handles ambiguities in expressions is \"{}\"."),
    known("non-stop", Switch, "off", "Controlling the inferior in non-stop mode is {}."),
    known("observer", Switch, "off", "Observer mode is {}."),
    known("opaque-type-resolution", Switch, "on", "Resolution of opaque struct/class/union types (if set before loading symbols) is {}."),
    known("osabi", OneOf(&["GNU/Linux", "auto", "default", "none"]), "auto\" (currently \"GNU/Linux", "The current OS ABI is \"{}\"."),
    known("output-radix", Integer, "10", "Default output radix for printing of values is {}."),
    known("overload-resolution", Switch, "on", "Overload resolution in evaluating C++ functions is {}."),
    known("print address", Switch, "on", "Printing of addresses is {}."),
    known("print array", Switch, "off", "Pretty formatting of arrays is {}."),
    known("print array-indexes", Switch, "off", "Printing of array indexes is {}."),
    known("print asm-demangle", Switch, "off", "Demangling of C++/ObjC names in disassembly listings is {}."),
    known("print demangle", Switch, "on", "Demangling of encoded C++/ObjC names when displaying symbols is {}."),
    known("print elements", FromOne, "200", "Limit on string chars or array elements to print is {}."),
    known("print entry-values", OneOf(&["both", "compact", "default", "if-needed", "no", "only", "preferred"]), "default", "Printing of function arguments at function entry is \"{}\"."),
    known("print finish", Switch, "on", "Printing of return value after `finish' is {}."),
    known("print frame-arguments", OneOf(&["all", "none", "presence", "scalars"]), "scalars", "Printing of non-scalar frame arguments is \"{}\"."),
    known("print frame-info", OneOf(&["auto", "location", "location-and-address", "short-location", "source-and-location", "source-line"]), "auto", "Printing of frame information is \"{}\"."),
    known("print inferior-events", Switch, "on", "Printing of inferior events is {}."),
    known("print max-depth", FromZero, "20", "Maximum print depth is {}."),
    known("print max-symbolic-offset", FromOne, "unlimited", "The largest offset that will be printed in <symbol+1234> form is {}."),
    known("print memory-tag-violations", Switch, "on", "Printing of memory tag violations is {}."),
    known("print nibbles", Switch, "off", "Printing binary values in groups is {}."),
    known("print null-stop", Switch, "off", "Printing of char arrays to stop at first null char is {}."),
    known("print object", Switch, "off", "Printing of object's derived type based on vtable info is {}."),
    known("print pascal_static-members", Switch, "on", "Printing of pascal static members is {}."),
    known("print pretty", Switch, "off", "Pretty formatting of structures is {}."),
    known("print raw-frame-arguments", Switch, "off", "Whether to print frame arguments in raw form is {}."),
    known("print raw-values", Switch, "off", "Whether to print values in raw form is {}."),
    known("print repeats", FromOne, "10", "Threshold for repeated print elements is {}."),
    known("print sevenbit-strings", Switch, "off", "Printing of 8-bit characters in strings as \\nnn is {}."),
    known("print static-members", Switch, "on", "Printing of C++ static members is {}."),
    known("print symbol", Switch, "on", "Printing of symbols when printing pointers is {}."),
    known("print symbol-filename", Switch, "off", "Printing of source filename and line number with <symbol> is {}."),
    known("print symbol-loading", OneOf(&["brief", "full", "off"]), "full", "Printing of symbol loading messages is \"{}\"."),
    known("print thread-events", Switch, "on", "Printing of thread events is {}."),
    known("print type methods", Switch, "on", "Printing of methods defined in a class in {}"),
    known("print type typedefs", Switch, "on", "Printing of typedefs defined in a class in {}"),
    known("print union", Switch, "on", "Printing of unions interior to structures is {}."),
    known("print vtbl", Switch, "off", "Printing of C++ virtual function tables is {}."),
    known("prompt", Text, "(gdb) ", "Gdb's prompt is \"{}\"."),
    known("python print-stack", OneOf(&["full", "message", "none"]), "message", "The mode of Python stack printing on error is \"{}\"."),
    known("radix", Integer, "10", "Input and output radices set to decimal {}, hex a, octal 12."),
    known("record full insn-number-max", FromOne, "200000", "Record/replay buffer limit is {}."),
    known("remotetimeout", FromZero, "2", "Timeout limit to wait for target to respond is {}."),
    known("schedule-multiple", Switch, "off", "Resuming the execution of threads of all processes is {}."),
    known("scheduler-locking", OneOf(&["off", "on", "replay", "step"]), "replay", "Mode for locking scheduler during execution is \"{}\"."),
    known("script-extension", OneOf(&["off", "soft", "strict"]), "soft", "Script filename extension recognition is \"{}\"."),
    known("solib-search-path", Text, "", "The search path for loading non-absolute shared library symbol files is {}."),
    known("source open", Switch, "on", "Source opening is \"{}\"."),
    known("stack-cache", Switch, "on", "Cache use for stack accesses is {}."),
    known("startup-with-shell", Switch, "on", "Use of shell to start subprocesses is {}."),
    known("step-mode", Switch, "off", "Mode of the step operation is {}."),
    known("stop-on-solib-events", Integer, "0", "Stopping for shared library events is {}."),
    known("style enabled", Ability, "disabled", "CLI output styling is {}."),
    known("style sources", Ability, "enabled", "Source code styling is {}."),
    known("substitute-path", Text, "", "List of all source path substitution rules:\n{}"),
    known("sysroot", Text, "target:", "The current system root is \"{}\"."),
    known("target-charset", Text, "auto; currently UTF-8", "The target character set is \"{}\"."),
    known("target-wide-charset", Text, "auto; currently UTF-32", "The target wide character set is \"{}\"."),
    known("tcp auto-retry", Switch, "on", "Auto-retry on socket connect is {}."),
    known("trust-readonly-sections", Switch, "off", "Mode for reading from readonly sections is {}."),
    known("tui border-kind", OneOf(&["acs", "ascii", "space"]), "acs", "The kind of border for TUI windows is \"{}\"."),
    known("unwind-on-terminating-exception", Switch, "on", "Unwind stack if a C++ exception is unhandled while in a call dummy is {}."),
    known("unwindonsignal", Switch, "off", "Unwinding of stack if a signal is received while in a call dummy is {}."),
    known("use-coredump-filter", Switch, "on", "Use of /proc/PID/coredump_filter file to generate corefiles is {}."),
    known("verbose", Switch, "off", ""),
    known("write", Switch, "off", "Writing into executable and core files is {}."),
];

/// By full name.
pub fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

impl Known {
    /// The line that `show` prints.
    pub fn line(&self, value: Option<&str>) -> String {
        let value = value.unwrap_or(self.first);
        match (self.name, value) {
            ("verbose", "on") => "Verbose printing of informational messages is on.".into(),
            ("verbose", _) => "Verbosity is off.".into(),
            ("max-value-size", "unlimited") => "Maximum value size is unlimited.".into(),
            ("debuginfod urls", "") => "Debuginfod URLs have not been set.".into(),
            ("extended-prompt", "") => "The extended prompt is not set.".into(),
            ("history filename", "") => {
                "There is no filename currently set for recording the command history in.".into()
            }
            _ => self.shown.replacen("{}", value, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_texts_have_a_place_for_the_value() {
        assert!(KNOWN.windows(2).all(|pair| pair[0].name < pair[1].name));
        for known in KNOWN {
            assert!(
                known.shown.contains("{}") || known.name == "verbose",
                "{}",
                known.name
            );
        }
    }
}
