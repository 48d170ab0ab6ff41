// Data that is written and read in every width, by functions that do nothing else; with an argument,
// by threads one after the other.

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define KEPT __attribute__((noinline, noipa))

volatile int total = 0;
volatile unsigned char small = 1;
volatile long wide = 7;
volatile double ratio = 0.5;
volatile int table[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
volatile int *volatile place = &table[2];
volatile long others[4];
char text[16] = "abcdefgh";

KEPT void add(int n)
{
    total += n;
}

KEPT int look(void)
{
    return total;
}

KEPT void same(void)
{
    total = total;
}

KEPT void fill(int n)
{
    table[n] = n * 100;
}

KEPT void move(int n)
{
    place = &table[n];
}

KEPT void through(int n)
{
    *place = n;
}

KEPT void mixed(int n)
{
    small += n;
    wide -= n;
    ratio *= 2;
    others[n & 3] = n;
}

// One instruction that writes many times.
KEPT void copy(char *to, const char *from, long length)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
}

KEPT void done(void)
{
}

static void *other(void *argument)
{
    add((int)(intptr_t)argument);
    return argument;
}

int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 1; i <= 3; i++) {
        pthread_t thread;
        if (argc > 1) {
            pthread_create(&thread, NULL, other, (void *)(intptr_t)i);
            pthread_join(thread, NULL);
        } else {
            add(i);
        }
        same();
        look();
    }
    through(50);
    move(3);
    through(60);
    for (int i = 0; i < 4; i++) {
        mixed(i);
    }
    fill(2);
    fill(3);
    fill(7);
    copy(text, "xyxyxyxy", 8);
    done();
    return total == 6 ? 5 : 1;
}
