// Threads that block signals for a while, SIGTRAP among them, and pass `site` meanwhile.
//
//   --handle    SIGTRAP has a handler
//
// On stdin:  go      one thread blocks everything and passes `site` PASSES times, one does so after that,
//                    with nothing blocked, one blocks SIGTRAP and SIGUSR1 if there is a handler; answers
//                    `did site=N wrong=N`, wrong being masks and handlers that are not what was set (the
//                    mask of the last one is not looked at)
//            quit    (or the end of stdin) ends
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { THREADS = 3, PASSES = 200 };

static pthread_barrier_t begin, end;
static atomic_long passes, wrong;
static int handled, ending;

__attribute__((noinline)) void site(long number) {
    __asm__ volatile("" : : "r"(number) : "memory");
    atomic_fetch_add(&passes, 1);
}

static void on_trap(int number) {
    (void)number;
}

static void pass_with(const sigset_t *set, int looks) {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, set, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    sigset_t wanted = now;
    for (int i = 0; i < PASSES; i++) site(i);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int i = 1; looks && i < NSIG; i++)
        if (sigismember(&now, i) != sigismember(&wanted, i)) atomic_fetch_add(&wrong, 1);
}

static void *thread(void *argument) {
    long me = (long)argument;
    for (;;) {
        sigset_t set;
        pthread_barrier_wait(&begin);
        if (ending) return NULL;
        sigfillset(&set);
        if (me < 2) pass_with(&set, 1);
        sigemptyset(&set);
        if (me == 1) pass_with(&set, 1);
        sigaddset(&set, SIGTRAP);
        sigaddset(&set, SIGUSR1);
        if (me == 2 && handled) pass_with(&set, 0);
        sigemptyset(&set);
        pass_with(&set, 1);
        pthread_barrier_wait(&end);
    }
}

int main(int argc, char **argv) {
    handled = flag(argc, argv, "--handle");
    struct sigaction action = {.sa_handler = on_trap};
    if (handled) sigaction(SIGTRAP, &action, NULL);
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    pthread_t ids[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&ids[i], NULL, thread, (void *)i)) return 1;
    say_ready();
    char line[64];
    while (next_line(line, sizeof line) && !strcmp(line, "go")) {
        long before = atomic_load(&passes);
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        // While a thread is on its way to a tracer its int3 has ended the handler, for that moment.
        struct sigaction now;
        sigaction(SIGTRAP, NULL, &now);
        if (handled && now.sa_handler != on_trap) atomic_fetch_add(&wrong, 1);
        printf("did site=%ld wrong=%ld\n", atomic_load(&passes) - before, atomic_load(&wrong));
    }
    ending = 1;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    return 0;
}
