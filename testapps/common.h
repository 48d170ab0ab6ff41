// What the programs share: each says `ready PID` when it can be attached to, obeys lines on
// stdin where it has something to obey, and prints whole lines that a test can wait for.
#ifndef TESTAPPS_COMMON_H
#define TESTAPPS_COMMON_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Where yama's ptrace_scope is 1, only a parent may attach: these programs let anybody of their user.
static inline void say_ready(void) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready %d\n", (int)getpid());
}

// Reads one line without its newline; 0 at the end of stdin.
static inline int next_line(char *line, size_t size) {
    if (!fgets(line, (int)size, stdin)) return 0;
    line[strcspn(line, "\n")] = 0;
    return 1;
}

static inline void wait_for_line(void) {
    char line[64];
    (void)next_line(line, sizeof line);
}

// `--name VALUE` or the fallback.
static inline const char *option(int argc, char **argv, const char *name, const char *fallback) {
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name)) return argv[i + 1];
    return fallback;
}

static inline long number(int argc, char **argv, const char *name, long fallback) {
    const char *text = option(argc, argv, name, NULL);
    return text ? strtol(text, NULL, 0) : fallback;
}

static inline int flag(int argc, char **argv, const char *name) {
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name)) return 1;
    return 0;
}

#endif
