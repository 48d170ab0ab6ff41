//! The ptrace engine, on this machine: what it needs of the kernel, tried.

use super::access::{self, MACHINE_USERS, YAMA, namespace};
use super::status::{CAP_SYS_PTRACE, Status};
use super::{Check, State, became};
use crate::engine::trial::{self, Outcome, PtraceTrial, Step};

const AREA: &str = "ptrace";

/// The process namespace in which the machine began (`<linux/proc_ns.h>`, PROC_PID_INIT_INO).
const MACHINE_PROCESSES: &str = "pid:[4026531836]";

/// Adds the checks; whether a child of our own can be traced.
pub fn examine(checks: &mut Vec<Check>) -> bool {
    let status = Status::read("self");
    let trial = trial::ptrace();
    checks.push(attach(&trial));
    checks.push(reading(trial.of(Step::ReadVectored)));
    checks.push(slots(trial.of(Step::ExecutablePage)));
    match &status {
        Ok(status) => {
            checks.push(rights(status));
            checks.push(seccomp(status));
            let scope = super::read(YAMA);
            let scope = scope.as_deref().map_err(|error| *error);
            checks.push(yama(scope, status.is_capable(CAP_SYS_PTRACE)));
        }
        Err(error) => checks.push(
            Check::new(
                AREA,
                "rights",
                State::Unknown,
                format!("/proc/self/status: {error}"),
            )
            .cure("mount /proc"),
        ),
    }
    checks.push(namespaces(
        namespace("self", "user").as_deref(),
        namespace("self", "pid").as_deref(),
    ));
    trial.failure().is_none()
}

fn attach(trial: &PtraceTrial) -> Check {
    let Some((step, outcome)) = trial.failure() else {
        return Check::new(
            AREA,
            "attach",
            State::Ok,
            "a process of ours was seized, stopped, read and its text written (tried)",
        );
    };
    let what = match step {
        Step::Fork => "starting a process",
        Step::Seize => "PTRACE_SEIZE of a process of ours",
        Step::Stop => "PTRACE_INTERRUPT of a process of ours",
        Step::Registers => "PTRACE_GETREGS of a process of ours",
        Step::OpenMemory => "opening /proc/PID/mem of a process of ours",
        Step::WriteText => "writing the text of a process of ours through /proc/PID/mem",
        Step::ExecutablePage => "mapping executable memory",
        Step::ReadVectored => "process_vm_readv of a process of ours",
    };
    let (seen, cure) = failed(what, outcome);
    let cure = match step {
        Step::WriteText => "boot with proc_mem.force_override=ptrace or always, not never",
        Step::OpenMemory => "mount /proc",
        Step::Fork => "raise the limit of processes (ulimit -u, the container's pids limit)",
        _ => cure,
    };
    Check::new(AREA, "attach", State::No, seen).cure(cure)
}

/// What became of a call that was not done, and what usually lies behind it.
fn failed(what: &str, outcome: Outcome) -> (String, &'static str) {
    const FILTER: &str =
        "start the container with --cap-add=SYS_PTRACE or --security-opt seccomp=unconfined";
    match outcome {
        Outcome::NotTried => (
            format!("{what}: not tried, a step before it fails"),
            "see above",
        ),
        Outcome::Done => (became(what, outcome), ""),
        Outcome::Refused(_) | Outcome::Killed(_) => (became(what, outcome), FILTER),
    }
}

fn reading(outcome: Outcome) -> Check {
    let (seen, cure) = failed("process_vm_readv", outcome);
    match outcome {
        Outcome::Done => Check::new(AREA, "read", State::Ok, seen),
        Outcome::NotTried => Check::new(AREA, "read", State::Unknown, seen),
        // Everything is read through /proc/PID/mem then.
        _ => Check::new(
            AREA,
            "read",
            State::Part,
            format!("{seen}; hits cost more without it"),
        )
        .cure(cure),
    }
}

