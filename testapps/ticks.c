// Calls tick() every 2 ms for two minutes; reads nothing and prints nothing.
#include <time.h>

volatile unsigned long ticks;

__attribute__((noinline)) void tick(void) { ticks++; }

int main(void) {
    const struct timespec pause = {0, 2000000};
    for (int i = 0; i < 60000; i++) {
        tick();
        nanosleep(&pause, 0);
    }
}
