//! The system calls by the kernel's names (`arch/x86/entry/syscalls/syscall_64.tbl`), in the groups that
//! gdb knows.

/// A group, as a bit.
type Group = u8;

const D: Group = 1;
const F: Group = 2;
const M: Group = 4;
const P: Group = 8;
const S: Group = 16;
const I: Group = 32;
const N: Group = 64;

/// The groups by their names.
const GROUPS: &[(&str, Group)] = &[
    ("descriptor", D),
    ("file", F),
    ("memory", M),
    ("process", P),
    ("signal", S),
    ("ipc", I),
    ("network", N),
];

/// Number, name, and the groups that it is in; in the order of the numbers.
#[rustfmt::skip]
const CALLS: &[(u32, &str, Group)] = &[
    (0, "read", D), (1, "write", D), (2, "open", D | F), (3, "close", D), (4, "stat", F),
    (5, "fstat", D), (6, "lstat", F), (7, "poll", D), (8, "lseek", D), (9, "mmap", D | M),
    (10, "mprotect", M), (11, "munmap", M), (12, "brk", M), (13, "rt_sigaction", S),
    (14, "rt_sigprocmask", S), (15, "rt_sigreturn", S), (16, "ioctl", D), (17, "pread64", D),
    (18, "pwrite64", D), (19, "readv", D), (20, "writev", D), (21, "access", F), (22, "pipe", D),
    (23, "select", D), (24, "sched_yield", 0), (25, "mremap", M), (26, "msync", M),
    (27, "mincore", M), (28, "madvise", M), (29, "shmget", I), (30, "shmat", I | M),
    (31, "shmctl", I), (32, "dup", D), (33, "dup2", D), (34, "pause", S), (35, "nanosleep", 0),
    (36, "getitimer", 0), (37, "alarm", 0), (38, "setitimer", 0), (39, "getpid", 0),
    (40, "sendfile", D | N), (41, "socket", N), (42, "connect", N), (43, "accept", N),
    (44, "sendto", N), (45, "recvfrom", N), (46, "sendmsg", N), (47, "recvmsg", N),
    (48, "shutdown", N), (49, "bind", N), (50, "listen", N), (51, "getsockname", N),
    (52, "getpeername", N), (53, "socketpair", N), (54, "setsockopt", N), (55, "getsockopt", N),
    (56, "clone", P), (57, "fork", P), (58, "vfork", P), (59, "execve", F | P), (60, "exit", P),
    (61, "wait4", P), (62, "kill", S), (63, "uname", 0), (64, "semget", I), (65, "semop", I),
    (66, "semctl", I), (67, "shmdt", I | M), (68, "msgget", I), (69, "msgsnd", I),
    (70, "msgrcv", I), (71, "msgctl", I), (72, "fcntl", D), (73, "flock", D), (74, "fsync", D),
    (75, "fdatasync", D), (76, "truncate", F), (77, "ftruncate", D), (78, "getdents", D),
    (79, "getcwd", F), (80, "chdir", F), (81, "fchdir", D), (82, "rename", F), (83, "mkdir", F),
    (84, "rmdir", F), (85, "creat", D | F), (86, "link", F), (87, "unlink", F),
    (88, "symlink", F), (89, "readlink", F), (90, "chmod", F), (91, "fchmod", D),
    (92, "chown", F), (93, "fchown", D), (94, "lchown", F), (95, "umask", 0),
    (96, "gettimeofday", 0), (97, "getrlimit", 0), (98, "getrusage", 0), (99, "sysinfo", 0),
    (100, "times", 0), (101, "ptrace", 0), (102, "getuid", 0), (103, "syslog", 0),
    (104, "getgid", 0), (105, "setuid", 0), (106, "setgid", 0), (107, "geteuid", 0),
    (108, "getegid", 0), (109, "setpgid", 0), (110, "getppid", 0), (111, "getpgrp", 0),
    (112, "setsid", 0), (113, "setreuid", 0), (114, "setregid", 0), (115, "getgroups", 0),
    (116, "setgroups", 0), (117, "setresuid", 0), (118, "getresuid", 0), (119, "setresgid", 0),
    (120, "getresgid", 0), (121, "getpgid", 0), (122, "setfsuid", 0), (123, "setfsgid", 0),
    (124, "getsid", 0), (125, "capget", 0), (126, "capset", 0), (127, "rt_sigpending", S),
    (128, "rt_sigtimedwait", S), (129, "rt_sigqueueinfo", S), (130, "rt_sigsuspend", S),
    (131, "sigaltstack", S), (132, "utime", F), (133, "mknod", F), (134, "uselib", F),
    (135, "personality", 0), (136, "ustat", 0), (137, "statfs", F), (138, "fstatfs", D),
    (139, "sysfs", 0), (140, "getpriority", 0), (141, "setpriority", 0),
    (142, "sched_setparam", 0), (143, "sched_getparam", 0), (144, "sched_setscheduler", 0),
    (145, "sched_getscheduler", 0), (146, "sched_get_priority_max", 0),
    (147, "sched_get_priority_min", 0), (148, "sched_rr_get_interval", 0), (149, "mlock", M),
    (150, "munlock", M), (151, "mlockall", M), (152, "munlockall", M), (153, "vhangup", 0),
    (154, "modify_ldt", 0), (155, "pivot_root", F), (156, "_sysctl", 0), (157, "prctl", 0),
    (158, "arch_prctl", P), (159, "adjtimex", 0), (160, "setrlimit", 0), (161, "chroot", F),
    (162, "sync", 0), (163, "acct", F), (164, "settimeofday", 0), (165, "mount", F),
    (166, "umount2", F), (167, "swapon", F), (168, "swapoff", F), (169, "reboot", 0),
    (170, "sethostname", 0), (171, "setdomainname", 0), (172, "iopl", 0), (173, "ioperm", 0),
    (174, "create_module", 0), (175, "init_module", 0), (176, "delete_module", 0),
    (177, "get_kernel_syms", 0), (178, "query_module", 0), (179, "quotactl", F),
    (180, "nfsservctl", 0), (181, "getpmsg", 0), (182, "putpmsg", 0), (183, "afs_syscall", 0),
    (184, "tuxcall", 0), (185, "security", 0), (186, "gettid", 0), (187, "readahead", D),
    (188, "setxattr", F), (189, "lsetxattr", F), (190, "fsetxattr", D), (191, "getxattr", F),
    (192, "lgetxattr", F), (193, "fgetxattr", D), (194, "listxattr", F), (195, "llistxattr", F),
    (196, "flistxattr", D), (197, "removexattr", F), (198, "lremovexattr", F),
    (199, "fremovexattr", D), (200, "tkill", S), (201, "time", 0), (202, "futex", 0),
    (203, "sched_setaffinity", 0), (204, "sched_getaffinity", 0), (205, "set_thread_area", 0),
    (206, "io_setup", 0), (207, "io_destroy", 0), (208, "io_getevents", 0), (209, "io_submit", 0),
    (210, "io_cancel", 0), (211, "get_thread_area", 0), (212, "lookup_dcookie", 0),
    (213, "epoll_create", D), (214, "epoll_ctl_old", 0), (215, "epoll_wait_old", 0),
    (216, "remap_file_pages", M), (217, "getdents64", D), (218, "set_tid_address", 0),
    (219, "restart_syscall", 0), (220, "semtimedop", I), (221, "fadvise64", D),
    (222, "timer_create", 0), (223, "timer_settime", 0), (224, "timer_gettime", 0),
    (225, "timer_getoverrun", 0), (226, "timer_delete", 0), (227, "clock_settime", 0),
    (228, "clock_gettime", 0), (229, "clock_getres", 0), (230, "clock_nanosleep", 0),
    (231, "exit_group", P), (232, "epoll_wait", D), (233, "epoll_ctl", D), (234, "tgkill", S),
    (235, "utimes", F), (236, "vserver", 0), (237, "mbind", M), (238, "set_mempolicy", M),
    (239, "get_mempolicy", M), (240, "mq_open", 0), (241, "mq_unlink", 0),
    (242, "mq_timedsend", 0), (243, "mq_timedreceive", 0), (244, "mq_notify", 0),
    (245, "mq_getsetattr", 0), (246, "kexec_load", 0), (247, "waitid", P), (248, "add_key", 0),
    (249, "request_key", 0), (250, "keyctl", 0), (251, "ioprio_set", 0), (252, "ioprio_get", 0),
    (253, "inotify_init", D), (254, "inotify_add_watch", D), (255, "inotify_rm_watch", D),
    (256, "migrate_pages", M), (257, "openat", D | F), (258, "mkdirat", D | F),
    (259, "mknodat", D | F), (260, "fchownat", D | F), (261, "futimesat", D | F),
    (262, "newfstatat", D | F), (263, "unlinkat", D | F), (264, "renameat", D | F),
    (265, "linkat", D | F), (266, "symlinkat", D | F), (267, "readlinkat", D | F),
    (268, "fchmodat", D | F), (269, "faccessat", D | F), (270, "pselect6", D), (271, "ppoll", D),
    (272, "unshare", P), (273, "set_robust_list", 0), (274, "get_robust_list", 0),
    (275, "splice", D), (276, "tee", D), (277, "sync_file_range", D), (278, "vmsplice", D),
    (279, "move_pages", M), (280, "utimensat", D | F), (281, "epoll_pwait", D),
    (282, "signalfd", D | S), (283, "timerfd_create", D), (284, "eventfd", D),
    (285, "fallocate", D), (286, "timerfd_settime", D), (287, "timerfd_gettime", D),
    (288, "accept4", N), (289, "signalfd4", D | S), (290, "eventfd2", D),
    (291, "epoll_create1", D), (292, "dup3", D), (293, "pipe2", D), (294, "inotify_init1", D),
    (295, "preadv", D), (296, "pwritev", D), (297, "rt_tgsigqueueinfo", P | S),
    (298, "perf_event_open", D), (299, "recvmmsg", N), (300, "fanotify_init", D),
    (301, "fanotify_mark", D | F), (302, "prlimit64", 0), (303, "name_to_handle_at", D | F),
    (304, "open_by_handle_at", D), (305, "clock_adjtime", 0), (306, "syncfs", D),
    (307, "sendmmsg", N), (308, "setns", D), (309, "getcpu", 0), (310, "process_vm_readv", 0),
    (311, "process_vm_writev", 0), (312, "kcmp", 0), (313, "finit_module", D),
    (314, "sched_setattr", 0), (315, "sched_getattr", 0), (316, "renameat2", 0),
    (317, "seccomp", 0), (318, "getrandom", 0), (319, "memfd_create", 0),
    (320, "kexec_file_load", 0), (321, "bpf", 0), (322, "execveat", 0), (323, "userfaultfd", 0),
    (324, "membarrier", 0), (325, "mlock2", 0), (326, "copy_file_range", 0), (327, "preadv2", 0),
    (328, "pwritev2", 0), (329, "pkey_mprotect", 0), (330, "pkey_alloc", 0),
    (331, "pkey_free", 0), (332, "statx", 0), (333, "io_pgetevents", 0), (334, "rseq", 0),
    (424, "pidfd_send_signal", 0), (425, "io_uring_setup", 0), (426, "io_uring_enter", 0),
    (427, "io_uring_register", 0), (428, "open_tree", 0), (429, "move_mount", 0),
    (430, "fsopen", 0), (431, "fsconfig", 0), (432, "fsmount", 0), (433, "fspick", 0),
    (434, "pidfd_open", 0), (435, "clone3", 0), (436, "close_range", 0), (437, "openat2", 0),
    (438, "pidfd_getfd", 0), (439, "faccessat2", 0), (440, "process_madvise", 0),
    (441, "epoll_pwait2", 0), (442, "mount_setattr", 0), (443, "quotactl_fd", 0),
    (444, "landlock_create_ruleset", 0), (445, "landlock_add_rule", 0),
    (446, "landlock_restrict_self", 0), (447, "memfd_secret", 0), (448, "process_mrelease", 0),
    (449, "futex_waitv", 0), (450, "set_mempolicy_home_node", 0),
];

