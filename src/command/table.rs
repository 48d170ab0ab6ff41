//! The table of commands: names, reserved abbreviations, help and action in one place.
//!
//! A name is found as gdb finds it: exactly, by a reserved abbreviation, or by any prefix that
//! fits one command only.

use crate::error::Error;

/// One command of type-of-handler `H`.
pub struct Entry<H: 'static> {
    /// The full name.
    pub name: &'static str,
    /// Other names and reserved abbreviations.
    pub aliases: &'static [&'static str],
    /// What it does: the first line is the summary in lists.
    pub help: &'static str,
    /// What runs it.
    pub action: H,
}

/// Commands that are looked up together: the top level, or what stands behind `info`.
pub struct Table<H: 'static> {
    /// What stands in front of the name, with its blank (`info `), or nothing.
    pub prefix: &'static str,
    /// The commands.
    pub entries: &'static [Entry<H>],
    /// Abbreviations that gdb gives to commands that do not exist here. They must not fall on
    /// another command.
    pub taken: &'static [&'static str],
}

/// Splits a line into its command's name and the rest without the blanks between them.
pub fn split(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
        .unwrap_or(line.len());
    (&line[..end], line[end..].trim_start())
}

impl<H> Table<H> {
    /// The command that `name` means.
    pub fn find(&self, name: &str) -> Result<&'static Entry<H>, Error> {
        if !name.is_empty() {
            if let Some(entry) = self.exact(name) {
                return Ok(entry);
            }
            let mut names: Vec<&str> = Vec::new();
            let mut found: Vec<&'static Entry<H>> = Vec::new();
            for entry in self.entries {
                let before = names.len();
                let all = std::iter::once(&entry.name).chain(entry.aliases);
                names.extend(all.filter(|n| n.starts_with(name)));
                if names.len() > before {
                    found.push(entry);
                }
            }
            if !self.taken.contains(&name) {
                match found.as_slice() {
                    [entry] => return Ok(entry),
                    [] => {}
                    _ => return Err(self.ambiguous(name, names)),
                }
            }
        }
        let help = format!("help {}", self.prefix);
        Err(Error::new(format!(
            "Undefined {}command: \"{name}\".  Try \"{}\".",
            self.prefix,
            help.trim_end()
        )))
    }

    /// The command of that very name or alias.
    pub fn exact(&self, name: &str) -> Option<&'static Entry<H>> {
        self.entries
            .iter()
            .find(|e| e.name == name || e.aliases.contains(&name))
    }

    /// The names and aliases that begin with `start`.
    pub fn beginning(&self, start: &str) -> Vec<&'static str> {
        let names = self
            .entries
            .iter()
            .flat_map(|entry| std::iter::once(&entry.name).chain(entry.aliases));
        names.copied().filter(|n| n.starts_with(start)).collect()
    }

    fn ambiguous(&self, name: &str, mut names: Vec<&str>) -> Error {
        names.sort_unstable();
        Error::new(format!(
            "Ambiguous {}command \"{name}\": {}.",
            self.prefix,
            names.join(", ")
        ))
    }

    /// All entries in order of their names.
    pub fn sorted(&self) -> impl Iterator<Item = &'static Entry<H>> + use<H> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|entry| entry.name);
        entries.into_iter()
    }

    /// The name and its abbreviations behind the table's prefix.
    fn names(&self, entry: &Entry<H>) -> String {
        let names = std::iter::once(&entry.name).chain(entry.aliases);
        let names: Vec<String> = names.map(|name| format!("{}{name}", self.prefix)).collect();
        names.join(", ")
    }

    /// `break, b -- Set a breakpoint.`
    pub fn line(&self, entry: &Entry<H>) -> String {
        format!("{} -- {}\n", self.names(entry), first_line(entry.help))
    }

    /// The list that `help` shows: one line a command.
    pub fn list(&self) -> String {
        self.sorted().map(|entry| self.line(entry)).collect()
    }

    /// What `help NAME` prints.
    pub fn help(&self, entry: &Entry<H>) -> String {
        let mut out = String::new();
        if !entry.aliases.is_empty() {
            out.push_str(&self.names(entry));
            out.push('\n');
        }
        out.push_str(entry.help);
        out.push('\n');
        out
    }

    /// The names that begin with `start`, for completion.
    pub fn complete(&self, start: &str) -> Vec<&'static str> {
        let mut names: Vec<_> = self
            .entries
            .iter()
            .map(|e| e.name)
            .filter(|n| n.starts_with(start))
            .collect();
        names.sort_unstable();
        names
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn entry(name: &'static str, aliases: &'static [&'static str]) -> Entry<()> {
        Entry {
            name,
            aliases,
            help: "Help.",
            action: (),
        }
    }

    static ENTRIES: [Entry<()>; 4] = [
        entry("continue", &["c", "fg"]),
        entry("condition", &[]),
        entry("commands", &[]),
        entry("info", &["i", "inf"]),
    ];

    static TABLE: Table<()> = Table {
        prefix: "",
        entries: &ENTRIES,
        taken: &["co"],
    };

    #[test]
    fn a_name_is_found_by_alias_and_by_unique_prefix() {
        for (typed, name) in [("c", "continue"), ("cont", "continue"), ("in", "info")] {
            assert_eq!(TABLE.find(typed).map(|e| e.name), Ok(name), "{typed}");
        }
    }

    #[test]
    fn errors_read_as_in_gdb() {
        let message = |name| TABLE.find(name).err().map(|e| e.message);
        assert_eq!(
            message("foo").as_deref(),
            Some("Undefined command: \"foo\".  Try \"help\".")
        );
        assert_eq!(
            message("con").as_deref(),
            Some("Ambiguous command \"con\": condition, continue.")
        );
        assert_eq!(
            message("co").as_deref(),
            Some("Undefined command: \"co\".  Try \"help\".")
        );
        let info = Table {
            prefix: "info ",
            entries: &ENTRIES,
            taken: &[],
        };
        assert_eq!(
            info.find("zz").err().map(|e| e.message).as_deref(),
            Some("Undefined info command: \"zz\".  Try \"help info\".")
        );
    }

    #[test]
    fn a_line_is_split_behind_the_name() {
        assert_eq!(split("  x/8xb $rsi"), ("x", "/8xb $rsi"));
        assert_eq!(split("p $rdi"), ("p", "$rdi"));
        assert_eq!(split("info  registers rip"), ("info", "registers rip"));
        assert_eq!(split("$x"), ("", "$x"));
    }
}
