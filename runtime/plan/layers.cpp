// The passes of a layered layout: circles, layers, order, places; see layers.h.
//
// An arrow over several layers gets a point in each layer on its way, which takes part in the order like a box. Orders
// are found by sweeps: a layer is sorted by the mean place of each item's neighbours in the layer before (barycentre
// heuristic of Sugiyama, Tagawa and Toda, 1981). The order with the fewest crossings of all sweeps is kept.
#include "plan/layers.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace millrace::plan {

namespace {

constexpr int kMargin = 24, kBetweenLayers = 72, kBetweenBoxes = 18, kBetweenLanes = 28, kBetweenBack = 10;
constexpr int kSweeps = 8, kStraightenings = 6;

// A box, or a point of an arrow in a layer on its way.
struct Item {
  uint32_t lane = 0, layer = 0, place = 0; // place in its layer
  int width = 0, height = 0, y = 0;
};
// A part of an arrow, from one layer to the next.
struct Piece {
  uint32_t from = 0, to = 0;
  int from_down = 0, to_down = 0;
};

class Layering {
 public:
  Layering(const std::vector<LayerBox>& boxes, const std::vector<LayerArrow>& arrows, uint32_t lanes)
      : arrows_(arrows), lanes_(std::max(lanes, 1u)), goes_back_(arrows.size(), 0), points_(arrows.size()) {
    for (const LayerBox& box : boxes) items_.push_back({box.lane, 0, 0, box.width, box.height, 0});
    box_count_ = boxes.size();
  }

  LayeredPicture made() {
    find_circles();
    find_layers();
    put_points();
    order();
    stack();
    straighten();
    return layout();
  }

 private:
  std::vector<std::vector<uint32_t>> forward_arrows() const {
    std::vector<std::vector<uint32_t>> out(box_count_);
    for (uint32_t a = 0; a < arrows_.size(); ++a)
      if (!goes_back_[a]) out[arrows_[a].from].push_back(a);
    return out;
  }

  // Walks along arrows from each box. An arrow to a box that the walk is still in closes a circle.
  void find_circles() {
    for (uint32_t a = 0; a < arrows_.size(); ++a)
      goes_back_[a] = arrows_[a].is_back || arrows_[a].from == arrows_[a].to;
    const std::vector<std::vector<uint32_t>> out = forward_arrows();
    enum : uint8_t { fresh, inside, done };
    std::vector<uint8_t> state(box_count_, fresh);
    std::vector<std::pair<uint32_t, size_t>> walk; // a box, and how many of its arrows were taken
    for (uint32_t begin = 0; begin < box_count_; ++begin) {
      if (state[begin] == fresh) walk.push_back({begin, 0}), state[begin] = inside;
      while (!walk.empty()) {
        auto& [box, taken] = walk.back();
        if (taken == out[box].size()) {
          state[box] = done;
          walk.pop_back();
          continue;
        }
        const uint32_t arrow = out[box][taken++], to = arrows_[arrow].to;
        if (state[to] == inside) goes_back_[arrow] = 1;
        if (state[to] == fresh) walk.push_back({to, 0}), state[to] = inside;
      }
    }
  }

  // A box lies in the layer after the last of those that feed it. One that nobody feeds lies just before its first
  // reader.
  void find_layers() {
    const std::vector<std::vector<uint32_t>> out = forward_arrows();
    std::vector<uint32_t> left(box_count_, 0), ready;
    for (const std::vector<uint32_t>& of_box : out)
      for (const uint32_t a : of_box) ++left[arrows_[a].to];
    const std::vector<uint32_t> feeds = left;
    for (uint32_t box = 0; box < box_count_; ++box)
      if (left[box] == 0) ready.push_back(box);
    for (size_t next = 0; next < ready.size(); ++next)
      for (const uint32_t a : out[ready[next]]) {
        Item& to = items_[arrows_[a].to];
        to.layer = std::max(to.layer, items_[ready[next]].layer + 1);
        if (--left[arrows_[a].to] == 0) ready.push_back(arrows_[a].to);
      }
    for (uint32_t box = 0; box < box_count_; ++box) {
      if (feeds[box] > 0 || out[box].empty()) continue;
      uint32_t first = UINT32_MAX;
      for (const uint32_t a : out[box]) first = std::min(first, items_[arrows_[a].to].layer);
      items_[box].layer = first - 1;
    }
  }

