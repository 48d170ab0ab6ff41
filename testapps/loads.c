// Loads and unloads `libplugin.so`, which lies beside it, as stdin says.
//
//   open          loads it; answers `open BASE`
//   elsewhere     the same, at another address than the last time
//   again         loads a second copy in a namespace of its own (dlmopen); answers `again BASE`
//   pass N        passes `plugin_pass` N times in each copy that is loaded; answers `pass N`
//   close         unloads the last one; answers `close`
//   reuse         the same, and fills its place with bytes of 0xCC; answers `reuse`
//   check         answers `check 0xCC` as long as none of those bytes has changed, else `check changed`
//   end           the leader ends by pthread_exit, which loads a library; answers `ended`
//   storm N T     N times in each of T threads: load, pass once, unload; answers `storm PASSES`
//   forever T     storms in T threads until the next line; answers `forever PASSES`
//   quit
#define _GNU_SOURCE
#include "common.h"

#include <dlfcn.h>
#include <libgen.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { COPIES = 8, THREADS = 16 };

static char library[4096];
static void *copies[COPIES];
static int count;
static sem_t leave;

static struct link_map *map_of(void *handle) {
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map)) exit(3);
    return map;
}

static void *load(int own) {
    void *handle = own ? dlmopen(LM_ID_NEWLM, library, RTLD_NOW) : dlopen(library, RTLD_NOW);
    if (!handle) {
        puts(dlerror());
        exit(2);
    }
    return handle;
}

static void call(void *handle) {
    void (*pass)(void) = (void (*)(void))dlsym(handle, "plugin_pass");
    if (!pass) exit(4);
    pass();
}

static void add(int own, const char *word) {
    if (count == COPIES) exit(5);
    copies[count] = load(own);
    printf("%s %#lx\n", word, (unsigned long)map_of(copies[count])->l_addr);
    count++;
}

static unsigned long last_base;
static size_t last_size;

static int extent(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (info->dlpi_addr != last_base) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_vaddr + part->p_memsz > last_size)
            last_size = part->p_vaddr + part->p_memsz;
    }
    last_size = (last_size + 4095) & ~4095ul;
    return 1;
}

static void unload(void) {
    if (!count) exit(6);
    void *handle = copies[--count];
    last_base = map_of(handle)->l_addr;
    last_size = 0;
    dl_iterate_phdr(extent, NULL);
    dlclose(handle);
}

static unsigned char *reused;

static void reuse(void) {
    unload();
    reused = mmap((void *)last_base, last_size, PROT_READ | PROT_WRITE | PROT_EXEC,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (reused == MAP_FAILED) exit(7);
    memset(reused, 0xCC, last_size);
}

static int unchanged(void) {
    for (size_t i = 0; i < last_size; i++)
        if (reused[i] != 0xCC) return 0;
    return 1;
}

static atomic_long passes;
static atomic_int stop;

static void *storm(void *times) {
    for (long i = 0; i < (long)times && !stop; i++) {
        void *handle = load(0);
        call(handle);
        passes++;
        dlclose(handle);
    }
    return NULL;
}

static void storms(long times, int threads, int until_line) {
    pthread_t others[THREADS];
    char line[64];
    if (threads > THREADS) exit(8);
    passes = stop = 0;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&others[i], NULL, storm, (void *)times)) exit(9);
    if (until_line) {
        (void)next_line(line, sizeof line);
        stop = 1;
    }
    for (int i = 0; i < threads; i++) pthread_join(others[i], NULL);
}

static void end_leader(void) {
    char path[64], text[256];
    sem_post(&leave);
    do {
        usleep(100);
        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", getpid(), getpid());
        FILE *file = fopen(path, "r");
        size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
        if (file) fclose(file);
        text[size] = 0;
    } while (!strstr(text, ") Z "));
}

static void *obey(void *unused) {
    char line[64];
    long times;
    int threads;
    (void)unused;
    while (next_line(line, sizeof line) && strcmp(line, "quit")) {
        if (!strcmp(line, "open")) {
            add(0, "open");
        } else if (!strcmp(line, "elsewhere")) {
            // What was there last is taken by something else.
            mmap((void *)last_base, last_size, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            add(0, "elsewhere");
        } else if (!strcmp(line, "again")) {
            add(1, "again");
        } else if (sscanf(line, "pass %ld", &times) == 1) {
            for (int i = 0; i < count; i++)
                for (long n = 0; n < times; n++) call(copies[i]);
            printf("pass %ld\n", times);
        } else if (!strcmp(line, "close")) {
            unload();
            puts("close");
        } else if (!strcmp(line, "reuse")) {
            reuse();
            puts("reuse");
        } else if (!strcmp(line, "check")) {
            puts(unchanged() ? "check 0xCC" : "check changed");
        } else if (!strcmp(line, "end")) {
            end_leader();
            puts("ended");
        } else if (sscanf(line, "storm %ld %d", &times, &threads) == 2) {
            storms(times, threads, 0);
            printf("storm %ld\n", passes);
        } else if (sscanf(line, "forever %d", &threads) == 1) {
            puts("begun");
            storms(0x7fffffffffffffff, threads, 1);
            printf("forever %ld\n", passes);
        }
    }
    exit(0);
}

int main(int argc, char **argv) {
    pthread_t other;
    char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0) return 1;
    own[length] = 0;
    snprintf(library, sizeof library, "%s/%s", dirname(own), "libplugin.so");
    snprintf(library, sizeof library, "%s", option(argc, argv, "--library", strdup(library)));
    sem_init(&leave, 0, 0);
    say_ready();
    if (pthread_create(&other, NULL, obey, NULL)) return 1;
    while (sem_wait(&leave)) {}
    pthread_exit(NULL);
}
