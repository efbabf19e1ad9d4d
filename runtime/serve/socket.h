// The control socket of a process: a Unix socket that carries the messages of control.h, a line each.
//
// One thread serves all clients. It sleeps in the kernel while none of them says anything, so it costs a run nothing.
// Only processes of the same user are served. Everything that a client may do is bounded: its messages, the number of
// clients, the time for which it is silent (client_places.h), and the text that waits for it. A client that does not
// read is not read from either, once kWaitingBytesMax wait for it, or one sample of a tap, which may be longer. Clients
// take turns of kMessagesATurn messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "serve/client_places.h"
#include "serve/control.h"

namespace millrace::serve {

// Some hundred answers, or the counters of some thousand handlers.
inline constexpr size_t kWaitingBytesMax = size_t{256} << 10;
// One read may bring 8,000 messages, which take seconds on a busy machine; so many take a millisecond on an idle one.
inline constexpr size_t kMessagesATurn = 64;

struct SocketOptions {
  ClientLimits limits;
  std::function<int64_t()> now_ms; // null: the system's steady clock. Any thread
};

class ControlSocket {
 public:
  // Listens from now on. Removes sockets that dead processes left in the folder. Throws Failure: MR0118 if it cannot
  // listen there, MR0612 if there is no thread. `control` outlives it.
  ControlSocket(Control& control, const std::filesystem::path& folder, SocketOptions options = {});
  // Sends the answers that are there, as far as clients take them at once, and removes the socket.
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  // Removes the socket from the folder, so that nobody finds it any more. Any thread, also if the process ends without
  // the destructor.
  void withdraw() noexcept;

 private:
  class Thread;
  std::filesystem::path path_;
  std::unique_ptr<Thread> thread_;
};

} // namespace millrace::serve
