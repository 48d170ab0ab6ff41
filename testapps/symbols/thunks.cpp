// A second base class: its table holds thunks. A small body is copied into the thunk, a large one is jumped to.
static volatile int sink;
static void number_sink(int value) { sink = value; }
struct First {
    virtual int one(int);
    int number = 1;
};
struct Second {
    virtual int small(int);
    virtual int large(int);
    int number = 2;
};
struct App : First, Second {
    int small(int) override;
    int large(int) override;
    int own = 3;
};
int First::one(int value) { return value; }
int Second::small(int value) { return value; }
int Second::large(int value) { return value; }
int App::small(int value) { return own + value; }
__attribute__((noinline)) int App::large(int value) {
    for (int i = 0; i < value; i++) {
        own = own * 31 + (own >> 3) + i;
        if (own % 7 == 3) own ^= value;
        number_sink(own);
    }
    return own;
}
int main(int argc, char **) {
    App app;
    Second *second = &app;
    return second->small(argc) + second->large(argc);
}
