#include <cstdio>
#include <string>
namespace ns { int func(int a){ asm volatile(""); return a+1; } int func(std::string const&s){ return s.size(); } 
 namespace inner { int method(int x){ asm volatile(""); return x;} }
 struct A { virtual int m(int); virtual ~A(){} int pad; A(); };
 struct B { virtual int n(int); virtual ~B(){}  int pad2;};
 struct C : A, B { int n(int) override; C(); int operator()(int); bool operator==(const C&) const; operator bool() const; template<class T> T tm(T t); };
 A::A():pad(3){} C::C(){ }
 int A::m(int x){ return x+pad; }
 int B::n(int x){ return x-1; }
 int C::n(int x){ printf("n\n"); return x-2; }
 int C::operator()(int x){return x;}
 bool C::operator==(const C&o) const {return pad==o.pad;}
 C::operator bool() const {return pad;}
 template<class T> T C::tm(T t){ return t; }
 template int C::tm<int>(int);
 template<class T> T tf(T t){ asm volatile(""); return t; }
 template int tf<int>(int); template double tf<double>(double);
 template std::string tf<std::string>(std::string);
}
namespace { int anon(int x){ asm volatile(""); return x;} }
int func2(int);
extern "C" int method(int);
int gl=4; static int sl=3; thread_local int tl=1;
extern "C" { int plainc(int x){ return x+gl+sl+tl; } }
int main(){ ns::C c; auto l=[](int x){ asm volatile(""); return x*2; }; printf("%d\n", ns::func(1)+ns::func(std::string("x"))+anon(2)+ns::inner::method(1)+c(2)+ns::tf(1)+l(gl)+(int)ns::tf(2.0)+plainc(2)+c.tm(1)+(c==c)+(bool)c); ns::B*b=&c; return b->n(1); }
