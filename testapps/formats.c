// Known bytes under known names, for the comparison of every `x` and `print` form with gdb's.
// Built without debug information and without the address of anything on the stack in sight.
#include <stdint.h>
#include <stdio.h>
#include <uchar.h>
#include <wchar.h>

unsigned char bytes[256];
const char text[] = "Hello World!";
const char escapes[] = "tab\t nl\n quote\" back\\ bell\a esc\033 high\377 nul-less";
const char empty[] = "";
const char repeats[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabcccccccccccccccccccccccccccccccccccccc";
const char long_text[] =
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
    "0123456789012345678901234567890123456789";
const char16_t text16[] = u"Gr\u00fc\u00dfe \u20ac";
const char32_t text32[] = U"Gr\u00fc\u00dfe \U0001F600";
const wchar_t wide[] = L"wide \u00e4";
int8_t int8_min = INT8_MIN;
int16_t int16_min = INT16_MIN;
int32_t int32_min = INT32_MIN;
int64_t int64_min = INT64_MIN;
uint64_t uint64_max = UINT64_MAX;
int counter = 42;
double doubles[] = {0.0, -0.0, 1.0, -1.5, 3.141592653589793, 1e100, 1e-100, 1.0 / 3, 5e-324, 0, 0, 0};
float floats[] = {0.0f, 1.0f, -2.5f, 3.4028235e38f, 1e-45f, 0.1f, 0, 0};
const void *pointers[6];
const char *names[3] = {text, escapes, empty};

struct node { int32_t value; struct node *next; } second = {2, 0}, first = {1, &second};

__attribute__((noinline)) long callee(long a, const void *b, long c) {
    return a + (long)(uintptr_t)b + c;
}

__attribute__((noinline)) long stop_here(long a, const void *b, long c, long d, long e, long f, long g, long h) {
    return callee(a + d + e + f + g + h, b, c);
}

int main(void) {
    for (int i = 0; i < 256; i++) bytes[i] = (unsigned char)(i * 7 + 3);
    doubles[9] = 1.0 / doubles[0];
    doubles[10] = -doubles[9];
    doubles[11] = doubles[9] + doubles[10];
    floats[6] = (float)doubles[9];
    floats[7] = (float)doubles[11];
    pointers[0] = bytes;
    pointers[1] = (const void *)(uintptr_t)callee;
    pointers[2] = (const char *)(uintptr_t)callee + 4;
    pointers[3] = (const void *)(uintptr_t)main;
    pointers[4] = &first;
    pointers[5] = 0;
    return stop_here(1, bytes, -3, 4, 5, 6, 7, 0x123456789abcdef0) == 0;
}
