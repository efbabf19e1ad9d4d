// Numbered pictures through video.writer; see numbered_video.h.
#include "tests/opencv/numbered_video.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "tests/opencv/plugin.h"

namespace millrace::opencv {

using testing::Result;
using testing::TableTest;
using testing::Value;

Value numbered_picture(uint32_t number) {
  return testing::image(Pixel::bgr8, kWidth, kHeight, [number](uint32_t x, uint32_t y, uint32_t c) {
    if (y < 8 && x < 48) return (number >> (x / 8) & 1u) ? 255u : 0u;
    return 40u + 60u * c;
  });
}

uint32_t burnt_number(const ImageView& picture) {
  uint32_t number = 0;
  for (uint32_t bit = 0; bit < 6; ++bit)
    if (picture.row(4)[(bit * 8 + 4) * 3] > 127) number |= 1u << bit;
  return number;
}

void write_video(const std::string& path, uint32_t count, const std::string& codec) {
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", codec}});
  for (uint32_t i = 0; i < count; ++i) {
    writer.input("video", numbered_picture(i).at(int64_t{i} * 100'000'000));
    const Result result = writer.tick();
    INFO(result.error);
    REQUIRE(result.ok());
  }
  const mr_status status = writer.drain();
  INFO(writer.error());
  REQUIRE(status == MR_OK);
  writer.stop();
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

} // namespace millrace::opencv
