// Functions that are left in every way: by several returns, by jumps to others, by exceptions and longjmp, on
// several threads, and on coroutines that change threads. Says how often each was called and how often it
// returned; what it computes goes into the exit status (0: all as it should be).

#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <ucontext.h>
#include <vector>

namespace {
constexpr int THREADS = 4;
constexpr int ROUNDS = 25;
std::atomic<long> wrong{0};

void expect(long is, long should)
{
    if (is != should)
        ++wrong;
}
} // namespace

#define OWN extern "C" __attribute__((noinline, noclone))
#define KEEP asm volatile("" ::: "memory")

// Several returns, recursion that stays one.
OWN long factorial(long n)
{
    KEEP;
    if (n < 0)
        return -1;
    if (n == 0)
        return 1;
    long below = factorial(n - 1);
    KEEP;
    return n * below;
}

// A jump table at -O2, with a value or a call behind each entry.
OWN long choose(long n, long x)
{
    switch (n) {
    case 0: return factorial(1) + x;
    case 1: return x * 3;
    case 2: return factorial(2) - x;
    case 3: return x ^ 0x55;
    case 4: return factorial(3) * x;
    case 5: return x - 100;
    case 6: return factorial(x & 3);
    case 7: return -x;
    default: return 0;
    }
}

// A sibling call at -O2: a jump out of the function, one of them conditional.
OWN long target(long n)
{
    KEEP;
    return n + 1000;
}

OWN long tail(long n)
{
    KEEP;
    if (n == 7)
        return 7;
    return target(n * 2);
}

OWN long through(long (*function)(long), long n)
{
    KEEP;
    return function(n + 1);
}

// Left by an exception from below for two of three n, at several depths. Its cleanup is moved away at -O2.
struct Guard {
    long &count;
    ~Guard() { ++count; }
};

OWN long throwing(long n, long depth, long *cleanups)
{
    Guard guard{*cleanups};
    KEEP;
    if (depth == 0) {
        if (n % 3 != 0)
            throw std::runtime_error("away");
        return n;
    }
    long result = throwing(n, depth - 1, cleanups);
    KEEP;
    return result + 1;
}

// The caller that catches: its own return is certain.
OWN long catching(long n, long *cleanups)
{
    try {
        return throwing(n, 3, cleanups);
    } catch (const std::runtime_error &) {
        return -n;
    }
}

// Left by longjmp for odd n.
OWN long jumping(std::jmp_buf *back, long n)
{
    KEEP;
    if (n & 1)
        std::longjmp(*back, 1);
    return n;
}

OWN long landing(long n)
{
    std::jmp_buf back;
    if (setjmp(back))
        return -1;
    return jumping(&back, n);
}

// A coroutine gives its thread up in the middle of a call; another thread takes it on.
namespace {
struct Coroutine {
    ucontext_t own{}, thread{};
    std::vector<char> stack;
    long number = 0, result = 0;
    bool done = false;
};
thread_local Coroutine *volatile current;
} // namespace

OWN long yielding(Coroutine *coroutine, long n)
{
    KEEP;
    swapcontext(&coroutine->own, &coroutine->thread);
    KEEP;
    return n * 10;
}

namespace {
void body(unsigned high, unsigned low)
{
    auto *coroutine = reinterpret_cast<Coroutine *>(static_cast<unsigned long>(high) << 32 | low);
    for (long round = 0; round < 5; ++round)
        coroutine->result += yielding(coroutine, coroutine->number + round);
    coroutine->done = true;
    swapcontext(&coroutine->own, &coroutine->thread);
}

// Stacks side by side in one piece of memory, without guards between them.
void coroutines()
{
    constexpr int COUNT = 8;
    constexpr std::size_t STACK = 64 << 10;
    std::vector<char> stacks(COUNT * STACK);
    std::vector<Coroutine> all(COUNT);
    for (int i = 0; i < COUNT; ++i) {
        Coroutine &one = all[i];
        one.number = i;
        getcontext(&one.own);
        one.own.uc_stack.ss_sp = stacks.data() + i * STACK;
        one.own.uc_stack.ss_size = STACK;
        auto address = reinterpret_cast<unsigned long>(&one);
        makecontext(&one.own, reinterpret_cast<void (*)()>(body), 2, unsigned(address >> 32), unsigned(address));
    }
    // Each thread takes every coroutine one step on: no coroutine stays on one.
    for (int round = 0; round < 6; ++round)
        std::thread([&] {
            for (Coroutine &one : all)
                swapcontext(&one.thread, &one.own);
        }).join();
    for (int i = 0; i < COUNT; ++i)
        expect(all[i].done && all[i].result == 10 * (5 * i + 10), true);
}

void work(int thread)
{
    for (int i = 0; i < ROUNDS; ++i) {
        expect(factorial(6), 720);
        expect(choose(i % 10, i), i % 10 == 1 ? 3 * i : choose(i % 10, i));
        expect(tail(i % 10), i % 10 == 7 ? 7 : i % 10 * 2 + 1000);
        expect(through(target, i), i + 1001);
        long cleanups = 0;
        expect(catching(i, &cleanups), i % 3 ? -i : i + 3);
        expect(cleanups, 4);
        expect(landing(i), i & 1 ? -1 : i);
    }
    (void)thread;
}
} // namespace

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; ++i)
        threads.emplace_back(work, i);
    for (auto &thread : threads)
        thread.join();
    coroutines();
    const long n = THREADS * ROUNDS;
    long third = 0, even = 0, chosen = 0, factorials = 0, sevens = 0;
    for (int i = 0; i < ROUNDS; ++i) {
        third += i % 3 == 0;
        even += i % 2 == 0;
        sevens += i % 10 == 7;
        const int calls[] = {2, 0, 3, 0, 4, 0, (i & 3) + 1, 0, 0, 0};
        const int times = i % 10 == 1 ? 1 : 2;
        chosen += times;
        factorials += 7 + times * calls[i % 10];
    }
    std::printf("factorial calls=%ld returns=%ld\n", THREADS * factorials, THREADS * factorials);
    std::printf("choose calls=%ld returns=%ld\n", THREADS * chosen, THREADS * chosen);
    std::printf("tail calls=%ld returns=%ld\n", n, n);
    std::printf("target calls=%ld returns=%ld\n", 2 * n - THREADS * sevens, 2 * n - THREADS * sevens);
    std::printf("through calls=%ld returns=%ld\n", n, n);
    std::printf("throwing calls=%ld returns=%ld\n", 4 * n, 4 * THREADS * third);
    std::printf("catching calls=%ld returns=%ld\n", n, n);
    std::printf("jumping calls=%ld returns=%ld\n", n, THREADS * even);
    std::printf("landing calls=%ld returns=%ld\n", n, n);
    std::printf("yielding calls=40 returns=40\n");
    return wrong != 0;
}
