// 5,000 functions many_0000 … many_4999, each called --rounds times (once unless told otherwise).
//
//   --wait   begin when a line comes on stdin
//
// Last line: calls=N ns=N
#include "common.h"

static volatile uint64_t calls;

#define ONE(n) \
    __attribute__((noinline)) void many_##n(void) { calls++; }
#define TEN(of, n) of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7) of(n##8) of(n##9)
#define TEN_ONES(n) TEN(ONE, n)
#define HUNDRED(n) \
    TEN_ONES(n##0) TEN_ONES(n##1) TEN_ONES(n##2) TEN_ONES(n##3) TEN_ONES(n##4) \
    TEN_ONES(n##5) TEN_ONES(n##6) TEN_ONES(n##7) TEN_ONES(n##8) TEN_ONES(n##9)
#define THOUSAND(n) \
    HUNDRED(n##0) HUNDRED(n##1) HUNDRED(n##2) HUNDRED(n##3) HUNDRED(n##4) \
    HUNDRED(n##5) HUNDRED(n##6) HUNDRED(n##7) HUNDRED(n##8) HUNDRED(n##9)

THOUSAND(0) THOUSAND(1) THOUSAND(2) THOUSAND(3) THOUSAND(4)

#undef ONE
#define ONE(n) many_##n,

static void (*const table[])(void) = { THOUSAND(0) THOUSAND(1) THOUSAND(2) THOUSAND(3) THOUSAND(4) };

int main(int argc, char **argv) {
    uint64_t rounds = (uint64_t)number(argc, argv, "--rounds", 1);
    if (flag(argc, argv, "--wait")) wait_for_line();
    uint64_t begun = now_ns();
    for (uint64_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) table[i]();
    printf("calls=%llu ns=%llu\n", (unsigned long long)calls, (unsigned long long)(now_ns() - begun));
    return 0;
}
