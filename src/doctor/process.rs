//! One process: whether it can be attached to, and what is special about it.

use super::access::{namespace, owner, why_refused};
use super::debug;
use super::status::Status;
use super::{Check, State, errno};
use crate::engine::trial::{self, Outcome};

const AREA: &str = "target";

/// Adds the checks; whether the process can be traced.
pub fn examine(pid: i32, checks: &mut Vec<Check>) -> bool {
    let status = match Status::read(pid) {
        Ok(status) => status,
        Err(error) => {
            let seen = format!("/proc/{pid}/status: {error}");
            checks.push(
                Check::new(AREA, "process", State::No, seen)
                    .cure("give the number of a process that is there, or run as its user or as root (hidepid)"),
            );
            return false;
        }
    };
    let threads = threads(pid);
    checks.push(process(pid, &status, &threads));
    let attach = attach(pid, &threads);
    let works = attach.state == State::Ok;
    checks.push(attach);
    checks.push(dumpable(pid, &status));
    checks.push(namespaces(|kind| {
        (namespace("self", kind), namespace(pid, kind))
    }));
    checks.push(seccomp(threads.iter().map(|(_, status)| status)));
    let cpu = super::read("/proc/cpuinfo").unwrap_or_default();
    let statuses: Vec<&Status> = threads.iter().map(|(_, status)| status).collect();
    checks.push(shadow_stack(&statuses, &cpu));
    debug::examine(pid, checks);
    works
}

/// The threads of a process with their states.
fn threads(pid: i32) -> Vec<(i32, Status)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let ids = tasks
        .into_iter()
        .flatten()
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse::<i32>().ok());
    ids.filter_map(|tid| Some((tid, Status::read(format!("{pid}/task/{tid}")).ok()?)))
        .collect()
}

fn has_ended(status: &Status) -> bool {
    matches!(status.state(), Some('Z' | 'X'))
}

fn process(pid: i32, status: &Status, threads: &[(i32, Status)]) -> Check {
    let name = status.get("Name").unwrap_or("?");
    let user = status.ids("Uid").map_or(-1, |ids| i64::from(ids[1]));
    let living = threads.iter().filter(|(_, status)| !has_ended(status));
    let living = living.count();
    let file = match std::fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(path) => path.display().to_string(),
        Err(_) => "its file is not shown to you".into(),
    };
    let seen = format!(
        "{pid} ({name}) of user {user}, {file}, {living} thread{}",
        if living == 1 { "" } else { "s" }
    );
    if has_ended(status) && living == 0 {
        return Check::new(AREA, "process", State::No, format!("{seen}: it has ended"))
            .cure("nothing is left of it but its number, until its parent waits for it");
    }
    if has_ended(status) {
        let seen = format!("{seen}; its first thread has ended, the others go on");
        return Check::new(AREA, "process", State::Ok, seen);
    }
    if status.state() == Some('T') {
        return Check::new(
            AREA,
            "process",
            State::Part,
            format!("{seen}; stopped by a signal: no hit before it goes on"),
        )
        .cure(format!("kill -CONT {pid}"));
    }
    Check::new(AREA, "process", State::Ok, seen)
}

/// Asked of the kernel by a thread that lives: one that has ended has no memory any more.
fn attach(pid: i32, threads: &[(i32, Status)]) -> Check {
    let tracer = threads
        .iter()
        .find_map(|(_, status)| status.number("TracerPid").filter(|tracer| *tracer != 0));
    let asked = threads
        .iter()
        .find(|(_, status)| !has_ended(status))
        .map_or(pid, |(tid, _)| *tid);
    match (tracer, trial::may_attach(asked)) {
        (None, Outcome::Done) => Check::new(
            AREA,
            "attach",
            State::Ok,
            "allowed (the kernel was asked, nothing was attached), and nobody traces it",
        ),
        (None, Outcome::Refused(number)) if number != libc::EPERM && number != libc::EACCES => {
            Check::new(AREA, "attach", State::No, errno(number)).cure("see the line above")
        }
        (Some(_), _) | (None, Outcome::Refused(_)) => {
            let why = why_refused(pid);
            Check::new(AREA, "attach", State::No, why.seen).cure(why.cure)
        }
        (None, Outcome::Killed(_) | Outcome::NotTried) => Check::new(
            AREA,
            "attach",
            State::Unknown,
            "the kernel could not be asked",
        ),
    }
}

fn dumpable(pid: i32, status: &Status) -> Check {
    let (Some(owner), Some(users)) = (owner(pid), status.ids("Uid")) else {
        return Check::new(AREA, "dumpable", State::Unknown, "its owner is not shown");
    };
    match (owner == users[1], owner) {
        // /proc/PID of root's processes is root's in either case.
        (true, 0) => Check::new(
            AREA,
            "dumpable",
            State::Ok,
            "a process of root's: it does not matter to root",
        ),
        (true, _) => Check::new(AREA, "dumpable", State::Ok, "yes"),
        (false, _) => Check::new(
            AREA,
            "dumpable",
            State::Part,
            format!("no: what is in /proc/{pid} belongs to user {owner}, the process to {}; only CAP_SYS_PTRACE may attach", users[1]),
        )
        .cure("run trapline as root, or the program without set-uid, file capabilities and PR_SET_DUMPABLE"),
    }
}

