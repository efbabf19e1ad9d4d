// Decides where a segment may end, so that the time up to the next segment is in one of the two.
//
// A reader puts the next segment at the end of the one before. It knows that end from the container (Matroska, MP4),
// or takes the last picture for as long as the nominal rate says (all others). So a pause at a border would be in
// neither segment. The picture after such a pause goes into the old segment, which then holds the pause between two
// pictures, and the next picture that comes on time begins the new one.
#pragma once

#include <cstdint>

#include "plugins/media/av.h"
#include "plugins/media/containers.h"

namespace millrace::media {

class SegmentEnds {
 public:
  // `can_pause_long`: MP4 and MOV hold pauses of any length between two pictures (fragments, no VP9).
  SegmentEnds(const Container& container, AVRational time_base, AVRational rate, bool can_pause_long);

  // A segment that ends before a picture, so many units after the picture before it.
  enum class End {
    told, // the reader knows when it ends
    late, // it does not, and the segment can hold the picture
    lost  // it does not, and the segment cannot hold the pause either
  };
  End before_gap(int64_t units) const;

  // The end of a segment from `begin` to `end`, in nanoseconds from its beginning: in whole units of its container, so
  // that the segments together are as long as the recording to one such unit.
  int64_t end_ns(int64_t begin, int64_t end) const;

 private:
  AVRational time_base_, tick_;
  int64_t told_max_ = 0, held_max_ = 0; // in units
};

// The most pictures in a row that come late and are put into the old segment: with each picture late, as of a camera
// that is slower than its word, there is no better place.
inline constexpr int kLateMax = 25;

} // namespace millrace::media
