// What loader.c loads and unloads.

#define KEPT __attribute__((noinline, noipa))

int plugin_state = 5;

KEPT int plugin_work(int n, const char *what)
{
    plugin_state += n;
    return what[0] + plugin_state;
}

KEPT int plugin_end(int n)
{
    return n - 1;
}
