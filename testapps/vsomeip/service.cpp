// The routing manager and the service of the real stack: answers every request with the payload
// `Hello World!`, until its stdin ends. --network NAME as the client's.
#include "app.hpp"

#include <thread>

int main(int argc, char **argv) {
    configure(option(argc, argv, "--network", "trapline"));
    auto app = vsomeip::runtime::get()->create_application("service");
    if (!app->init()) return 1;
    app->register_message_handler(service_id, instance_id, method_id, [&](const std::shared_ptr<vsomeip::message> &request) {
        auto response = vsomeip::runtime::get()->create_response(request);
        auto payload = vsomeip::runtime::get()->create_payload();
        const char text[] = "Hello World!";
        payload->set_data(reinterpret_cast<const vsomeip::byte_t *>(text), sizeof text - 1);
        response->set_payload(payload);
        app->send(response);
    });
    app->register_state_handler([&](vsomeip::state_type_e state) {
        if (state != vsomeip::state_type_e::ST_REGISTERED) return;
        app->offer_service(service_id, instance_id);
        say_ready();
    });
    std::thread watch([&] {
        char line[64];
        while (next_line(line, sizeof line)) {}
        app->clear_all_handler();
        app->stop();
    });
    app->start();
    watch.join();
}
