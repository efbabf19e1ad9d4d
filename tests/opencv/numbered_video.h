// Videos whose pictures carry their number, and the bytes of files, for tests of what is read and written.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/testing.h"

namespace millrace::opencv {

inline constexpr uint32_t kWidth = 64, kHeight = 48;

// Picture `number`, with its number burnt in: six blocks of 8 × 8 pixels in the first rows, white for a bit that is
// set, on a grey that tells channels apart. Large enough blocks to survive a lossy codec.
testing::Value numbered_picture(uint32_t number);
uint32_t burnt_number(const ImageView& picture);

// Writes `count` numbered pictures at 10 a second, by video.writer.
void write_video(const std::string& path, uint32_t count, const std::string& codec = "");

std::string bytes_of(const std::string& path);
void put_bytes(const std::string& path, const std::string& bytes);

} // namespace millrace::opencv
