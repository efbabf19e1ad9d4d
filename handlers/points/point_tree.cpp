// Builds a tree of points by halves; see point_tree.h.
#include "handlers/points/point_tree.h"

#include <algorithm>

namespace millrace::handlers {

namespace {

// Grows a box, so that another one lies in it.
void include(PointTree::Box& box, const PointTree::Box& other) {
  box.left = std::min(box.left, other.left);
  box.top = std::min(box.top, other.top);
  box.right = std::max(box.right, other.right);
  box.bottom = std::max(box.bottom, other.bottom);
}

} // namespace

void PointTree::build(std::span<const Point> points) {
  items_.clear();
  nodes_.clear();
  leaves_.clear();
  Box around{};
  for (uint32_t place = 0; place < points.size(); ++place) {
    const Point& point = points[place];
    if (!is_joinable(point)) continue;
    const Box here{point.x, point.y, point.x, point.y};
    if (items_.empty()) around = here;
    include(around, here);
    items_.emplace_back(point, place);
  }
  if (!items_.empty()) add(0, items_.size(), around);
}

// Adds a subtree, whose points lie in `around`. The wider side is halved. Points of one place are halved by their
// places in the list, so that a search leaves out most of them.
void PointTree::add(size_t begin, size_t end, const Box& around) {
  if (end - begin <= kLeafPoints) return add_leaf(begin, end);
  const size_t at = nodes_.size(), middle = begin + (end - begin) / 2;
  nodes_.emplace_back();
  const bool is_wide = around.right - around.left >= around.bottom - around.top;
  const auto item = [&](size_t n) { return items_.begin() + static_cast<ptrdiff_t>(n); };
  std::nth_element(item(begin), item(middle), item(end),
                   [is_wide](const Item& a, const Item& b) { return is_wide ? a.across < b.across : a.down < b.down; });
  Box before = around, after = around;
  (is_wide ? before.right : before.bottom) = is_wide ? item(middle)->x() : item(middle)->y();
  (is_wide ? after.left : after.top) = is_wide ? item(middle)->x() : item(middle)->y();
  add(begin, middle, before);
  const size_t second = nodes_.size();
  add(middle, end, after);
  Node& node = nodes_[at];
  node = nodes_[at + 1];
  include(node.box, nodes_[second].box);
  node.first_place = std::min(node.first_place, nodes_[second].first_place);
  node.second = static_cast<uint32_t>(second);
  node.is_leaf = false;
}

void PointTree::add_leaf(size_t begin, size_t end) {
  Leaf& leaf = leaves_.emplace_back();
  leaf.box = {items_[begin].x(), items_[begin].y(), items_[begin].x(), items_[begin].y()};
  uint32_t first_place = UINT32_MAX;
  for (size_t i = begin; i < end; ++i) {
    const float x = items_[i].x(), y = items_[i].y();
    include(leaf.box, {x, y, x, y});
    leaf.x[leaf.count] = x;
    leaf.y[leaf.count] = y;
    leaf.places[leaf.count++] = items_[i].place();
    first_place = std::min(first_place, items_[i].place());
  }
  nodes_.push_back({leaf.box, first_place, static_cast<uint32_t>(leaves_.size() - 1), true});
}

} // namespace millrace::handlers
