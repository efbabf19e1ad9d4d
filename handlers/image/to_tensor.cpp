// The layout of a picture is chosen once for all of it; inside, every pixel goes the same way.
#include "handlers/image/to_tensor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "handlers/gpu/half.h"

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

// Where the numbers of one picture of a tensor go.
class PatchWriter {
 public:
  PatchWriter(const TensorForm& form, const ChannelForm& channels, uint32_t index, uint8_t* target)
      : form_(form), channels_(channels), pixels_(size_t{form.width} * form.height) {
    first_ = target + index * pixels_ * form.channels * bytes();
  }

  void put(uint32_t x, uint32_t y, const UnitRgb& color) const {
    const UnitRgb numbers = normalized(channels_, color);
    const size_t pixel = size_t{y} * form_.width + x;
    if (form_.channels == 1) return put_number(pixel, numbers.red);
    put_number(at(pixel, channels_.place[0]), numbers.red);
    put_number(at(pixel, channels_.place[1]), numbers.green);
    put_number(at(pixel, channels_.place[2]), numbers.blue);
  }
  void clear() const { std::memset(first_, 0, pixels_ * form_.channels * bytes()); }

 private:
  size_t bytes() const { return form_.half ? 2 : 4; }
  size_t at(size_t pixel, uint32_t channel) const {
    return form_.interleaved ? pixel * 3 + channel : channel * pixels_ + pixel;
  }
  void put_number(size_t index, float number) const {
    const uint16_t half = half_bits(number);
    if (form_.half)
      std::memcpy(first_ + 2 * index, &half, sizeof half);
    else
      std::memcpy(first_ + 4 * index, &number, sizeof number);
  }

  const TensorForm& form_;
  const ChannelForm& channels_;
  size_t pixels_;
  uint8_t* first_;
};

// Three numbers, or one for all.
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
      for (uint32_t x = 0; x < form.width; ++x)
        writer.put(x, y, decoded<layout()>(source.numbers, sample_at<layout()>(row, static_cast<int32_t>(x))));
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
        for (uint32_t x = 0; x < form.width; ++x)
          writer.put(x, y, decoded<layout()>(source.numbers, mixed<layout()>(source, columns_[x], rows)));
      }
    });
  }
}

} // namespace millrace::handlers
