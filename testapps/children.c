// Processes that make processes, in every way there is; all of them pass `site`.
//
// --how fork     each child passes and ends at once
//       vfork    the same with the parent's memory, while the parent waits
//       spawn    posix_spawn of this program, which passes
//       shared   clone with CLONE_VM alone: parent and child pass side by side
//       exec     fork, and the child becomes this program
//       nested   each child makes a child of its own, and so on, --depth deep
//       thread   the child has a second thread, which executes this program
//       storm    four threads make children at once
//       tree     children that pass now and then until they are told to end, they and their parent each
//                with a thread that waits in epoll_wait; says `child PID` of each, answers `alive` with `alive N`, ends at `quit`
// --rounds N     so many children, one behind the other (nested: so many chains)
// --passes N     so many passes in each process and round
//
// Prints `processes=N passes=N failed=N`: what ought to be seen, and children that did not end well. With
// --stay it waits for a line before and after that.
#define _GNU_SOURCE
#include "common.h"

#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static long passes, failed, processes = 1, passed;
static char passes_text[32];

__attribute__((noinline)) void site(void) {
    __asm__ volatile("" : : : "memory");
}

static void pass(void) {
    for (long i = 0; i < passes; i++) site();
}

static char *again[] = {"/proc/self/exe", "--how", "leaf", "--passes", passes_text, NULL};

static void *executing(void *unused) {
    (void)unused;
    execve(again[0], again, environ);
    _exit(1);
}

static int sharing(void *unused) {
    (void)unused;
    pass();
    _exit(0);
}

static void wait_for(pid_t child) {
    int status;
    if (child < 0 || waitpid(child, &status, __WALL) != child || !WIFEXITED(status) || WEXITSTATUS(status)) failed++;
}

// Ends with the number of those of its line that failed.
static void nested(long depth) {
    pid_t child = fork();
    if (child) {
        wait_for(child);
        return;
    }
    failed = 0;
    pass();
    if (depth > 1) nested(depth - 1);
    _exit(failed != 0);
}

static pid_t make(const char *how) {
    if (!strcmp(how, "vfork")) {
        pid_t child = vfork();
        if (!child) {
            pass();
            _exit(0);
        }
        return child;
    }
    if (!strcmp(how, "spawn")) {
        pid_t child = -1;
        return posix_spawn(&child, again[0], NULL, NULL, again, environ) ? -1 : child;
    }
    if (!strcmp(how, "shared")) {
        static char *stack;
        if (!stack) stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pid_t child = clone(sharing, stack + (1 << 16), CLONE_VM | SIGCHLD, NULL);
        pass();
        passed += passes;
        return child;
    }
    pid_t child = fork();
    if (child) return child;
    pass();
    if (!strcmp(how, "exec")) executing(NULL);
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, executing, NULL);
        pthread_join(thread, NULL);
    }
    _exit(0);
}

static long storms;

static void *storming(void *unused) {
    for (long i = 0; i < storms; i++) {
        pass();
        pid_t child = fork();
        if (!child) {
            pass();
            _exit(0);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status) __atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
    }
    return unused;
}

static void storm(long rounds) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    storms = rounds;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, storming, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    processes += THREADS * rounds;
    passed += 2 * THREADS * rounds * passes;
}

static int end[2];
static atomic_int ended, waiter;

static void *waiting(void *unused) {
    waiter = gettid();
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, end[0], &event);
    int events = epoll_wait(epoll, &event, 1, -1);
    // An interrupted call must not pass for the end.
    ended = events == 1 ? 1 : 2;
    return unused;
}

// The thread that waits does so.
static int blocked(void) {
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", waiter);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    int read = fgets(text, sizeof text, file) && atoi(text) == SYS_epoll_wait;
    fclose(file);
    return read;
}

static void branch(void) {
    struct timespec moment = {.tv_nsec = 1000000};
    pthread_t thread;
    close(end[1]);
    pthread_create(&thread, NULL, waiting, NULL);
    while (!ended) {
        site();
        clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    }
    _exit(ended == 2);
}

static int tree(long branches) {
    char line[64];
    pthread_t thread;
    if (pipe(end)) return 1;
    pthread_create(&thread, NULL, waiting, NULL);
    while (!blocked()) sched_yield();
    for (long i = 0; i < branches; i++) {
        pid_t child = fork();
        if (!child) branch();
        printf("child %d\n", (int)child);
    }
    printf("grown\n");
    while (next_line(line, sizeof line) && strcmp(line, "quit")) {
        if (!waitpid(-1, NULL, WNOHANG)) printf("alive %ld\n", branches);
        else printf("a child has ended\n");
    }
    close(end[1]);
    for (long i = 0; i < branches; i++) {
        int status;
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) failed++;
    }
    pthread_join(thread, NULL);
    printf("failed=%ld disturbed=%d\n", failed, ended == 2);
    return failed != 0;
}

int main(int argc, char **argv) {
    const char *how = option(argc, argv, "--how", "fork");
    long rounds = number(argc, argv, "--rounds", 20), depth = number(argc, argv, "--depth", 4);
    int stay = flag(argc, argv, "--stay");
    passes = number(argc, argv, "--passes", 10);
    snprintf(passes_text, sizeof passes_text, "%ld", passes);
    if (!strcmp(how, "leaf")) {
        pass();
        return 0;
    }
    say_ready();
    if (stay) wait_for_line();
    if (!strcmp(how, "tree")) return tree(rounds);
    if (!strcmp(how, "storm")) {
        storm(rounds);
        rounds = 0;
    }
    int twice = !strcmp(how, "exec") || !strcmp(how, "thread");
    for (long round = 0; round < rounds; round++) {
        pass();
        if (!strcmp(how, "nested")) {
            nested(depth);
            processes += depth;
            passed += passes * (1 + depth);
        } else {
            wait_for(make(how));
            processes++;
            passed += passes * (twice ? 3 : 2);
        }
    }
    printf("processes=%ld passes=%ld failed=%ld\n", processes, passed, failed);
    if (stay) wait_for_line();
    return failed != 0;
}
