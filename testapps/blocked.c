// One thread per blocking call, each with a timeout of --ms (300) milliseconds, again and again.
// A tracer that comes or goes must not be seen: no EINTR, no early and no late return.
//
//   --late-after N   what takes longer than N milliseconds is late (twice --ms)
//   --children   a child of the process ends every 40 ms, and SIGCHLD is nothing to it
//
// On stdin:  report  answers `CALL rounds=N eintr=N early=N late=N` per call, then `end`
//            go N    a thread passes `site` N times, and each call begins and ends once more; answers
//                    `did site=N eintr=N early=N late=N`, those of all calls since the start
//            quit    (or the end of stdin) ends
// The calls that Linux never restarts after a stop are the ones that betray a tracer:
// epoll_wait, semtimedop, sigtimedwait, msgrcv, recv and accept with SO_RCVTIMEO (signal(7)).
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static long ms, late_after;

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

static int block_select(void) {
    struct timeval limit = {ms / 1000, ms % 1000 * 1000};
    return select(0, NULL, NULL, NULL, &limit);
}

static int block_sigtimedwait(void) {
    struct timespec limit = timeout();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &limit);
}

static int block_accept(void) {
    static int fd = -1;
    if (fd < 0) {
        struct timeval limit = {ms / 1000, ms % 1000 * 1000};
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        // Linux finds a free abstract name for it.
        struct sockaddr any = {.sa_family = AF_UNIX};
        if (bind(fd, &any, sizeof any.sa_family) || listen(fd, 1)) return -1;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    return accept(fd, NULL, NULL);
}

// It knows no time-out: another thread sends when the time has come.
static int queue;

static int block_msgrcv(void) {
    struct { long type; char byte; } message;
    return (int)msgrcv(queue, &message, 1, 1, 0);
}

static void *send_messages(void *unused) {
    (void)unused;
    for (;;) {
        struct { long type; char byte; } message = {.type = 1};
        usleep((useconds_t)ms * 1000);
        while (msgsnd(queue, &message, 1, 0) && errno == EINTR) {}
    }
    return NULL;
}

static int block_sem_wait(void) {
    struct timespec limit;
    static sem_t never;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += ms * 1000000;
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    return sem_timedwait(&never, &limit);
}

static struct call {
    const char *name;
    int (*block)(void);
    int any_time; // how long it takes is another thread's to say
    atomic_long rounds, eintr, early, late;
} calls[] = {
    {.name = "epoll_wait", .block = block_epoll},     {.name = "recv", .block = block_recv},
    {.name = "semtimedop", .block = block_semtimedop}, {.name = "nanosleep", .block = block_nanosleep},
    {.name = "futex", .block = block_futex},           {.name = "poll", .block = block_poll},
    {.name = "select", .block = block_select},         {.name = "sigtimedwait", .block = block_sigtimedwait},
    {.name = "accept", .block = block_accept},         {.name = "msgrcv", .block = block_msgrcv, .any_time = 1},
    {.name = "sem_timedwait", .block = block_sem_wait},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static atomic_long to_pass;

__attribute__((noinline)) void site(void) {
    __asm__ volatile("" : : : "memory");
}

static void *pass(void *unused) {
    (void)unused;
    for (;;) {
        while (!atomic_load(&to_pass)) usleep(1000);
        site();
        atomic_fetch_sub(&to_pass, 1);
    }
    return NULL;
}

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
        else if (call->any_time) {}
        else if (took + 1000000 < wanted) atomic_fetch_add(&call->early, 1);
        // A scheduler is allowed some lateness, a lost wake-up is not.
        else if (took > (uint64_t)late_after * 1000000) atomic_fetch_add(&call->late, 1);
        atomic_fetch_add(&call->rounds, 1);
        returned(result);
    }
    return NULL;
}

// Each ends when the next is made; SIGCHLD may go to any thread.
static void *make_children(void *unused) {
    (void)unused;
    for (;;) {
        pid_t child = fork();
        if (!child) _exit(0);
        waitpid(child, NULL, 0);
        usleep(40000);
    }
    return NULL;
}

static void go(long passes) {
    long before[CALLS], eintr = 0, early = 0, late = 0;
    for (int i = 0; i < CALLS; i++) before[i] = atomic_load(&calls[i].rounds);
    atomic_store(&to_pass, passes);
    while (atomic_load(&to_pass)) usleep(1000);
    for (int i = 0; i < CALLS; i++) {
        // The one under way, and another.
        while (atomic_load(&calls[i].rounds) < before[i] + 2) usleep(1000);
        eintr += atomic_load(&calls[i].eintr);
        early += atomic_load(&calls[i].early);
        late += atomic_load(&calls[i].late);
    }
    printf("did site=%ld eintr=%ld early=%ld late=%ld\n", passes, eintr, early, late);
}

int main(int argc, char **argv) {
    ms = number(argc, argv, "--ms", 300);
    late_after = number(argc, argv, "--late-after", 2 * ms);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    queue = msgget(IPC_PRIVATE, 0600);
    pthread_t id;
    if (pthread_create(&id, NULL, pass, NULL) || pthread_create(&id, NULL, send_messages, NULL)) return 1;
    if (flag(argc, argv, "--children") && pthread_create(&id, NULL, make_children, NULL)) return 1;
    for (int i = 0; i < CALLS; i++) {
        if (pthread_create(&id, NULL, thread, &calls[i])) return 1;
    }
    say_ready();
    char line[64];
    while (next_line(line, sizeof line) && strcmp(line, "quit")) {
        long passes;
        if (sscanf(line, "go %ld", &passes) == 1) go(passes);
        if (strcmp(line, "report")) continue;
        for (int i = 0; i < CALLS; i++)
            printf("%s rounds=%ld eintr=%ld early=%ld late=%ld\n", calls[i].name,
                   atomic_load(&calls[i].rounds), atomic_load(&calls[i].eintr),
                   atomic_load(&calls[i].early), atomic_load(&calls[i].late));
        puts("end");
    }
    semctl(semaphore, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
    return 0;
}
