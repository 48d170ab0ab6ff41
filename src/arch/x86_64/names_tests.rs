use super::*;

use std::process::Command;

/// The type that `whatis` prints for a class.
fn type_name(class: RegisterClass) -> &'static str {
    match class {
        RegisterClass::Int8 => "int8_t",
        RegisterClass::Int16 => "int16_t",
        RegisterClass::Int32 => "int32_t",
        RegisterClass::Int64 => "int64_t",
        RegisterClass::Long => "long",
        RegisterClass::DataPointer => "void *",
        RegisterClass::CodePointer => "void (*)()",
        RegisterClass::Flags => "i386_eflags",
    }
}

#[test]
fn names_and_types_are_gdbs() {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "starti", "-ex", "echo >>\\n"]);
    for entry in NAMES {
        gdb.arg("-ex").arg(format!("whatis ${}", entry.name));
    }
    for name in ["r8b", "eip", "ip", "flags", "rflags"] {
        gdb.arg("-ex").arg(format!("whatis ${name}"));
    }
    gdb.args(["-ex", "echo >>\\n", "-ex", "info registers", "/bin/true"]);
    let Ok(output) = gdb.output() else {
        println!("skipped: there is no gdb to compare with");
        return;
    };
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut parts = output.split(">>\n").skip(1);
    let (Some(types), Some(info)) = (parts.next(), parts.next()) else {
        panic!("{output}");
    };
    let mut types = types.lines();
    for entry in NAMES {
        let expected = format!("type = {}", type_name(entry.class));
        assert_eq!(types.next(), Some(&*expected), "${}", entry.name);
    }
    for line in types {
        assert_eq!(line, "type = void");
    }
    let listed: Vec<&str> = info
        .lines()
        .filter_map(|line| line.split(' ').next())
        .take(INFO_REGISTERS.len())
        .collect();
    assert_eq!(listed, INFO_REGISTERS);
}