  // A point belongs to the lane of the box that its arrow leads to.
  void put_points() {
    for (uint32_t a = 0; a < arrows_.size(); ++a) {
      if (goes_back_[a]) continue;
      const LayerArrow& arrow = arrows_[a];
      uint32_t from = arrow.from;
      int from_down = arrow.from_down;
      for (uint32_t layer = items_[arrow.from].layer + 1; layer < items_[arrow.to].layer; ++layer) {
        const auto point = static_cast<uint32_t>(items_.size());
        items_.push_back({items_[arrow.to].lane, layer, 0, 0, 0, 0});
        points_[a].push_back(point);
        pieces_.push_back({from, point, from_down, 0});
        from = point;
        from_down = 0;
      }
      pieces_.push_back({from, arrow.to, from_down, arrow.to_down});
    }
    before_.resize(items_.size());
    after_.resize(items_.size());
    for (uint32_t p = 0; p < pieces_.size(); ++p) {
      after_[pieces_[p].from].push_back(p);
      before_[pieces_[p].to].push_back(p);
    }
    uint32_t layers = 0;
    for (const Item& item : items_) layers = std::max(layers, item.layer + 1);
    layers_.resize(layers);
    for (uint32_t i = 0; i < items_.size(); ++i) layers_[items_[i].layer].push_back(i);
    for (std::vector<uint32_t>& layer : layers_) {
      std::stable_sort(layer.begin(), layer.end(),
                       [&](uint32_t a, uint32_t b) { return items_[a].lane < items_[b].lane; });
      number(layer);
    }
  }

  void number(const std::vector<uint32_t>& layer) {
    for (uint32_t place = 0; place < layer.size(); ++place) items_[layer[place]].place = place;
  }

  // The place of a piece's end in its layer, in thousandths: ports count within their box.
  int64_t place_of(uint32_t item, int down) const {
    return int64_t{items_[item].place} * 1000 + int64_t{down} * 1000 / (items_[item].height + 1);
  }

