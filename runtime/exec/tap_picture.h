// Pictures as a tap shows them: one sample a pixel, which the thread that settles picks, as rgba8.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/abi.h"

namespace millrace::exec {

inline constexpr uint32_t kRgbaBytes = 4;

// The middle of the part that index `i` of `shown` has of `all`.
inline uint32_t middle_of(uint32_t i, uint32_t shown, uint32_t all) {
  return static_cast<uint32_t>((2 * uint64_t{i} + 1) * all / (2 * uint64_t{shown}));
}

struct ShownPicture {
  uint32_t width = 0, height = 0; // as it is in the run
  uint32_t shown_width = 0, shown_height = 0;
  std::vector<uint8_t> rgba; // rows without gaps
};

// The size at which a picture is shown: its longer side has at most `longest` pixels, square ones. Never larger than
// the picture.
struct ShownSize {
  uint32_t width = 0, height = 0;
};
ShownSize shown_size(const mr_image& image, uint32_t longest);

// Picks one sample for each pixel that is shown into `to`, which has room for them. `columns` has room for a number for
// each column that is shown. Allocates nothing.
void pick_picture(const mr_image& image, const uint8_t* data, uint32_t longest, std::span<uint32_t> columns,
                  std::span<uint8_t> to);
// The picture from what was picked.
ShownPicture show_picture(const mr_image& image, uint32_t longest, std::span<const uint8_t> picked);

} // namespace millrace::exec
