// Calls every function of first.S with inputs that differ from call to call, and prints for each how often its first
// instruction ran and a sum of all that came of it: registers, flags, memory, faults. Addresses count as offsets.
//
//   --calls N      calls of each function by each thread (20)
//   --threads N    (1)
//   --storm N      each thread gets a signal every N microseconds; the handler calls `f_handler`
//   --show NAME    tell of each call of one function what came of it
//   --wait         begin when a line comes on stdin
//
// Lines: NAME hits=N sum=HEX    last: done
#define _GNU_SOURCE
#include "../common.h"
#include "flags.h"

#include <cpuid.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <ucontext.h>

struct entry {
    void *probed;
    void *called;
    const char *name;
    uint64_t flags;
};

struct registers {
    uint64_t general[15]; // rax rbx rcx rdx rsi rdi rbp r8 to r15
    uint64_t flags, stack, popped;
};

enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9 };

extern struct entry __start_first_table[], __stop_first_table[];
extern char d_start[], d_end[], landing[], just_return[];
extern const char __executable_start[], _end[];
extern __thread uint64_t t_timer, t_guard;
void invoke(void *function, struct registers *registers);
void f_handler(void);
void f_restorer(void);

enum { BUFFER = 4096, FUNCTIONS = 512 };

struct thread {
    pthread_t id;
    long number;
    char *memory; // two buffers and an unreadable page
    uint64_t sums[FUNCTIONS], hits[FUNCTIONS];
};

uint64_t handled;
static __thread struct thread *self;
static __thread const struct entry *current;
static __thread uint64_t fault[4], stack_base;
static long calls, threads, storm;
static const char *show;
static uint64_t processor;

static uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 31)) * 0x7fb5d329728ea185;
    value = (value ^ (value >> 27)) * 0x81dadef4bc2dd44d;
    return value ^ (value >> 33);
}

// An address is another one in each run.
static uint64_t plain(uint64_t value) {
    if (value - (uint64_t)__executable_start < (uint64_t)(_end - __executable_start))
        return value - (uint64_t)__executable_start + 0x1000000000;
    if (value - (uint64_t)self->memory < 3 * BUFFER) return value - (uint64_t)self->memory + 0x2000000000;
    if (value - (stack_base - 0x10000) < 0x20000) return value - stack_base + 0x3000000000;
    return value;
}

static uint64_t sum_of(uint64_t sum, const void *from, size_t bytes) {
    const uint64_t *words = from;
    for (size_t i = 0; i < bytes / 8; i++) sum = mix(sum + plain(words[i]));
    return sum;
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (fault[0] || !current || !(current->flags & FAULTS)) {
        printf("unexpected signal %d, code %d, address %p, in %s, rip %#llx, rsp %#llx\n", signal, info->si_code, info->si_addr,
               current ? current->name : "nothing", registers[REG_RIP], registers[REG_RSP]);
        _exit(1);
    }
    fault[0] = (uint64_t)signal;
    fault[1] = (uint64_t)info->si_code;
    fault[2] = signal == SIGTRAP ? 0 : (uint64_t)info->si_addr;
    fault[3] = (uint64_t)registers[REG_RIP];
    registers[REG_RIP] = (greg_t)just_return;
}

static void on_signal(int signal) {
    (void)signal;
    int before = errno;
    f_handler();
    errno = before;
}

// With a restorer of our own, which can be probed too.
static void handle_storm(int signal) {
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action = {on_signal, SA_RESTART | 0x04000000, f_restorer, 0};
    if (syscall(SYS_rt_sigaction, signal, &action, NULL, 8)) abort();
}

static void begin_storm(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 2};
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    struct itimerspec every = {{0, storm * 1000}, {0, storm * 1000}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &every, NULL)) abort();
}

static void prepare(struct registers *registers, uint64_t seed) {
    static const uint64_t flags[] = {0, 0x1, 0x4, 0x10, 0x40, 0x80, 0x800, 0x8d5, 0x880, 0xc5, 0x41};
    for (int i = 0; i < 15; i++) registers->general[i] = mix(seed + (uint64_t)i);
    uint64_t *words = (uint64_t *)self->memory;
    for (int i = 0; i < 2 * BUFFER / 8; i++) words[i] = mix((uint64_t)i) | 0x0101010101010101;
    words[(BUFFER + 0x100) / 8] = (uint64_t)landing;
    registers->general[RBX] = (uint64_t)self->memory + 512;
    registers->general[RCX] = seed % 7;
    registers->general[RSI] = (uint64_t)self->memory;
    registers->general[RDI] = (uint64_t)self->memory + BUFFER;
    registers->general[R8] = (uint64_t)landing;
    registers->general[R9] = 0x2b;
    registers->flags = 0x202 | flags[seed % 11];
}

