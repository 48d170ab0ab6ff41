// Two threads; the second one sends itself a signal. Which thread got which signal is the exit status:
// SIGUSR1 1 and SIGUSR2 2 for the first thread, 4 and 8 for the second. System calls are made without the C
// library, so that a tracer shows the program's own functions where the threads stand: the first one waits
// for the second one before that begins.

#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noipa))

static volatile int seen = 0;
static volatile int over = 0;
static int process = 0;
static __thread int me = 1;

KEPT void note(int number)
{
    __atomic_fetch_or(&seen, (number == SIGUSR1 ? 1 : 2) * me, __ATOMIC_SEQ_CST);
}

KEPT long call(long number, long a, long b, long c)
{
    long result;
    register long timeout __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(timeout)
                     : "rcx", "r11", "memory");
    return result;
}

// Whether the first thread sits in the call in which it waits.
static int first_waits(void)
{
    char path[64];
    long number = -1, word = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", process);
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%ld %lx", &number, &word) != 2)
            number = -1;
        fclose(file);
    }
    return number == SYS_futex && word == (long)&over;
}

KEPT void *second(void *unused)
{
    me = 4;
    while (!first_waits())
        ;
    call(SYS_tgkill, process, call(SYS_gettid, 0, 0, 0), SIGUSR1);
    over = 1;
    call(SYS_futex, (long)&over, FUTEX_WAKE, 1);
    return unused;
}

int main(void)
{
    pthread_t thread;
    process = getpid();
    signal(SIGUSR1, note);
    signal(SIGUSR2, note);
    pthread_create(&thread, 0, second, 0);
    while (!over)
        call(SYS_futex, (long)&over, FUTEX_WAIT, 0);
    pthread_join(thread, 0);
    return seen;
}
