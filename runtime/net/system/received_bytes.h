// How many bytes have come over a TCP connection, also those that a library has read.
#pragma once

#include <cstdint>

namespace millrace::net {

// 0 for another kind of socket.
uint64_t received_bytes(int socket);

} // namespace millrace::net