static void tell(long round, const struct registers *registers) {
    char line[1024], *end = line;
    for (int i = 0; i < 15; i++) end += sprintf(end, " %lx", plain(registers->general[i]));
    printf("%ld:%ld fault %lu %lu %lx %lx flags %lx%s\n", self->number, round, fault[0], fault[1], plain(fault[2]),
           plain(fault[3]), registers->flags, line);
}

static void call(long index, long round) {
    struct entry *entry = __start_first_table + index;
    struct registers registers;
    uint64_t seed = (uint64_t)(self->number * 1000000 + round);
    prepare(&registers, seed);
    self->hits[index] += entry->flags & ITERATES ? registers.general[RCX] + 1 : 1;
    memset(fault, 0, sizeof fault);
    current = entry;
    invoke(entry->called, &registers);
    current = NULL;
    stack_base = registers.stack;
    registers.stack = 0;
    uint64_t sum = sum_of(seed, fault, sizeof fault);
    if (!(entry->flags & RACES)) sum = sum_of(sum, &registers, sizeof registers);
    sum = sum_of(sum, self->memory, 2 * BUFFER);
    self->sums[index] += sum;
    if (show && !strcmp(show, entry->name)) tell(round, &registers);
}

static int is_called(uint64_t flags) {
    uint64_t needs = flags & (NEEDS_AVX2 | NEEDS_AVX512 | NEEDS_RTM | NEEDS_MOVBE);
    return !(flags & NOT_CALLED) && (processor & needs) == needs;
}

static void *run(void *argument) {
    self = argument;
    struct itimerspec every = {{0, 300000}, {0, 300000}};
    t_timer = (uint64_t)timerfd_create(CLOCK_MONOTONIC, 0);
    t_guard = (uint64_t)self->memory + 2 * BUFFER;
    timerfd_settime((int)t_timer, 0, &every, NULL);
    if (storm) begin_storm();
    for (long round = 0; round < calls; round++)
        for (long i = 0; __start_first_table + i < __stop_first_table; i++) {
            uint64_t flags = __start_first_table[i].flags;
            if (is_called(flags) && (!(flags & SLOW) || round % 10 == 0)) call(i, round);
        }
    return NULL;
}

static void look_at_processor(void) {
    unsigned a, b, c, d;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) processor |= NEEDS_AVX2;
    if (__builtin_cpu_supports("avx512f")) processor |= NEEDS_AVX512;
    if (__get_cpuid(1, &a, &b, &c, &d) && c & bit_MOVBE) processor |= NEEDS_MOVBE;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && b & (1u << 11)) processor |= NEEDS_RTM;
}

static struct thread *start(long number) {
    struct thread *thread = calloc(1, sizeof *thread);
    thread->number = number;
    thread->memory = mmap(NULL, 3 * BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(thread->memory + 2 * BUFFER, BUFFER, PROT_NONE);
    pthread_create(&thread->id, NULL, run, thread);
    return thread;
}

int main(int argc, char **argv) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    calls = number(argc, argv, "--calls", 20);
    threads = number(argc, argv, "--threads", 1);
    storm = number(argc, argv, "--storm", 0);
    show = option(argc, argv, "--show", NULL);
    look_at_processor();
    say_ready();
    if (flag(argc, argv, "--wait")) wait_for_line();
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
        sigaction(faults[i], &action, NULL);
    }
    handle_storm(SIGRTMIN + 2);
    struct thread *all[threads];
    for (long i = 0; i < threads; i++) all[i] = start(i);
    self = all[0];
    for (long i = 0; i < threads; i++) pthread_join(all[i]->id, NULL);
    for (long i = 0; __start_first_table + i < __stop_first_table; i++) {
        uint64_t sum = 0, hits = 0;
        for (long t = 0; t < threads; t++) sum += all[t]->sums[i], hits += all[t]->hits[i];
        printf("%s hits=%lu sum=%016lx\n", __start_first_table[i].name, hits, sum);
    }
    printf("data hits=0 sum=%016lx\n", sum_of(0, d_start, (size_t)(d_end - d_start)));
    printf("f_handler hits=%lu sum=0\nf_restorer hits=%lu sum=0\n", handled, handled);
    puts("done");
    return 0;
}
