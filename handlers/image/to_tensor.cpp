// Makes tensors of pictures. The layout of a picture is chosen once for the whole picture. Colours are computed pixel
// by pixel into short arrays, which loops that vectorise turn into the tensor's numbers.
#include "handlers/image/to_tensor.h"

#include <millrace/payload/half_floats.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

// Calls `work` with the layout as a type.
template <class Work>
void with_layout(Pixel pixel, Work&& work) {
  switch (sample_layout_of(pixel)) {
    case SampleLayout::gray: return work(std::integral_constant<SampleLayout, SampleLayout::gray>{});
    case SampleLayout::packed3: return work(std::integral_constant<SampleLayout, SampleLayout::packed3>{});
    case SampleLayout::packed4: return work(std::integral_constant<SampleLayout, SampleLayout::packed4>{});
    case SampleLayout::nv12: return work(std::integral_constant<SampleLayout, SampleLayout::nv12>{});
    case SampleLayout::i420: return work(std::integral_constant<SampleLayout, SampleLayout::i420>{});
    case SampleLayout::p010: return work(std::integral_constant<SampleLayout, SampleLayout::p010>{});
  }
}

// The colours of a piece of a row, channel by channel. It lives on the stack and stays in the first-level cache.
constexpr uint32_t kTensorChunk = 256;
struct ColorChunk {
  alignas(64) float colors[3][kTensorChunk];
  void set(uint32_t i, const UnitRgb& color) {
    colors[0][i] = color.red;
    colors[1][i] = color.green;
    colors[2][i] = color.blue;
  }
};

MILLRACE_VECTORIZE void scale_colors(const float* colors, float factor, float term, uint32_t count, float* numbers) {
  for (uint32_t i = 0; i < count; ++i) numbers[i] = colors[i] * factor + term;
}

MILLRACE_VECTORIZE void to_halves(const float* numbers, uint32_t count, Float16* halves) {
  for (uint32_t i = 0; i < count; ++i) halves[i] = Float16(numbers[i]);
}

// Writes the numbers to every `step`-th place of the target.
template <class Number>
void write_strided(const Number* numbers, uint32_t count, size_t step, uint8_t* target) {
  if (step == 1) {
    std::memcpy(target, numbers, count * sizeof(Number));
    return;
  }
  for (uint32_t i = 0; i < count; ++i) std::memcpy(target + i * step * sizeof(Number), numbers + i, sizeof(Number));
}

// Writes the numbers of one picture of a tensor to their places.
class PatchWriter {
 public:
  PatchWriter(const TensorForm& form, const ChannelForm& channels, uint32_t index, uint8_t* target)
      : form_(form), channels_(channels), pixels_(size_t{form.width} * form.height) {
    first_ = target + index * pixels_ * form.channels * bytes();
  }

  // Calls color(x) for every column of row y, and writes the normalised result.
  template <class Color>
  void put_row(uint32_t y, Color&& color) const {
    ColorChunk chunk;
    for (uint32_t x = 0; x < form_.width; x += kTensorChunk) {
      const uint32_t count = std::min(kTensorChunk, form_.width - x);
      for (uint32_t i = 0; i < count; ++i) chunk.set(i, color(x + i));
      for (uint32_t c = 0; c < form_.channels; ++c) put(chunk.colors[c], c, size_t{y} * form_.width + x, count);
    }
  }
  void clear() const { std::memset(first_, 0, pixels_ * form_.channels * bytes()); }

 private:
  size_t bytes() const { return form_.half ? 2 : 4; }

  void put(const float* colors, uint32_t channel, size_t pixel, uint32_t count) const {
    alignas(64) float numbers[kTensorChunk];
    alignas(64) Float16 halves[kTensorChunk];
    scale_colors(colors, channels_.factor[channel], channels_.term[channel], count, numbers);
    const size_t place = form_.channels == 1 ? 0 : channels_.place[channel];
    const size_t step = form_.interleaved ? form_.channels : 1;
    uint8_t* const target = first_ + (form_.interleaved ? pixel * step + place : place * pixels_ + pixel) * bytes();
    if (!form_.half) return write_strided(numbers, count, step, target);
    to_halves(numbers, count, halves);
    write_strided(halves, count, step, target);
  }

  const TensorForm& form_;
  const ChannelForm& channels_;
  size_t pixels_;
  uint8_t* first_;
};

