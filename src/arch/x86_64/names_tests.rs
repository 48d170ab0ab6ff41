use super::*;

use std::process::Command;

#[test]
fn parts_are_taken_and_put_back() {
    let mut registers = Registers::default();
    registers.set(Register::Rax, 0x1122_3344_5566_7788);
    let name = |name| register_name(name).unwrap();
    assert_eq!(name("rax").value(&registers), 0x1122_3344_5566_7788);
    assert_eq!(name("eax").value(&registers), 0x5566_7788);
    assert_eq!(name("ax").value(&registers), 0x7788);
    assert_eq!(name("ah").value(&registers), 0x77);
    assert_eq!(name("al").value(&registers), 0x88);
    let whole = registers.get(Register::Rax);
    assert_eq!(name("ah").insert(whole, 0xff0), 0x1122_3344_5566_f088);
    assert_eq!(name("eax").insert(whole, 1), 0x1122_3344_0000_0001);
    assert_eq!(name("rax").insert(whole, 1), 1);
}

#[test]
fn flags_are_named_from_the_lowest_bit() {
    assert_eq!(eflags_text(0x246), "[ PF ZF IF ]");
    assert_eq!(eflags_text(0), "[ ]");
    assert_eq!(
        eflags_text(0x54fd7),
        "[ CF PF AF ZF SF TF IF DF OF NT RF AC ]"
    );
    assert_eq!(mxcsr_text(0x1f80), "[ IM DM ZM OM UM PM ]");
}

#[test]
fn names_and_types_are_gdbs() {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "starti", "-ex", "echo >>\\n"]);
    for entry in register_names() {
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
    for entry in register_names() {
        let expected = format!("type = {}", entry.class.type_name());
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
