// Reads the ends that Matroska and MP4 state; see stated_end.h.
#include "plugins/media/stated_end.h"

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/mathematics.h>
#include <libavutil/parseutils.h>
}

#include <cstdlib>
#include <string_view>

namespace millrace::media {

namespace {

constexpr int64_t kBeginSlackNs = 1'000'000; // Matroska's unit

int64_t in_ns(int64_t time, AVRational base) { return av_rescale_q(time, base, kNanoseconds); }

// "00:00:08.040000000", from the beginning of the file.
int64_t tagged_end_ns(const AVStream& stream) {
  const AVDictionaryEntry* tag = av_dict_get(stream.metadata, "DURATION", nullptr, 0);
  int64_t us = 0;
  return tag && av_parse_time(&us, tag->value, 1) >= 0 && us > 0 ? us * 1000 : INT64_MIN;
}

} // namespace

int64_t stated_end_ns(const AVFormatContext& format, const AVStream& stream) {
  const std::string_view demuxer = format.iformat->name;
  const int64_t begin_ns = stream.start_time == AV_NOPTS_VALUE ? 0 : in_ns(stream.start_time, stream.time_base);
  if (demuxer.starts_with("mov,"))
    return stream.duration > 0 ? begin_ns + in_ns(stream.duration, stream.time_base) : INT64_MIN;
  if (!demuxer.starts_with("matroska")) return INT64_MIN;
  if (const int64_t tagged = tagged_end_ns(stream); tagged != INT64_MIN) return tagged;
  // The length of a file that does not begin at 0 may count from either.
  const bool is_stated = format.duration_estimation_method == AVFMT_DURATION_FROM_STREAM && format.duration > 0;
  return is_stated && format.nb_streams == 1 && std::abs(begin_ns) <= kBeginSlackNs ? format.duration * 1000
                                                                                    : INT64_MIN;
}

} // namespace millrace::media
