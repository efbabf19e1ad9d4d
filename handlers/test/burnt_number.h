// Puts a number into a picture as black and white blocks along the top edge, and reads it back from a picture that was
// converted, resized or blurred on the way. So a test can tell which frame it sees.
//
// The strip is as wide as the picture and a sixteenth of its height (at least one row): 44 blocks. Four are a mark
// (white, black, white, black, which also shows the present levels of white and black), 32 are the number, highest bit
// first, and eight are a check of it. Blocks are found by proportion, so any resize keeps the number readable, as long
// as a block stays wider than the blur.
#pragma once

#include <millrace/payload.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "handlers/gpu/both.h"

namespace millrace::handlers {

inline constexpr uint32_t kNumberBlocks = 44;

// The rows that the strip covers.
MR_BOTH constexpr uint32_t burnt_number_rows(uint32_t height) { return std::max(height / 16, 1u); }

// Neighbouring numbers have different checks, and strips that are all black or all white are no number.
MR_BOTH constexpr uint8_t check_of(uint32_t number) {
  return static_cast<uint8_t>((number * 2654435761u >> 24) ^ 0xa5);
}

// True if a block of the number's strip is white.
MR_BOTH constexpr bool block_of(uint32_t number, uint32_t block) {
  if (block < 4) return block % 2 == 0;
  if (block < 36) return (number >> (35 - block)) & 1;
  return (check_of(number) >> (43 - block)) & 1;
}

// For interleaved 8-bit formats. A picture narrower than kNumberBlocks is not changed.
void burn_number(const ImageSpan& picture, uint32_t number);
// For any 8-bit format; reads the luma of YCbCr. Empty if there is no number or its check fails.
std::optional<uint32_t> read_burnt_number(const ImageView& picture);

} // namespace millrace::handlers