fn slots(outcome: Outcome) -> Check {
    let (seen, _) = failed("mapping executable memory", outcome);
    match outcome {
        Outcome::Done => Check::new(AREA, "slots", State::Ok, seen),
        Outcome::NotTried => Check::new(AREA, "slots", State::Unknown, seen),
        _ => Check::new(
            AREA,
            "slots",
            State::Part,
            format!("{seen}; only the unused ends of modules' text are left for slots"),
        )
        .cure("allow it in the security module (SELinux: execmem)"),
    }
}

fn rights(status: &Status) -> Check {
    let user = status.ids("Uid").map_or(-1, |ids| i64::from(ids[1]));
    let set = status.get("CapEff").unwrap_or("unknown");
    if status.is_capable(CAP_SYS_PTRACE) {
        let seen =
            format!("user {user} with CAP_SYS_PTRACE (CapEff {set}): any process that it can see");
        return Check::new(AREA, "rights", State::Ok, seen);
    }
    let seen =
        format!("user {user} without CAP_SYS_PTRACE (CapEff {set}): processes of this user only");
    Check::new(AREA, "rights", State::Part, seen).cure(if user == 0 {
        "start the container with --cap-add=SYS_PTRACE"
    } else {
        "run as root for the processes of others"
    })
}

fn seccomp(status: &Status) -> Check {
    match (status.get("Seccomp"), status.seccomp()) {
        (None, _) => Check::new(
            AREA,
            "seccomp",
            State::Unknown,
            "/proc/self/status does not say whether a filter is in force",
        ),
        (_, None) => Check::new(AREA, "seccomp", State::Ok, "no filter on trapline itself"),
        (_, Some(filter)) => Check::new(
            AREA,
            "seccomp",
            State::Part,
            format!(
                "trapline itself runs under {filter}; the lines that were tried say what it refuses"
            ),
        )
        .cure("start the container with --security-opt seccomp=unconfined if they fail"),
    }
}

fn yama(scope: Result<&str, nix::errno::Errno>, capable: bool) -> Check {
    let value = match scope {
        Ok(value) => value,
        Err(nix::errno::Errno::ENOENT) if std::path::Path::new("/proc/sys/kernel").exists() => {
            let seen = "not in this kernel: user and capabilities decide alone";
            return Check::new(AREA, "yama", State::Ok, seen);
        }
        Err(error) => {
            let seen = format!("{YAMA}: {error}");
            return Check::new(AREA, "yama", State::Unknown, seen)
                .cure("mount /proc with all of its parts");
        }
    };
    match access::yama(value, capable) {
        Some(obstacle) => {
            let state = if value == "1" { State::Part } else { State::No };
            Check::new(AREA, "yama", state, obstacle.seen).cure(obstacle.cure)
        }
        None if value == "0" => {
            Check::new(AREA, "yama", State::Ok, "ptrace_scope is 0: no restriction")
        }
        None if matches!(value, "1" | "2") => Check::new(
            AREA,
            "yama",
            State::Ok,
            format!("ptrace_scope is {value}: no restriction for you, who have CAP_SYS_PTRACE"),
        ),
        None => Check::new(
            AREA,
            "yama",
            State::Unknown,
            format!("ptrace_scope is '{value}', whose meaning is unknown"),
        ),
    }
}

