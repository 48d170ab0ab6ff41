# The session of the article, on testapps/build/hallo-client; gdb and trapline both run it:
#
#   gdb      --batch -nx -x scripts/hallo.gdb -ex run --args testapps/build/hallo-client
#   trapline --batch -nx -x scripts/hallo.gdb -ex run --args testapps/build/hallo-client
#
# and, attached, with `-p PID` in front and `-ex continue` in place of `-ex run`. The function takes
# (data, size, receiver): $rsi is the message, 2.x framing, the SOME/IP header at 7, the text at 30.

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
