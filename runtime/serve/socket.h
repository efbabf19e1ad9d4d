// The control socket of a process: a Unix socket that carries the messages of control.h, a line each.
//
// One thread serves all clients. It sleeps in the kernel while none of them says anything, so it costs a run nothing.
// Only processes of the same user are served. Everything that a client may do is bounded: its messages, the number of
// clients, and the text that waits for it. A client that does not read is not read from either, once kWaitingBytesMax
// wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "serve/control.h"

namespace millrace::serve {

// Programs that watch a run, and the commands of people.
inline constexpr size_t kClientsMax = 16;
// Some hundred answers; events of a later protocol are to fit too.
inline constexpr size_t kWaitingBytesMax = size_t{256} << 10;

class ControlSocket {
 public:
  // Listens from now on. Removes sockets that dead processes left in the folder. Throws Failure: MR0118 if it cannot
  // listen there, MR0612 if there is no thread. `control` outlives it.
  ControlSocket(Control& control, const std::filesystem::path& folder);
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
