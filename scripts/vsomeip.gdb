# Says `Hallo` in a live client of vsomeip 3.4.10; gdb and trapline both run it:
#
#   gdb      --batch -nx -p PID -x scripts/vsomeip.gdb -ex continue
#   trapline --batch -nx -p PID -x scripts/vsomeip.gdb -ex continue
#
# routing_manager_client::on_message(data, size, …): $rsi is what arrived from the local socket, $edx its
# size. A message has command 0x18; a header of 15 bytes, little-endian, comes in front of the SOME/IP
# message, whose payload so begins at 31. The end tag of four bytes behind it is not counted in $edx.

set confirm off
set pagination off

break _ZN10vsomeip_v322routing_manager_client10on_messageEPKhjPNS_8endpointEbtPK20vsomeip_sec_client_tRKN5boost4asio2ip7addressEt
commands
silent
if *(unsigned char*)$rsi == 0x18
  set $length = (unsigned int)$edx - 15
  printf "SOME/IP message of %u bytes from client 0x%04x\n", $length, *(unsigned short*)($rsi+3)
  output/x *(unsigned char*)($rsi+15)@$length
  echo \n
  set {char}($rsi+32) = 'a'
end
cont
end
