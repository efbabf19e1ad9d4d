// Times of MPEG transport streams: they begin again after 26.5 hours, and a stream may be joined at any packet.
//
// A jump ahead is a pause of one recording, or the place where two were joined, whose times have nothing in common. The
// packets tell which: each elementary stream numbers its packets by a counter of 4 bits (ISO/IEC 13818-1, 2.4.3.3), and
// a muxer that joins on purpose sets the discontinuity indicator (2.4.3.4). In one recording all counters go on over
// the pause. In a joined stream those of the tables and of the pictures would all have to meet by chance.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/media/media_times.h"

namespace millrace::media {

// 2^33 ticks of 1/90000 s.
inline constexpr int64_t kTsTurnNs = (int64_t{1} << 33) * 100'000 / 9;

// The sentence for a person if a file has a picture at `before_ns` and the next one at `after_ns` from its beginning,
// and its times begin again between them; else "".
std::string turn_words(const std::string& path, int64_t before_ns, int64_t after_ns);

// Makes the times of one stream go on where they begin again.
class TsTurns {
 public:
  // The time with the turns so far. `ns` may be kNoTime. Pictures that are out of order by less than half a turn stay.
  int64_t continued(int64_t ns);

 private:
  int64_t turns_ns_ = 0, last_ns_ = kNoTime;
};

// True if the stream in this file was joined between two of its packets, given by the positions of their first bytes;
// also if the file cannot be read or has no transport packets there.
bool is_joined(const std::string& path, int64_t before, int64_t after);

} // namespace millrace::media
