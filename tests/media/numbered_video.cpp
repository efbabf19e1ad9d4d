// Numbered pictures through video.writer; see numbered_video.h.
#include "tests/media/numbered_video.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tests/media/plugin.h"

namespace millrace::media {

using testing::Result;
using testing::TableTest;
using testing::Value;

Value numbered_picture(uint32_t number, Pixel pixel) {
  const bool is_rgb = bytes_per_pixel(pixel) > 1;
  Value value = testing::image(pixel, kWidth, kHeight, [&](uint32_t x, uint32_t y, uint32_t c) {
    if (y < 8 && x < 48) return (number >> (x / 8) & 1u) ? 235u : 16u;
    return is_rgb ? 40u + 60u * c : kY;
  });
  if (pixel != Pixel::i420) return value;
  const ImageSpan picture = value.image();
  for (uint32_t p = 1; p < 3; ++p)
    for (uint32_t y = 0; y < kHeight / 2; ++y)
      std::memset(picture.plane(p) + y * picture.stride(p), p == 1 ? kU : kV, kWidth / 2);
  value.raw().as.image.color = MR_COLOR_BT601;
  value.raw().as.image.range = MR_RANGE_LIMITED;
  return value;
}

uint32_t burnt_number(const ImageView& picture) {
  uint32_t number = 0;
  for (uint32_t bit = 0; bit < 6; ++bit)
    if (picture.row(4)[(bit * 8 + 4) * bytes_per_pixel(picture.pixel())] > 127) number |= 1u << bit;
  return number;
}

void write_video(const std::string& path, uint32_t count, const std::string& codec, Pixel pixel) {
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", codec}});
  writer.period_ns(100'000'000);
  for (uint32_t i = 0; i < count; ++i) {
    writer.input("video", numbered_picture(i, pixel).at(int64_t{i} * 100'000'000));
    const Result result = writer.tick();
    INFO(result.error);
    REQUIRE(result.ok());
  }
  const mr_status status = writer.drain();
  INFO(writer.error());
  REQUIRE(status == MR_OK);
  writer.stop();
}

} // namespace millrace::media
