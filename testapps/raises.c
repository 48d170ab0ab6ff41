// On a line of stdin, raises SIGTRAP between passes of `site`, ten of them for each; answers `raised`. On
// another, ends and says what it found.
//
//   --trap default|ignore|handle    what the process does with SIGTRAP (default)
//   --block                         it is blocked all the while, so that it stays pending
//   --raises N                      (20)
//
// Last line: passes=N trapped=N blocked=0|1 pending=0|1 kept=0|1, where kept is that the disposition is still
// the one that was set.
#include "common.h"

#include <signal.h>

static volatile long passes, trapped;

__attribute__((noinline)) void site(void) {
    __asm__ volatile("" : : : "memory");
    passes++;
}

static void on_trap(int number) {
    (void)number;
    trapped++;
}

int main(int argc, char **argv) {
    const char *trap = option(argc, argv, "--trap", "default");
    long raises = number(argc, argv, "--raises", 20);
    struct sigaction action = {0}, now;
    sigset_t set, pending;
    action.sa_handler = !strcmp(trap, "ignore")   ? SIG_IGN
                        : !strcmp(trap, "handle") ? on_trap
                                                  : SIG_DFL;
    sigaction(SIGTRAP, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGTRAP);
    if (flag(argc, argv, "--block")) sigprocmask(SIG_BLOCK, &set, NULL);
    say_ready();
    wait_for_line();
    for (long i = 0; i < raises; i++) {
        for (int k = 0; k < 5; k++) site();
        raise(SIGTRAP);
        for (int k = 0; k < 5; k++) site();
    }
    puts("raised");
    wait_for_line();
    sigprocmask(SIG_BLOCK, NULL, &set);
    sigpending(&pending);
    sigaction(SIGTRAP, NULL, &now);
    printf("passes=%ld trapped=%ld blocked=%d pending=%d kept=%d\n", passes, trapped,
           sigismember(&set, SIGTRAP), sigismember(&pending, SIGTRAP), now.sa_handler == action.sa_handler);
    return 0;
}
