// Finds the best formats of a tree, from its leaves to its root; see pixels.h.
#include "plan/pixels.h"

#include <bit>
#include <tuple>

namespace millrace::plan {

namespace {

uint64_t bit(uint32_t format) { return uint64_t{1} << format; }
uint32_t lowest(uint64_t formats) { return static_cast<uint32_t>(std::countr_zero(formats)); }

struct Badness {
  uint32_t impossible = 0;
  uint32_t lost = 0; // readers that would take colours, if a conversion or the root's format makes the picture gray
  uint32_t conversions = 0;
  uint32_t halved = 0; // conversions to a colour for each pixel after one to a colour for 2 × 2
  uint64_t ns = 0;
  uint32_t early = 0; // readers that get a converted picture and would have taken it as it was
  uint32_t rank = 0;  // how far the converted formats are from what their readers name first
  uint64_t bytes = 0; // compared at the root alone: fewer bytes are no reason to convert

  Badness& operator+=(const Badness& other) {
    impossible += other.impossible;
    lost += other.lost;
    halved += other.halved;
    ns += other.ns;
    conversions += other.conversions;
    early += other.early;
    rank += other.rank;
    bytes += other.bytes;
    return *this;
  }
  // Among formats of the root.
  bool is_better(const Badness& other) const {
    return std::tie(impossible, lost, conversions, halved, ns, bytes) <
           std::tie(other.impossible, other.lost, other.conversions, other.halved, other.ns, other.bytes);
  }
  friend bool operator<(const Badness& a, const Badness& b) {
    return std::tie(a.impossible, a.lost, a.conversions, a.halved, a.ns, a.early, a.rank) <
           std::tie(b.impossible, b.lost, b.conversions, b.halved, b.ns, b.early, b.rank);
  }
};

class Chooser {
 public:
  // Chooses among roots that have a colour for each pixel, or among those that have one for 2 × 2.
  Chooser(const PixelTree& tree, uint32_t spared, bool is_whole)
      : tree_(tree), spared_(spared), is_whole_(is_whole), best_(tree.outputs.size()) {
    const uint64_t roots = tree.choices & (is_whole ? ~kYcbcr : kYcbcr);
    if (roots == 0) return;
    for (uint32_t o = static_cast<uint32_t>(tree_.outputs.size()); o-- > 0;)
      for (uint32_t format = 1; format < MR_PIXEL_COUNT; ++format) best_[o][format] = best_of(o, format);
    if (tree.choices & ~bit(MR_PIXEL_GRAY8)) best_[0][MR_PIXEL_GRAY8].cost.lost = tree.colours;
    for (uint64_t left = roots; left != 0; left &= left - 1)
      if (format_ == 0 || best_[0][lowest(left)].cost.is_better(best_[0][format_].cost)) format_ = lowest(left);
  }

  // A choice without a format is the worst.
  bool is_better(const Chooser& other) const {
    if (format_ == 0 || other.format_ == 0) return other.format_ == 0;
    return best_[0][format_].cost.is_better(other.best_[0][other.format_].cost);
  }

  PixelChoice choice() const {
    const Badness& cost = best_[0][format_].cost;
    PixelChoice choice{
        format_, std::vector<uint32_t>(tree_.readers.size()), {}, cost.impossible, cost.lost + cost.halved, cost.ns};
    std::vector<uint32_t> formats(tree_.outputs.size());
    formats[0] = format_;
    for (uint32_t o = 0; o < tree_.outputs.size(); ++o) {
      if (best_[o][formats[o]].made != 0) choice.converted.push_back(o);
      for (const uint32_t r : tree_.outputs[o]) {
        choice.gets[r] = serve(tree_.readers[r], formats[o], best_[o][formats[o]].made).gets;
        for (const uint32_t next : tree_.readers[r].passes_to) formats[next] = choice.gets[r];
      }
    }
    return choice;
  }

