// Forks one child after the other, and each passes `site` and ends with a status of its own.
//
// On stdin:  report   answers `children=N died=N`, died being those that ended otherwise
//            quit     the same, and ends
#include "common.h"

#include <poll.h>
#include <sys/wait.h>

enum { PASSES = 300, STATUS = 7 };

__attribute__((noinline)) void site(void) {
    __asm__ volatile("" : : : "memory");
}

int main(void) {
    long children = 0, died = 0;
    char line[64] = "";
    say_ready();
    while (strcmp(line, "quit")) {
        site();
        pid_t child = fork();
        if (child < 0) return 1;
        if (!child) {
            for (int i = 0; i < PASSES; i++) site();
            _exit(STATUS);
        }
        int status;
        if (waitpid(child, &status, 0) != child) return 1;
        children++;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != STATUS) died++;
        struct pollfd input = {.fd = 0, .events = POLLIN};
        if (poll(&input, 1, 0) > 0) {
            if (!next_line(line, sizeof line)) return 1;
            printf("children=%ld died=%ld\n", children, died);
        }
    }
    return 0;
}
