// Threads (4) pass `site` while a child of the process stops and continues it, by SIGSTOP and SIGCONT.
//
// On stdin:  go N    N stops and as many SIGCONTs; answers `did site=N`
//            quit    (or the end of stdin) ends
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 4 };

static atomic_ulong passes;
static atomic_int going, resting;

__attribute__((noinline)) void site(long number) {
    __asm__ volatile("" : : "r"(number) : "memory");
    atomic_fetch_add_explicit(&passes, 1, memory_order_relaxed);
}

static void *thread(void *unused) {
    (void)unused;
    for (;;) {
        atomic_fetch_add(&resting, 1);
        while (!atomic_load(&going)) usleep(200);
        atomic_fetch_sub(&resting, 1);
        while (atomic_load(&going)) site(1);
    }
    return NULL;
}

// The child: as many stops as a number from the pipe says, then a byte back.
static void halt(int orders, int done) {
    long times;
    unsigned state = 1;
    pid_t parent = getppid();
    while (read(orders, &times, sizeof times) == sizeof times) {
        for (long i = 0; i < times; i++) {
            state = state * 1103515245 + 12345;
            if (kill(parent, SIGSTOP)) _exit(1);
            if (state >> 16 & 3) usleep(state >> 18 & 511);
            if (kill(parent, SIGCONT)) _exit(1);
            usleep(state >> 20 & 511);
        }
        if (write(done, "", 1) != 1) _exit(1);
    }
    _exit(0);
}

int main(void) {
    int orders[2], done[2];
    if (pipe(orders) || pipe(done)) return 1;
    pid_t child = fork();
    if (!child) {
        close(orders[1]);
        halt(orders[0], done[1]);
    }
    close(orders[0]);
    pthread_t id;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&id, NULL, thread, NULL)) return 1;
    say_ready();
    char line[64], byte;
    long times;
    while (next_line(line, sizeof line) && sscanf(line, "go %ld", &times) == 1) {
        unsigned long before = atomic_load(&passes);
        atomic_store(&going, 1);
        if (write(orders[1], &times, sizeof times) != sizeof times || read(done[0], &byte, 1) != 1) return 1;
        atomic_store(&going, 0);
        while (atomic_load(&resting) < THREADS) usleep(200);
        printf("did site=%lu\n", atomic_load(&passes) - before);
    }
    close(orders[1]);
    waitpid(child, NULL, 0);
    return 0;
}
