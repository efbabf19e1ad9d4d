// A number that is part of the picture: written as black and white blocks along the top edge, and read back from a
// picture that was converted, resized or blurred on the way. So a test can tell which frame it is looking at.
//
// The strip is as wide as the picture and a sixteenth of its height (at least one row): 44 blocks, of which four are
// a mark (white, black, white, black: they also say what white and black became), 32 are the number, highest bit first,
// and eight a check of it. Blocks are found by proportion, so any resize keeps the number readable, as long as a
// block stays wider than the blur.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <optional>

namespace millrace::handlers {

inline constexpr uint32_t kNumberBlocks = 44;

// Rows that the strip covers.
uint32_t burnt_number_rows(uint32_t height);
// Interleaved 8-bit formats. A picture narrower than kNumberBlocks is left as it is.
void burn_number(const ImageSpan& picture, uint32_t number);
// Any 8-bit format; of YCbCr the luma is read. Empty where there is no number or its check fails.
std::optional<uint32_t> read_burnt_number(const ImageView& picture);

} // namespace millrace::handlers
