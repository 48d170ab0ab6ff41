//! What the kernel itself would do for a tracer: uprobes and BPF. trapline has no engine that uses
//! them; the lines say what the machine allows.

use super::status::{CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN, Status};
use super::{Check, State, became, read};
use crate::engine::trial::{self, Bpf, Outcome, Uprobe};

const EVENT: &str = "/sys/bus/event_source/devices/uprobe/type";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Adds the checks.
pub fn examine(checks: &mut Vec<Check>) {
    let status = Status::read("self").unwrap_or_default();
    let event = read(EVENT);
    let kind = event.as_ref().ok().and_then(|text| text.parse().ok());
    checks.push(event_source(event.as_deref().map_err(|error| *error)));
    if let Some(kind) = kind {
        checks.push(opened(trial::uprobe(Uprobe(kind))));
    }
    checks.push(tracefs());
    let program = trial::bpf(Bpf::Program);
    checks.push(tried(
        "program",
        "loading a uprobe's program",
        program,
        &status,
    ));
    if program.is_done() {
        let sleepable = trial::bpf(Bpf::Sleepable);
        let what = "loading one that may sleep (reads memory that is not resident)";
        checks.push(tried("sleepable", what, sleepable, &status));
    }
    let ring = trial::bpf(Bpf::Ring);
    checks.push(tried("ring", "making a ring buffer", ring, &status));
    checks.push(unprivileged(
        read("/proc/sys/kernel/unprivileged_bpf_disabled")
            .as_deref()
            .map_err(|error| *error),
    ));
    checks.push(lockdown(read(LOCKDOWN).as_deref().map_err(|error| *error)));
}

fn event_source(text: Result<&str, nix::errno::Errno>) -> Check {
    const AREA: &str = "uprobe";
    match text {
        Ok(text) if text.parse::<u32>().is_ok() => Check::new(
            AREA,
            "events",
            State::Ok,
            format!("the kernel has uprobe events (type {text}); trapline does not use them"),
        ),
        Ok(text) => Check::new(
            AREA,
            "events",
            State::Unknown,
            format!("{EVENT} holds '{text}'"),
        ),
        Err(_) if !std::path::Path::new("/sys/bus").exists() => {
            Check::new(AREA, "events", State::Unknown, "/sys is not mounted")
                .cure("mount -t sysfs sysfs /sys")
        }
        Err(error) => Check::new(AREA, "events", State::No, format!("{EVENT}: {error}"))
            .cure("a kernel with CONFIG_UPROBE_EVENTS (trapline does not need it)"),
    }
}

fn opened(outcome: Outcome) -> Check {
    let what = "perf_event_open of a uprobe on trapline's own file";
    let check = told("uprobe", "open", what, outcome);
    match outcome {
        Outcome::Refused(libc::EACCES | libc::EPERM) => check
            .cure("run with CAP_PERFMON or as root (in a container also: a seccomp profile that allows perf_event_open)"),
        _ => check.cure("look in the kernel's log; trapline does not need it"),
    }
}

fn told(area: &'static str, name: &'static str, what: &str, outcome: Outcome) -> Check {
    let state = match outcome {
        Outcome::Done => State::Ok,
        Outcome::Refused(_) | Outcome::Killed(_) => State::No,
        Outcome::NotTried => State::Unknown,
    };
    Check::new(area, name, state, became(what, outcome))
}

fn tracefs() -> Check {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let events = |place: &&&str| std::path::Path::new(place).join("uprobe_events").exists();
    match places.iter().find(events) {
        Some(place) => Check::new(
            "uprobe",
            "tracefs",
            State::Ok,
            format!("{place}/uprobe_events is there"),
        ),
        None => Check::new(
            "uprobe",
            "tracefs",
            State::Part,
            "no uprobe_events under /sys/kernel/tracing: not mounted, or not for this user",
        )
        .cure("mount -t tracefs tracefs /sys/kernel/tracing, as root (perf's events go without)"),
    }
}

fn tried(name: &'static str, what: &str, outcome: Outcome, status: &Status) -> Check {
    let check = told("bpf", name, what, outcome);
    let missing: Vec<&str> = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(capability, _)| {
            !status.is_capable(*capability) && !status.is_capable(CAP_SYS_ADMIN)
        })
        .map(|(_, name)| name)
        .collect();
    match outcome {
        Outcome::Refused(libc::EPERM | libc::EACCES) if !missing.is_empty() => {
            check.cure(format!("run with {} or as root", missing.join(" and ")))
        }
        Outcome::Refused(libc::ENOSYS) => {
            check.cure("a kernel with CONFIG_BPF_SYSCALL (trapline does not need it)")
        }
        Outcome::Refused(libc::EINVAL) => check.cure("a newer kernel (trapline does not need it)"),
        _ => check
            .cure("a seccomp profile and a kernel that allow bpf(2) (trapline does not need it)"),
    }
}

