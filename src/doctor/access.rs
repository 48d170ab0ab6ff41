//! Why a process cannot be attached to: the kernel says EPERM for a dozen reasons and names none.
//!
//! The rules are those of ptrace(2), "Ptrace access mode checking", in the order in which they
//! can be told apart from outside.

use super::status::{CAP_SYS_PTRACE, Status};

/// Who may trace whom, where yama is in the kernel.
pub const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// A reason, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// What is in the way.
    pub seen: String,
    /// What helps.
    pub cure: String,
}

impl Obstacle {
    fn new(seen: impl Into<String>, cure: impl Into<String>) -> Obstacle {
        Obstacle {
            seen: seen.into(),
            cure: cure.into(),
        }
    }
}

/// All that the decision depends on.
#[derive(Debug, Clone, Default)]
struct Facts {
    pid: i32,
    own: Status,
    own_user_namespace: Option<String>,
    /// What [`YAMA`] holds; `None` where yama is not in the kernel.
    yama: Option<String>,
    /// What a security module calls us (`/proc/self/attr/current`).
    label: Option<String>,
    target: Status,
    target_user_namespace: Option<String>,
    /// The user to whom the files of `/proc/PID` belong: root, for what may not be dumped.
    owner: Option<u32>,
    /// The name of the process that traces it.
    tracer: Option<String>,
}

/// What is in the way of attaching to a process that refused it.
pub fn why_refused(pid: i32) -> Obstacle {
    obstacle(&Facts::of(pid)).unwrap_or_else(|| {
        Obstacle::new(
            format!("Process {pid} may be traced by somebody outside of this container, or a security module refuses it"),
            "look for the tracer outside, and in the kernel's log (dmesg, ausearch -m avc) for the refusal",
        )
    })
}

impl Facts {
    fn of(pid: i32) -> Facts {
        let target = Status::read(pid).unwrap_or_default();
        let tracer = target.number("TracerPid").filter(|tracer| *tracer != 0);
        Facts {
            pid,
            own: Status::read("self").unwrap_or_default(),
            own_user_namespace: namespace("self", "user"),
            yama: super::read(YAMA).ok(),
            label: super::read("/proc/self/attr/current").ok(),
            target_user_namespace: namespace(pid, "user"),
            owner: owner(pid),
            tracer: tracer
                .map(|tracer| super::read(format!("/proc/{tracer}/comm")).unwrap_or_default()),
            target,
        }
    }

    /// Whether CAP_SYS_PTRACE is there and counts for the target.
    fn is_capable(&self) -> bool {
        let own = self.own_user_namespace.as_deref();
        let counts = match self.target_user_namespace.as_deref() {
            Some(target) => own.is_none_or(|own| own == target || own == MACHINE_USERS),
            None => own.is_none_or(|own| own == MACHINE_USERS),
        };
        counts && self.own.is_capable(CAP_SYS_PTRACE)
    }
}

/// To whom the files of `/proc/PID` belong. The directory itself is the process's own in any case.
pub fn owner(pid: i32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let data = std::fs::metadata(format!("/proc/{pid}/status")).ok()?;
    Some(data.uid())
}

/// The user namespace in which the machine began (`<linux/proc_ns.h>`, PROC_USER_INIT_INO).
pub const MACHINE_USERS: &str = "user:[4026531837]";

/// What a namespace is called: `user:[4026531837]`.
pub fn namespace(of: impl std::fmt::Display, kind: &str) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{of}/ns/{kind}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

fn obstacle(facts: &Facts) -> Option<Obstacle> {
    let inside = facts.own_user_namespace.as_deref() != Some(MACHINE_USERS);
    already_traced(facts)
        .or_else(|| kernel_thread(facts))
        .or_else(|| other_namespace(facts).filter(|_| inside))
        .or_else(|| other_user(facts))
        .or_else(|| other_namespace(facts))
        .or_else(|| not_dumpable(facts))
        .or_else(|| yama(facts.yama.as_deref()?, facts.is_capable()))
        .or_else(|| more_capable(facts))
        .or_else(|| own_confinement(facts))
}

fn already_traced(facts: &Facts) -> Option<Obstacle> {
    let tracer = facts.target.number("TracerPid").filter(|pid| *pid != 0)?;
    let name = facts.tracer.as_deref().unwrap_or_default();
    Some(Obstacle::new(
        format!(
            "Process {} is traced by process {tracer} ({name}) already, and only one can",
            facts.pid
        ),
        "end that one first",
    ))
}