 private:
  struct Best {
    Badness cost;
    uint64_t made = 0; // formats that it is converted to
  };
  struct Served {
    Badness cost;
    uint32_t gets = 0;
  };

  // The cost of a reader that gets this format, and of everything downstream of it.
  Badness downstream(const PixelTree::Reader& reader, uint32_t format) const {
    Badness cost;
    cost.ns = reader.own_ns[format];
    for (const uint32_t o : reader.passes_to) cost += best_[o][format].cost;
    return cost;
  }

  // The best for one reader of an output that has this format and is converted to those of `made`.
  Served serve(const PixelTree::Reader& reader, uint32_t format, uint64_t made) const {
    const bool takes_it = reader.takes & bit(format);
    Served served;
    if (takes_it) served = {downstream(reader, format), format};
    bool is_served = takes_it;
    for (uint64_t left = reader.may_convert ? made & reader.takes : 0; left != 0; left &= left - 1) {
      const uint32_t other = lowest(left);
      Served converted{downstream(reader, other), other};
      converted.cost.early += takes_it;
      converted.cost.lost += other == MR_PIXEL_GRAY8 && (reader.takes & ~bit(MR_PIXEL_GRAY8)) != 0;
      converted.cost.rank += static_cast<uint32_t>(std::popcount(reader.takes & (bit(other) - 1)));
      if (is_served && !(converted.cost < served.cost)) continue;
      served = converted;
      is_served = true;
    }
    if (is_served) return served;
    served = {downstream(reader, format), format};
    ++served.cost.impossible;
    return served;
  }

  Best best_of(uint32_t output, uint32_t format) const {
    uint64_t useful = 0; // formats that may serve a reader if the output is converted to them
    for (const uint32_t r : tree_.outputs[output])
      if (tree_.readers[r].may_convert) useful |= tree_.readers[r].takes;
    useful &= tree_.reads & bit(format) ? tree_.makes & ~bit(format) : 0;
    Best best{cost_with(output, format, 0), 0};
    if (output == spared_) return best;
    // Tries all sets of useful formats, each a bit pattern within `useful`.
    for (uint64_t made = useful & (~useful + 1); made != 0; made = (made - useful) & useful) {
      const bool is_served = best.cost.impossible == 0 && best.cost.lost == 0;
      if (is_served && static_cast<uint32_t>(std::popcount(made)) > best.cost.conversions) continue;
      const Badness cost = cost_with(output, format, made);
      if (cost < best.cost) best = {cost, made};
    }
    return best;
  }

  // The cost of an output's picture and of its conversions.
  Badness making(uint32_t output, uint32_t format, uint64_t made) const {
    Badness cost;
    cost.conversions = static_cast<uint32_t>(std::popcount(made));
    cost.bytes = tree_.bytes[output][format];
    for (uint64_t left = made; left != 0; left &= left - 1) {
      cost.bytes += tree_.bytes[output][lowest(left)];
      cost.ns += tree_.conversion_ns[output][format][lowest(left)];
      cost.halved += is_whole_ && (bit(format) & kYcbcr) && !(bit(lowest(left)) & (kYcbcr | bit(MR_PIXEL_GRAY8)));
    }
    return cost;
  }

  Badness cost_with(uint32_t output, uint32_t format, uint64_t made) const {
    Badness cost = making(output, format, made);
    for (const uint32_t r : tree_.outputs[output]) cost += serve(tree_.readers[r], format, made).cost;
    return cost;
  }

  const PixelTree& tree_;
  const uint32_t spared_;
  const bool is_whole_;
  uint32_t format_ = 0;                                // the root's
  std::vector<std::array<Best, MR_PIXEL_COUNT>> best_; // [output][format]
};

} // namespace

PixelChoice choose_pixels(const PixelTree& tree, uint32_t spared) {
  const Chooser whole(tree, spared, true), halved(tree, spared, false);
  return halved.is_better(whole) ? halved.choice() : whole.choice();
}

} // namespace millrace::plan
