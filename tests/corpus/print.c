/* What tests/corpus/print.txt looks at: data of every basic type, a stop in add(). */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

char text[32] = "Hello World!";
int numbers[8] = {1, 2, 3, -4, 5, 6, 7, 8};
const char *words3[3] = {"one", "two", 0};
double dbl = 3.25;
float flt = -0.1f;
long double ldbl = 0.1L;
unsigned char bytes[300];
char longtext[256];
long bignum = -1234567890123L;
short sh = -7;
unsigned int words[6] = {0x12345678, 0xffffffff, 0, 1, 0x80000000, 42};
static int counter = 42;
uint16_t wire[4] = {0x3412, 0x7856, 0xbc9a, 0xf0de};
const wchar_t *wide = L"wide";
int (*function)(int, int);

int add(int a, int b)
{
    counter++;
    return a + b;
}

int main(void)
{
    for (int i = 0; i < 300; i++)
        bytes[i] = i < 250 ? 'a' : i;
    for (int i = 0; i < 255; i++)
        longtext[i] = 'A' + i % 26;
    function = add;
    printf("%d\n", add(counter, 2));
    return 0;
}
