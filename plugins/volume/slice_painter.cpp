// Pictures of a plane; see slice_painter.h.
#include "plugins/volume/slice_painter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "plugins/volume/colour_maps.h"
#include "plugins/volume/vectorize.h"

namespace millrace::volume {

namespace {

constexpr size_t kRowsAtOnce = 16;

// The levels of values on a straight line. Adding 2^23 rounds to whole numbers, as rintf() does, in the lowest bits.
VOLUME_VECTORIZE void straight_levels(const float* values, size_t count, float low, float per_value, uint8_t* levels) {
  constexpr float kRounds = 8388608;
  for (size_t i = 0; i < count; ++i) {
    const float line = (values[i] - low) * per_value;
    const float above = line > 0 ? line : 0; // 0 also for what is not a number
    levels[i] = static_cast<uint8_t>(std::bit_cast<uint32_t>((above < 1 ? above : 1) * 255 + kRounds) & 0xff);
  }
}

// The numbers between which a sample lies, along one side of a region, and their weights.
template <int kTaps>
struct Taps {
  int32_t at[kTaps];
  float weight[kTaps];
};
// `place`: in pixels of the level, of whose numbers those from `begin` to before `end` are there.
template <int kTaps>
Taps<kTaps> taps_at(double place, int32_t begin, int32_t end) {
  const auto within = [&](int32_t at) { return std::clamp(at, begin, end - 1) - begin; };
  if constexpr (kTaps == 1) return {{within(static_cast<int32_t>(std::floor(place)))}, {1}};
  const double from_middle = place - 0.5, floor = std::floor(from_middle);
  const auto low = static_cast<int32_t>(floor);
  const auto t = static_cast<float>(from_middle - floor);
  if constexpr (kTaps == 2) return {{within(low), within(low + 1)}, {1 - t, t}};
  if constexpr (kTaps == 4) // the spline of Catmull and Rom
    return {
        {within(low - 1), within(low), within(low + 1), within(low + 2)},
        {((2 - t) * t - 1) * t / 2, ((3 * t - 5) * t * t + 2) / 2, ((4 - 3 * t) * t + 1) * t / 2, (t - 1) * t * t / 2}};
}

template <int kTaps, class Element>
[[gnu::always_inline]] inline void mix_rows(const Element* const (&rows)[kTaps], const float (&weights)[kTaps],
                                            int32_t begin, int32_t end, float* to) {
  for (int32_t x = begin; x < end; ++x) {
    float mixed = 0;
    for (int j = 0; j < kTaps; ++j) mixed += weights[j] * static_cast<float>(rows[j][x]);
    to[x] = mixed;
  }
}
// One for each form, as versions for several machines cannot be templates.
VOLUME_VECTORIZE void mix(const uint8_t* const (&rows)[2], const float (&weights)[2], int32_t begin, int32_t end,
                          float* to) {
  mix_rows<2>(rows, weights, begin, end, to);
}
VOLUME_VECTORIZE void mix(const uint16_t* const (&rows)[2], const float (&weights)[2], int32_t begin, int32_t end,
                          float* to) {
  mix_rows<2>(rows, weights, begin, end, to);
}
VOLUME_VECTORIZE void mix(const float* const (&rows)[2], const float (&weights)[2], int32_t begin, int32_t end,
                          float* to) {
  mix_rows<2>(rows, weights, begin, end, to);
}
VOLUME_VECTORIZE void mix(const uint8_t* const (&rows)[4], const float (&weights)[4], int32_t begin, int32_t end,
                          float* to) {
  mix_rows<4>(rows, weights, begin, end, to);
}
VOLUME_VECTORIZE void mix(const uint16_t* const (&rows)[4], const float (&weights)[4], int32_t begin, int32_t end,
                          float* to) {
  mix_rows<4>(rows, weights, begin, end, to);
}
VOLUME_VECTORIZE void mix(const float* const (&rows)[4], const float (&weights)[4], int32_t begin, int32_t end,
                          float* to) {
  mix_rows<4>(rows, weights, begin, end, to);
}

// The pixels of a row of the picture from `begin` to before `end` show the plane.
struct Shown {
  uint32_t begin, end;
};
// `first`: the place of the row's first pixel on the plane.
Shown shown_of(Corner first, const SliceView& view) {
  const auto is_inside = [&](int64_t x) {
    const double column = first.x + static_cast<double>(x) * view.right().x;
    const double row = first.y + static_cast<double>(x) * view.right().y;
    return column >= 0 && column < view.plane().width && row >= 0 && row < view.plane().height;
  };
  double begin = 0, end = view.width();
  const auto cut = [&](double at, double step, double most) {
    if (step == 0) return;
    const double one = -at / step, other = (most - at) / step;
    begin = std::clamp(std::floor(std::min(one, other)), begin, end);
    end = std::clamp(std::ceil(std::max(one, other)) + 1, begin, end);
  };
  cut(first.x, view.right().x, view.plane().width);
  cut(first.y, view.right().y, view.plane().height);
  auto from = static_cast<int64_t>(begin), to = static_cast<int64_t>(end);
  while (from < to && !is_inside(from)) ++from;
  while (from < to && !is_inside(to - 1)) --to;
  return {static_cast<uint32_t>(from), static_cast<uint32_t>(to)};
}

// Values of the picture's rows.
template <class Element, int kTaps>
class Sampler {
 public:
  Sampler(const Part<Element>& part, int32_t level, const SliceView& view)
      : part_(part), view_(view), per_pixel_(std::ldexp(1.0, -level)) {
    is_upright_ = view.right().y == 0 && view.down().x == 0;
    if (!is_upright_) return;
    const Corner first = view.through(0.5, 0.5);
    for (uint32_t x = 0; x < view.width(); ++x) {
      columns_.push_back(column_at(first.x + x * view.right().x));
      columns_end_ = std::max(columns_end_, *std::max_element(columns_.back().at, columns_.back().at + kTaps) + 1);
      columns_begin_ = std::min(columns_begin_, *std::min_element(columns_.back().at, columns_.back().at + kTaps));
    }
  }

