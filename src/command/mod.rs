//! The commands that a person types: one [`table`] that the prompt, scripts, `help` and completion
//! share, and what each command does.

mod breakpoints;
mod data;
mod eaten;
mod info;
pub(crate) mod interpreter;
pub(crate) mod probes;
pub(crate) mod read_only;
mod returning;
pub(crate) mod running;
mod settings;
pub(crate) mod table;
mod top;

pub(crate) use interpreter::Interpreter;
pub(crate) use top::NAMES;

/// What can stand at the end of a line: names of commands, and of what stands behind `info`,
/// `set` and `show`. `before` is the line up to the word that was begun.
pub(crate) fn complete(before: &str, begun: &str) -> Vec<&'static str> {
    let before = before.trim();
    if before.is_empty() {
        return top::TOP.complete(begun);
    }
    match top::TOP.find(before).map(|entry| entry.name) {
        Ok("info") => top::INFO.complete(begun),
        Ok("set") => settings::SET.complete(begun),
        Ok("show") => settings::SHOW.complete(begun),
        Ok("help") => top::TOP.complete(begun),
        _ => Vec::new(),
    }
}
