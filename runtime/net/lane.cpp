// Chooses the crossing that writes next on a connection, in turns.
#include "net/lane.h"

#include <algorithm>

namespace millrace::net {

void Lane::write_crossings(bool takes_new, size_t chunk_bytes_most) {
  for (; opens_written < incoming.size() && outbox.has_room(kOpenBytesMax); ++opens_written) {
    Incoming& crossing = *incoming[opens_written];
    ByteWriter body = outbox.body(kOpenBytesMax);
    write_open(crossing.open(), body);
    outbox.add({RecordType::open, 0, crossing.plan().number, 0, 0, 0}, body);
  }
  // A crossing that had nothing is not asked again until the others were.
  for (size_t idle = 0; idle < outgoing.size() && outbox.waiting_bytes() < kWaitingBytesMax;) {
    switch (outgoing[turn]->write_next(outbox, takes_new, chunk_bytes_most)) {
      case Outgoing::Wrote::no_room: return;
      case Outgoing::Wrote::nothing: ++idle; break;
      case Outgoing::Wrote::record: idle = 0; break;
    }
    turn = (turn + 1) % outgoing.size();
  }
}

bool Lane::is_in_the_middle() const {
  return !outbox.empty() || std::any_of(outgoing.begin(), outgoing.end(),
                                        [](const Outgoing* crossing) { return crossing->is_in_parcel(); });
}

} // namespace millrace::net
