// Pictures with transparency in a palette.
#include "plugins/media/palette.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

#include "millrace/testing.h"
#include "plugins/media/frames.h"

namespace millrace::media {

TEST_CASE("a palette keeps colours that it has, and takes out what is more transparent than not") {
  for (const Pixel pixel : {Pixel::rgba8, Pixel::bgra8}) {
    const testing::Value value = testing::image(pixel, 4, 1);
    // Blue as dark as the entry that is given up, white, red, and black.
    const uint8_t colors[4][4] = {{0, 0, 85, 255}, {255, 255, 255, 128}, {255, 0, 0, 127}, {0, 0, 0, 0}};
    for (uint32_t x = 0; x < 4; ++x)
      for (uint32_t c = 0; c < 4; ++c)
        value.image().row(0)[4 * x + c] = colors[x][pixel == Pixel::bgra8 && c < 3 ? 2 - c : c];
    FrameMaker maker(AV_PIX_FMT_PAL8, false, {});
    const AVFrame& frame = *maker.copy(value.image());
    uint32_t shown[4] = {};
    for (int x = 0; x < 4; ++x) std::memcpy(&shown[x], frame.data[1] + 4 * frame.data[0][x], 4);
    const uint32_t dark = shown[0] & 0xffffff;
    CHECK((shown[0] >> 24) == 255);
    CHECK(dark <= 0x0000ff);
    CHECK(shown[1] == 0xffffffff);
    CHECK((shown[2] >> 24) == 0);
    CHECK((shown[3] >> 24) == 0);
    maker.release();
  }
}

} // namespace millrace::media
