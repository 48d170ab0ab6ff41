// Sends itself signals, and says by its exit status which of them came to its handlers. It sends them by
// itself, without the C library, so that a tracer shows its own function where it stops.

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noipa))

volatile int seen = 0;
static int myself = 0;

KEPT void note(int number)
{
    seen |= number == SIGUSR1 ? 1 : number == SIGUSR2 ? 2 : number == SIGALRM ? 4 : 8;
}

KEPT int step(int n)
{
    return n + 1;
}

KEPT long send(int number)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long)SYS_kill), "D"((long)myself), "S"((long)number)
                     : "rcx", "r11", "memory");
    return result;
}

int main(void)
{
    const int signals[] = {SIGUSR1, SIGUSR2, SIGALRM, 36};
    myself = getpid();
    for (int i = 0; i < 4; i++) {
        signal(signals[i], note);
    }
    for (int i = 0; i < 4; i++) {
        step(i);
        send(signals[i]);
    }
    step(4);
    return seen;
}
