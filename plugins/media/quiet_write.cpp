// One write() without its signals; see quiet_write.h.
#include "plugins/media/quiet_write.h"

#include <unistd.h>

#include <cerrno>

#include "millrace/write_signals.h"

namespace millrace::media {

ptrdiff_t write_some(int descriptor, const uint8_t* bytes, size_t count) {
  const HeldWriteSignals held;
  for (;;) {
    const ssize_t written = ::write(descriptor, bytes, count);
    if (written >= 0 || errno != EINTR) return written;
  }
}

} // namespace millrace::media
