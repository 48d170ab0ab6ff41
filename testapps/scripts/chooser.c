// A function that is chosen when it is bound (STT_GNU_IFUNC), one with a gnu_indirect name of its own, and
// a plain one.

#include <unistd.h>

#define KEPT __attribute__((noinline, noipa))

static KEPT int small_area(int a, int b)
{
    return a * b;
}

static KEPT int large_area(int a, int b)
{
    return a * b + 1;
}

typedef int area_function(int, int);

int limit = 100;

static area_function *choose_area(void)
{
    return limit > 50 ? small_area : large_area;
}

int area(int a, int b) __attribute__((ifunc("choose_area")));

KEPT int plain(int a)
{
    return a + 1;
}

int main(void)
{
    int sum = 0;
    for (int i = 1; i <= 3; i++) {
        sum += area(i, i + 1);
    }
    sum += plain(sum);
    return sum == 41 ? 0 : 1;
}
