// Videos whose pictures carry their number, for tests of what is read and written.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/testing.h"

namespace millrace::media {

inline constexpr uint32_t kWidth = 64, kHeight = 48;

// Picture `number`, with its number burnt in: six blocks of 8 × 8 pixels in the first rows, bright for a bit that is
// set. Large enough blocks to survive a lossy codec. Below them is a colour: kY, kU and kV where the format is YCbCr,
// else 40, 100 and 160 in the order of the bytes.
inline constexpr uint8_t kY = 90, kU = 160, kV = 70;
testing::Value numbered_picture(uint32_t number, Pixel pixel = Pixel::i420);
// In any format whose first plane tells bright from dark.
uint32_t burnt_number(const ImageView& picture);

// Writes `count` numbered pictures at 10 a second, by video.writer.
void write_video(const std::string& path, uint32_t count, const std::string& codec = "", Pixel pixel = Pixel::i420);

} // namespace millrace::media