fn unprivileged(text: Result<&str, nix::errno::Errno>) -> Check {
    let (state, seen) = match text {
        Ok("0") => (
            State::Ok,
            "unprivileged_bpf_disabled is 0: anybody may load, but not for uprobes".into(),
        ),
        Ok("1") => (
            State::Ok,
            "unprivileged_bpf_disabled is 1: CAP_BPF is needed, until the next boot".into(),
        ),
        Ok("2") => (
            State::Ok,
            "unprivileged_bpf_disabled is 2: CAP_BPF is needed".into(),
        ),
        Ok(other) => (
            State::Unknown,
            format!("unprivileged_bpf_disabled is '{other}'"),
        ),
        Err(error) => (
            State::Unknown,
            format!("unprivileged_bpf_disabled: {error}"),
        ),
    };
    Check::new("bpf", "users", state, seen)
}

fn lockdown(text: Result<&str, nix::errno::Errno>) -> Check {
    let check = |state, seen: String| Check::new("bpf", "lockdown", state, seen);
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            let seen = format!("{LOCKDOWN}: {error}; whether BPF may write memory is not known");
            return check(State::Unknown, seen)
                .cure("mount -t securityfs securityfs /sys/kernel/security");
        }
    };
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(mode, _)| mode);
    match chosen {
        Some("none") => check(
            State::Ok,
            "none: bpf_probe_write_user may change a process's memory".into(),
        ),
        Some(mode @ ("integrity" | "confidentiality")) => check(
            State::Part,
            format!("{mode}: bpf_probe_write_user is refused{}; ptrace writes as before", 
                if mode == "confidentiality" { ", and BPF may not read memory either" } else { "" }),
        )
        .cure("boot without lockdown= (secure boot sets it); trapline writes by ptrace and does not need it"),
        _ => check(State::Unknown, format!("{LOCKDOWN} holds '{text}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    #[test]
    fn lockdown_is_the_mode_in_brackets() {
        assert_eq!(
            lockdown(Ok("[none] integrity confidentiality")).state,
            State::Ok
        );
        let integrity = lockdown(Ok("none [integrity] confidentiality"));
        assert_eq!(integrity.state, State::Part);
        assert!(integrity.seen.contains("bpf_probe_write_user is refused"));
        let both = lockdown(Ok("none integrity [confidentiality]"));
        assert!(both.seen.contains("may not read"));
        assert_eq!(lockdown(Ok("]none[")).state, State::Unknown);
        assert_eq!(lockdown(Err(Errno::ENOENT)).state, State::Unknown);
    }

    #[test]
    fn the_missing_capabilities_are_named() {
        let none = Status::new("CapEff:\t0\n");
        let check = tried("program", "x", Outcome::Refused(libc::EPERM), &none);
        assert_eq!(check.state, State::No);
        assert!(check.cure.unwrap().contains("CAP_BPF and CAP_PERFMON"));
        let all = Status::new("CapEff:\t1ffffffffff\n");
        let check = tried("program", "x", Outcome::Refused(libc::EPERM), &all);
        assert!(check.cure.unwrap().contains("seccomp"));
        let check = tried("ring", "x", Outcome::Killed(libc::SIGSYS), &all);
        assert!(check.seen.contains("SIGSYS"));
        assert_eq!(tried("ring", "x", Outcome::Done, &none).state, State::Ok);
    }

    #[test]
    fn uprobes_may_be_absent() {
        assert_eq!(event_source(Ok("9")).state, State::Ok);
        assert_eq!(event_source(Ok("nine")).state, State::Unknown);
        assert!(event_source(Err(Errno::ENOENT)).cure.is_some());
        assert!(
            opened(Outcome::Refused(libc::EACCES))
                .cure
                .unwrap()
                .contains("CAP_PERFMON")
        );
        assert_eq!(opened(Outcome::NotTried).state, State::Unknown);
        for value in ["0", "1", "2"] {
            assert_eq!(unprivileged(Ok(value)).state, State::Ok);
        }
        assert_eq!(unprivileged(Ok("")).state, State::Unknown);
    }
}
