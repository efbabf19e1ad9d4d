// Rules for regions and levels; see plane_levels.h.
#include "plugins/volume/plane_levels.h"

#include <algorithm>
#include <cmath>

namespace millrace::volume {

namespace {

// The bounds of the rules.
constexpr double kFinerAt = 1.05, kCoarserAbove = 1.35, kZoomedAt = 1.20; // pixels of a level for one of the picture
constexpr double kNearerBelow = 0.999, kFartherAbove = 1.001;             // ratios of a zoom
constexpr int64_t kHintNs = 500'000'000, kRestNs = 150'000'000;

struct Extent {
  double low, high;
};
Extent within(double one, double other, double most) {
  return {std::clamp(std::min(one, other), 0.0, most), std::clamp(std::max(one, other), 0.0, most)};
}
// The box around the corners, cut to the plane.
struct SeenBox {
  Extent x, y;
  bool is_empty() const { return !(x.low < x.high && y.low < y.high); }
};
SeenBox seen_box(const Corners& corners, PlaneSize finest) {
  const auto [left, right] = std::minmax({corners[0].x, corners[1].x, corners[2].x, corners[3].x});
  const auto [top, bottom] = std::minmax({corners[0].y, corners[1].y, corners[2].y, corners[3].y});
  return {within(left, right, finest.width), within(top, bottom, finest.height)};
}

int32_t down_to(int32_t place, int32_t side) { return place / side * side; }
int32_t up_to(int32_t place, int32_t side) { return (place + side - 1) / side * side; }
bool is_near(const Region& one, const Region& other, int32_t less) {
  const auto near = [less](int32_t a, int32_t b) { return std::abs(a - b) < less; };
  return near(one.left, other.left) && near(one.top, other.top) && near(one.right, other.right) &&
         near(one.bottom, other.bottom);
}
bool is_within(int64_t then_ns, int64_t now_ns, int64_t span_ns) {
  return now_ns >= then_ns && now_ns - then_ns <= span_ns;
}

} // namespace

PlaneSize size_at(PlaneSize finest, int32_t level) {
  const auto side = [level](int32_t pixels) {
    return static_cast<int32_t>((int64_t{pixels} + (int64_t{1} << level) - 1) >> level);
  };
  return {side(finest.width), side(finest.height)};
}

int32_t count_of_levels(PlaneSize finest) {
  int32_t count = 1;
  while (size_at(finest, count - 1) != PlaneSize{1, 1}) ++count;
  return count;
}

Region seen_region(const Corners& corners, PlaneSize finest, int32_t level) {
  const SeenBox box = seen_box(corners, finest);
  if (box.is_empty()) return {};
  const double pixel = std::ldexp(1.0, level);
  const auto floor = [pixel](double at) { return static_cast<int32_t>(std::floor(at / pixel)); };
  const auto ceil = [pixel](double at) { return static_cast<int32_t>(std::ceil(at / pixel)); };
  return {floor(box.x.low), floor(box.y.low), ceil(box.x.high), ceil(box.y.high)};
}

Region region_of_interest(const Corners& corners, PlaneSize finest, int32_t level, const ChunkGrid& grid,
                          const std::optional<Region>& before) {
  const PlaneSize size = size_at(finest, level);
  const Region seen = seen_region(corners, finest, level);
  if (seen.is_empty()) return {0, 0, size.width, size.height};
  const int32_t padding = grid.padding * grid.side;
  const Region wide = {std::max(down_to(seen.left, grid.side) - padding, 0),
                       std::max(down_to(seen.top, grid.side) - padding, 0),
                       std::min(up_to(seen.right, grid.side) + padding, size.width),
                       std::min(up_to(seen.bottom, grid.side) + padding, size.height)};
  if (before && before->covers(seen) && is_near(*before, wide, grid.moved_less)) return *before;
  return wide; // covers what is seen, so the union of both is the same
}

double oversampling(const Region& region, double view_width, double view_height) {
  return std::max(region.height() / view_height, region.width() / view_width);
}

int32_t next_level(const LevelNow& now, const std::function<double(int32_t level)>& oversampling_at) {
  const bool has_hint = now.zoomed && is_within(now.zoomed->at_ns, now.now_ns, kHintNs) &&
                        (now.zoomed->ratio < kNearerBelow || now.zoomed->ratio > kFartherAbove);
  const double most = has_hint ? kZoomedAt : kCoarserAbove;
  const auto may_go_finer = [&] { return now.level > 0 && oversampling_at(now.level - 1) <= std::min(most, kFinerAt); };
  const auto may_go_coarser = [&] {
    return now.level + 1 < now.count && oversampling_at(now.level) > std::min(most, kCoarserAbove);
  };
  if (now.changed_ns && is_within(*now.changed_ns, now.now_ns, kRestNs - 1)) return now.level;
  if (has_hint && now.zoomed->ratio < kNearerBelow) return may_go_finer() ? now.level - 1 : now.level;
  if (has_hint) return may_go_coarser() ? now.level + 1 : now.level;
  if (may_go_finer()) return now.level - 1;
  return may_go_coarser() ? now.level + 1 : now.level;
}

int32_t first_level(int32_t count, const std::function<double(int32_t level)>& oversampling_at) {
  int32_t level = 0;
  for (int32_t next = -1; next != level;) {
    if (next >= 0) level = next;
    next = next_level({level, count, 0, {}, {}}, oversampling_at);
  }
  return level;
}

int32_t level_within(int32_t level, int32_t count, uint64_t bytes_max,
                     const std::function<uint64_t(int32_t level)>& bytes_at) {
  while (level + 1 < count && bytes_at(level) > bytes_max) ++level;
  return level;
}

LevelChooser::Choice LevelChooser::choose(const PlaneSight& sight) {
  if (last_ && sight.zoom != zoom_) zoomed_ = {zoom_ / sight.zoom, sight.now_ns};
  zoom_ = sight.zoom;
  const SeenBox box = seen_box(sight.corners, sight.plane);
  const double view_width = (box.x.high - box.x.low) * sight.pixels;
  const double view_height = (box.y.high - box.y.low) * sight.pixels;
  const int32_t count = count_of_levels(sight.plane);
  const auto oversampling_at = [&](int32_t level) {
    return oversampling(seen_region(sight.corners, sight.plane, level), view_width, view_height);
  };
  const auto region_at = [&](int32_t level) {
    const bool is_last = last_ && last_->is_seen && last_->level == level;
    return region_of_interest(sight.corners, sight.plane, level, grid_,
                              is_last ? std::optional(last_->region) : std::nullopt);
  };
  Choice choice;
  choice.is_seen = !box.is_empty();
  if (sight.level >= 0)
    choice.level = std::min(sight.level, count - 1);
  else if (!choice.is_seen)
    choice.level = last_ ? last_->level : 0;
  else if (!last_ || !last_->is_seen)
    choice.level = first_level(count, oversampling_at);
  else
    choice.level = next_level({last_->level, count, sight.now_ns, zoomed_, changed_ns_}, oversampling_at);
  choice.level = level_within(choice.level, count, bytes_max_, [&](int32_t level) {
    const Region region = region_at(level);
    return static_cast<uint64_t>(region.width()) * static_cast<uint64_t>(region.height()) * sight.item_bytes;
  });
  choice.region = region_at(choice.level);
  if (last_ && choice.level != last_->level) changed_ns_ = sight.now_ns;
  last_ = choice;
  return choice;
}

void LevelChooser::reset() {
  last_.reset();
  zoomed_.reset();
  changed_ns_.reset();
}

} // namespace millrace::volume
