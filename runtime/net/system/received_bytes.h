// The number of bytes received on a TCP connection, including those that a library has read.
#pragma once

#include <cstdint>

namespace millrace::net {

// 0 for another kind of socket.
uint64_t received_bytes(int socket);

} // namespace millrace::net
