// The C++ program of tests/corpus/print.txt: a stop in ns::Foo::bar.
#include <cstdio>
#include <string>

namespace ns {
struct Foo {
    virtual ~Foo() {}
    virtual int bar(int x) { return x + member; }
    int baz(const std::string &s) { return s.size(); }
    int member = 3;
};
int f(int x) { return x * 2; }
int f(char c) { return c; }
int only(long x) { return x; }
int var = 77;
} // namespace ns

ns::Foo foo;
bool flag = true;
char text[32] = "Hello World!";
int numbers[8] = {1, 2, 3, -4, 5, 6, 7, 8};

extern "C" int add(int a, int b) { return a + b; }

int main()
{
    printf("%d %d %d %d %d\n", foo.bar(3), ns::f(4) + ns::f('a'), foo.baz("hey"), ns::only(1), add(1, 2));
}
