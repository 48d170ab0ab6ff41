// A library that comes and goes: `plugin_pass` for the program that loads it, `plugin_begin` for its
// own constructor, which runs before the program's `dlopen` returns.
long plugin_passes;

__attribute__((noinline, used)) void plugin_begin(void) { __asm__ volatile("" : : : "memory"); }

__attribute__((constructor)) static void begin(void) { plugin_begin(); }

__attribute__((noinline)) void plugin_pass(void) {
    __asm__ volatile("" : : : "memory");
    plugin_passes++;
}
