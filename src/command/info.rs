//! `info …` and `thread`.

use super::interpreter::{Call, Interpreter};
use crate::error::{Error, fail};
use crate::lang;
use crate::session::threads::table;

/// `info breakpoints [N…]`
pub fn breakpoints(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (numbers, running) = listed(i, call.arguments)?;
    let text = i.session.probes.table(&numbers, call.arguments, running);
    i.print(&text);
    Ok(())
}

/// `info watchpoints [N…]`
pub fn watchpoints(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let (numbers, running) = listed(i, call.arguments)?;
    let text = i
        .session
        .probes
        .watch_table(&numbers, call.arguments, running);
    i.print(&text);
    Ok(())
}

/// The numbers in a list, and whether there is a process.
fn listed(i: &mut Interpreter, words: &str) -> Result<(Vec<u32>, bool), Error> {
    i.session.read_counters();
    let numbers = i.numbers(words, "breakpoint")?;
    if numbers.len() < words.split_ascii_whitespace().count() {
        fail!("Arguments must be numbers or '$' variables.");
    }
    Ok((numbers, i.session.target().is_some()))
}

/// `info registers [NAME…]`
pub fn registers(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if i.session.target().is_none() {
        fail!("The program has no registers now.");
    }
    i.session.need_stand()?;
    let named = !call.arguments.is_empty();
    let names: Vec<&str> = if named {
        call.arguments.split_ascii_whitespace().collect()
    } else {
        let masks = crate::arch::MASK_REGISTERS;
        let general = crate::arch::INFO_REGISTERS.into_iter();
        general.chain(masks).collect()
    };
    for name in names {
        let name = name.strip_prefix('$').unwrap_or(name);
        match register_line(i, name) {
            Ok(Some(line)) => i.print(&line),
            Ok(None) if named => fail!("Invalid register `{name}'"),
            // gdb leaves out what the processor does not have.
            Ok(None) => {}
            Err(error) if named => return Err(error),
            Err(_) => {}
        }
    }
    Ok(())
}

/// `rip            0x555555555159      0x555555555159 <f>`
fn register_line(i: &mut Interpreter, name: &str) -> Result<Option<String>, Error> {
    let alias = match name {
        "pc" => "rip",
        "sp" => "rsp",
        "fp" => "rbp",
        name => name,
    };
    let Some(register) = lang::registers::lookup(alias) else {
        return Ok(None);
    };
    let _ = register;
    let text = format!("${alias}");
    let result = i.session.with_view(|view, _| -> Result<_, lang::Error> {
        let expr = lang::parse(&text, view)?;
        let value = lang::evaluate(&expr, view)?.fetched(view)?;
        let natural = lang::print_value(&value, None, view)?;
        let raw = lang::print_value(&value, Some('x'), view)?;
        let float = *value.ty().kind() == lang::Kind::Float;
        let bytes = value.contents().filter(|_| float).map(|b| b.to_vec());
        Ok((natural, raw, bytes))
    });
    match result {
        Ok((natural, raw, bytes)) => {
            let natural = without_type(&natural);
            Ok(Some(if natural.starts_with('{') {
                // Vector registers show all their views, once and as numbers.
                format!("{name:<15}{raw}\n")
            } else if let Some(bytes) = bytes {
                let bytes: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
                format!("{name:<15}{natural:<19} (raw 0x{bytes})\n")
            } else {
                format!("{name:<15}{raw:<20}{natural}\n")
            }))
        }
        Err(lang::Error::Message(message)) => Err(Error::new(message)),
        Err(error) => Err(Error::new(error.to_string())),
    }
}

/// `(void (*)()) 0x… <f>` without the type in front.
fn without_type(text: &str) -> &str {
    if text.starts_with('(')
        && let Some(at) = text.find(") 0x")
    {
        return &text[at + 2..];
    }
    text
}

/// `info symbol ADDRESS`
pub fn symbol(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        fail!("Argument required (address).");
    }
    let address = super::data::number(i, call.arguments)?;
    let running = i.session.target().is_some();
    let text = i
        .session
        .images()
        .and_then(|images| images.describe(address, running))
        .unwrap_or_else(|| format!("No symbol matches {}.\n", call.arguments));
    i.print(&text);
    Ok(())
}

/// `info threads`
pub fn threads(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    if i.session.targets.is_empty() {
        i.print("No threads.\n");
        return Ok(());
    }
    if !i.session.background {
        i.session.need_stand()?;
    }
    let table = table(&i.session.thread_rows());
    i.print(&table);
    Ok(())
}

/// `info sharedlibrary [REGEX]`
pub fn sharedlibrary(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let text = match i.session.target() {
        Some(target) => target.images.libraries(call.arguments),
        None => "No shared libraries loaded at this time.\n".into(),
    };
    i.print(&text);
    Ok(())
}

/// `thread [N]`
pub fn thread(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if call.arguments.is_empty() {
        let Some(target) = i.session.target() else {
            fail!("No thread selected");
        };
        if let Some(thread) = target.threads.get(target.selected) {
            let id = i.session.thread_id(i.session.current, thread);
            let text = format!("[Current thread is {id} ({})]\n", thread.title());
            i.print(&text);
        }
        return Ok(());
    }
    let (inferior, tid) = i.session.numbered_thread(call.arguments)?;
    i.session.need_stand()?;
    i.session.select_inferior(inferior);
    if let Some(target) = i.session.target_mut() {
        target.selected = tid;
    }
    let text = i.session.switched_thread(tid);
    i.print(&text);
    Ok(())
}

/// `maint print program N`
pub fn program(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let Ok(number) = call.arguments.trim().parse::<u32>() else {
        fail!("Argument required (a breakpoint number).");
    };
    let Some(probe) = i.session.probes.get(number).cloned() else {
        fail!("No breakpoint number {number}.");
    };
    let text = i.session.program_text(&probe)?;
    i.print(&text);
    Ok(())
}

/// `info inferiors [N…]`
pub fn inferiors(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    let numbers = i.numbers(call.arguments, "inferior")?;
    let text = i.session.inferior_table(&numbers);
    i.print(&text);
    Ok(())
}

/// `info program`
pub fn program_state(i: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    if i.session.target().is_none() {
        i.print("The program being debugged is not being run.\n");
        return Ok(());
    }
    i.session.need_stand()?;
    let Some(selected) = i.session.target().map(|t| t.selected) else {
        return Ok(());
    };
    let pc = i.session.registers(selected).map(|r| r.pc());
    let at = i.session.stopped_at();
    let thread = i.session.target().and_then(|t| t.threads.get(selected));
    let mut text = String::new();
    if let (Some(thread), Some(pc)) = (thread, pc) {
        text.push_str(&format!(
            "\tUsing the running image of child {}.\nProgram stopped at {pc:#x}.\n",
            thread.title()
        ));
    }
    if let Some(number) = at {
        text.push_str(&format!("It stopped at breakpoint {number}.\n"));
    }
    i.print(&text);
    Ok(())
}
