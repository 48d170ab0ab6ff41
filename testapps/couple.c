// One process and its child, each of which passes `site`; the parent once before the child is made and once
// before it waits for it, the child twice.
//
// couple [fork|vfork|vpass|exec|spawn|thread]
//
// With exec the child executes this program in the middle, with spawn at once; with vfork it passes nothing;
// vpass is vfork with a child that passes. With thread there is no child: a second thread passes, and executes
// this program. It ends with 3.
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

__attribute__((noinline)) void site(void) {
    __asm__ volatile("" : : : "memory");
}

static char *again[] = {NULL, "child", NULL};

static void *executing(void *unused) {
    site();
    execv(again[0], again);
    return unused;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "fork";
    int status;
    pid_t child = -1;
    again[0] = argv[0];
    site();
    if (!strcmp(how, "child")) return 3;
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, executing, NULL);
        pthread_join(thread, NULL);
        return 1;
    }
    if (!strcmp(how, "spawn")) {
        if (posix_spawn(&child, argv[0], NULL, NULL, again, environ)) return 1;
    } else if (!strcmp(how, "vfork")) {
        child = vfork();
        if (!child) _exit(3);
    } else if (!strcmp(how, "vpass")) {
        child = vfork();
        if (!child) {
            site();
            site();
            _exit(3);
        }
    } else {
        child = fork();
        if (!child) {
            site();
            if (!strcmp(how, "exec")) execv(argv[0], again);
            site();
            _exit(3);
        }
    }
    site();
    return waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 3;
}
