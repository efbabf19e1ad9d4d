// Waits in slices of poll(2), which works for every kind of descriptor; see pipe_wait.h.
#include "handlers/file/pipe_wait.h"

#include <poll.h>

namespace millrace::handlers {

bool PipeWait::until(int descriptor, short events) {
  pollfd watched{descriptor, events, 0};
  while (poll(&watched, 1, 0) <= 0)
    if (poll(&watched, 1, kSliceMs) <= 0 && interrupted_.exchange(false, std::memory_order_relaxed)) return false;
  return true;
}

bool PipeWait::slice() {
  poll(nullptr, 0, kSliceMs);
  return !interrupted_.exchange(false, std::memory_order_relaxed);
}

} // namespace millrace::handlers
