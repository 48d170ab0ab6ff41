// Hands --messages N (10) messages to the vendor's library, every other one short.
//
//   --wait    say `ready PID` and begin when a line comes on stdin
//
// Last line: messages=N long=N.
#include "../common.h"

extern uint32_t vendor_receive(const unsigned char *data, uint32_t size);

int main(int argc, char **argv) {
    const long messages = number(argc, argv, "--messages", 10);
    say_ready();
    if (flag(argc, argv, "--wait")) wait_for_line();
    long longer = 0;
    for (long i = 1; i <= messages; i++) {
        char text[64];
        int size = snprintf(text, sizeof text, i % 2 ? "message %ld of a vendor's stack" : "tick %ld", i);
        vendor_receive((const unsigned char *)text, (uint32_t)size);
        longer += size > 16;
    }
    printf("messages=%ld long=%ld\n", messages, longer);
    return 0;
}