/// A system call's name, if it has one.
pub fn syscall_name(number: u64) -> Option<&'static str> {
    let at = CALLS.binary_search_by_key(&number, |(number, ..)| u64::from(*number));
    at.ok().map(|at| CALLS[at].1)
}

/// A system call's number.
pub fn syscall_number(name: &str) -> Option<u64> {
    let found = CALLS.iter().find(|(_, known, _)| *known == name)?;
    Some(found.0.into())
}

/// The system calls of a group, in the order of their numbers; `None` if there is no such group.
pub fn syscall_group(name: &str) -> Option<Vec<u64>> {
    let (_, group) = GROUPS.iter().find(|(known, _)| *known == name)?;
    let calls = CALLS.iter().filter(|(.., groups)| groups & group != 0);
    Some(calls.map(|(number, ..)| u64::from(*number)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_number_name_and_group() {
        assert!(CALLS.is_sorted_by_key(|(number, ..)| number));
        assert_eq!(syscall_name(libc::SYS_getppid as u64), Some("getppid"));
        assert_eq!(syscall_number("futex_waitv"), Some(449));
        assert_eq!(syscall_name(335), None);
        assert_eq!(syscall_number("no"), None);
        let signal = syscall_group("signal").unwrap();
        assert!(signal.contains(&(libc::SYS_kill as u64)) && signal.is_sorted());
        assert_eq!(syscall_group(""), None);
    }
}
