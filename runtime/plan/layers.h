// Lays out a graph in layers from left to right: each box lies right of those that feed it. Places are whole pixels and
// depend on nothing but the graph. Private to runtime/plan.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace millrace::plan {

struct LayerBox {
  int width = 0, height = 0;
  uint32_t lane = 0; // boxes of one lane lie in one band; lanes are stacked in their order
};
// An arrow leaves the right side of a box and enters the left side of another one, so far below their tops.
struct LayerArrow {
  uint32_t from = 0, to = 0;
  int from_down = 0, to_down = 0;
  bool is_back = false; // it leads to a later tick, so it is drawn from right to left, below all boxes
};

struct Spot {
  int x = 0, y = 0;
  friend bool operator==(const Spot&, const Spot&) = default;
};
struct LayeredPicture {
  std::vector<Spot> boxes;                // their top left corners
  std::vector<std::vector<Spot>> arrows;  // the corners of each
  std::vector<uint8_t> goes_back;         // by arrow: it is drawn back. One that closes a circle is, too
  std::vector<std::pair<int, int>> lanes; // top and bottom of each band
  int width = 0, height = 0;
};

LayeredPicture lay_out_layers(const std::vector<LayerBox>& boxes, const std::vector<LayerArrow>& arrows,
                              uint32_t lanes);

} // namespace millrace::plan
