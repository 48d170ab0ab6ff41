// --threads threads (100) go through `site` once each, at one moment, --rounds times (1).
// Prints `passes=N`, counted by the program itself.
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_barrier_t start;
static atomic_long passes;

__attribute__((noinline)) void site(long number) {
    atomic_fetch_add(&passes, 1);
    __asm__ volatile("" : : "r"(number) : "memory");
}

static void *thread(void *number) {
    pthread_barrier_wait(&start);
    site((long)number);
    return NULL;
}

int main(int argc, char **argv) {
    long count = number(argc, argv, "--threads", 100), rounds = number(argc, argv, "--rounds", 1);
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    say_ready();
    if (flag(argc, argv, "--wait")) wait_for_line();
    for (long round = 0; round < rounds; round++) {
        pthread_barrier_init(&start, NULL, (unsigned)count);
        for (long i = 0; i < count; i++)
            if (pthread_create(&threads[i], NULL, thread, (void *)i)) return 1;
        for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&start);
    }
    printf("passes=%ld\n", atomic_load(&passes));
    free(threads);
    return 0;
}
