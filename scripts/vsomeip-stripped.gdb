# The same where local symbols are stripped, as a vendor ships it: deserializer::set_data is exported.
# $rsi is a std::vector of bytes {begin, end, capacity}: one SOME/IP message, header at 0, payload at 16.
#
#   trapline --batch -nx -p PID -x scripts/vsomeip-stripped.gdb -ex continue

set confirm off
set pagination off

break _ZN10vsomeip_v312deserializer8set_dataERKSt6vectorIhSaIhEE
commands
silent
set $begin = *(unsigned char**)$rsi
set $length = *(unsigned long*)($rsi+8) - (unsigned long)$begin
printf "SOME/IP message of %lu bytes\n", $length
output/x *$begin@$length
echo \n
if $begin[14] == 0x80
  set {char}($begin+17) = 'a'
end
cont
end
