// Exactly --calls calls of Fibon (890,000 unless told otherwise), timed by the program itself.
//
//   --wait       begin when a line comes on stdin
//   --rounds N   the whole again N times; --forever: until a line (or the end) of stdin
//   --sample     a second thread reads the first 16 bytes of Fibon all the while and counts
//                the changes it sees: a tracer that takes its int3 out at each hit shows here
//
// Last line: calls=N leaves=N inner=N ns=N ns_per_call=N [samples=N changes=N]
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

static uint64_t leaves;

// Built so that the compiler neither unrolls nor inlines the recursion (see the Makefile):
// Fibon(n) makes 2*F(n+1)-1 calls, F(n+1) of them leaves.
uint64_t Fibon(uint64_t n) {
    if (n < 2) {
        leaves++;
        return n;
    }
    return Fibon(n - 1) + Fibon(n - 2);
}

static uint64_t calls_of(unsigned n) {
    uint64_t a = 1, b = 1;
    for (unsigned i = 0; i < n; i++) {
        uint64_t c = a + b;
        a = b;
        b = c;
    }
    return 2 * a - 1;
}

// The largest recursions that fit, one after the other, until the count is exact.
static uint64_t make_calls(uint64_t wanted) {
    uint64_t made = 0;
    while (made < wanted) {
        unsigned n = 0;
        while (n < 60 && calls_of(n + 1) <= wanted - made) n++;
        Fibon(n);
        made += calls_of(n);
    }
    return made;
}

static atomic_int sampling, stopped, sampler_up;
static uint64_t samples, changes;

static void *sample(void *unused) {
    (void)unused;
    const volatile uint64_t *site = (const volatile uint64_t *)(uintptr_t)Fibon;
    uint64_t low = site[0], high = site[1];
    atomic_store(&sampler_up, 1);
    while (atomic_load_explicit(&sampling, memory_order_relaxed)) {
        uint64_t a = site[0], b = site[1];
        if (a != low || b != high) changes++;
        low = a;
        high = b;
        samples++;
    }
    return NULL;
}

static void *until_line(void *unused) {
    (void)unused;
    wait_for_line();
    atomic_store(&stopped, 1);
    return NULL;
}

int main(int argc, char **argv) {
    uint64_t wanted = (uint64_t)number(argc, argv, "--calls", 890000);
    long rounds = number(argc, argv, "--rounds", 1);
    int forever = flag(argc, argv, "--forever"), with_sampler = flag(argc, argv, "--sample");
    pthread_t sampler, reader;

    if (with_sampler) {
        atomic_store(&sampling, 1);
        pthread_create(&sampler, NULL, sample, NULL);
        while (!atomic_load(&sampler_up)) {}
    }
    say_ready();
    if (flag(argc, argv, "--wait")) wait_for_line();
    if (forever) pthread_create(&reader, NULL, until_line, NULL);

    uint64_t calls = 0, begin = now_ns();
    for (long round = 0; forever ? !atomic_load(&stopped) : round < rounds; round++)
        calls += make_calls(wanted);
    uint64_t ns = now_ns() - begin;

    // The sampler outlives the calls by one line of stdin, so that a detach can be sampled too.
    if (with_sampler && flag(argc, argv, "--linger")) {
        puts("calls done");
        wait_for_line();
    }
    printf("calls=%lu leaves=%lu inner=%lu ns=%lu ns_per_call=%.1f", calls, leaves, calls - leaves,
           ns, (double)ns / (double)(calls ? calls : 1));
    if (with_sampler) {
        atomic_store(&sampling, 0);
        pthread_join(sampler, NULL);
        printf(" samples=%lu changes=%lu", samples, changes);
    }
    puts("");
    return 0;
}
