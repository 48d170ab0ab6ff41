/* Calls into the split library; with an argument it waits for a line first. */

#include <stdio.h>

int shown_function(int value);

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        puts("ready");
        fflush(stdout);
        getchar();
    }
    printf("%d\n", shown_function(20));
    return 0;
}
