// Threads with different signal masks, and a disposition of SIGTRAP of the caller's choice.
//
//   --trap default|ignore|handle     what the process does with SIGTRAP (default)
//
// Thread `plain` blocks nothing, `blocks` blocks SIGTRAP and SIGUSR1, `all` blocks all it can.
// On stdin:  hit N    each thread passes `site` N times; answers `hit N site=N`, all of them together
//            report   answers a `mask` line per thread and `ign HEX cgt HEX`, from /proc
//            raise    `plain` sends itself a SIGTRAP; answers `trapped N` (handler runs so far)
//            int3     `plain` runs an int3 of its own; answers `trapped N`
//            quit
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { PLAIN, BLOCKS, ALL, THREADS };
static const char *const names[THREADS] = {"plain", "blocks", "all"};

static pthread_barrier_t begin, end;
static enum { HIT, RAISE, INT3, QUIT } order;
static long passes;
static pid_t tids[THREADS];
static atomic_int trapped;

static void on_trap(int number) {
    (void)number;
    atomic_fetch_add(&trapped, 1);
}

__attribute__((noinline)) void site(long number) {
    __asm__ volatile("" : : "r"(number) : "memory");
}

static void *thread(void *argument) {
    long me = (long)argument;
    sigset_t set;
    sigemptyset(&set);
    if (me == BLOCKS) {
        sigaddset(&set, SIGTRAP);
        sigaddset(&set, SIGUSR1);
    }
    if (me == ALL) sigfillset(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    tids[me] = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&end);
    for (;;) {
        pthread_barrier_wait(&begin);
        if (order == QUIT) return NULL;
        if (order == HIT)
            for (long i = 0; i < passes; i++) site(i);
        if (me == PLAIN && order == RAISE) raise(SIGTRAP);
        if (me == PLAIN && order == INT3) __asm__ volatile("int3");
        pthread_barrier_wait(&end);
    }
}

static void field(const char *path, const char *name, char *value, size_t size) {
    char line[256];
    FILE *file = fopen(path, "r");
    snprintf(value, size, "?");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) sscanf(line + strlen(name), ": %31s", value);
    if (file) fclose(file);
}

static void report(void) {
    char path[64], value[32], caught[32];
    for (int i = 0; i < THREADS; i++) {
        snprintf(path, sizeof path, "/proc/self/task/%d/status", tids[i]);
        field(path, "SigBlk", value, sizeof value);
        printf("mask %s %s\n", names[i], value);
    }
    field("/proc/self/status", "SigIgn", value, sizeof value);
    field("/proc/self/status", "SigCgt", caught, sizeof caught);
    printf("ign %s cgt %s\n", value, caught);
}

static void give(int what) {
    order = what;
    pthread_barrier_wait(&begin);
    if (what != QUIT) pthread_barrier_wait(&end);
}

int main(int argc, char **argv) {
    const char *trap = option(argc, argv, "--trap", "default");
    struct sigaction action = {0};
    action.sa_handler = !strcmp(trap, "ignore")   ? SIG_IGN
                        : !strcmp(trap, "handle") ? on_trap
                                                  : SIG_DFL;
    sigaction(SIGTRAP, &action, NULL);
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, thread, (void *)i)) return 1;
    pthread_barrier_wait(&end);
    say_ready();

    char line[64];
    while (next_line(line, sizeof line) && strcmp(line, "quit")) {
        if (sscanf(line, "hit %ld", &passes) == 1) {
            give(HIT);
            printf("hit %ld site=%ld\n", passes, passes * THREADS);
        } else if (!strcmp(line, "report")) {
            report();
        } else if (!strcmp(line, "raise") || !strcmp(line, "int3")) {
            give(line[0] == 'r' ? RAISE : INT3);
            printf("trapped %d\n", atomic_load(&trapped));
        }
    }
    give(QUIT);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
