// Threads are made, pass `site` and end, all the while.
//
//   --makers N    so many threads make others (4): --batch N (4) at a time, whose end they await
//   --rounds N    so many batches each, then the end (0: until told)
//
// A thread passes `site` 25 times and ends by returning, by pthread_exit, or in `die`, whose first
// instruction is the system call that ends it.
// On stdin:  alive   answers `alive N` when each maker has made another batch
//            quit    ends
// Last line: site=N die=N
#define _GNU_SOURCE
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { MAKERS = 64, BATCH = 64, PASSES = 25 };

extern void die(void);
__asm__(".text\n.globl die\n.type die,@function\ndie: syscall\n ud2\n.size die,.-die\n");

static atomic_ulong passes, deaths, batches[MAKERS];
static atomic_int stopped;
static long batch, rounds;

__attribute__((noinline)) void site(long number) {
    __asm__ volatile("" : : "r"(number) : "memory");
    atomic_fetch_add_explicit(&passes, 1, memory_order_relaxed);
}

static void *thread(void *argument) {
    long number = (long)argument;
    for (long i = 0; i < PASSES; i++) site(i);
    if (number % 3 == 1) pthread_exit(NULL);
    if (number % 3 == 2) {
        atomic_fetch_add(&deaths, 1);
        __asm__ volatile("call die" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
    }
    return NULL;
}

static void *maker(void *argument) {
    long me = (long)argument;
    pthread_t made[BATCH];
    for (long round = 0; rounds ? round < rounds : !atomic_load(&stopped); round++) {
        for (long i = 0; i < batch; i++)
            if (pthread_create(&made[i], NULL, thread, (void *)i)) exit(1);
        for (long i = 0; i < batch; i++) pthread_join(made[i], NULL);
        atomic_fetch_add(&batches[me], 1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    long makers = number(argc, argv, "--makers", 4);
    batch = number(argc, argv, "--batch", 4);
    rounds = number(argc, argv, "--rounds", 0);
    if (makers > MAKERS || batch > BATCH) return 2;
    pthread_t ids[MAKERS];
    say_ready();
    for (long i = 0; i < makers; i++)
        if (pthread_create(&ids[i], NULL, maker, (void *)i)) return 1;
    char line[64];
    while (!rounds && next_line(line, sizeof line) && strcmp(line, "quit")) {
        if (strcmp(line, "alive")) continue;
        for (long i = 0; i < makers; i++) {
            unsigned long seen = atomic_load(&batches[i]);
            while (atomic_load(&batches[i]) == seen) usleep(200);
        }
        printf("alive %ld\n", makers);
    }
    atomic_store(&stopped, 1);
    for (long i = 0; i < makers; i++) pthread_join(ids[i], NULL);
    printf("site=%lu die=%lu\n", atomic_load(&passes), atomic_load(&deaths));
    return 0;
}