fn kernel_thread(facts: &Facts) -> Option<Obstacle> {
    // "Kthread" is newer than the rule that kthreadd is number 2 and parent of all the others.
    let kernel = facts.target.get("Kthread") == Some("1")
        || facts.target.get("Name") == Some("kthreadd") && facts.pid == 2
        || facts.target.number("PPid") == Some(2);
    kernel.then(|| {
        Obstacle::new(
            format!(
                "Process {} is a thread of the kernel; it has no program to look at",
                facts.pid
            ),
            "perf or bpftrace see the kernel",
        )
    })
}

fn other_user(facts: &Facts) -> Option<Obstacle> {
    if facts.is_capable() {
        return None;
    }
    let (own, group) = (facts.own.ids("Uid")?[1], facts.own.ids("Gid")?[1]);
    let (users, groups) = (facts.target.ids("Uid")?, facts.target.ids("Gid")?);
    let pid = facts.pid;
    let foreign = users[..3].iter().find(|user| **user != own).copied();
    if let Some(owner) = foreign {
        return Some(Obstacle::new(
            format!("Process {pid} belongs to user {owner} and you are user {own}"),
            if own == 0 {
                "you are root without CAP_SYS_PTRACE (start the container with --cap-add=SYS_PTRACE), or run trapline as that user".into()
            } else {
                format!("run trapline as user {owner} or as root (CAP_SYS_PTRACE)")
            },
        ));
    }
    let foreign = groups[..3].iter().find(|other| **other != group)?;
    Some(Obstacle::new(
        format!("Process {pid} belongs to group {foreign} and you are in group {group}"),
        "run trapline in that group (newgrp, setpriv --regid) or as root (CAP_SYS_PTRACE)",
    ))
}

/// The namespaces of a user outside of which capabilities count for nothing. One that cannot be
/// read is another one if ours is not the machine's own.
fn other_namespace(facts: &Facts) -> Option<Obstacle> {
    let own = facts.own_user_namespace.as_deref()?;
    let shown = match facts.target_user_namespace.as_deref() {
        Some(target) if target == own => return None,
        Some(target) => target,
        None if own == MACHINE_USERS => return None,
        None => "not shown to you",
    };
    (!facts.is_capable()).then(|| {
        Obstacle::new(
            format!(
                "Process {} is in another user namespace ({shown}; yours is {own}), where your rights do not count",
                facts.pid
            ),
            "run trapline as root outside of both, or inside of that namespace (nsenter -t PID -U)",
        )
    })
}

fn not_dumpable(facts: &Facts) -> Option<Obstacle> {
    let user = facts.target.ids("Uid")?[1];
    (facts.owner? != user && !facts.is_capable()).then(|| {
        Obstacle::new(
            format!(
                "Process {} is not dumpable: a set-uid program, one with file capabilities or an unreadable file, or one that asked for it with prctl(PR_SET_DUMPABLE, 0)",
                facts.pid
            ),
            "run trapline as root (CAP_SYS_PTRACE)",
        )
    })
}

/// What yama's value forbids one who is not the process's parent; `capable`: CAP_SYS_PTRACE.
pub fn yama(value: &str, capable: bool) -> Option<Obstacle> {
    match value {
        "1" if !capable => Some(Obstacle::new(
            format!("{YAMA} is 1: only a parent may trace"),
            "launch the program with trapline, or run as root (CAP_SYS_PTRACE), or `sudo sysctl kernel.yama.ptrace_scope=0'",
        )),
        "2" if !capable => Some(Obstacle::new(
            format!("{YAMA} is 2: only root (CAP_SYS_PTRACE) may trace"),
            "run as root (CAP_SYS_PTRACE), or `sudo sysctl kernel.yama.ptrace_scope=0'",
        )),
        "3" => Some(Obstacle::new(
            format!("{YAMA} is 3: nobody may trace until the next boot"),
            "set kernel.yama.ptrace_scope to 0 in /etc/sysctl.d and boot again",
        )),
        _ => None,
    }
}

fn more_capable(facts: &Facts) -> Option<Obstacle> {
    if facts.is_capable() {
        return None;
    }
    let (own, target) = (facts.own.bits("CapPrm")?, facts.target.bits("CapPrm")?);
    let more = target & !own;
    (more != 0).then(|| {
        Obstacle::new(
            format!(
                "Process {} has capabilities that you have not got ({more:#x} of CapPrm)",
                facts.pid
            ),
            "run trapline as root (CAP_SYS_PTRACE)",
        )
    })
}

fn own_confinement(facts: &Facts) -> Option<Obstacle> {
    if let Some(seccomp) = facts.own.seccomp() {
        return Some(Obstacle::new(
            format!("trapline itself runs under seccomp ({seccomp}), which may refuse ptrace"),
            "start the container with --security-opt seccomp=unconfined or --cap-add=SYS_PTRACE",
        ));
    }
    let label = facts.label.as_deref().filter(|label| is_confined(label))?;
    Some(Obstacle::new(
        format!("a security module confines trapline as '{label}'"),
        "allow ptrace in that profile, or start the container with --security-opt apparmor=unconfined (SELinux: label=disable)",
    ))
}

