// Assigns labels; see labels.h.
#include "plugins/codebook/labels.h"

#include <atomic>

namespace millrace::codebook {

namespace {

constexpr size_t kVectorsAPart = 256;

} // namespace

Labels::Labels(const Rows& rows)
    : rows_(rows),
      bounds_(rows.stride()),
      labels_(rows.count()),
      assigned_(rows.count()),
      distances_(rows.count()),
      others_at_(rows.count()) {}

void Labels::assign(const Rows& anchors, Crew& crew) {
  const bool is_anew = anchors_.count() != anchors.count(); // bounds say nothing of anchors that were not there
  const Ways ways = is_anew ? Ways{} : ways_to(anchors);
  const AnchorPairs pairs(anchors);
  std::atomic<uint64_t> searched{0};
  crew.each(rows_.count(), kVectorsAPart, [&](size_t begin, size_t end) {
    uint32_t vectors[kVectorsAPart];
    Nearest found[kVectorsAPart];
    size_t count = 0; // vectors that are compared with all anchors
    for (size_t i = begin; i < end; ++i) {
      if (is_anew || !keeps_label(i, anchors, ways)) vectors[count++] = static_cast<uint32_t>(i);
    }
    find_nearest(rows_, {vectors, count}, pairs, {found, count});
    for (size_t n = 0; n < count; ++n) {
      const uint32_t i = vectors[n];
      labels_[i] = assigned_[i] = found[n].label;
      distances_[i] = found[n].distance;
      others_at_[i] = bounds_.at_least(found[n].next);
    }
    searched += count;
  });
  anchors_ = anchors;
  searched_ += searched;
}

bool Labels::keeps_label(size_t vector, const Rows& anchors, const Ways& ways) {
  const uint32_t label = assigned_[vector];
  others_at_[vector] -= label == ways.whose ? ways.next : ways.longest;
  const float own = distance(rows_.row(vector), anchors.row(label), rows_.stride());
  if (!bounds_.is_below(own, others_at_[vector])) return false;
  distances_[vector] = own;
  labels_[vector] = label;
  return true;
}

Labels::Ways Labels::ways_to(const Rows& anchors) const {
  Ways ways;
  for (uint32_t label = 0; label < anchors.count(); ++label) {
    const double way = bounds_.reach(distance(anchors.row(label), anchors_.row(label), anchors.stride()));
    if (way > ways.longest) {
      ways.next = ways.longest;
      ways.longest = way;
      ways.whose = label;
    } else if (way > ways.next) {
      ways.next = way;
    }
  }
  return ways;
}

} // namespace millrace::codebook
