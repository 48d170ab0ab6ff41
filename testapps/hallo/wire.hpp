// What client and service send each other, over one SOCK_SEQPACKET connection per client.
//
// A message is framed as vsomeip 2.x framed it between local processes:
//   0   command 0x17, 1 client u16, 3 size of the SOME/IP message u32 (little-endian)
//   7   SOME/IP header, 16 bytes, big-endian
//   23  payload: a string as CommonAPI lays it out: u32 length, UTF-8 byte order mark, text, NUL
//   30  … so this is where the text of a reply begins
//   43  instance u16, flush u8, reliable u8
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>

namespace wire {

constexpr std::size_t header_at = 7, payload_at = 23, text_at = 30, tail = 4;
constexpr std::uint8_t send_command = 0x17, request = 0x00, response = 0x80;
constexpr std::uint16_t service = 0x1234, method = 0x0421, instance = 0x5678;

inline std::uint8_t *put_be(std::uint8_t *to, std::uint64_t value, int bytes) {
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) *to++ = std::uint8_t(value >> shift);
    return to;
}

inline std::uint8_t *put_le(std::uint8_t *to, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) *to++ = std::uint8_t(value >> (8 * i));
    return to;
}

// Writes a whole framed message to `to` (which has room for it) and returns its size.
inline std::uint32_t build(std::uint8_t *to, std::uint8_t type, std::uint16_t client,
                           std::uint16_t session, const char *text) {
    const std::uint32_t string = std::uint32_t(3 + std::strlen(text) + 1), payload = 4 + string;
    std::uint8_t *at = put_le(to, send_command, 1);
    at = put_le(at, client, 2);
    at = put_le(at, 16 + payload, 4);
    at = put_be(at, service, 2);
    at = put_be(at, method, 2);
    at = put_be(at, 8 + payload, 4);
    at = put_be(at, client, 2);
    at = put_be(at, session, 2);
    at = put_be(at, 1, 1); // protocol version
    at = put_be(at, 1, 1); // interface version
    at = put_be(at, type, 1);
    at = put_be(at, 0, 1); // return code
    at = put_be(at, string, 4);
    at = put_be(at, 0xefbbbf, 3);
    std::memcpy(at, text, std::strlen(text) + 1);
    at += std::strlen(text) + 1;
    at = put_le(at, instance, 2);
    at = put_le(at, 1, 1);
    at = put_le(at, 0, 1);
    return std::uint32_t(at - to);
}

inline std::uint16_t session_of(const std::uint8_t *message) {
    return std::uint16_t(message[header_at + 10] << 8 | message[header_at + 11]);
}

// An address in the abstract namespace: gone with its owner, and no file to clean up.
inline socklen_t address(const std::string &name, sockaddr_un &to) {
    to = {};
    to.sun_family = AF_UNIX;
    std::strncpy(to.sun_path + 1, name.c_str(), sizeof to.sun_path - 2);
    return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(to.sun_path + 1));
}

} // namespace wire
