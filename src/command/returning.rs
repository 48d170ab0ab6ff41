//! `return` at the prompt, and the words that only a probe's body knows.

use super::interpreter::{Call, Interpreter};
use crate::arch::{RETURN_VALUE, Register};
use crate::error::{Error, fail};
use crate::lang::{self, Scope};

/// `return [VALUE]`
pub fn return_(i: &mut Interpreter, call: &Call<'_>) -> Result<(), Error> {
    if i.session.target().is_none() {
        fail!("The program is not being run.");
    }
    i.session.need_stand()?;
    let tid = i.session.need_target()?.selected;
    let value = match call.arguments {
        "" => None,
        text => Some(i.session.with_view(|view, _| {
            let expr = lang::parse(text, view)?;
            let value = lang::evaluate(&expr, view)?;
            match value.ty().is_float() || value.ty().size() > 8 {
                true => Err(lang::Error::new("Only integers and pointers are returned.")),
                false => value.as_u64(view),
            }
        })),
    };
    let value = value.transpose().map_err(|e| Error::new(e.to_string()))?;
    let caller = i.session.caller(tid)?;
    if call.from_tty && !i.query("Make selected stack frame return now? ")? {
        fail!("Not confirmed");
    }
    let mut changes = vec![(Register::Rip, caller.pc), (Register::Rsp, caller.sp)];
    changes.extend(caller.frame.map(|frame| (Register::Rbp, frame)));
    changes.extend(value.map(|value| (RETURN_VALUE, value)));
    i.session
        .with_view(|view, _| {
            let mut changes = changes.into_iter();
            changes.try_for_each(|(register, value)| view.set_register(register, value))
        })
        .map_err(|e| Error::new(e.to_string()))?;
    if call.from_tty
        && let Some(registers) = i.session.registers(tid)
    {
        let frame = i.session.frame(i.session.current, &registers);
        i.print(&format!("#0  {frame}\n"));
    }
    Ok(())
}

/// `delay TIME`
pub fn delay(_: &mut Interpreter, _: &Call<'_>) -> Result<(), Error> {
    fail!(
        "delay holds a thread in the body of a probe that runs without the front; `maintenance print program' tells why this one does not."
    )
}
