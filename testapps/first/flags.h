// What the driver has to know of a function; for C and for the assembler.
#define FAULTS 1        // it raises a signal, whose handler sets rip to a `ret`
#define RACES 2         // registers differ when several threads call it
#define ITERATES 4      // its first instruction runs rcx + 1 times
#define SLOW 8          // it waits: called less often
#define REFUSED 16      // its first instruction cannot be moved
#define NOT_CALLED 32   // this processor or this system has no use for it
#define NEEDS_AVX2 64
#define NEEDS_AVX512 128
#define NEEDS_RTM 256
#define NEEDS_MOVBE 512