fn namespaces(names: impl Fn(&str) -> (Option<String>, Option<String>)) -> Check {
    let mut differ = Vec::new();
    let mut unknown = Vec::new();
    for (kind, what) in [
        ("mnt", "mnt (its files are looked for in its own root)"),
        ("pid", "pid (the numbers shown are ours, not its own)"),
        ("user", "user"),
    ] {
        match names(kind) {
            (Some(own), Some(target)) if own != target => differ.push(what),
            (Some(_), Some(_)) => {}
            _ => unknown.push(kind),
        }
    }
    if !unknown.is_empty() {
        let seen = format!("not shown to you: {}", unknown.join(", "));
        return Check::new(AREA, "namespaces", State::Unknown, seen);
    }
    let seen = match differ.as_slice() {
        [] => "the same as trapline's: mnt, pid, user".into(),
        many => format!("others than trapline's: {}", many.join(", ")),
    };
    Check::new(AREA, "namespaces", State::Ok, seen)
}

fn seccomp<'a>(threads: impl Iterator<Item = &'a Status>) -> Check {
    let mut all = 0;
    let filters: Vec<String> = threads
        .inspect(|_| all += 1)
        .filter_map(Status::seccomp)
        .collect();
    let Some(first) = filters.first() else {
        return Check::new(AREA, "seccomp", State::Ok, "no thread has a filter");
    };
    Check::new(
        AREA,
        "seccomp",
        State::Part,
        format!(
            "{} of {all} threads under {first}: nothing is mapped by them, slots go behind the end of a module's text while there is room",
            filters.len()
        ),
    )
    .cure("run the program without its filter if a site is lost for it")
}

/// CET's shadow stack, and whether the processor has it (`Documentation/arch/x86/shstk.rst`).
fn shadow_stack(threads: &[&Status], cpu: &str) -> Check {
    let flags = cpu.lines().find_map(|line| line.strip_prefix("flags"));
    let has =
        |name: &str| flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == name));
    let processor = match (flags, has("user_shstk") || has("shstk"), has("ibt")) {
        (None, _, _) => "/proc/cpuinfo does not say what the processor has",
        (_, true, true) => "the processor has shstk and ibt",
        (_, true, false) => "the processor has shstk, not ibt",
        (_, false, true) => "the processor has ibt, not shstk",
        (_, false, false) => "the processor has neither shstk nor ibt",
    };
    let on = threads
        .iter()
        .filter_map(|status| status.features())
        .any(|features| features.contains(&"shstk"));
    if on {
        return Check::new(
            AREA,
            "cet",
            State::Part,
            format!(
                "its shadow stack is on ({processor}): sites on a call instruction are refused"
            ),
        )
        .cure("run the program with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off to probe those");
    }
    let said = threads.iter().any(|status| status.features().is_some());
    let seen = match said {
        true => format!("no shadow stack ({processor})"),
        false => format!("the kernel knows no user shadow stack ({processor})"),
    };
    Check::new(AREA, "cet", State::Ok, seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_a_process() {
        let status = |state| Status::new(format!("Name:\tx\nState:\t{state}\nUid:\t1\t1\t1\t1\n"));
        let stopped = process(1 << 23, &status("T (stopped)"), &[(1, status("T"))]);
        assert_eq!(stopped.state, State::Part);
        assert!(stopped.cure.unwrap().starts_with("kill -CONT"));
        let ended = process(1 << 23, &status("Z"), &[(1, status("Z"))]);
        assert_eq!(ended.state, State::No);
        let headless = process(1 << 23, &status("Z"), &[(1, status("Z")), (2, status("S"))]);
        assert_eq!(headless.state, State::Ok);
        assert!(headless.seen.contains("first thread has ended"));
    }

    #[test]
    fn a_filter_of_one_thread_counts() {
        let plain = Status::new("Seccomp:\t0\n");
        let filtered = Status::new("Seccomp:\t2\nSeccomp_filters:\t2\n");
        assert_eq!(seccomp([&plain].into_iter()).state, State::Ok);
        let check = seccomp([&plain, &filtered].into_iter());
        assert_eq!(check.state, State::Part);
        assert!(check.seen.starts_with("1 of 2 threads under 2 filters"));
    }

    #[test]
    fn the_shadow_stack_is_the_threads() {
        let on = Status::new("x86_Thread_features:\tshstk \n");
        let off = Status::new("x86_Thread_features:\t\n");
        let cpu = "processor : 0\nflags\t\t: fpu user_shstk ibt";
        assert_eq!(shadow_stack(&[&off, &on], cpu).state, State::Part);
        let none = shadow_stack(&[&off], cpu);
        assert_eq!(none.state, State::Ok);
        assert!(none.seen.contains("has shstk and ibt"));
        let old = shadow_stack(&[&Status::default()], "flags : fpu");
        assert!(
            old.seen
                .contains("knows no user shadow stack (the processor has neither")
        );
        assert!(shadow_stack(&[], "").seen.contains("does not say"));
    }

    #[test]
    fn namespaces_that_differ_are_named() {
        let same = namespaces(|kind| (Some(kind.into()), Some(kind.into())));
        assert!(same.seen.starts_with("the same"));
        let container = namespaces(|kind| {
            let other = if kind == "user" { "user" } else { "other" };
            (Some(kind.into()), Some(other.into()))
        });
        assert!(container.seen.contains("mnt") && container.seen.contains("pid"));
        assert!(!container.seen.contains("user"));
        let hidden = namespaces(|_| (Some("x".into()), None));
        assert_eq!(hidden.state, State::Unknown);
    }
}