  // The room that a thread needs.
  size_t spare_count() const { return kTaps > 1 && is_upright_ ? static_cast<size_t>(columns_end_) : 0; }
  void sample(Corner first, Shown shown, float* spare, float* values) const {
    if (!is_upright_) return sample_turned(first, shown, values);
    const Taps<kTaps> row = row_at(first.y);
    const Element* rows[kTaps];
    for (int j = 0; j < kTaps; ++j) rows[j] = part_.data + row.at[j] * part_.stride;
    if constexpr (kTaps == 1) {
      for (uint32_t x = shown.begin; x < shown.end; ++x) values[x] = static_cast<float>(rows[0][columns_[x].at[0]]);
    } else {
      mix(rows, row.weight, columns_begin_, columns_end_, spare);
      for (uint32_t x = shown.begin; x < shown.end; ++x) values[x] = mixed(columns_[x], spare);
    }
  }

 private:
  Taps<kTaps> column_at(double place) const {
    return taps_at<kTaps>(place * per_pixel_, part_.region.left, part_.region.right);
  }
  Taps<kTaps> row_at(double place) const {
    return taps_at<kTaps>(place * per_pixel_, part_.region.top, part_.region.bottom);
  }
  template <class Number>
  static float mixed(const Taps<kTaps>& taps, const Number* numbers) {
    if constexpr (kTaps == 1) return static_cast<float>(numbers[taps.at[0]]);
    float sum = 0;
    for (int i = 0; i < kTaps; ++i) sum += taps.weight[i] * static_cast<float>(numbers[taps.at[i]]);
    return sum;
  }
  void sample_turned(Corner first, Shown shown, float* values) const {
    for (uint32_t x = shown.begin; x < shown.end; ++x) {
      const Taps<kTaps> column = column_at(first.x + x * view_.right().x), row = row_at(first.y + x * view_.right().y);
      float sum = 0;
      for (int j = 0; j < kTaps; ++j) sum += row.weight[j] * mixed(column, part_.data + row.at[j] * part_.stride);
      values[x] = sum;
    }
  }

