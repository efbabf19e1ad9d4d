// Assigns labels; see labels.h.
#include "plugins/codebook/labels.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "plugins/codebook/distance.h"

namespace millrace::codebook {

namespace {

constexpr size_t kVectorsAPart = 256;

// A distance below this may have lost more to underflow than its relative error says.
constexpr double kSmallest = 1e-30;

// A bound for roundings of the bounds' own arithmetic.
constexpr double kDoubleSlack = 1e-12;

} // namespace

Labels::Labels(const Rows& rows)
    : rows_(rows), labels_(rows.count()), assigned_(rows.count()), distances_(rows.count()), others_at_(rows.count()) {
  const double error = error_of_distance(rows.stride());
  above_ = std::sqrt(1 + error) + kDoubleSlack;
  below_ = std::sqrt(1 - error) - kDoubleSlack;
}

void Labels::assign(const Rows& anchors, Crew& crew) {
  const bool is_anew = anchors_.count() != anchors.count(); // bounds say nothing of anchors that were not there
  const Ways ways = is_anew ? Ways{} : ways_to(anchors);
  std::atomic<uint64_t> searched{0};
  crew.each(rows_.count(), kVectorsAPart, [&](size_t begin, size_t end) {
    uint64_t searched_here = 0;
    for (size_t i = begin; i < end; ++i) {
      const uint32_t label = assigned_[i];
      if (!is_anew) {
        others_at_[i] -= label == ways.whose ? ways.next : ways.longest;
        const float own = distance(rows_.row(i), anchors.row(label), rows_.stride());
        // The true distance to its own anchor is at most the left side, and to any other at least the right one, by
        // more than the rounding of either.
        if (std::sqrt(double{own} + kSmallest) * above_ * above_ < others_at_[i] * below_ * below_) {
          distances_[i] = own;
          labels_[i] = label;
          continue;
        }
      }
      const Nearest found = nearest(rows_.row(i), anchors);
      ++searched_here;
      labels_[i] = assigned_[i] = found.label;
      distances_[i] = found.distance;
      others_at_[i] = std::sqrt(double{found.next}) / above_ - std::sqrt(kSmallest);
    }
    searched += searched_here;
  });
  anchors_ = anchors;
  searched_ += searched;
}

Labels::Ways Labels::ways_to(const Rows& anchors) const {
  Ways ways;
  for (uint32_t label = 0; label < anchors.count(); ++label) {
    double square = 0;
    for (uint32_t j = 0; j < anchors.dimensions(); ++j) {
      const double went = double{anchors.row(label)[j]} - double{anchors_.row(label)[j]};
      square += went * went;
    }
    const double way = std::sqrt(square) * (1 + kDoubleSlack);
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
