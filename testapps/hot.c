// --threads threads (20) run through `site` as fast as they can, until told to stop.
//
//   --nice    with the least priority, so that whoever looks on is not kept waiting
//
// On stdin:  alive   answers `alive N` when each thread has passed again: all N made progress
//            text    answers `text HEX`, a checksum of the program's own instructions
//            quit    answers `passes=N` and ends
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

// `_init` comes first in the executable segment, the linker's `etext` is its end.
extern const unsigned char text_begin __asm__("_init"), etext;

static atomic_int stopped;
static struct { _Alignas(64) atomic_ulong passes; } counters[256];

__attribute__((noinline)) void site(atomic_ulong *counter) {
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void *thread(void *counter) {
    while (!atomic_load_explicit(&stopped, memory_order_relaxed)) site(counter);
    return NULL;
}

// FNV-1a over the executable segment.
static uint64_t checksum(void) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (const unsigned char *p = &text_begin; p < &etext; p++) sum = (sum ^ *p) * 0x100000001b3u;
    return sum;
}

int main(int argc, char **argv) {
    long count = number(argc, argv, "--threads", 20);
    if (count < 1 || count > 256) return 2;
    if (flag(argc, argv, "--nice") && nice(19) == -1) return 1;
    pthread_t threads[256];
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, thread, &counters[i].passes)) return 1;
    say_ready();

    char line[64];
    while (next_line(line, sizeof line) && strcmp(line, "quit")) {
        if (!strcmp(line, "text")) printf("text %016lx\n", checksum());
        if (!strcmp(line, "alive")) {
            unsigned long seen[256];
            for (long i = 0; i < count; i++) seen[i] = atomic_load(&counters[i].passes);
            for (long i = 0; i < count; i++)
                while (atomic_load(&counters[i].passes) == seen[i]) usleep(200);
            printf("alive %ld\n", count);
        }
    }
    atomic_store(&stopped, 1);
    unsigned long passes = 0;
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (long i = 0; i < count; i++) passes += atomic_load(&counters[i].passes);
    printf("passes=%lu\n", passes);
    return 0;
}
