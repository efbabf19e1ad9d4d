// Joins points to their nearest neighbours, with a memory of the links that it gave before.
//
// Rule. Pairs are compared by dx·dx + dy·dy in single precision, each product rounded by itself. For a pair that was
// linked, this is multiplied by 1/(1 + hysteresis)². Ties go to the lower place in the list. So the links are a
// function of the points and of the links before, on every machine.
#pragma once

#include <millrace/payload/marks.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace millrace::handlers {

struct LinkRule {
  uint32_t k = 1;
  float radius = 0;         // pixels; 0: no limit
  float delta_y_max = 0;    // pixels; 0: no limit
  bool delta_after = false; // the limit drops links, else it drops candidates
  uint32_t degree_max = 0;  // links of a point; 0: no limit
  double hysteresis = 0;
  float gain = 1, fade = 0;
};

// Life at which a link is not given any more.
inline constexpr float kLifeMin = 0.02f;

// step() gives the links of the next list of points: first those that are linked, by their owner and the owner's rank,
// then those that only fade, by their ids. The owner is the point that has the other among its nearest, or the one
// before if both have. Points that are not finite join nobody. Of several points with one id the first has it.
class [[gnu::visibility("hidden")]] LinkGraph { // hidden like its members
 public:
  explicit LinkGraph(const LinkRule& rule) : rule_(rule) {}

  // The most links of so many points.
  static uint64_t most(uint64_t points, uint32_t k) { return 2 * points * k; }

  // Valid until the next step. `most` links are given; `left_out` is how many more there were.
  std::span<const Link> step(std::span<const Point> points, uint64_t most, uint64_t & left_out);
  void forget() {
    links_.clear();
    linked_count_ = 0;
  }

 private:
  struct Near {
    float score;
    uint32_t other;
    friend bool operator<(const Near& a, const Near& b) {
      return a.score < b.score || (a.score == b.score && a.other < b.other);
    }
  };
  // A pair of this list that was linked or faded before.
  struct Past {
    uint32_t other;
    float life;
    bool linked;
  };

  void recall(std::span<const Point> points);
  void find_nearest(std::span<const Point> points);
  bool is_near(uint32_t point, uint32_t other) const;
  void join(std::span<const Point> points);
  void cap_degrees();
  void live(std::span<const Point> points);
  void fade(std::span<const Point> points);
  const Past* past_of(uint32_t a, uint32_t b) const;

  LinkRule rule_;
  std::vector<Link> links_; // the last list that was given
  size_t linked_count_ = 0; // the first ones of links_, which are linked; the rest only fades
  std::vector<Link> next_;
  std::vector<float> scores_;                      // those of next_
  std::unordered_map<int64_t, uint32_t> place_of_; // by id
  std::vector<std::vector<Past>> past_;            // by place in the list
  std::vector<Near> nearest_;                      // k for each point, as many as near_count_ says
  std::vector<uint32_t> near_count_;
};

} // namespace millrace::handlers
