/* A process that waits on its standard input: something to look at while it runs. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int shared_number = 7;

__attribute__((noinline)) int waiting_function(void) {
    char byte;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int)read(0, &byte, 1) + shared_number;
}

int main(void) {
    puts("waiting");
    fflush(stdout);
    return waiting_function() == 0;
}
