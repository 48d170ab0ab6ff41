// A thread that goes on when the leader, the thread whose number is the process's, has ended.
//
//   --passes N    the leader ends at once, `site` is passed N times, and that is the end
//
// Otherwise on stdin:  end      the leader ends; answers `ended` when it has
//                      hit N    passes `site` N times; answers `hit N`
//                      hide     may not be dumped any more; answers `hidden`
//                      quit
// Last line: passes=N
#define _GNU_SOURCE
#include "common.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>

static sem_t leave;
static long passes, wanted;

__attribute__((noinline)) void site(void) {
    __asm__ volatile("" : : : "memory");
    passes++;
}

static void pass(long times) {
    for (long i = 0; i < times; i++) site();
}

static int is_zombie(pid_t tid) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", tid, tid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] && name_end[2] == 'Z';
}

static void end_leader(void) {
    sem_post(&leave);
    while (!is_zombie(getpid())) usleep(100);
}

static void *thread(void *unused) {
    char line[64];
    long times;
    (void)unused;
    if (wanted) {
        end_leader();
        pass(wanted);
    } else {
        while (next_line(line, sizeof line) && strcmp(line, "quit")) {
            if (!strcmp(line, "end")) {
                end_leader();
                puts("ended");
            } else if (!strcmp(line, "hide")) {
                prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
                puts("hidden");
            } else if (sscanf(line, "hit %ld", &times) == 1) {
                pass(times);
                printf("hit %ld\n", times);
            }
        }
    }
    printf("passes=%ld\n", passes);
    exit(0);
}

int main(int argc, char **argv) {
    pthread_t other;
    wanted = number(argc, argv, "--passes", 0);
    sem_init(&leave, 0, 0);
    say_ready();
    if (pthread_create(&other, NULL, thread, NULL)) return 1;
    while (sem_wait(&leave)) {}
    // Not by pthread_exit, which loads a library first: only the end itself is the point here.
    syscall(SYS_exit, 0);
}
