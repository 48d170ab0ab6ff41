// Runs a program under a seccomp filter that refuses one system call.
//
//   refuse NUMBER eperm|kill PROGRAM ARGS…
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    unsigned call = (unsigned)strtoul(argv[1], NULL, 0);
    unsigned action = strcmp(argv[2], "kill") ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) {
        perror("seccomp");
        return 1;
    }
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 1;
}
