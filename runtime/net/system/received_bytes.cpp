// Asks the kernel for a connection's received bytes. The kernel's header of TCP has the field, the C library's has not,
// and the two cannot be included together.
#include "net/system/received_bytes.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace millrace::net {

uint64_t received_bytes(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

} // namespace millrace::net
