//! Limits of this process, how `/proc` is mounted, and what cannot be made safe.

use nix::sys::resource::{Resource, getrlimit};

use super::{Check, State};
use crate::engine::client::Keeper;

const AREA: &str = "limits";

/// Two descriptors and a socket for each target, beside a handful of our own.
const DESCRIPTORS: u64 = 64;
/// The keeper, a doorbell and a thread for each target.
const PROCESSES: u64 = 32;
/// The ring of records of a target, and the program itself.
const ADDRESSES: u64 = 1 << 30;

/// Adds the checks.
pub fn examine(checks: &mut Vec<Check>) {
    checks.push(limit(
        "files",
        Resource::RLIMIT_NOFILE,
        DESCRIPTORS,
        "ulimit -n 1024",
    ));
    checks.push(limit(
        "processes",
        Resource::RLIMIT_NPROC,
        PROCESSES,
        "ulimit -u 1024",
    ));
    checks.push(limit(
        "addresses",
        Resource::RLIMIT_AS,
        ADDRESSES,
        "ulimit -v unlimited",
    ));
    checks.push(locked_memory());
    checks.push(proc_mount(
        std::fs::read("/proc/self/mountinfo")
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .ok()
            .as_deref(),
    ));
}

/// A limit, `None` for unlimited.
fn soft(resource: Resource) -> Result<Option<u64>, nix::errno::Errno> {
    let (soft, _) = getrlimit(resource)?;
    Ok((soft != libc::RLIM_INFINITY).then_some(soft))
}

fn limit(name: &'static str, resource: Resource, enough: u64, cure: &str) -> Check {
    match soft(resource) {
        Ok(value) => enough_of(name, value, enough, cure),
        Err(error) => Check::new(AREA, name, State::Unknown, error.to_string()),
    }
}

fn enough_of(name: &'static str, value: Option<u64>, enough: u64, cure: &str) -> Check {
    match value {
        None => Check::new(AREA, name, State::Ok, "unlimited"),
        Some(value) if value >= enough => Check::new(AREA, name, State::Ok, value.to_string()),
        Some(value) => Check::new(
            AREA,
            name,
            State::Part,
            format!("{value}; {enough} are enough for some targets"),
        )
        .cure(cure),
    }
}

/// Only older kernels (before 5.11) count BPF's memory against it.
fn locked_memory() -> Check {
    match soft(Resource::RLIMIT_MEMLOCK) {
        Ok(value) => {
            let value = value.map_or_else(|| "unlimited".into(), |bytes| format!("{bytes} bytes"));
            Check::new(
                AREA,
                "memlock",
                State::Ok,
                format!("{value}; trapline locks no memory"),
            )
        }
        Err(error) => Check::new(AREA, "memlock", State::Unknown, error.to_string()),
    }
}

/// Whether `/proc` hides anything, by `/proc/self/mountinfo` (proc(5), "Mount options").
fn proc_mount(mounts: Option<&str>) -> Check {
    let check = |state, seen: String| Check::new(AREA, "proc", state, seen);
    let Some(mounts) = mounts else {
        return check(State::No, "/proc is not mounted".into())
            .cure("mount -t proc proc /proc: trapline finds its targets and their memory there");
    };
    // The last mount on a place is the one that is seen.
    let options = mounts.lines().rev().find_map(|line| {
        let (mount, super_block) = line.split_once(" - ")?;
        let at_proc = mount.split(' ').nth(4) == Some("/proc");
        let mut words = super_block.split(' ');
        let is_proc = words.next() == Some("proc");
        (at_proc && is_proc).then(|| words.nth(1).unwrap_or_default())
    });
    let Some(options) = options else {
        return check(
            State::Unknown,
            "/proc is mounted from somewhere that is not said".into(),
        );
    };
    let hiding: Vec<&str> = options
        .split(',')
        .filter(|option| {
            option.starts_with("subset=")
                || option
                    .strip_prefix("hidepid=")
                    .is_some_and(|level| level != "0" && level != "off")
        })
        .collect();
    if hiding.is_empty() {
        return check(State::Ok, "mounted, hides nothing".into());
    }
    check(
        State::Part,
        format!(
            "mounted with {}: processes of others, or parts of them, are hidden",
            hiding.join(",")
        ),
    )
    .cure("run as root or in the group of its gid= option, or mount -o remount,hidepid=0 /proc")
}

/// The tracing process: started for real, and what it cannot stand.
pub fn keeper() -> [Check; 2] {
    let started = match Keeper::start(1 << 16) {
        Ok(_) => Check::new(
            "trapline",
            "keeper",
            State::Ok,
            "the tracing process starts (tried)",
        ),
        Err(error) => Check::new("trapline", "keeper", State::No, error.to_string())
            .cure("mount /proc, and allow memfd_create and socketpair"),
    };
    let kill = Check::new(
        "trapline",
        "kill",
        State::Part,
        "trapline itself may be killed at any moment without harm to the target; kill -9 of its child `trapline-keeper' leaves int3s in the target, which then dies of them",
    )
    .cure("kill trapline, never trapline-keeper");
    [started, kill]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_compared() {
        assert_eq!(enough_of("files", None, 64, "x").state, State::Ok);
        assert_eq!(enough_of("files", Some(64), 64, "x").state, State::Ok);
        let few = enough_of("files", Some(10), 64, "ulimit -n 1024");
        assert_eq!(few.state, State::Part);
        assert_eq!(few.cure.as_deref(), Some("ulimit -n 1024"));
    }

    #[test]
    fn the_mount_of_proc_is_found() {
        let plain = "22 28 0:20 / /proc rw,nosuid shared:5 - proc proc rw\n\
                     23 22 0:30 / /proc/sys/fs/binfmt_misc rw - autofs x rw";
        assert_eq!(proc_mount(Some(plain)).state, State::Ok);
        let hiding = "22 28 0:20 / /proc rw - proc proc rw,hidepid=2,gid=5,subset=pid";
        let check = proc_mount(Some(hiding));
        assert_eq!(check.state, State::Part);
        assert!(check.seen.contains("hidepid=2,subset=pid"), "{check}");
        let both = format!("{hiding}\n{plain}");
        assert_eq!(proc_mount(Some(&both)).state, State::Ok);
        let off = "22 28 0:20 / /proc rw - proc proc rw,hidepid=off";
        assert_eq!(proc_mount(Some(off)).state, State::Ok);
        assert_eq!(proc_mount(Some("")).state, State::Unknown);
        assert_eq!(proc_mount(Some("1 2 - - -\n - \n")).state, State::Unknown);
        assert_eq!(proc_mount(None).state, State::No);
    }
}
