//! Start-up files: one's own in the configuration directory, and a gdbinit of old, unchanged.

mod support;

use std::fs;

use support::{App, TempDir, TempFile, Tracer, root, test, testapp};

fn gdbinit() -> String {
    let path = root().join("tests/scripts/files/gdbinit");
    path.display().to_string()
}

#[test]
fn a_gdbinit_of_old_loads_unchanged_and_its_commands_come_before_ours() {
    test(|| {
        let program = testapp("tally")?.display().to_string();
        let script = TempFile::new(
            "break visit if $rdi == 2\ncommands\n  silent\n  hexdump $rsi 4\n  pw $rsi\n  print $now\n  continue\nend\nrun\n\
             hexdump &flags\nhelp hexdump\nhelp bpl\nbpl\nshow listsize\nshow disassembly-flavor\n",
        );
        let arguments = ["-x", &gdbinit(), "-x", &script.path(), &program];
        let text = Tracer::Trapline.batch(&arguments)?.succeed();
        for line in [
            "4 bytes: 67 72 65 65",
            "green",
            "$1 = 5",
            "16 bytes: 01 02 04 08",
            "Show bytes: hexdump ADDRESS [COUNT]",
            "List the breakpoints.",
            "Number of source lines gdb will list by default is 20.",
            "The disassembly flavor is \"intel\".",
        ] {
            let found = text.lines().any(|found| found.starts_with(line));
            assert!(found, "{line:?} is missing:\n{text}");
        }
        // A block of another language is left out, which is said once with its place.
        let told: Vec<&str> = text
            .lines()
            .filter(|l| l.contains("not supported"))
            .collect();
        assert_eq!(told.len(), 2, "{text}");
        assert!(
            told[0].contains("gdbinit:") && told[0].ends_with("python is not supported; left out.")
        );
        Ok(())
    });
}

#[test]
fn a_call_of_a_users_command_in_a_body_is_compiled() {
    test(|| {
        let program = testapp("tally")?.display().to_string();
        let script = TempFile::new(
            "define show_it\n  printf \"%d %s\\n\", $arg0, (char *)$arg1\nend\ndefine through\n  show_it $arg0 $arg1\nend\n\
             break visit\ncommands\n  silent\n  through $rdi $rsi\n  continue\nend\nmaintenance print program 1\nrun\n",
        );
        let text = Tracer::Trapline
            .batch(&["-x", &script.path(), &program])?
            .succeed();
        assert!(text.contains("then the program goes on"), "{text}");
        assert!(!text.contains("The front runs the body"), "{text}");
        assert!(text.contains("\n3 blue\n"), "{text}");
        Ok(())
    });
}

/// A configuration directory.
struct Config(TempDir);

impl Config {
    fn with(init: &str) -> Config {
        let directory = TempDir::new("trapline-config");
        fs::create_dir(directory.join("trapline")).expect("a directory of our own");
        fs::write(directory.join("trapline/init"), init).expect("a file of our own");
        Config(directory)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut command = support::tracer::trapline();
        command
            .env("XDG_CONFIG_HOME", self.0.path())
            .args(arguments);
        App::spawn(command).succeed()
    }
}

#[test]
fn the_init_file_is_read_unless_it_is_left_out() {
    test(|| {
        let config = Config::with("set $mine = 7\nnonsense\nset $mine = 8\n");
        let text = config.run(&["--batch", "-ex", "print $mine"]);
        assert!(
            text.contains("init:2: Error in sourced command file:"),
            "{text}"
        );
        assert!(
            text.ends_with("$1 = 7\n") || text.ends_with("$1 = 7"),
            "{text}"
        );
        let text = config.run(&["--batch", "-nx", "-ex", "print $mine"]);
        assert_eq!(text.trim(), "$1 = void");
        Ok(())
    });
}

#[test]
fn a_script_comes_from_the_standard_input() {
    test(|| {
        let program = testapp("tally")?.display().to_string();
        let mut app = Tracer::Trapline.batch(&["-x", "-", &program])?;
        for line in [
            "break visit if $rdi == 3",
            "commands",
            "silent",
            "x/s $rsi",
            "end",
            "run",
            "print nonsense +",
        ] {
            app.send(line);
        }
        let (status, text) = app.finish();
        assert!(text.contains("\"blue\""), "{text}");
        assert!(
            text.contains("stdin:7: Error in sourced command file:"),
            "{text}"
        );
        assert_eq!(status.code(), Some(1));
        Ok(())
    });
}
