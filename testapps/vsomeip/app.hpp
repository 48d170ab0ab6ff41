// What service and client of the real stack share.
#pragma once

#include "../common.h"

#include <string>
#include <sys/mman.h>
#include <vsomeip/vsomeip.hpp>

constexpr vsomeip::service_t service_id = 0x1234;
constexpr vsomeip::instance_t instance_id = 0x5678;
constexpr vsomeip::method_t method_id = 0x0421;

// Loopback only, no service discovery, the service's process routes. The network's name is part
// of the sockets' paths, so a name of its own (--network) lets a pair run beside others.
// The file lives in memory: nothing is left behind.
inline void configure(const std::string &network) {
    const std::string text = R"({
        "unicast": "127.0.0.1",
        "network": ")" + network + R"(",
        "logging": { "level": "error", "console": "true", "file": { "enable": "false" }, "dlt": "false" },
        "applications": [ { "name": "service", "id": "0x1277" }, { "name": "client", "id": "0x1343" } ],
        "services": [ { "service": "0x1234", "instance": "0x5678" } ],
        "routing": "service",
        "service-discovery": { "enable": "false" }
    })";
    const int fd = memfd_create("vsomeip.json", 0);
    if (fd < 0 || write(fd, text.data(), text.size()) != ssize_t(text.size())) std::abort();
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    setenv("VSOMEIP_CONFIGURATION", path.c_str(), 1);
}
