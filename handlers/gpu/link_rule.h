// The rule by which points.links joins points, and what it keeps from tick to tick, on CPU and GPU.
//
// Rule. Pairs are compared by dx·dx + dy·dy in single precision, each product rounded by itself. For a pair that was
// linked, this is multiplied by 1/(1 + hysteresis)². Ties go to the lower place in the list. So the links are a
// function of the points and of the links before, on every machine.
#pragma once

#include <millrace/payload/marks.h>

#include <cmath>
#include <cstdint>

#include "handlers/gpu/both.h"
#include "handlers/gpu/rounded_product.h"

namespace millrace::handlers {

struct LinkRule {
  uint32_t k = 1;           // 1…32
  float radius = 0;         // pixels; 0: no limit
  float delta_y_max = 0;    // pixels; 0: no limit
  bool delta_after = false; // the limit drops links, else it drops candidates
  uint32_t degree_max = 0;  // links of a point; 0: no limit
  double hysteresis = 0;
  float gain = 1, fade = 0;

  // True if the links of a tick depend on those of the tick before.
  MR_BOTH bool remembers() const { return hysteresis > 0 || gain < 1 || fade > 0; }
  // True if the limit of the height parts these points.
  MR_BOTH bool parts(float y_a, float y_b) const { return delta_y_max > 0 && !(fabsf(y_a - y_b) <= delta_y_max); }
  MR_BOTH bool parts(const Point& a, const Point& b) const { return parts(a.y, b.y); }
  // The factor by which a pair that was linked counts as nearer, rounded once.
  float linked_ratio() const { return static_cast<float>(1 / ((1 + hysteresis) * (1 + hysteresis))); }
};

// Points of a list that can be joined, and near points of each.
inline constexpr uint64_t kLinkedPointsMax = 16'384;
inline constexpr uint32_t kNearMax = 32;
// Life at which a link is not given any more.
inline constexpr float kLifeMin = 0.02f;

// The most links of so many points.
inline uint64_t most_links(uint64_t points, uint32_t k) { return 2 * points * k; }

// A link of the list that was given last. One without an id at each end has no future.
struct PastLink {
  int64_t id_a, id_b;
  float life;
  uint32_t is_linked; // 0: it only fades
};

// How many links there are in each of two lists of PastLink, the list that was written last, and how many lists of
// points there were: the turn of the PlaceTable.
struct LinkTurn {
  uint32_t counts[2];
  uint32_t last;
  uint32_t turn;
};

// The turn after another one. Turn 0 is that of slots that were never used.
MR_BOTH inline uint32_t next_turn(uint32_t turn) { return turn == UINT32_MAX ? 1 : turn + 1; }

// True if the point can be joined.
MR_BOTH inline bool is_joinable(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

MR_BOTH inline float squared_distance(float dx, float dy) {
  return gpu::rounded_product(dx, dx) + gpu::rounded_product(dy, dy);
}
MR_BOTH inline float squared_distance(const Point& a, const Point& b) { return squared_distance(a.x - b.x, a.y - b.y); }

// The first place of each id in a list of points: a hash table of (turn, place). Entries of other turns are free, so
// that nobody has to clear it. Points without an id, and those that cannot be joined, are not in it.
struct PlaceTable {
  static constexpr uint32_t kNowhere = UINT32_MAX;

  uint64_t* slots;
  uint32_t mask;
  uint32_t turn; // not 0

  // Slots for so many points: one is always free. A power of two.
  static uint64_t slots_for(uint64_t points) {
    uint64_t slots = 2;
    while (slots < 2 * points) slots *= 2;
    return slots;
  }
  MR_BOTH static uint32_t first_slot(int64_t id, uint32_t mask) {
    return static_cast<uint32_t>(static_cast<uint64_t>(id) * 0x9E3779B97F4A7C15u >> 32) & mask;
  }
  MR_BOTH bool holds(uint64_t slot) const { return slot >> 32 == turn; }
  MR_BOTH uint64_t entry(uint32_t place) const { return uint64_t{turn} << 32 | place; }

  // The place of an id; kNowhere if no point has it.
  MR_BOTH uint32_t find(const Point* points, int64_t id) const {
    if (id < 0) return kNowhere;
    for (uint32_t at = first_slot(id, mask);; at = (at + 1) & mask) {
      const uint64_t slot = slots[at];
      if (!holds(slot)) return kNowhere;
      const auto place = static_cast<uint32_t>(slot);
      if (points[place].id == id) return place;
    }
  }
  // `id`, that of the point at this place, or -1 if another point with that id comes before it.
  MR_BOTH int64_t id_at(const Point* points, uint32_t place, int64_t id) const {
    if (id < 0) return -1;
    for (uint32_t at = first_slot(id, mask);; at = (at + 1) & mask) {
      const uint64_t slot = slots[at];
      if (slot == entry(place)) return id;
      if (!holds(slot) || points[static_cast<uint32_t>(slot)].id == id) return -1;
    }
  }
  // Called for all points of a list in their order, by one thread. (A kernel fills the table in its own way.)
  void insert(const Point* points, uint32_t place) {
    if (points[place].id < 0 || !is_joinable(points[place])) return;
    uint32_t at = first_slot(points[place].id, mask);
    while (holds(slots[at])) {
      if (points[static_cast<uint32_t>(slots[at])].id == points[place].id) return;
      at = (at + 1) & mask;
    }
    slots[at] = entry(place);
  }
};

// The life of a link that is linked on this tick, and had this life before.
MR_BOTH inline float risen_life(float before, float gain) {
  const float life = before + gain;
  return life < 1 ? life : 1.0f;
}

} // namespace millrace::handlers
