// The yardstick: the least that an int3-and-slot tracer can do, in C.
//
//   slotloop [--work REGISTER OFFSET] [--follow] LOCATION -p PID
//   slotloop [--work REGISTER OFFSET] [--follow] LOCATION -- PROGRAM ARGS…
//
// LOCATION is a symbol of any mapped file, or 0xADDRESS. Each hit is one stop: waitpid, GETREGS,
// GETSIGINFO, SETREGS (rip into the slot: the relocated first instruction and a jump back), CONT.
//   --work         also reads 47 bytes at REGISTER (rsi or rsp) and writes 'a' at REGISTER+OFFSET, as
//                  `x/47xb $rsi` and `set {char}($rsi+OFFSET)=0x61` ask, but prints nothing; by rsi,
//                  only where the first byte is a message command (0x17 or 0x18) is anything written
//   --follow       moves the tracer to the CPU of a hot thread
//   --together     keeps the tracer and the first thread that hits on one CPU
// Ends with the target; prints `hits=N`. No care is taken of signals, fork or a clean detach.
#define _GNU_SOURCE
#include "common.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <dirent.h>

static pid_t target;
static int memory = -1;
static uint64_t site, slot;
static uint8_t original[32];

static void die(const char *what) {
    fprintf(stderr, "slotloop: %s: %s\n", what, strerror(errno));
    if (target) kill(target, SIGKILL);
    exit(1);
}

static void peek(uint64_t address, void *bytes, size_t size) {
    if (pread(memory, bytes, size, (off_t)address) != (ssize_t)size) die("read memory");
}

static void poke(uint64_t address, const void *bytes, size_t size) {
    if (pwrite(memory, bytes, size, (off_t)address) != (ssize_t)size) die("write memory");
}

// The value of `name` in the file's symbol tables, 0 without it; bit 63 marks an absolute one.
static uint64_t symbol_in(const char *path, const char *name) {
    int fd = open(path, O_RDONLY);
    struct stat st;
    uint64_t value = 0;
    if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)sizeof(Elf64_Ehdr)) return 0;
    const uint8_t *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (file == MAP_FAILED) return 0;
    const Elf64_Ehdr *header = (const void *)file;
    const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
    for (int i = 0; !memcmp(file, ELFMAG, SELFMAG) && i < header->e_shnum && !value; i++) {
        if (sections[i].sh_type != SHT_SYMTAB && sections[i].sh_type != SHT_DYNSYM) continue;
        const Elf64_Sym *symbols = (const void *)(file + sections[i].sh_offset);
        const char *strings = (const char *)file + sections[sections[i].sh_link].sh_offset;
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++)
            if (symbols[k].st_shndx && !strcmp(strings + symbols[k].st_name, name))
                value = symbols[k].st_value;
    }
    // As the first segment starts at file address 0 in everything but a non-PIE program, the
    // mapping of offset 0 is the bias; a non-PIE program's symbols are absolute.
    if (value && header->e_type == ET_EXEC) value |= 1ull << 63;
    munmap((void *)file, (size_t)st.st_size);
    return value;
}

// Where LOCATION is in the target, or (with `instruction`) some `syscall` instruction of it.
static uint64_t find(const char *location, int instruction) {
    char path[64], line[4096], file[4096], perms[8];
    uint64_t begin, end, offset, found = 0;
    if (!instruction && !strncmp(location, "0x", 2)) return strtoull(location, NULL, 16);
    snprintf(path, sizeof path, "/proc/%d/maps", target);
    FILE *maps = fopen(path, "r");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        *file = 0;
        sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &begin, &end, perms, &offset, file);
        if (instruction) {
            if (perms[2] != 'x' || !strcmp(file, "[vsyscall]")) continue;
            uint8_t *code = malloc(end - begin);
            peek(begin, code, end - begin);
            for (uint64_t i = 0; i + 1 < end - begin && !found; i++)
                if (code[i] == 0x0f && code[i + 1] == 0x05) found = begin + i;
            free(code);
        } else if (*file == '/' && offset == 0) {
            uint64_t value = symbol_in(file, location);
            if (value) found = value >> 63 ? value & ~(1ull << 63) : begin + value;
        }
    }
    if (maps) fclose(maps);
    return found;
}

