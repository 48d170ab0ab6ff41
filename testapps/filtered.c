// One thread, not the leader, may not map memory: its own seccomp filter kills the process for it.
//
//   --passes N    that thread passes `site` N times (10)
//
// Last line: passes=N
#define _GNU_SOURCE
#include "common.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>

static long wanted, passes;

__attribute__((noinline)) void site(void) {
    __asm__ volatile("" : : : "memory");
    passes++;
}

static void *thread(void *unused) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    (void)unused;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) {
        perror("seccomp");
        exit(1);
    }
    for (long i = 0; i < wanted; i++) site();
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t other;
    wanted = number(argc, argv, "--passes", 10);
    say_ready();
    if (pthread_create(&other, NULL, thread, NULL)) return 1;
    pthread_join(other, NULL);
    printf("passes=%ld\n", passes);
    return 0;
}