  void sort_by_neighbours(std::vector<uint32_t>& layer, bool by_those_before) {
    std::vector<std::pair<int64_t, uint32_t>> keyed; // a mean place
    for (const uint32_t i : layer) {
      const std::vector<uint32_t>& pieces = by_those_before ? before_[i] : after_[i];
      int64_t sum = 0;
      for (const uint32_t p : pieces)
        sum += by_those_before ? place_of(pieces_[p].from, pieces_[p].from_down)
                               : place_of(pieces_[p].to, pieces_[p].to_down);
      keyed.push_back({pieces.empty() ? place_of(i, 0) : sum / static_cast<int64_t>(pieces.size()), i});
    }
    std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
      return std::pair(items_[a.second].lane, a.first) < std::pair(items_[b.second].lane, b.first);
    });
    for (size_t n = 0; n < layer.size(); ++n) layer[n] = keyed[n].second;
    number(layer);
  }

  // Counts inversions by a tree of sums.
  uint64_t crossings() const {
    uint64_t count = 0;
    for (const std::vector<uint32_t>& layer : layers_) {
      std::vector<std::pair<int64_t, int64_t>> ends;
      std::vector<int64_t> places; // the ends in the next layer, in their order
      for (const uint32_t i : layer)
        for (const uint32_t p : after_[i]) {
          const Piece& piece = pieces_[p];
          ends.push_back({place_of(i, piece.from_down), place_of(piece.to, piece.to_down)});
          places.push_back(ends.back().second);
        }
      std::sort(ends.begin(), ends.end());
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      std::vector<size_t> sums(places.size() + 1, 0);
      for (size_t n = 0; n < ends.size(); ++n) {
        const auto at = std::lower_bound(places.begin(), places.end(), ends[n].second) - places.begin();
        const size_t number = static_cast<size_t>(at) + 1;
        size_t not_below = 0;
        for (size_t k = number; k > 0; k -= k & (~k + 1)) not_below += sums[k];
        count += n - not_below;
        for (size_t k = number; k < sums.size(); k += k & (~k + 1)) ++sums[k];
      }
    }
    return count;
  }

  void order() {
    std::vector<std::vector<uint32_t>> best = layers_;
    uint64_t fewest = crossings();
    for (int sweep = 0; sweep < kSweeps && fewest > 0; ++sweep) {
      const bool forward = sweep % 2 == 0;
      for (size_t n = 1; n < layers_.size(); ++n)
        sort_by_neighbours(layers_[forward ? n : layers_.size() - 1 - n], forward);
      if (const uint64_t now = crossings(); now < fewest) {
        fewest = now;
        best = layers_;
      }
    }
    layers_ = best;
    for (const std::vector<uint32_t>& layer : layers_) number(layer);
  }

  // Calls use(begin, end) with the items of each lane in a layer.
  template <class Use>
  void each_lane(const std::vector<uint32_t>& layer, const Use& use) const {
    for (size_t begin = 0, end = 0; begin < layer.size(); begin = end) {
      while (end < layer.size() && items_[layer[end]].lane == items_[layer[begin]].lane) ++end;
      use(begin, end);
    }
  }

  // A band is as high as the fullest layer of its lane.
  void stack() {
    std::vector<int> heights(lanes_, 0);
    for (const std::vector<uint32_t>& layer : layers_)
      each_lane(layer, [&](size_t begin, size_t end) {
        int height = 0;
        for (size_t n = begin; n < end; ++n) height += items_[layer[n]].height + kBetweenBoxes;
        int& of_lane = heights[items_[layer[begin]].lane];
        of_lane = std::max(of_lane, height);
      });
    int y = kMargin;
    for (const int height : heights) {
      bands_.push_back({y, y + height});
      if (height > 0) y += height + kBetweenLanes;
    }
    for (const std::vector<uint32_t>& layer : layers_)
      each_lane(layer, [&](size_t begin, size_t end) {
        int at = bands_[items_[layer[begin]].lane].first + kBetweenBoxes / 2;
        for (size_t n = begin; n < end; ++n) {
          items_[layer[n]].y = at;
          at += items_[layer[n]].height + kBetweenBoxes;
        }
      });
  }

  // Moves items to where their arrows are level, as far as their order and their band allow.
  void straighten() {
    for (int round = 0; round < kStraightenings; ++round) {
      const bool forward = round % 2 == 0;
      for (size_t n = 0; n < layers_.size(); ++n) {
        const std::vector<uint32_t>& layer = layers_[forward ? n : layers_.size() - 1 - n];
        each_lane(layer, [&](size_t begin, size_t end) { straighten(layer, begin, end, forward); });
      }
    }
  }

  void straighten(const std::vector<uint32_t>& layer, size_t begin, size_t end, bool by_those_before) {
    const auto [top, bottom] = bands_[items_[layer[begin]].lane];
    for (size_t n = begin; n < end; ++n) {
      Item& item = items_[layer[n]];
      const std::vector<uint32_t>& pieces = by_those_before ? before_[layer[n]] : after_[layer[n]];
      if (pieces.empty()) continue;
      int64_t sum = 0;
      for (const uint32_t p : pieces) {
        const Piece& piece = pieces_[p];
        sum += by_those_before ? items_[piece.from].y + piece.from_down - piece.to_down
                               : items_[piece.to].y + piece.to_down - piece.from_down;
      }
      item.y = static_cast<int>(sum / static_cast<int64_t>(pieces.size()));
    }
    int least = top + kBetweenBoxes / 2;
    for (size_t n = begin; n < end; ++n) {
      Item& item = items_[layer[n]];
      item.y = std::max(item.y, least);
      least = item.y + item.height + kBetweenBoxes;
    }
    int most = bottom - kBetweenBoxes / 2;
    for (size_t n = end; n-- > begin;) {
      Item& item = items_[layer[n]];
      item.y = std::min(item.y, most - item.height);
      most = item.y - kBetweenBoxes;
    }
  }

  LayeredPicture layout() const {
    LayeredPicture made;
    std::vector<int> lefts, widths;
    int x = kMargin;
    for (const std::vector<uint32_t>& layer : layers_) {
      int width = 0;
      for (const uint32_t i : layer) width = std::max(width, items_[i].width);
      lefts.push_back(x);
      widths.push_back(width);
      x += width + kBetweenLayers;
    }
    made.width = layers_.empty() ? 2 * kMargin : x - kBetweenLayers + kMargin;
    made.lanes = bands_;
    for (uint32_t box = 0; box < box_count_; ++box) made.boxes.push_back({lefts[items_[box].layer], items_[box].y});
    int below = kMargin;
    for (const auto& [top, bottom] : bands_) below = std::max(below, bottom);
    made.goes_back = goes_back_;
    for (uint32_t a = 0; a < arrows_.size(); ++a) {
      const LayerArrow& arrow = arrows_[a];
      const Spot from = {made.boxes[arrow.from].x + items_[arrow.from].width, items_[arrow.from].y + arrow.from_down};
      const Spot to = {made.boxes[arrow.to].x, items_[arrow.to].y + arrow.to_down};
      std::vector<Spot>& corners = made.arrows.emplace_back();
      corners.push_back(from);
      if (goes_back_[a]) {
        below += kBetweenBack;
        // Beside the layers, since other boxes of a layer may be wider.
        const uint32_t layer = items_[arrow.from].layer;
        const int right = lefts[layer] + widths[layer] + kBetweenLayers / 4, left = to.x - kBetweenLayers / 4;
        corners.insert(corners.end(), {{right, from.y}, {right, below}, {left, below}, {left, to.y}});
      }
      for (const uint32_t point : points_[a]) {
        const Item& item = items_[point];
        corners.push_back({lefts[item.layer], item.y});
        corners.push_back({lefts[item.layer] + widths[item.layer], item.y});
      }
      corners.push_back(to);
    }
    made.height = below + kMargin;
    return made;
  }

  const std::vector<LayerArrow>& arrows_;
  const uint32_t lanes_;
  size_t box_count_ = 0;
  std::vector<Item> items_; // the boxes, then the points
  std::vector<uint8_t> goes_back_;
  std::vector<std::vector<uint32_t>> points_; // by arrow
  std::vector<Piece> pieces_;
  std::vector<std::vector<uint32_t>> before_, after_; // pieces that end and begin at each item
  std::vector<std::vector<uint32_t>> layers_;         // items in their order
  std::vector<std::pair<int, int>> bands_;
};

} // namespace

LayeredPicture lay_out_layers(const std::vector<LayerBox>& boxes, const std::vector<LayerArrow>& arrows,
                              uint32_t lanes) {
  return Layering(boxes, arrows, lanes).made();
}

} // namespace millrace::plan
