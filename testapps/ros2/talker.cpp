// Publishes --messages N (1,000) strings on the topic --topic NAME (chatter) when a listener is there.
//
//   --wait    matched, say `ready PID` and begin when a line comes on stdin
//
// Last line: published=N. It ends when stdin does, so that the last message is not lost with it.
#include "node.hpp"

class Talker : Node {
  public:
    explicit Talker(const char *topic) : Node("talker") {
        rcl_publisher_options_t options = rcl_publisher_get_default_options();
        options.qos = qos();
        check(rcl_publisher_init(&publisher, &node, type(), topic, &options), "rcl_publisher_init");
    }
    ~Talker() {
        if (rcl_publisher_fini(&publisher, &node)) rcl_reset_error();
    }

    size_t listeners() {
        size_t count = 0;
        check(rcl_publisher_get_subscription_count(&publisher, &count), "rcl_publisher_get_subscription_count");
        return count;
    }

    // What a timer of rclcpp would call.
    void callback();

    unsigned long published = 0;

  private:
    rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
};

__attribute__((noinline)) void Talker::callback() {
    std_msgs::msg::String message;
    message.data = "Hello World: " + std::to_string(published + 1);
    check(rcl_publish(&publisher, &message, nullptr), "rcl_publish");
    published++;
}

int main(int argc, char **argv) try {
    const unsigned long messages = (unsigned long)number(argc, argv, "--messages", 1000);
    Talker talker(option(argc, argv, "--topic", "chatter"));
    while (talker.listeners() == 0) usleep(1000);
    say_ready();
    if (flag(argc, argv, "--wait")) wait_for_line();
    while (talker.published < messages) talker.callback();
    printf("published=%lu\n", talker.published);
    char line[64];
    while (next_line(line, sizeof line)) {}
    return 0;
} catch (const std::exception &error) {
    fprintf(stderr, "talker: %s\n", error.what());
    return 1;
}
