// A program for scripts: a few calls with arguments of every kind, and an exit status of its own.

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noipa))

int total = 0;
short small = -7;
unsigned char flags[4] = {1, 2, 4, 8};
long table[6] = {10, 20, 30, 40, 50, 60};
char scratch[32] = "start";
const char *words[] = {"red", "green", "blue", "amber", "white"};
double ratio = 1.5;
float third = 0.25f;
int wide[] = {'w', 'i', 'd', 'e', 0};

KEPT int visit(int n, const char *word)
{
    strcpy(scratch, word);
    total += n;
    return total;
}

KEPT long add(long a, long b, long c)
{
    return a + b + c;
}

KEPT double scale(double x, double y)
{
    return x * y + ratio;
}

KEPT int last(const char *why)
{
    return (int)strlen(why);
}

static void say(const char *text)
{
    ssize_t written = write(STDOUT_FILENO, text, strlen(text));
    (void)written;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 5; i++) {
        visit(i + 1, words[i]);
    }
    table[0] = add(table[1], table[2], argc);
    ratio = scale(2.0, third);
    // What a program prints and what a tracer prints of it come by different ways: a program that
    // is looked at prints nothing of its own.
    if (argc > 1) {
        say(argv[1]);
        say("\n");
    }
    last("finished");
    return total == 15 ? 3 : 4;
}
