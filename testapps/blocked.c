// One thread per blocking call, each with a timeout of --ms (300) milliseconds, again and again.
// A tracer that comes or goes must not be seen: no EINTR, no early and no late return.
//
// On stdin:  report  answers `CALL rounds=N eintr=N early=N late=N` per call, then `end`
//            quit    (or the end of stdin) ends
// The calls that Linux never restarts after a stop are the ones that betray a tracer:
// epoll_wait, semtimedop, recv with SO_RCVTIMEO (signal(7)).
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

static long ms;

static struct timespec timeout(void) {
    return (struct timespec){ms / 1000, ms % 1000 * 1000000};
}

static int block_epoll(void) {
    static int fd = -1;
    if (fd < 0) fd = epoll_create1(0);
    struct epoll_event event;
    return epoll_wait(fd, &event, 1, (int)ms);
}

static int block_recv(void) {
    static int fds[2] = {-1, -1};
    if (fds[0] < 0) {
        socketpair(AF_UNIX, SOCK_DGRAM, 0, fds);
        struct timeval limit = {ms / 1000, ms % 1000 * 1000};
        setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    char byte;
    return (int)recv(fds[0], &byte, 1, 0);
}

static int semaphore;

static int block_semtimedop(void) {
    struct sembuf down = {0, -1, 0};
    struct timespec limit = timeout();
    return semtimedop(semaphore, &down, 1, &limit);
}

static int block_nanosleep(void) {
    struct timespec limit = timeout();
    return nanosleep(&limit, NULL);
}

static int block_futex(void) {
    static int word;
    struct timespec limit = timeout();
    return (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
}

static int block_poll(void) { return poll(NULL, 0, (int)ms); }

static struct call {
    const char *name;
    int (*block)(void);
    atomic_long rounds, eintr, early, late;
} calls[] = {
    {.name = "epoll_wait", .block = block_epoll},     {.name = "recv", .block = block_recv},
    {.name = "semtimedop", .block = block_semtimedop}, {.name = "nanosleep", .block = block_nanosleep},
    {.name = "futex", .block = block_futex},           {.name = "poll", .block = block_poll},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

__attribute__((noinline)) void returned(long result) {
    __asm__ volatile("" : : "r"(result) : "memory");
}

static void *thread(void *argument) {
    struct call *call = argument;
    for (;;) {
        uint64_t begin = now_ns();
        errno = 0;
        int result = call->block();
        int error = errno;
        uint64_t took = now_ns() - begin, wanted = (uint64_t)ms * 1000000;
        if (result < 0 && error == EINTR) atomic_fetch_add(&call->eintr, 1);
        else if (took + 1000000 < wanted) atomic_fetch_add(&call->early, 1);
        // A scheduler is allowed some lateness, a lost wake-up is not.
        else if (took > wanted * 2) atomic_fetch_add(&call->late, 1);
        atomic_fetch_add(&call->rounds, 1);
        returned(result);
    }
    return NULL;
}

int main(int argc, char **argv) {
    ms = number(argc, argv, "--ms", 300);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    for (int i = 0; i < CALLS; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, thread, &calls[i])) return 1;
    }
    say_ready();
    char line[64];
    while (next_line(line, sizeof line) && strcmp(line, "quit")) {
        if (strcmp(line, "report")) continue;
        for (int i = 0; i < CALLS; i++)
            printf("%s rounds=%ld eintr=%ld early=%ld late=%ld\n", calls[i].name,
                   atomic_load(&calls[i].rounds), atomic_load(&calls[i].eintr),
                   atomic_load(&calls[i].early), atomic_load(&calls[i].late));
        puts("end");
    }
    semctl(semaphore, 0, IPC_RMID);
    return 0;
}
