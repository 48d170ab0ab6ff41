// Sends --requests N (10) requests, prints the text of each reply, and counts at the end.
//
//   --socket NAME   the service's abstract socket        --rate N   requests a second (unlimited)
//   --wait          begin when a line comes on stdin     --quiet    no line per reply
//   --pause-at N    after N replies print `paused` and wait for a line
//
// Last line: replies=N hello=N hallo=N other=N lost=N ms=N. Exit status 0 if none is lost.
//
// Replies arrive through vsomeip::routing_manager_proxy::on_message(data, size, receiver), and
// by way of its second base class, so through the thunk _ZThn…on_message…. Built with
// -DBODY_THUNK the method is small enough for the compiler to copy it into the thunk.
#include "../common.h"
#include "wire.hpp"

#include <thread>

namespace vsomeip {

using byte_t = std::uint8_t;
using length_t = std::uint32_t;

class endpoint;

struct routing_manager {
    virtual ~routing_manager() = default;
    virtual std::uint16_t get_client() const = 0;
};

struct endpoint_host {
    virtual ~endpoint_host() = default;
    virtual void on_message(const byte_t *_data, length_t _size, endpoint *_receiver) = 0;
};

// Copies what it was given before it looks at it, as the original does.
struct replies {
    unsigned long seen = 0, hello = 0, hallo = 0, other = 0;
    bool quiet = false;

    __attribute__((noipa)) void take(const byte_t *data, length_t size) {
        std::string text;
        if (size > wire::text_at + wire::tail)
            text.assign(data + wire::text_at, data + size - wire::tail - 1);
        seen++;
        (text == "Hello World!" ? hello : text == "Hallo World!" ? hallo : other)++;
        if (!quiet) std::puts(text.c_str());
    }
};

class routing_manager_proxy : public routing_manager, public endpoint_host {
public:
    std::uint16_t get_client() const override { return 0x1343; }
#ifdef BODY_THUNK
    void on_message(const byte_t *_data, length_t _size, endpoint *) override {
        replies_.take(_data, _size);
    }
#else
    __attribute__((noinline)) void on_message(const byte_t *_data, length_t _size, endpoint *_receiver) override;
#endif
    replies replies_;
};

#ifndef BODY_THUNK
void routing_manager_proxy::on_message(const byte_t *_data, length_t _size, endpoint *_receiver) {
    if (_size < wire::payload_at + wire::tail || _data[0] != wire::send_command) {
        std::fprintf(stderr, "dropped %u bytes from %p\n", _size, static_cast<void *>(_receiver));
        return;
    }
    std::uint32_t its_size;
    std::memcpy(&its_size, _data + 3, sizeof its_size);
    if (its_size + wire::header_at + wire::tail != _size) return;
    byte_t its_copy[256];
    std::memcpy(its_copy, _data, _size);
    replies_.take(its_copy, _size);
}
#endif

// Knows its host by the second base class only, and is opaque to the optimizer.
class endpoint {
public:
    endpoint(int fd, endpoint_host *host) : fd_(fd), host_(host) {}

    __attribute__((noipa)) bool receive() {
        byte_t buffer[256];
        ssize_t size = recv(fd_, buffer, sizeof buffer, 0);
        if (size <= 0) return false;
        host_->on_message(buffer, length_t(size), this);
        return true;
    }

    bool send(const byte_t *data, length_t size) { return ::send(fd_, data, size, MSG_NOSIGNAL) == ssize_t(size); }

private:
    int fd_;
    endpoint_host *host_;
};

} // namespace vsomeip

int main(int argc, char **argv) {
    unsigned long requests = (unsigned long)number(argc, argv, "--requests", 10);
    long rate = number(argc, argv, "--rate", 0), pause_at = number(argc, argv, "--pause-at", -1);
    sockaddr_un address;
    auto length = wire::address(option(argc, argv, "--socket", "hallo"), address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<sockaddr *>(&address), length)) {
        perror("hallo-client: connect");
        return 1;
    }

    auto *proxy = new vsomeip::routing_manager_proxy;
    proxy->replies_.quiet = flag(argc, argv, "--quiet");
    vsomeip::endpoint peer(fd, proxy);
    say_ready();
    if (flag(argc, argv, "--wait")) wait_for_line();

    std::uint64_t begin = now_ns(), waited = 0;
    std::uint8_t message[256];
    for (unsigned long i = 0; i < requests; i++) {
        if (long(i) == pause_at) {
            std::uint64_t paused = now_ns();
            std::puts("paused");
            wait_for_line();
            waited += now_ns() - paused;
        }
        auto size = wire::build(message, wire::request, proxy->get_client(), std::uint16_t(i % 0xffff + 1), "World");
        if (!peer.send(message, size) || !peer.receive()) break;
        if (rate > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(1000000000 / rate));
    }
    std::uint64_t ns = now_ns() - begin - waited;

    const auto &r = proxy->replies_;
    std::printf("replies=%lu hello=%lu hallo=%lu other=%lu lost=%lu ms=%lu\n", r.seen, r.hello, r.hallo, r.other,
                requests - r.seen, ns / 1000000);
    int status = r.seen == requests ? 0 : 1;
    delete proxy;
    return status;
}
