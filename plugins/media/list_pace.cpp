// The arithmetic of due times; see list_pace.h.
#include "plugins/media/list_pace.h"

#include <algorithm>
#include <utility>

namespace millrace::media {

namespace {

constexpr int64_t kWaitMaxNs = 60'000'000'000; // a picture that is due later has a damaged time

} // namespace

ListPace::Choice ListPace::next(int64_t now_ns, int64_t media_ns, int64_t read_ns, bool is_far_ahead) {
  if (!std::exchange(has_begun_, true)) start_ns_ = now_ns - media_ns;
  int64_t late = now_ns - (start_ns_ + media_ns);
  if (late > 0) {
    const int64_t of_list = std::min(late, read_ns);
    start_ns_ += of_list;
    late -= of_list;
    return {0, late, buffer_ns_ > 0 && late > buffer_ns_};
  }
  if (!is_far_ahead && -late <= kWaitMaxNs) return {-late, 0, false};
  start_ns_ = now_ns - media_ns;
  return {};
}

} // namespace millrace::media