  const Part<Element>& part_;
  const SliceView& view_;
  const double per_pixel_; // pixels of the level for one of level 0
  bool is_upright_;        // a row of the picture is one of the plane
  std::vector<Taps<kTaps>> columns_;
  int32_t columns_begin_ = INT32_MAX, columns_end_ = 0; // numbers of a row that are read
};

template <int kTaps, class Element>
void paint_with(const Part<Element>& part, int32_t level, const SliceView& view, const Tone& tone, uint8_t* picture,
                size_t stride, Crew& crew) {
  const Sampler<Element, kTaps> sampler(part, level, view);
  crew.each(view.height(), kRowsAtOnce, [&](size_t begin, size_t end) {
    std::vector<float> spare(sampler.spare_count()), values(view.width());
    for (size_t y = begin; y < end; ++y) {
      uint8_t* const row = picture + y * stride;
      const Corner first = view.through(0.5, static_cast<double>(y) + 0.5);
      const Shown shown = shown_of(first, view);
      std::memset(row, 0, size_t{shown.begin} * 3);
      std::memset(row + size_t{shown.end} * 3, 0, size_t{view.width() - shown.end} * 3);
      if (shown.begin == shown.end) continue;
      sampler.sample(first, shown, spare.data(), values.data());
      tone.paint(values.data() + shown.begin, shown.end - shown.begin, row + size_t{shown.begin} * 3);
    }
  });
}

} // namespace

// axes_of() for a roll alone, in double precision, because a plane has up to 65536 pixels along a side.
SliceView::SliceView(const ViewCamera& camera, uint32_t width, uint32_t height, PlaneSize plane)
    : width_(width), height_(height), plane_(plane) {
  constexpr double kDegree = 3.14159265358979323846 / 180;
  const double of_scene =
      std::max(static_cast<double>(plane.width) / width, static_cast<double>(plane.height) / height);
  pixel_ = of_scene / camera.zoom;
  const double cosine = std::cos(camera.angles[2] * kDegree), sine = std::sin(camera.angles[2] * kDegree);
  right_ = {cosine * pixel_, -sine * pixel_};
  down_ = {sine * pixel_, cosine * pixel_};
  middle_ = {plane.width / 2.0 + camera.center[0] * of_scene, plane.height / 2.0 + camera.center[1] * of_scene};
}

Corner SliceView::through(double x, double y) const {
  const double right = x - width_ / 2.0, down = y - height_ / 2.0;
  return {middle_.x + right * right_.x + down * down_.x, middle_.y + right * right_.y + down * down_.y};
}

Corners SliceView::corners() const {
  const double width = width_, height = height_;
  return {through(0, 0), through(width, 0), through(0, height), through(width, height)};
}

Tone::Tone(const Contrast& contrast, const ViewLook& look, const std::string& colour_map) : gamma_(look.gamma) {
  const float range = contrast.high - contrast.low;
  low_ = contrast.low + look.low * range;
  per_value_ = 1 / std::max(contrast.low + look.high * range - low_, 1e-20F);
  const auto bytes = volume::colour_map(colour_map);
  for (size_t level = 0; level < colours_.size(); ++level)
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(3 * level), 3, colours_[level].begin());
  if (gamma_ == 1) return;
  for (size_t cell = 0; cell <= kCells; ++cell) {
    const auto edge = [&](size_t at) { return level_of(static_cast<float>(std::min(at, kCells)) / kCells); };
    cells_.push_back(edge(cell) == edge(cell + 1) ? edge(cell) : int16_t{-1});
  }
}

int16_t Tone::level_of(float line) const { return static_cast<int16_t>(std::rint(std::pow(line, gamma_) * 255)); }

void Tone::find_levels(const float* values, size_t count, uint8_t* levels) const {
  if (gamma_ == 1) return straight_levels(values, count, low_, per_value_, levels);
  for (size_t i = 0; i < count; ++i) {
    const float line = (values[i] - low_) * per_value_, above = line > 0 ? line : 0, within = above < 1 ? above : 1;
    const int16_t known = cells_[static_cast<size_t>(within * kCells)];
    levels[i] = static_cast<uint8_t>(known >= 0 ? known : level_of(within));
  }
}

void Tone::paint(const float* values, size_t count, uint8_t* to) const {
  uint8_t levels[kAtOnce];
  for (size_t begin = 0; begin < count; begin += kAtOnce) {
    const size_t some = std::min(kAtOnce, count - begin);
    find_levels(values + begin, some, levels);
    for (size_t i = 0; i + 1 < some; ++i, to += 3) std::memcpy(to, colours_[levels[i]].data(), 4);
    std::memcpy(to, colours_[levels[some - 1]].data(), 3);
    to += 3;
  }
}

template <class Element>
void paint_slice(const Part<Element>& part, int32_t level, const SliceView& view, Interpolation interpolation,
                 const Tone& tone, uint8_t* picture, size_t stride, Crew& crew) {
  switch (interpolation) {
    case Interpolation::nearest: return paint_with<1>(part, level, view, tone, picture, stride, crew);
    case Interpolation::linear: return paint_with<2>(part, level, view, tone, picture, stride, crew);
    case Interpolation::cubic: return paint_with<4>(part, level, view, tone, picture, stride, crew);
  }
}

template void paint_slice(const Part<uint8_t>&, int32_t, const SliceView&, Interpolation, const Tone&, uint8_t*, size_t,
                          Crew&);
template void paint_slice(const Part<uint16_t>&, int32_t, const SliceView&, Interpolation, const Tone&, uint8_t*,
                          size_t, Crew&);
template void paint_slice(const Part<float>&, int32_t, const SliceView&, Interpolation, const Tone&, uint8_t*, size_t,
                          Crew&);

} // namespace millrace::volume
