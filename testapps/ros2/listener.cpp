// Takes --messages N (1,000) strings of the topic --topic NAME (chatter), each with a callback.
//
//   --wait    matched, say `ready PID` and begin when a line comes on stdin
//
// Last line: taken=N.
#include "node.hpp"

#include <tracetools/tracetools.h>

class Listener : Node {
  public:
    explicit Listener(const char *topic) : Node("listener") {
        rcl_subscription_options_t options = rcl_subscription_get_default_options();
        options.qos = qos();
        check(rcl_subscription_init(&subscription, &node, type(), topic, &options), "rcl_subscription_init");
        check(rcl_wait_set_init(&set, 1, 0, 0, 0, 0, 0, &context, rcl_get_default_allocator()), "rcl_wait_set_init");
    }
    ~Listener() {
        if (rcl_wait_set_fini(&set) + rcl_subscription_fini(&subscription, &node)) rcl_reset_error();
    }

    size_t talkers() {
        size_t count = 0;
        check(rcl_subscription_get_publisher_count(&subscription, &count), "rcl_subscription_get_publisher_count");
        return count;
    }

    void spin_some();
    void callback(std::shared_ptr<std_msgs::msg::String> message);

    unsigned long taken = 0;

  private:
    rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
    rcl_wait_set_t set = rcl_get_zero_initialized_wait_set();
};

__attribute__((noinline)) void Listener::callback(std::shared_ptr<std_msgs::msg::String> message) {
    if (message->data != "Hello World: " + std::to_string(taken + 1)) fprintf(stderr, "unexpected: %s\n", message->data.c_str());
    taken++;
}

// One round of an executor: waits, takes all there is, calls back as rclcpp does.
void Listener::spin_some() {
    check(rcl_wait_set_clear(&set), "rcl_wait_set_clear");
    check(rcl_wait_set_add_subscription(&set, &subscription, nullptr), "rcl_wait_set_add_subscription");
    rcl_ret_t result = rcl_wait(&set, RCL_MS_TO_NS(100));
    if (result == RCL_RET_TIMEOUT) return;
    check(result, "rcl_wait");
    for (;;) {
        auto message = std::make_shared<std_msgs::msg::String>();
        result = rcl_take(&subscription, message.get(), nullptr, nullptr);
        if (result == RCL_RET_SUBSCRIPTION_TAKE_FAILED) return;
        check(result, "rcl_take");
        TRACETOOLS_TRACEPOINT(callback_start, static_cast<const void *>(this), false);
        callback(message);
        TRACETOOLS_TRACEPOINT(callback_end, static_cast<const void *>(this));
    }
}

int main(int argc, char **argv) try {
    const unsigned long messages = (unsigned long)number(argc, argv, "--messages", 1000);
    Listener listener(option(argc, argv, "--topic", "chatter"));
    while (listener.talkers() == 0) usleep(1000);
    say_ready();
    if (flag(argc, argv, "--wait")) wait_for_line();
    while (listener.taken < messages) listener.spin_some();
    printf("taken=%lu\n", listener.taken);
    return 0;
} catch (const std::exception &error) {
    fprintf(stderr, "listener: %s\n", error.what());
    return 1;
}