// Length of the first instruction, if it is one of the few that move anywhere as they are.
static size_t movable(const uint8_t *code) {
    if (code[0] >= 0x50 && code[0] <= 0x57) return 1;                        // push %reg
    if (code[0] == 0x41 && code[1] >= 0x50 && code[1] <= 0x57) return 2;     // push %r8…%r15
    if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4)) return 4;                      // endbr64
    if ((code[0] & 0xf8) == 0x48 && code[1] == 0x83 && code[2] >= 0xc0) return 4; // op $imm8,%reg
    if ((code[0] & 0xf8) == 0x48 && code[1] == 0x81 && code[2] >= 0xc0) return 7; // op $imm32,%reg
    if ((code[0] & 0xf8) == 0x48 && (code[1] == 0x89 || code[1] == 0x8b) && code[2] >= 0xc0) return 3;
    errno = ENOTSUP;
    die("the first instruction is none that this loop can move");
    return 0;
}

// Maps the slot's page with a system call that the thread, which just hit, makes for us.
static void make_slot(pid_t tid, struct user_regs_struct regs) {
    uint64_t call = find(NULL, 1);
    int status;
    if (!call) die("no syscall instruction");
    regs.rip = call;
    regs.rax = SYS_mmap;
    regs.rdi = 0;
    regs.rsi = 4096;
    regs.rdx = PROT_READ | PROT_EXEC;
    regs.r10 = MAP_PRIVATE | MAP_ANONYMOUS;
    regs.r8 = (uint64_t)-1;
    regs.r9 = 0;
    regs.orig_rax = (uint64_t)-1;
    if (ptrace(PTRACE_SETREGS, tid, 0, &regs) || ptrace(PTRACE_SINGLESTEP, tid, 0, 0)) die("inject mmap");
    if (waitpid(tid, &status, __WALL) < 0 || ptrace(PTRACE_GETREGS, tid, 0, &regs)) die("inject mmap");
    if ((int64_t)regs.rax < 0) die("mmap in the target");
    slot = regs.rax;

    size_t length = movable(original);
    uint8_t code[64];
    uint64_t back = site + length;
    memcpy(code, original, length);
    memcpy(code + length, "\xff\x25\0\0\0\0", 6); // jmp *0(%rip)
    memcpy(code + length + 6, &back, 8);
    poke(slot, code, length + 14);
}

static void arm(const char *location) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", target);
    if ((memory = open(path, O_RDWR | O_CLOEXEC)) < 0) die("open memory");
    if (!(site = find(location, 0))) {
        errno = ENOENT;
        die(location);
    }
    peek(site, original, sizeof original);
    movable(original);
    poke(site, "\xcc", 1);
}

static void seize_all(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", target);
    DIR *tasks = opendir(path);
    if (!tasks) die("no such process");
    for (struct dirent *entry; (entry = readdir(tasks));)
        if (*entry->d_name != '.' &&
            ptrace(PTRACE_SEIZE, atoi(entry->d_name), 0, PTRACE_O_TRACECLONE))
            die("seize");
    closedir(tasks);
}

// The program waits on a pipe until it is seized, and stops again at its exec.
static void launch(char **argv) {
    int gate[2], status;
    if (pipe2(gate, O_CLOEXEC) || (target = fork()) < 0) die("fork");
    if (!target) {
        char byte;
        if (read(gate[0], &byte, 1) == 1) execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    if (ptrace(PTRACE_SEIZE, target, 0, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL))
        die("seize");
    if (write(gate[1], "", 1) != 1) die("pipe");
    do {
        if (waitpid(target, &status, __WALL) < 0 || WIFEXITED(status)) exit(1);
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) return;
    } while (!ptrace(PTRACE_CONT, target, 0, 0));
    die("exec");
}

// The `cpu_id` of the thread's rseq area: free to read along, where the kernel tells where it is.
static uint64_t rseq_cpu(pid_t tid) {
    static struct { pid_t tid; uint64_t address; } known[1024];
    unsigned at = (unsigned)tid % 1024;
    if (known[at].tid != tid) {
        struct __ptrace_rseq_configuration rseq = {0};
        long size = ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof rseq, &rseq);
        known[at].tid = tid;
        known[at].address = size > 0 && rseq.rseq_abi_pointer ? rseq.rseq_abi_pointer + 4 : 0;
    }
    return known[at].address;
}

static void pin(pid_t tid, uint32_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (uint32_t one = 0; one < CPU_SETSIZE; one++)
        if (cpu == UINT32_MAX || cpu == one) CPU_SET(one, &set);
    sched_setaffinity(tid, sizeof set, &set);
}

