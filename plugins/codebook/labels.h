// The label of each vector: the lowest index of the least distance. Vectors whose nearest anchor cannot have changed
// are not compared with all anchors.
//
// Each vector has a lower bound on its distance to all anchors but its own (Hamerly, "Making k-means even faster",
// 2010). When anchors move, the bound falls by the longest way that one of the others went. The label stays while the
// distance to the own anchor is below the bound. Bounds are in double precision and leave room for the rounding of
// distances, so labels are those of comparing everything.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/codebook/distance.h"
#include "plugins/codebook/lanes.h"
#include "plugins/crew/crew.h"

namespace millrace::codebook {

class Labels {
 public:
  // `rows` outlives this. All labels are 0 at first.
  explicit Labels(const Rows& rows);

  // Labels all vectors with these anchors, which may have moved since the last call and may be more.
  void assign(const Rows& anchors, Crew& crew);

  const std::vector<uint32_t>& all() const { return labels_; }
  // Distance to the own anchor, as it was in the last call of assign().
  const std::vector<float>& distances() const { return distances_; }
  // Vectors that were compared with all anchors so far.
  uint64_t searched() const { return searched_; }

  // Gives a vector another label, until the next call of assign().
  void move(uint32_t vector, uint32_t label) { labels_[vector] = label; }

 private:
  // How far the anchors went since the last call: the longest way, whose it was, and the longest of the others.
  struct Ways {
    double longest = 0, next = 0;
    uint32_t whose = 0;
  };
  Ways ways_to(const Rows& anchors) const;
  // Looks at the own anchor alone. True if no other can be nearer.
  bool keeps_label(size_t vector, const Rows& anchors, const Ways& ways);

  const Rows& rows_;
  DistanceBounds bounds_;
  std::vector<uint32_t> labels_;
  std::vector<uint32_t> assigned_; // labels of the last call, which the bounds hold for
  std::vector<float> distances_;
  std::vector<double> others_at_; // all anchors but that of `assigned_` are at least so far away
  Rows anchors_;                  // those of the last call
  uint64_t searched_ = 0;
};

} // namespace millrace::codebook
