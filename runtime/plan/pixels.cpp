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
  uint32_t early = 0; // readers that get a converted picture and would have taken it as it was
  uint32_t rank = 0;  // how far the converted formats are from what their readers name first
  uint64_t bytes = 0; // compared at the root alone: fewer bytes are no reason to convert

  Badness& operator+=(const Badness& other) {
    impossible += other.impossible;
    lost += other.lost;
    conversions += other.conversions;
    early += other.early;
    rank += other.rank;
    bytes += other.bytes;
    return *this;
  }
  friend bool operator<(const Badness& a, const Badness& b) {
    return std::tie(a.impossible, a.lost, a.conversions, a.early, a.rank) <
           std::tie(b.impossible, b.lost, b.conversions, b.early, b.rank);
  }
};

class Chooser {
 public:
  explicit Chooser(const PixelTree& tree) : tree_(tree), best_(tree.outputs.size()) {}

  PixelChoice run() {
    for (uint32_t o = static_cast<uint32_t>(tree_.outputs.size()); o-- > 0;)
      for (uint32_t format = 1; format < MR_PIXEL_COUNT; ++format) best_[o][format] = best_of(o, format);
    PixelChoice choice;
    choice.gets.resize(tree_.readers.size());
    if (tree_.choices & ~bit(MR_PIXEL_GRAY8)) best_[0][MR_PIXEL_GRAY8].cost.lost = tree_.colours;
    choice.format = lowest(tree_.choices);
    for (uint32_t format = choice.format; format < MR_PIXEL_COUNT; ++format)
      if ((tree_.choices & bit(format)) && is_better(best_[0][format].cost, best_[0][choice.format].cost))
        choice.format = format;
    choice.conversions = best_[0][choice.format].cost.conversions;
    choice.impossible = best_[0][choice.format].cost.impossible;
    tell(choice);
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

  static bool is_better(const Badness& a, const Badness& b) {
    return std::tie(a.impossible, a.lost, a.conversions, a.bytes) <
           std::tie(b.impossible, b.lost, b.conversions, b.bytes);
  }

  // The cost of everything downstream of a reader that gets this format.
  Badness downstream(const PixelTree::Reader& reader, uint32_t format) const {
    Badness cost;
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
    // Tries all sets of useful formats, each a bit pattern within `useful`.
    for (uint64_t made = useful & (~useful + 1); made != 0; made = (made - useful) & useful) {
      if (best.cost.impossible == 0 && best.cost.lost == 0 &&
          static_cast<uint32_t>(std::popcount(made)) > best.cost.conversions)
        continue;
      const Badness cost = cost_with(output, format, made);
      if (cost < best.cost) best = {cost, made};
    }
    return best;
  }

  Badness cost_with(uint32_t output, uint32_t format, uint64_t made) const {
    Badness cost;
    cost.conversions = static_cast<uint32_t>(std::popcount(made));
    cost.bytes = tree_.bytes[format];
    for (uint64_t left = made; left != 0; left &= left - 1) cost.bytes += tree_.bytes[lowest(left)];
    for (const uint32_t r : tree_.outputs[output]) cost += serve(tree_.readers[r], format, made).cost;
    return cost;
  }

  // Sets what each reader gets, from the root on.
  void tell(PixelChoice& choice) const {
    std::vector<uint32_t> formats(tree_.outputs.size());
    formats[0] = choice.format;
    for (uint32_t o = 0; o < tree_.outputs.size(); ++o) {
      for (const uint32_t r : tree_.outputs[o]) {
        choice.gets[r] = serve(tree_.readers[r], formats[o], best_[o][formats[o]].made).gets;
        for (const uint32_t next : tree_.readers[r].passes_to) formats[next] = choice.gets[r];
      }
    }
  }

  const PixelTree& tree_;
  std::vector<std::array<Best, MR_PIXEL_COUNT>> best_; // [output][format]
};

} // namespace

PixelChoice choose_pixels(const PixelTree& tree) { return Chooser(tree).run(); }

} // namespace millrace::plan
