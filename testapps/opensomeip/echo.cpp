// A client of opensomeip makes --requests N (10,000) requests over UDP loopback, one in flight; its
// service is a child process of it.
//
//   --wait    connected, say `ready PID` and begin when a line comes on stdin
//
// Last line: sent=N received=N lost=N. Exit status 0 if none is lost.
#include "../common.h"

#include <condition_variable>
#include <mutex>
#include <signal.h>
#include <sys/wait.h>

#include "someip/message.h"
#include "transport/udp_transport.h"

using namespace someip;
using namespace someip::transport;

static const uint16_t service_id = 0x1234, method_id = 0x0421;

static Message message(uint16_t session, MessageType type, const std::string &text) {
    Message made(MessageId(service_id, method_id), RequestId(0x0001, session), type);
    made.set_payload(reinterpret_cast<const uint8_t *>(text.data()), text.size());
    return made;
}

struct Quiet : ITransportListener {
    void on_connection_lost(const Endpoint &) override {}
    void on_connection_established(const Endpoint &) override {}
    void on_error(Result) override {}
};

struct Service : Quiet {
    UdpTransport *transport = nullptr;
    void on_message_received(MessagePtr request, const Endpoint &sender) override {
        Message reply = message(request->get_session_id(), MessageType::RESPONSE, "Hello World!");
        (void)transport->send_message(reply, sender);
    }
};

// Tells its port through `fd` and serves until it is killed.
static int serve(int fd) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    UdpTransport transport(Endpoint("127.0.0.1", 0));
    Service service;
    service.transport = &transport;
    transport.set_listener(&service);
    if (transport.start() != Result::SUCCESS) return 1;
    uint16_t port = transport.get_local_endpoint().get_port();
    if (write(fd, &port, sizeof port) != sizeof port) return 1;
    for (;;) pause();
}

struct Client : Quiet {
    std::mutex mutex;
    std::condition_variable changed;
    unsigned long received = 0;
    void on_message_received(MessagePtr, const Endpoint &) override {
        std::lock_guard<std::mutex> lock(mutex);
        received++;
        changed.notify_all();
    }
};

int main(int argc, char **argv) {
    const unsigned long requests = (unsigned long)number(argc, argv, "--requests", 10000);
    int pipe_ends[2];
    if (pipe(pipe_ends)) return 1;
    pid_t child = fork();
    if (child == 0) return serve(pipe_ends[1]);
    uint16_t port = 0;
    if (child < 0 || read(pipe_ends[0], &port, sizeof port) != sizeof port) return 1;

    unsigned long sent = 0;
    Client client;
    {
        UdpTransport transport(Endpoint("127.0.0.1", 0));
        transport.set_listener(&client);
        if (transport.start() != Result::SUCCESS) return 1;
        say_ready();
        if (flag(argc, argv, "--wait")) wait_for_line();
        const Endpoint to("127.0.0.1", port);
        bool answered = true;
        while (answered && sent < requests) {
            if (transport.send_message(message(uint16_t(sent % 0xffff + 1), MessageType::REQUEST, "World"), to) != Result::SUCCESS) break;
            sent++;
            std::unique_lock<std::mutex> lock(client.mutex);
            answered = client.changed.wait_for(lock, std::chrono::seconds(30), [&] { return client.received >= sent; });
        }
        transport.stop();
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("sent=%lu received=%lu lost=%lu\n", sent, client.received, requests - client.received);
    return client.received == requests ? 0 : 1;
}