// Only after a run of hits from one CPU, and away from it with the first hit from another: where the
// target runs is left to the scheduler.
static void follow(uint32_t cpu) {
    static uint32_t last = UINT32_MAX, run, pinned = UINT32_MAX;
    run = cpu == last ? run + 1 : 0;
    last = cpu;
    if (pinned != UINT32_MAX && pinned != cpu) pin(0, pinned = UINT32_MAX);
    else if (pinned == UINT32_MAX && run >= 8) pin(0, pinned = cpu);
}

// Tracer and thread stay on one CPU: the best case for one hot thread, which a tracer that leaves its
// target's scheduling alone reaches only where the other CPUs are busy.
static void together(pid_t tid, uint32_t cpu) {
    static int done;
    if (done++) return;
    pin(0, cpu);
    pin(tid, cpu);
}

int main(int argc, char **argv) {
    long offset = 0;
    const char *work = NULL;
    int following = 0, at = 1;
    for (; at < argc && argv[at][0] == '-' && argv[at][1] == '-'; at++) {
        if (!strcmp(argv[at], "--work") && at + 2 < argc) {
            work = argv[++at];
            offset = atol(argv[++at]);
        }
        else if (!strcmp(argv[at], "--follow")) following = 1;
        else if (!strcmp(argv[at], "--together")) following = 2;
        else break;
    }
    if (argc < at + 3) {
        fputs("usage: slotloop [--work REGISTER OFFSET] [--follow] LOCATION -p PID | -- PROGRAM ARGS…\n", stderr);
        return 2;
    }
    const char *location = argv[at];
    int launched = !strcmp(argv[at + 1], "--");
    if (launched) {
        launch(argv + at + 2);
    } else {
        target = atoi(argv[at + 2]);
        seize_all();
    }
    arm(location);
    if (launched) ptrace(PTRACE_CONT, target, 0, 0);
    fprintf(stderr, "slotloop: armed\n");

    const int by_stack = work && !strcmp(work, "rsp");
    uint64_t hits = 0;
    int status, code = 0;
    pid_t tid;
    while ((tid = waitpid(-1, &status, __WALL)) > 0) {
        struct user_regs_struct regs;
        siginfo_t info;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (tid == target && WIFSIGNALED(status)) code = 128 + WTERMSIG(status);
            if (tid == target) break;
            continue;
        }
        if (status >> 16) { // an event: a new thread on either side of clone
            ptrace(PTRACE_CONT, tid, 0, 0);
            continue;
        }
        if (WSTOPSIG(status) != SIGTRAP || ptrace(PTRACE_GETREGS, tid, 0, &regs) ||
            regs.rip != site + 1 || ptrace(PTRACE_GETSIGINFO, tid, 0, &info) || info.si_code != SI_KERNEL) {
            ptrace(PTRACE_CONT, tid, 0, WSTOPSIG(status));
            continue;
        }
        hits++;
        if (!slot) make_slot(tid, regs);
        uint8_t message[47];
        uint32_t cpu = UINT32_MAX;
        struct iovec local[2], remote[2];
        unsigned long parts = 0;
        if (following && rseq_cpu(tid)) {
            local[parts] = (struct iovec){&cpu, 4};
            remote[parts++] = (struct iovec){(void *)rseq_cpu(tid), 4};
        }
        uint64_t base = by_stack ? regs.rsp : regs.rsi;
        if (work) {
            local[parts] = (struct iovec){message, sizeof message};
            remote[parts++] = (struct iovec){(void *)base, sizeof message};
        }
        if (parts) process_vm_readv(target, local, parts, remote, parts, 0);
        if (work && (by_stack || message[0] == 0x17 || message[0] == 0x18)) {
            struct iovec byte = {"a", 1}, there = {(void *)(base + (uint64_t)offset), 1};
            process_vm_writev(target, &byte, 1, &there, 1, 0);
        }
        regs.rip = slot;
        if (ptrace(PTRACE_SETREGS, tid, 0, &regs) || ptrace(PTRACE_CONT, tid, 0, 0))
            if (errno != ESRCH) die("continue");
        if (cpu != UINT32_MAX && following > 1) together(tid, cpu);
        else if (cpu != UINT32_MAX) follow(cpu);
    }
    fprintf(stderr, "hits=%lu\n", hits);
    return code;
}
