// The end of a film as its container states it, which the last picture's own duration may not tell.
#pragma once

#include <cstdint>

#include "plugins/media/av.h"

namespace millrace::media {

// The time at which the stream's last picture ends, in nanoseconds of the stream's own base; INT64_MIN: the container
// does not state it. Matroska keeps the length of each track in the tag DURATION, and MP4 the durations of all
// pictures. The length of other containers is an estimate of libavformat's, or counts other streams.
int64_t stated_end_ns(const AVFormatContext& format, const AVStream& stream);

} // namespace millrace::media
