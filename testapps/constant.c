// Ten passes of `site`, which gives the constant in its first instruction, the byte at site+1; `tick`
// comes after each.
//
// Last line: sum=N passes=10
#include "common.h"

extern int site(void);
extern void tick(void);
__asm__(".text\n.globl site,tick\n.type site,@function\n.type tick,@function\n"
        "site: mov $5,%eax\n ret\n.size site,.-site\n"
        "tick: nop\n nop\n ret\n.size tick,.-tick\n");

int main(void) {
    int sum = 0, passes = 0;
    say_ready();
    for (; passes < 10; passes++) {
        sum += site();
        tick();
    }
    printf("sum=%d passes=%d\n", sum, passes);
    return 0;
}
