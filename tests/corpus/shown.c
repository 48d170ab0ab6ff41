#include <stdio.h>
#include <unistd.h>
char greeting[64] = "Hello World!\n\t\"quoted\" \\ \001\002\377\376 end";
unsigned char bytes[256];
short wides[24] = {1, -1, 0x7fff, -32768, 'a', 'b', 0};
const char *names[4] = {"alpha", "beta", greeting, 0};
double reals[8] = {1.5, -2.25, 0.0, 1e300, 3.14159265358979, -0.0, 1.0/3, 1e-5};
float singles[8] = {1.5f, -2.25f, 0, 1e30f, 3.14159274f};
unsigned short wide16[] = {'w','i','d','e',0x20ac,0,'x',0};
unsigned int wide32[] = {'w','i','d','e',0x1f600,0x110000,0,'y',0};
char longtext[600];
char spread[400];
int stop_here(const char *a, long b);
int (*table[2])(const char *, long) = {stop_here, 0};
int counter = 42;
__attribute__((noinline)) int stop_here(const char *a, long b) { return a[0] + (int)b; }
int main(int argc, char **argv) {
  for (int i = 0; i < 256; i++) bytes[i] = i;
  for (int i = 0; i < 599; i++) longtext[i] = 'a' + i % 26;
  for (int i = 0; i < 399; i++) spread[i] = i < 100 ? 'x' : i < 130 ? 'y' : i < 150 ? "ab"[i & 1] : 'z';
  reals[7] = reals[2] / reals[2];
  counter += stop_here(greeting + 3, argc);
  return 0;
}
