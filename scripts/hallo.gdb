# Changes a byte of every reply: a client that would say `Hello World!' says `Hallo World!'. The same
# file runs in gdb. The function takes (data, size, receiver); $rsi is the message in the framing of
# vsomeip 2.x, with the SOME/IP header at 7 and the text at 30. (testapps/build/hallo-client --wait)
#
#   $ trapline --batch -nx -p PID -x scripts/hallo.gdb -ex continue
#   0x...:	0x17	0x...
#   0x...:	"Hello World!"
#
#   $ gdb --batch -nx -p PID -x scripts/hallo.gdb -ex continue
#   0x...:	0x17	0x...
#   0x...:	"Hello World!"
#
# To launch the client instead: -ex run --args testapps/build/hallo-client

set confirm off
set pagination off

break _ZThn8_N7vsomeip21routing_manager_proxy10on_messageEPKhjPNS_8endpointE
commands
silent
x/47xb $rsi
x/s $rsi+30
set {char}($rsi+31)=0x61
cont
end
