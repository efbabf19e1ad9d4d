// Spreads rows of three or four interleaved 8-bit channels into one array a channel, and packs them again.
#pragma once

#include <cstdint>

namespace millrace::handlers {

// These handle `count` pixels; the arrays do not overlap. Nothing is read or written beyond them.
void unpack3(const uint8_t* in, uint32_t count, uint8_t* first, uint8_t* second, uint8_t* third);
void unpack4(const uint8_t* in, uint32_t count, uint8_t* first, uint8_t* second, uint8_t* third, uint8_t* fourth);
void pack3(const uint8_t* first, const uint8_t* second, const uint8_t* third, uint32_t count, uint8_t* out);
void pack4(const uint8_t* first, const uint8_t* second, const uint8_t* third, const uint8_t* fourth, uint32_t count,
           uint8_t* out);
// Converts rows of 3 or 4 channels to rows of 3 or 4 without arrays in between. `turns` swaps the first and the third;
// a missing fourth channel becomes 255.
void reorder(const uint8_t* in, uint32_t in_channels, uint32_t count, bool turns, uint8_t* out, uint32_t out_channels);

} // namespace millrace::handlers
