// A process is sent realtime signals with numbers, by another of its threads, while both pass `site`;
// the handler passes it too. The third of its threads blocks them all, and takes them by sigwaitinfo.
//
// On stdin:  go N    sends N of each; answers `did site=N received=N wrong=N`, wrong being those that
//                    came out of order, with another number or sender, or not at all
//            quit    (or the end of stdin) ends
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { HANDLED = 36, TAKEN = 37 }; // SIGRTMIN is a function call, and these are behind it

static atomic_ulong passes, received, wrong;
static atomic_long handled_next, taken_next, asked;
static pthread_t receiver, taker;

__attribute__((noinline)) void site(long number) {
    __asm__ volatile("" : : "r"(number) : "memory");
    atomic_fetch_add_explicit(&passes, 1, memory_order_relaxed);
}

static void check(const siginfo_t *info, atomic_long *next) {
    long expected = atomic_load(next);
    if (info->si_code != SI_QUEUE || info->si_pid != getpid() || info->si_value.sival_int != expected)
        atomic_fetch_add(&wrong, 1);
    atomic_store(next, expected + 1);
    atomic_fetch_add(&received, 1);
}

static void on_signal(int number, siginfo_t *info, void *context) {
    int before = errno;
    (void)number, (void)context;
    check(info, &handled_next);
    site(0);
    errno = before;
}

static void *receive(void *unused) {
    (void)unused;
    for (;;) {
        if (atomic_load(&asked)) site(1);
        else usleep(200);
    }
    return NULL;
}

static void *take(void *unused) {
    sigset_t set;
    siginfo_t info;
    (void)unused;
    sigemptyset(&set);
    sigaddset(&set, TAKEN);
    for (;;) {
        // A tracer's interrupt gives EINTR here, as a signal would.
        if (sigwaitinfo(&set, &info) != TAKEN) atomic_fetch_add(&wrong, 1);
        else check(&info, &taken_next);
        site(2);
    }
    return NULL;
}

static void send(pthread_t to, int number, long value) {
    union sigval with = {.sival_int = (int)value};
    // EAGAIN: as many are queued as may be.
    while (pthread_sigqueue(to, number, with) == EAGAIN) usleep(100);
    site(3);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t set;
    sigaction(HANDLED, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, TAKEN);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&receiver, NULL, receive, NULL) || pthread_create(&taker, NULL, take, NULL)) return 1;
    say_ready();
    char line[64];
    long times, value = 0;
    while (next_line(line, sizeof line) && sscanf(line, "go %ld", &times) == 1) {
        unsigned long before = atomic_load(&passes), got = atomic_load(&received);
        atomic_store(&asked, 1);
        for (long i = 0; i < times; i++, value++) {
            send(receiver, HANDLED, value);
            send(taker, TAKEN, value);
        }
        for (int i = 0; i < 30000 && atomic_load(&received) < got + 2 * (unsigned long)times; i++) usleep(1000);
        atomic_store(&asked, 0);
        // Whoever was on his way to it has passed.
        for (unsigned long last = 0; last != atomic_load(&passes); usleep(20000)) last = atomic_load(&passes);
        printf("did site=%lu received=%lu wrong=%lu\n", atomic_load(&passes) - before, atomic_load(&received) - got,
               atomic_load(&wrong) + 2 * (unsigned long)times - (atomic_load(&received) - got));
    }
    return 0;
}
