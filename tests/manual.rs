//! `docs/commands.md` is what `help` prints.

mod support;

use std::fs;

use support::{root, tracer};

/// `TRAPLINE_BLESS=1` writes the manual anew.
#[test]
fn the_list_of_commands_is_not_stale() {
    let output = tracer::trapline()
        .args(["-nx", "--batch", "-ex", "help"])
        .output()
        .expect("trapline runs");
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        !help.contains("others:\n"),
        "a command has no topic (src/command/help.rs):\n{help}"
    );
    let manual = format!(
        "# The commands\n\nWhat `help` prints; `help COMMAND` tells more about one. Names of gdb's are gdb's commands.\n\n```text\n{help}```\n"
    );
    let path = root().join("docs/commands.md");
    if std::env::var_os("TRAPLINE_BLESS").is_some() {
        fs::create_dir_all(root().join("docs")).expect("a directory");
        fs::write(&path, &manual).expect("the manual");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        kept, manual,
        "docs/commands.md is stale: TRAPLINE_BLESS=1 cargo test --test manual"
    );
}
