// A uprobe of the kernel's at `FILE OFFSET [PID]` (all processes without PID), by perf_event_open(2).
// Says `armed`, or `refused WHY`; obeys:
//
//   count   prints `count N`, the hits so far
//
// and takes the uprobe out when stdin ends.
#include "common.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

static uint32_t event_type(void) {
    FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
    unsigned type = 0;
    if (!file || fscanf(file, "%u", &type) != 1) type = 0;
    if (file) fclose(file);
    return type;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 3) return 2;
    struct perf_event_attr attributes = {
        .type = event_type(),
        .size = sizeof attributes,
        .config1 = (uintptr_t)argv[1],
        .config2 = strtoull(argv[2], NULL, 0),
    };
    int pid = argc > 3 ? atoi(argv[3]) : -1;
    long event = -1;
    errno = ENODEV;
    if (attributes.type)
        event = syscall(SYS_perf_event_open, &attributes, pid, pid == -1 ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (event < 0) {
        printf("refused %s\n", strerror(errno));
        return 1;
    }
    printf("armed\n");
    char line[64];
    while (next_line(line, sizeof line)) {
        uint64_t count = 0;
        if (!strcmp(line, "count") && read((int)event, &count, sizeof count) == sizeof count)
            printf("count %llu\n", (unsigned long long)count);
    }
    return 0;
}
