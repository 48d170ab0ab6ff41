// --threads threads (32) pass eight sites, whose first instructions differ, in an order of chance.
//
// On stdin:  go N    each thread passes N sites; answers `did s0=N … s7=N`, the passes of this time
//            quit    (or the end of stdin) ends
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SITES = 8, THREADS = 1024 };

// Each gives back what it is given.
#define SITE(n, code) \
    extern uint64_t s##n(uint64_t *); \
    __asm__(".text\n.globl s" #n "\n.type s" #n ",@function\ns" #n ": " code "\n ret\n.size s" #n ",.-s" #n "\n");
SITE(0, "push %rbp\n mov (%rdi),%rax\n pop %rbp")
SITE(1, "mov (%rdi),%rax")
SITE(2, "endbr64\n mov (%rdi),%rax")
SITE(3, "sub $8,%rsp\n mov (%rdi),%rax\n add $8,%rsp")
SITE(4, "lea word(%rip),%rdx\n mov (%rdi),%rax")
SITE(5, "test %rdi,%rdi\n je 1f\n mov (%rdi),%rax\n1:")
SITE(6, "jmp 1f\n ud2\n1: mov (%rdi),%rax")
SITE(7, "nop\n mov (%rdi),%rax")
__asm__(".data\nword: .quad 0\n.text");

static uint64_t (*const sites[SITES])(uint64_t *) = {s0, s1, s2, s3, s4, s5, s6, s7};
static atomic_ulong passes[SITES], wrong;
static pthread_barrier_t begin, end;
static long times;
static int ending;

static void *thread(void *argument) {
    uint64_t state = 0x9e3779b97f4a7c15u * ((uint64_t)argument + 1);
    for (;;) {
        pthread_barrier_wait(&begin);
        if (ending) return NULL;
        for (long i = 0; i < times; i++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            int which = (int)(state >> 40) % SITES;
            atomic_fetch_add_explicit(&passes[which], 1, memory_order_relaxed);
            if (sites[which](&state) != state) atomic_fetch_add(&wrong, 1);
        }
        pthread_barrier_wait(&end);
    }
}

int main(int argc, char **argv) {
    long count = number(argc, argv, "--threads", 32);
    if (count < 1 || count > THREADS) return 2;
    pthread_t ids[THREADS];
    pthread_barrier_init(&begin, NULL, (unsigned)count + 1);
    pthread_barrier_init(&end, NULL, (unsigned)count + 1);
    for (long i = 0; i < count; i++)
        if (pthread_create(&ids[i], NULL, thread, (void *)i)) return 1;
    say_ready();
    char line[64];
    while (next_line(line, sizeof line) && sscanf(line, "go %ld", &times) == 1) {
        for (int i = 0; i < SITES; i++) atomic_store(&passes[i], 0);
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        printf("did wrong=%lu", atomic_load(&wrong));
        for (int i = 0; i < SITES; i++) printf(" s%d=%lu", i, atomic_load(&passes[i]));
        puts("");
    }
    ending = 1;
    pthread_barrier_wait(&begin);
    for (long i = 0; i < count; i++) pthread_join(ids[i], NULL);
    return 0;
}