fn namespaces(users: Option<&str>, processes: Option<&str>) -> Check {
    let (Some(users), Some(processes)) = (users, processes) else {
        return Check::new(
            AREA,
            "namespaces",
            State::Unknown,
            "/proc/self/ns cannot be read",
        )
        .cure("mount /proc");
    };
    let mut seen = Vec::new();
    if users != MACHINE_USERS {
        seen.push(format!(
            "{users}: a user namespace, capabilities count for processes inside it only"
        ));
    }
    if processes != MACHINE_PROCESSES {
        seen.push(format!(
            "{processes}: a process namespace, processes outside are not seen"
        ));
    }
    if seen.is_empty() {
        let seen = "the machine's own: users and processes";
        return Check::new(AREA, "namespaces", State::Ok, seen);
    }
    Check::new(AREA, "namespaces", State::Part, seen.join("; "))
        .cure("for a process outside run trapline outside of the container")
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Done, Killed, NotTried, Refused};

    #[test]
    fn the_first_step_that_fails_is_the_one_told() {
        let fine = attach(&PtraceTrial::with([Done; 8]));
        assert_eq!(fine.state, State::Ok);
        let mut outcomes = [NotTried; 8];
        outcomes[..3].copy_from_slice(&[Done, Done, Refused(libc::EPERM)]);
        let refused = attach(&PtraceTrial::with(outcomes));
        assert_eq!(refused.state, State::No);
        assert!(refused.seen.contains("PTRACE_SEIZE") && refused.seen.contains("EPERM"));
        outcomes[2] = Killed(libc::SIGSYS);
        let killed = attach(&PtraceTrial::with(outcomes));
        assert!(killed.seen.contains("killed by SIGSYS"), "{killed}");
        outcomes[2..6].copy_from_slice(&[Done, Done, Done, Killed(libc::SIGSYS)]);
        let killed = attach(&PtraceTrial::with(outcomes));
        assert!(killed.seen.contains("process_vm_readv"), "{killed}");
        let mut text = [Done; 8];
        text[7] = Refused(libc::EFAULT);
        let text = attach(&PtraceTrial::with(text));
        assert!(text.cure.unwrap().contains("proc_mem.force_override"));
    }

    #[test]
    fn what_is_cheaper_is_not_what_is_needed() {
        let mut outcomes = [Done; 8];
        outcomes[Step::ReadVectored as usize] = Refused(libc::ENOSYS);
        outcomes[Step::ExecutablePage as usize] = Refused(libc::EACCES);
        let trial = PtraceTrial::with(outcomes);
        assert_eq!(trial.failure(), None);
        assert_eq!(reading(trial.of(Step::ReadVectored)).state, State::Part);
        assert_eq!(slots(trial.of(Step::ExecutablePage)).state, State::Part);
        assert_eq!(reading(NotTried).state, State::Unknown);
    }

    #[test]
    fn yama_depends_on_the_capability() {
        use nix::errno::Errno;
        assert_eq!(yama(Ok("0"), false).state, State::Ok);
        assert_eq!(yama(Ok("1"), false).state, State::Part);
        assert_eq!(yama(Ok("1"), true).state, State::Ok);
        assert_eq!(yama(Ok("2"), false).state, State::No);
        assert_eq!(yama(Ok("3"), true).state, State::No);
        assert_eq!(yama(Ok("x"), true).state, State::Unknown);
        assert_eq!(yama(Err(Errno::EACCES), true).state, State::Unknown);
    }

    #[test]
    fn rights_seccomp_and_namespaces() {
        let plain = Status::new("Uid:\t5\t5\t5\t5\nCapEff:\t0\nSeccomp:\t0\n");
        assert_eq!(rights(&plain).state, State::Part);
        assert_eq!(seccomp(&plain).state, State::Ok);
        let root = Status::new("Uid:\t0\t0\t0\t0\nCapEff:\t80000\nSeccomp:\t2\n");
        assert_eq!(rights(&root).state, State::Ok);
        assert_eq!(seccomp(&root).state, State::Part);
        assert_eq!(seccomp(&Status::default()).state, State::Unknown);
        let own = namespaces(Some(MACHINE_USERS), Some(MACHINE_PROCESSES));
        assert_eq!(own.state, State::Ok);
        let inner = namespaces(Some("user:[1]"), Some("pid:[2]"));
        assert!(inner.seen.contains("user:[1]") && inner.seen.contains("pid:[2]"));
        assert_eq!(namespaces(None, Some("x")).state, State::Unknown);
    }
}
