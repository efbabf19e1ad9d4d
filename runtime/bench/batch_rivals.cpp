// Implements the rules that others use for batches; see batch_rivals.h.
#include "bench/batch_rivals.h"

#include <algorithm>

namespace millrace::bench {

using batch::Choice;
using batch::Waiting;

Choice GreedyThatDrops::choose(const Waiting& waiting) const {
  const batch::ServiceCurve& curve = waiting.forecast.curve();
  size_t bucket = 0;
  while (bucket + 1 < curve.count() && curve.items(bucket + 1) <= waiting.rows) ++bucket;
  Choice choice;
  choice.fire = curve.items(bucket);
  choice.drop_due_before_ns =
      waiting.forecast.ends_with(waiting.now_ns, bucket).added_ns + waiting.forecast.margin_ns();
  return choice;
}

Choice Aimd::choose(const Waiting& waiting) const {
  Choice choice;
  choice.fire = std::min(waiting.rows, static_cast<uint32_t>(size_));
  return choice;
}

void Aimd::ended(const batch::FiringEnd& end, const batch::Forecast& forecast) {
  if (end.now_ns > end.due_ns)
    size_ = std::max(1.0, size_ * 0.9);
  else if (end.rows >= static_cast<uint32_t>(size_))
    size_ = std::min<double>(size_ + 1, forecast.curve().items_max());
}

} // namespace millrace::bench
