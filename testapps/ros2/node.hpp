// The part of a ROS 2 node that talker and listener share, on rcl: the same calls that rclcpp makes.
#pragma once
#include "../common.h"

#include <memory>
#include <stdexcept>
#include <string>

#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rosidl_typesupport_cpp/message_type_support.hpp>
#include <std_msgs/msg/string.hpp>

inline void check(rcl_ret_t result, const char *what) {
    if (result == RCL_RET_OK) return;
    std::string why = rcl_get_error_string().str;
    rcl_reset_error();
    throw std::runtime_error(std::string(what) + ": " + why);
}

class Node {
  public:
    explicit Node(const char *name) {
        rcl_init_options_t options = rcl_get_zero_initialized_init_options();
        check(rcl_init_options_init(&options, rcl_get_default_allocator()), "rcl_init_options_init");
        check(rcl_init(0, nullptr, &options, &context), "rcl_init");
        check(rcl_init_options_fini(&options), "rcl_init_options_fini");
        rcl_node_options_t node_options = rcl_node_get_default_options();
        node_options.enable_rosout = false;
        check(rcl_node_init(&node, name, "", &context, &node_options), "rcl_node_init");
    }
    ~Node() {
        if (rcl_node_fini(&node) + rcl_shutdown(&context) + rcl_context_fini(&context)) rcl_reset_error();
    }
    Node(const Node &) = delete;
    Node &operator=(const Node &) = delete;

  protected:
    static const rosidl_message_type_support_t *type() {
        return rosidl_typesupport_cpp::get_message_type_support_handle<std_msgs::msg::String>();
    }
    // Nothing is lost and nothing is too late: every message of a run fits into the history.
    static rmw_qos_profile_t qos() {
        rmw_qos_profile_t qos = rmw_qos_profile_default;
        qos.history = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
        return qos;
    }
    rcl_context_t context = rcl_get_zero_initialized_context();
    rcl_node_t node = rcl_get_zero_initialized_node();
};