/// A label that is a restriction, as AppArmor and SELinux write theirs.
fn is_confined(label: &str) -> bool {
    let label = label.trim_end_matches('\0');
    !label.is_empty()
        && !["unconfined", "kernel"].contains(&label)
        && !label.contains(":unconfined_t:")
        && !label.ends_with("(complain)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(extra: &str, user: u32, capabilities: u64) -> Status {
        Status::new(format!(
            "Name:\tx\nPPid:\t9\nUid:\t{user}\t{user}\t{user}\t{user}\nGid:\t{user}\t{user}\t{user}\t{user}\n\
             CapPrm:\t{capabilities:016x}\nCapEff:\t{capabilities:016x}\n{extra}"
        ))
    }

    /// Alike in everything: may be traced.
    fn facts() -> Facts {
        Facts {
            pid: 40,
            own: status("Seccomp:\t0\n", 7, 0),
            target: status("TracerPid:\t0\n", 7, 0),
            own_user_namespace: Some(MACHINE_USERS.into()),
            target_user_namespace: Some(MACHINE_USERS.into()),
            owner: Some(7),
            yama: Some("0".into()),
            label: Some("unconfined".into()),
            tracer: None,
        }
    }

    const ALL: u64 = 0x1ff_ffff_ffff;

    fn seen(facts: &Facts) -> String {
        obstacle(facts).map_or_else(String::new, |obstacle| obstacle.seen)
    }

    #[test]
    fn each_cause_is_named() {
        assert_eq!(seen(&facts()), "");
        let traced = Facts {
            target: status("TracerPid:\t12\n", 8, 0),
            tracer: Some("gdb".into()),
            ..facts()
        };
        assert!(seen(&traced).contains("traced by process 12 (gdb) already"));
        let kernel = Facts {
            target: status("Kthread:\t1\n", 0, ALL),
            ..facts()
        };
        assert!(seen(&kernel).contains("thread of the kernel"));
        let foreign = Facts {
            target: status("", 8, 0),
            ..facts()
        };
        assert_eq!(
            seen(&foreign),
            "Process 40 belongs to user 8 and you are user 7"
        );
        let namespace = Facts {
            target_user_namespace: Some("user:[2]".into()),
            ..facts()
        };
        assert!(seen(&namespace).contains("another user namespace (user:[2]"));
        let inside = Facts {
            own: status("", 0, ALL),
            own_user_namespace: Some("user:[3]".into()),
            target_user_namespace: None,
            ..facts()
        };
        assert!(seen(&inside).contains("another user namespace (not shown"));
        let hidden = Facts {
            owner: Some(0),
            ..facts()
        };
        assert!(seen(&hidden).contains("not dumpable"));
        let capable = Facts {
            target: status("", 7, 1 << 10),
            ..facts()
        };
        assert!(seen(&capable).contains("(0x400 of CapPrm)"));
        let filtered = Facts {
            own: status("Seccomp:\t2\nSeccomp_filters:\t1\n", 7, 0),
            ..facts()
        };
        assert!(seen(&filtered).contains("under seccomp (1 filter)"));
        let confined = Facts {
            label: Some("docker-default (enforce)".into()),
            ..facts()
        };
        assert!(seen(&confined).contains("'docker-default (enforce)'"));
    }

    #[test]
    fn root_is_stopped_by_little() {
        let root = |target: Status| Facts {
            own: status("", 0, ALL),
            target,
            owner: Some(0),
            yama: Some("2".into()),
            target_user_namespace: Some("user:[2]".into()),
            ..facts()
        };
        assert_eq!(seen(&root(status("", 8, 0))), "");
        let locked = Facts {
            yama: Some("3".into()),
            ..root(status("", 8, 0))
        };
        assert!(seen(&locked).contains("is 3: nobody"));
        let contained = Facts {
            own: status("", 0, 0xa804_25fb),
            target: status("", 8, 0),
            ..facts()
        };
        let obstacle = obstacle(&contained).unwrap();
        assert!(
            obstacle.cure.contains("--cap-add=SYS_PTRACE"),
            "{obstacle:?}"
        );
    }

    #[test]
    fn yama_has_four_values() {
        assert_eq!(yama("0", false), None);
        assert!(yama("1", false).unwrap().cure.contains("launch"));
        assert_eq!(yama("1", true), None);
        assert!(yama("2", false).unwrap().seen.contains("only root"));
        assert_eq!(yama("2", true), None);
        assert!(yama("3", true).is_some());
        assert_eq!(yama("", false), None);
        assert_eq!(yama("17", false), None);
    }
}
