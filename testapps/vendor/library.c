// A vendor's library as it is delivered: without names. What looks at a message is no exported function;
// the section that it stands in alone is put at a fixed address of the file (see the Makefile).
#include <stdint.h>
#include <stddef.h>

static volatile uint32_t sum;

__attribute__((noinline, section(".vendor"))) static void look(const unsigned char *data, uint32_t size) {
    for (uint32_t i = 0; i < size; i++) sum += data[i];
}

__attribute__((visibility("default"))) uint32_t vendor_receive(const unsigned char *data, uint32_t size) {
    sum = 0;
    look(data, size);
    return sum;
}
