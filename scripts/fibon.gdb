# What scripts/bench runs on testapps/build/fibon: look at memory, change memory, go on. What is changed
# lies below the stack pointer, where nothing is alive at the entry of a function.
#
#   trapline --batch -nx -p PID -x scripts/fibon.gdb -ex continue

set confirm off
set pagination off

break *Fibon
commands
silent
x/47xb $rsp
set {char}($rsp-128) = 0x61
cont
end
