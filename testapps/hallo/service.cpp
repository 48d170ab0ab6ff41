// Answers every request with `Hello World!`, one thread per client, until it is killed or its
// stdin ends (--until-eof).   --socket NAME  the abstract socket to listen at
#include "../common.h"
#include "wire.hpp"

#include <thread>

static void serve(int client) {
    std::uint8_t in[256], out[256];
    ssize_t size;
    while ((size = recv(client, in, sizeof in, 0)) >= ssize_t(wire::payload_at)) {
        std::uint16_t id;
        std::memcpy(&id, in + 1, 2);
        auto length = wire::build(out, wire::response, id, wire::session_of(in), "Hello World!");
        if (send(client, out, length, MSG_NOSIGNAL) != ssize_t(length)) break;
    }
    close(client);
}

int main(int argc, char **argv) {
    sockaddr_un address;
    auto length = wire::address(option(argc, argv, "--socket", "hallo"), address);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(listener, reinterpret_cast<sockaddr *>(&address), length) || listen(listener, 16)) {
        perror("hallo-service");
        return 1;
    }
    say_ready();
    if (flag(argc, argv, "--until-eof"))
        std::thread([] {
            char line[64];
            while (next_line(line, sizeof line)) {}
            std::_Exit(0);
        }).detach();
    for (;;) {
        int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (client >= 0) std::thread(serve, client).detach();
    }
}
