// Makes --requests N (10,000) requests of the real stack, one in flight, and counts the replies.
//
//   --wait          connected, say `ready PID` and begin when a line comes on stdin
//   --forever       say `ready PID` and make requests until a line comes on stdin
//   --pause-at N    after N replies print `paused` and wait for a line
//   --network N     the name of the service's network (trapline)
//   --rate N        requests a second (unlimited)
//   --print         each reply's text on a line
//
// Last line: replies=N hello=N hallo=N other=N lost=N ms=N. Exit status 0 if none is lost.
#include "app.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex mutex;
static std::condition_variable changed;
static bool available;
static unsigned long replies, hello, hallo, other;

template <typename Predicate> static bool wait_until(Predicate predicate) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30), predicate);
}

int main(int argc, char **argv) {
    unsigned long requests = (unsigned long)number(argc, argv, "--requests", 10000);
    const long pause_at = number(argc, argv, "--pause-at", -1);
    const long rate = number(argc, argv, "--rate", 0);
    const bool print = flag(argc, argv, "--print");

    configure(option(argc, argv, "--network", "trapline"));
    auto runtime = vsomeip::runtime::get();
    auto app = runtime->create_application("client");
    if (!app->init()) return 1;
    app->register_availability_handler(service_id, instance_id, [](vsomeip::service_t, vsomeip::instance_t, bool is) {
        std::lock_guard<std::mutex> lock(mutex);
        available = is;
        changed.notify_all();
    });
    app->register_message_handler(service_id, instance_id, method_id, [&](const std::shared_ptr<vsomeip::message> &response) {
        auto payload = response->get_payload();
        std::string text(reinterpret_cast<const char *>(payload->get_data()), payload->get_length());
        if (print) std::puts(text.c_str());
        std::lock_guard<std::mutex> lock(mutex);
        replies++;
        (text == "Hello World!" ? hello : text == "Hallo World!" ? hallo : other)++;
        changed.notify_all();
    });
    app->register_state_handler([&](vsomeip::state_type_e state) {
        if (state == vsomeip::state_type_e::ST_REGISTERED) app->request_service(service_id, instance_id);
    });
    std::thread loop([&] { app->start(); });

    bool connected = wait_until([] { return available; });
    if (connected) say_ready();
    if (connected && flag(argc, argv, "--wait")) wait_for_line();

    std::atomic<bool> stopped{false};
    std::thread reader;
    if (flag(argc, argv, "--forever")) {
        requests = ~0ul;
        reader = std::thread([&] {
            wait_for_line();
            stopped = true;
        });
    }
    std::uint64_t begin = now_ns(), waited = 0;
    unsigned long made = 0;
    for (unsigned long i = 0; connected && i < requests && !stopped; i++) {
        if (long(i) == pause_at) {
            std::uint64_t paused = now_ns();
            std::puts("paused");
            wait_for_line();
            waited += now_ns() - paused;
        }
        auto request = runtime->create_request();
        request->set_service(service_id);
        request->set_instance(instance_id);
        request->set_method(method_id);
        auto payload = runtime->create_payload();
        const char text[] = "World";
        payload->set_data(reinterpret_cast<const vsomeip::byte_t *>(text), sizeof text - 1);
        request->set_payload(payload);
        app->send(request);
        made++;
        connected = wait_until([&] { return replies > i; });
        if (rate > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(1000000000 / rate));
    }
    std::uint64_t ns = now_ns() - begin - waited;
    if (reader.joinable()) {
        if (stopped) requests = made;
        reader.join();
    }

    std::printf("replies=%lu hello=%lu hallo=%lu other=%lu lost=%lu ms=%lu\n", replies, hello, hallo, other,
                requests - replies, ns / 1000000);
    std::fflush(stdout);
    app->clear_all_handler();
    app->stop();
    loop.join();
    return replies == requests ? 0 : 1;
}