// Reads three numbers, or one for all.
void read_numbers(std::string_view text, const char* name, float (&numbers)[3]) {
  const auto wrong = [&] {
    return std::invalid_argument(std::string(name) + " '" + std::string(text) +
                                 "' is neither one number nor three, such as \"0.485,0.456,0.406\"");
  };
  const char *at = text.data(), *const end = text.data() + text.size();
  size_t count = 0;
  for (;; ++at) {
    while (at < end && *at == ' ') ++at;
    if (count == 3) throw wrong();
    const auto [behind, problem] = std::from_chars(at, end, numbers[count++]);
    if (problem != std::errc() || !std::isfinite(numbers[count - 1])) throw wrong();
    at = behind;
    if (at == end) break;
    if (*at != ',') throw wrong();
  }
  if (count == 2) throw wrong();
  if (count == 1) numbers[1] = numbers[2] = numbers[0];
}

} // namespace

TensorForm tensor_form(const TensorSettings& settings) {
  TensorForm form;
  form.half = settings.dtype == "f16";
  form.interleaved = settings.layout == "nhwc";
  form.blue_first = settings.order == "bgr";
  read_numbers(settings.mean, "mean", form.mean);
  read_numbers(settings.deviation, "std", form.deviation);
  for (float deviation : form.deviation)
    if (!(deviation > 0))
      throw std::invalid_argument("std '" + settings.deviation + "' has a number that is not above 0");
  return form;
}

std::array<int64_t, 4> shape_of(const TensorForm& form) {
  if (form.interleaved) return {form.count, form.height, form.width, form.channels};
  return {form.count, form.channels, form.height, form.width};
}

void normalize_picture(const ImageView& picture, const TensorForm& form, uint8_t* target) {
  const ChannelForm channels = channel_form(form, picture.pixel());
  const SampleSource source = sample_source(picture.value().as.image, picture.data());
  const PatchWriter writer(form, channels, 0, target);
  with_layout(picture.pixel(), [&](auto layout) {
    for (uint32_t y = 0; y < form.height; ++y) {
      const SampleRow row = sample_row<layout()>(source, static_cast<int32_t>(y));
      writer.put_row(y, [&](uint32_t x) {
        return decoded<layout()>(source.numbers, sample_at<layout()>(row, static_cast<int32_t>(x)));
      });
    }
  });
}

void PatchCutter::run(const ImageView& picture, std::span<const Box> boxes, const TensorForm& form, uint8_t* target) {
  const ChannelForm channels = channel_form(form, picture.pixel());
  const SampleSource source = sample_source(picture.value().as.image, picture.data());
  reserve(form);
  for (uint32_t i = 0; i < form.count; ++i) {
    const PatchWriter writer(form, channels, i, target);
    const Box box = i < boxes.size() ? boxes[i] : Box{};
    const Region region = region_of(box.x, box.y, box.width, box.height, static_cast<int32_t>(form.width),
                                    static_cast<int32_t>(form.height));
    if (!region.valid) {
      writer.clear();
      continue;
    }
    for (uint32_t x = 0; x < form.width; ++x)
      columns_[x] = footprint(region.left, region.scale_x, static_cast<int32_t>(x), source.width);
    with_layout(picture.pixel(), [&](auto layout) {
      for (uint32_t y = 0; y < form.height; ++y) {
        const Footprint rows = footprint(region.top, region.scale_y, static_cast<int32_t>(y), source.height);
        writer.put_row(y, [&](uint32_t x) {
          return decoded<layout()>(source.numbers, mixed<layout()>(source, columns_[x], rows));
        });
      }
    });
  }
}

void PatchCutter::letterbox(const ImageView& picture, const Letterbox& box, float fill, const TensorForm& form,
                            uint8_t* target) {
  const ChannelForm channels = channel_form(form, picture.pixel());
  const SampleSource source = sample_source(picture.value().as.image, picture.data());
  const PatchWriter writer(form, channels, 0, target);
  const Region region = whole_region(source, box);
  const UnitRgb border = {fill, fill, fill};
  reserve(form);
  for (uint32_t x = 0; x < box.width; ++x)
    columns_[x] = footprint(region.left, region.scale_x, static_cast<int32_t>(x), source.width);
  with_layout(picture.pixel(), [&](auto layout) {
    for (uint32_t y = 0; y < form.height; ++y) {
      if (y - box.top >= box.height) { // above the picture too, where the difference wraps round
        writer.put_row(y, [&](uint32_t) { return border; });
        continue;
      }
      const Footprint rows = footprint(region.top, region.scale_y, static_cast<int32_t>(y - box.top), source.height);
      writer.put_row(y, [&](uint32_t x) {
        const uint32_t column = x - box.left;
        if (column >= box.width) return border;
        return decoded<layout()>(source.numbers, mixed<layout()>(source, columns_[column], rows));
      });
    }
  });
}

} // namespace millrace::handlers
