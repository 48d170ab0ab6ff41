//! `/proc/PID/status` (proc_pid_status(5)), the parts that decide who may trace whom.

/// The text of a status file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status(String);

/// Capability numbers (`<linux/capability.h>`).
pub const CAP_SYS_PTRACE: u8 = 19;
/// See [`CAP_SYS_PTRACE`].
pub const CAP_SYS_ADMIN: u8 = 21;
/// See [`CAP_SYS_PTRACE`].
pub const CAP_PERFMON: u8 = 38;
/// See [`CAP_SYS_PTRACE`].
pub const CAP_BPF: u8 = 39;

impl Status {
    /// Takes a file's text.
    #[cfg(test)]
    pub fn new(text: impl Into<String>) -> Status {
        Status(text.into())
    }

    /// Reads that of a process or, through `PID/task/TID`, of a thread.
    pub fn read(of: impl std::fmt::Display) -> Result<Status, nix::errno::Errno> {
        super::read(format!("/proc/{of}/status")).map(Status)
    }

    /// The value of a field, without blanks around it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    }

    /// A field that is one decimal number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// A field that is one set of bits in hexadecimal.
    pub fn bits(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.get(name)?, 16).ok()
    }

    /// `Uid` or `Gid`: real, effective, saved, file system.
    pub fn ids(&self, name: &str) -> Option<[u32; 4]> {
        let mut ids = self.get(name)?.split_whitespace().map(str::parse);
        let mut next = || ids.next()?.ok();
        Some([next()?, next()?, next()?, next()?])
    }

    /// Whether a capability is in effect.
    pub fn is_capable(&self, capability: u8) -> bool {
        self.bits("CapEff")
            .is_some_and(|set| set >> capability & 1 == 1)
    }

    /// The state's letter.
    pub fn state(&self) -> Option<char> {
        self.get("State")?.chars().next()
    }

    /// The seccomp mode in words, `None` where there is none in force.
    pub fn seccomp(&self) -> Option<String> {
        match self.get("Seccomp")? {
            "0" => None,
            "1" => Some("strict mode".into()),
            "2" => Some(match self.get("Seccomp_filters") {
                Some("1") => "1 filter".into(),
                Some(many) => format!("{many} filters"),
                None => "a filter".into(),
            }),
            other => Some(format!("mode {other}")),
        }
    }

    /// The thread's CET features that are on: `shstk`, `wrss`. `None`: the kernel does not say.
    pub fn features(&self) -> Option<Vec<&str>> {
        Some(
            self.get("x86_Thread_features")?
                .split_whitespace()
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "Name:\tcat\nState:\tT (stopped)\nTgid:\t77\nPid:\t77\nTracerPid:\t0\n\
        Uid:\t1000\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\nNSpid:\t77\t3\n\
        CapEff:\t000001ffffffffff\nSeccomp:\t2\nSeccomp_filters:\t3\n\
        x86_Thread_features:\tshstk wrss \nx86_Thread_features_locked:\t\n";

    #[test]
    fn fields_are_read() {
        let status = Status::new(SAMPLE);
        assert_eq!(status.get("Name"), Some("cat"));
        assert_eq!(status.get("Nam"), None);
        assert_eq!(status.number("TracerPid"), Some(0));
        assert_eq!(status.ids("Uid"), Some([1000, 1001, 1002, 1003]));
        assert_eq!(status.ids("Nothing"), None);
        assert_eq!(status.state(), Some('T'));
        assert!(status.is_capable(CAP_SYS_PTRACE) && status.is_capable(CAP_BPF));
        assert_eq!(status.seccomp().as_deref(), Some("3 filters"));
        assert_eq!(status.features(), Some(vec!["shstk", "wrss"]));
    }

    #[test]
    fn what_is_missing_or_broken_is_not_there() {
        let status = Status::new("Uid:\t1\t2\nCapEff:\tzz\nSeccomp:\t0\n\u{fffd}\nState:\n");
        assert_eq!(status.ids("Uid"), None);
        assert!(!status.is_capable(CAP_SYS_ADMIN) && !status.is_capable(CAP_PERFMON));
        assert_eq!(status.seccomp(), None);
        assert_eq!(status.state(), None);
        assert_eq!(status.features(), None);
        assert_eq!(Status::default().number("Pid"), None);
    }
}
