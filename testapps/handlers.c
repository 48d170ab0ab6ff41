// Passes `site` again and again while a handler runs upon its first instruction.
//
//   --signal fault|alarm    every second pass faults there, or SIGALRM comes every 300 µs, anywhere
//   --leave return|jump     how the handler leaves: to where it came from, or by siglongjmp
//   --calls N               how many passes are tried (100)
//
// Last line: calls=N passes=N handled=N jumps=N elsewhere=N, where passes are first instructions
// that were executed, and elsewhere are the faults whose address was not that of `site`.
#define _GNU_SOURCE
#include "common.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

// The first instruction is the count, so that a pass is counted if and only if it was executed.
extern void site(long *count);
__asm__(".text\n.globl site\n.type site,@function\nsite: incq (%rdi)\n ret\n.size site,.-site\n");

static volatile long handled, jumps, elsewhere;
static long calls, passes;
static volatile sig_atomic_t may_jump;
static int jump;
static sigjmp_buf back;

static void leave(void) {
    handled++;
    if (!jump || !may_jump) return;
    jumps++;
    may_jump = 0;
    siglongjmp(back, 1);
}

static void on_fault(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number, (void)info;
    if ((uintptr_t)registers[REG_RIP] != (uintptr_t)site) elsewhere++;
    registers[REG_RDI] = (greg_t)(uintptr_t)&passes;
    leave();
}

static void on_alarm(int number) {
    (void)number;
    leave();
}

int main(int argc, char **argv) {
    int fault = !strcmp(option(argc, argv, "--signal", "fault"), "fault");
    calls = number(argc, argv, "--calls", 100);
    struct sigaction action = {0};
    struct itimerval every = {{0, 300}, {0, 300}}, never = {0};
    jump = !strcmp(option(argc, argv, "--leave", "return"), "jump");
    if (fault) {
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO;
    } else {
        action.sa_handler = on_alarm;
        action.sa_flags = SA_RESTART;
    }
    sigaction(fault ? SIGSEGV : SIGALRM, &action, NULL);
    say_ready();
    if (!fault) setitimer(ITIMER_REAL, &every, NULL);
    for (volatile long i = 0; i < calls; i++) {
        if (!sigsetjmp(back, 1)) {
            may_jump = 1;
            site(fault && i % 2 ? (long *)8 : &passes);
        }
        may_jump = 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("calls=%ld passes=%ld handled=%ld jumps=%ld elsewhere=%ld\n", calls, passes, handled, jumps,
           elsewhere);
    return 0;
}
