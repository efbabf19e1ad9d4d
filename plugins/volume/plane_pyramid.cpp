// Levels of a plane, chunk by chunk; see plane_pyramid.h.
#include "plugins/volume/plane_pyramid.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "plugins/volume/vectorize.h"

namespace millrace::volume {

namespace {

template <class Element>
[[gnu::always_inline]] inline Element mean(Element a, Element b, Element c, Element d) {
  if constexpr (std::is_same_v<Element, float>) return ((a + b) + (c + d)) * 0.25F;
  const auto sum =
      static_cast<uint32_t>(a) + static_cast<uint32_t>(b) + static_cast<uint32_t>(c) + static_cast<uint32_t>(d);
  return static_cast<Element>((sum + 1 + (sum >> 2 & 1)) >> 2); // a half to the even one, so levels stay as bright
}

template <class Element>
[[gnu::always_inline]] inline void halve_rows(const Element* from, int64_t stride, int32_t width, int32_t height,
                                              Element* to, int64_t to_stride) {
  for (int32_t y = 0; y < height; y += 2, from += 2 * stride, to += to_stride) {
    const Element* const below = y + 1 < height ? from + stride : from;
    const int32_t pairs = width / 2;
    for (int32_t x = 0; x < pairs; ++x) to[x] = mean(from[2 * x], from[2 * x + 1], below[2 * x], below[2 * x + 1]);
    if (const int32_t last = width - 1; width % 2 != 0)
      to[pairs] = mean(from[last], from[last], below[last], below[last]);
  }
}

template <class Element>
void copy_rows(const Part<Element>& from, const Region& region, Element* to, int64_t to_stride) {
  const Element* at = from.data + (region.top - from.region.top) * from.stride + (region.left - from.region.left);
  for (int32_t y = region.top; y < region.bottom; ++y, at += from.stride, to += to_stride)
    std::copy(at, at + region.width(), to);
}

Region common(const Region& one, const Region& other) {
  return {std::max(one.left, other.left), std::max(one.top, other.top), std::min(one.right, other.right),
          std::min(one.bottom, other.bottom)};
}

} // namespace

VOLUME_VECTORIZE void halve(const uint8_t* from, int64_t stride, int32_t width, int32_t height, uint8_t* to,
                            int64_t to_stride) {
  halve_rows(from, stride, width, height, to, to_stride);
}
VOLUME_VECTORIZE void halve(const uint16_t* from, int64_t stride, int32_t width, int32_t height, uint16_t* to,
                            int64_t to_stride) {
  halve_rows(from, stride, width, height, to, to_stride);
}
VOLUME_VECTORIZE void halve(const float* from, int64_t stride, int32_t width, int32_t height, float* to,
                            int64_t to_stride) {
  halve_rows(from, stride, width, height, to, to_stride);
}

template <class Element>
void PlanePyramid<Element>::begin(PlaneSource<Element> source) {
  source_ = std::move(source);
  chunks_.clear();
  bytes_kept_ = 0;
  last_level_ = -1;
}

template <class Element>
Part<Element> PlanePyramid<Element>::part(int32_t level, const Region& region, Crew& crew) {
  if (level == last_level_ && region == last_.region) return last_;
  last_level_ = -1; // a chunk may fail
  if (level == 0 && source_.data) {
    last_ = {source_.data + region.top * source_.stride + region.left, source_.stride, region};
  } else {
    numbers_.resize(static_cast<size_t>(region.width()) * static_cast<size_t>(region.height()));
    fill(level, region, crew);
    last_ = {numbers_.data(), region.width(), region};
  }
  last_level_ = level;
  return last_;
}

template <class Element>
void PlanePyramid<Element>::fill(int32_t level, const Region& region, Crew& crew) {
  std::vector<Place> places;
  for (int32_t row = region.top / kChunkSide; row * kChunkSide < region.bottom; ++row)
    for (int32_t column = region.left / kChunkSide; column * kChunkSide < region.right; ++column)
      places.push_back({level, column, row});
  std::vector<std::vector<Element>> made(places.size());
  crew.each(places.size(), 1, [&](size_t begin, size_t end) {
    Spare spare(static_cast<size_t>(level) + 1);
    for (size_t at = begin; at < end; ++at) {
      const Region chunk = region_of(places[at]);
      const auto kept = chunks_.find(places[at]);
      if (kept == chunks_.end()) {
        made[at].resize(static_cast<size_t>(chunk.width()) * static_cast<size_t>(chunk.height()));
        make(places[at], made[at].data(), spare);
      }
      const Element* const numbers = kept == chunks_.end() ? made[at].data() : kept->second.numbers.data();
      const Region shared = common(chunk, region);
      Element* const to =
          numbers_.data() + int64_t{shared.top - region.top} * region.width() + shared.left - region.left;
      copy_rows<Element>({numbers, chunk.width(), chunk}, shared, to, region.width());
    }
  });
  ++calls_;
  for (size_t at = 0; at < places.size(); ++at) {
    Chunk& chunk = chunks_[places[at]];
    chunk.used = calls_;
    if (made[at].empty()) continue;
    ++chunks_made_;
    bytes_kept_ += made[at].size() * sizeof(Element);
    chunk.numbers = std::move(made[at]);
  }
  drop_oldest();
}

template <class Element>
void PlanePyramid<Element>::drop_oldest() {
  if (bytes_kept_ <= bytes_max_) return;
  std::vector<typename std::map<Place, Chunk>::iterator> by_use;
  for (auto chunk = chunks_.begin(); chunk != chunks_.end(); ++chunk) by_use.push_back(chunk);
  std::stable_sort(by_use.begin(), by_use.end(),
                   [](const auto& one, const auto& other) { return one->second.used < other->second.used; });
  for (const auto& oldest : by_use) {
    if (bytes_kept_ <= bytes_max_) return;
    bytes_kept_ -= oldest->second.numbers.size() * sizeof(Element);
    chunks_.erase(oldest);
  }
}

template <class Element>
Region PlanePyramid<Element>::region_of(const Place& place) const {
  const PlaneSize size = size_at(source_.size, place.level);
  const int32_t left = place.column * kChunkSide, top = place.row * kChunkSide;
  return {left, top, std::min(left + kChunkSide, size.width), std::min(top + kChunkSide, size.height)};
}

template <class Element>
Part<Element> PlanePyramid<Element>::find(const Place& place, Spare& spare) const {
  const Region region = region_of(place);
  if (place.level == 0 && source_.data)
    return {source_.data + region.top * source_.stride + region.left, source_.stride, region};
  if (const auto kept = chunks_.find(place); kept != chunks_.end())
    return {kept->second.numbers.data(), region.width(), region};
  std::vector<Element>& room = spare[static_cast<size_t>(place.level)];
  room.resize(size_t{kChunkSide} * kChunkSide);
  make(place, room.data(), spare);
  return {room.data(), region.width(), region};
}

template <class Element>
void PlanePyramid<Element>::make(const Place& place, Element* to, Spare& spare) const {
  const Region region = region_of(place);
  if (place.level == 0 && source_.data) return copy_rows(find(place, spare), region, to, region.width());
  if (place.level == 0) return source_.read(region, to);
  for (int32_t quarter = 0; quarter < 4; ++quarter) {
    const int32_t right = quarter % 2, down = quarter / 2;
    const Place finer = {place.level - 1, 2 * place.column + right, 2 * place.row + down};
    if (region_of(finer).is_empty()) continue;
    const Part<Element> from = find(finer, spare);
    constexpr int32_t kHalf = kChunkSide / 2;
    halve(from.data, from.stride, from.region.width(), from.region.height(),
          to + int64_t{down} * kHalf * region.width() + right * kHalf, region.width());
  }
}

template class PlanePyramid<uint8_t>;
template class PlanePyramid<uint16_t>;
template class PlanePyramid<float>;

} // namespace millrace::volume
