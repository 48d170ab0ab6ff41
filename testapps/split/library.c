/* A library that is split into the file that is shipped and its debug file. */

static volatile int hidden_calls;

__attribute__((noinline)) static int hidden_function(int value)
{
    hidden_calls++;
    return value + 1;
}

int shown_function(int value)
{
    return hidden_function(value) * 2;
}
