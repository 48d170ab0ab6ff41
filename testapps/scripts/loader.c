// Loads plugin.c's library, calls it, unloads it and does so again.

#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noipa))

KEPT int before_load(int round)
{
    return round + 1;
}

KEPT int after_load(int round)
{
    return round + 2;
}

KEPT int after_unload(int round)
{
    return round + 3;
}

int main(int argc, char **argv)
{
    (void)argc;
    char path[4096];
    char copy[4096];
    strncpy(copy, argv[0], sizeof copy - 1);
    copy[sizeof copy - 1] = 0;
    snprintf(path, sizeof path, "%s/liboptional.so", dirname(copy));
    int sum = 0;
    for (int round = 1; round <= 2; round++) {
        sum += before_load(round);
        void *library = dlopen(path, RTLD_NOW);
        if (library == NULL) {
            return 2;
        }
        int (*work)(int, const char *) = (int (*)(int, const char *))dlsym(library, "plugin_work");
        int (*end)(int) = (int (*)(int))dlsym(library, "plugin_end");
        sum += after_load(round);
        for (int i = 0; i < 2; i++) {
            sum += work(i, round == 1 ? "one" : "two");
        }
        sum += end(sum);
        dlclose(library);
        sum += after_unload(round);
    }
    return sum > 0 ? 0 : 1;
}
