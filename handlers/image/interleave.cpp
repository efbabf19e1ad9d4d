// Reorders channels with vector shuffles: sixteen pixels of three bytes are three vectors. Compilers do not find these
// shuffles by themselves; written out, they make the change of order five times as fast.
#include "handlers/image/interleave.h"

#include <cstddef>

#include "handlers/image/bytes16.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {

MILLRACE_VECTORIZE void unpack3(const uint8_t* in, uint32_t count, uint8_t* first, uint8_t* second, uint8_t* third) {
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const Bytes16 a = load16(in + 3 * i), b = load16(in + 3 * i + 16), c = load16(in + 3 * i + 32);
    // clang-format off
    const Bytes16 x = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);
    const Bytes16 y = __builtin_shufflevector(a, b, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 0, 0, 0, 0, 0);
    const Bytes16 z = __builtin_shufflevector(a, b, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 0, 0, 0, 0, 0, 0);
    store16(first + i, __builtin_shufflevector(x, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29));
    store16(second + i, __builtin_shufflevector(y, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30));
    store16(third + i, __builtin_shufflevector(z, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31));
    // clang-format on
  }
  for (; i < count; ++i) {
    first[i] = in[3 * i];
    second[i] = in[3 * i + 1];
    third[i] = in[3 * i + 2];
  }
}

// A vector has four pixels. Two vectors are sorted into eight bytes for each channel, and these are joined in pairs.
MILLRACE_VECTORIZE void unpack4(const uint8_t* in, uint32_t count, uint8_t* first, uint8_t* second, uint8_t* third,
                                uint8_t* fourth) {
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8_t* from = in + size_t{i} * 4;
    const Bytes16 a = load16(from), b = load16(from + 16), c = load16(from + 32), d = load16(from + 48);
    // clang-format off
    const Bytes16 ab = __builtin_shufflevector(a, b, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const Bytes16 cd = __builtin_shufflevector(c, d, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const Bytes16 ef = __builtin_shufflevector(a, b, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
    const Bytes16 gh = __builtin_shufflevector(c, d, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
    store16(first + i, __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
    store16(second + i, __builtin_shufflevector(ab, cd, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
    store16(third + i, __builtin_shufflevector(ef, gh, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
    store16(fourth + i, __builtin_shufflevector(ef, gh, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
    // clang-format on
  }
  for (; i < count; ++i) {
    first[i] = in[size_t{i} * 4];
    second[i] = in[size_t{i} * 4 + 1];
    third[i] = in[size_t{i} * 4 + 2];
    fourth[i] = in[size_t{i} * 4 + 3];
  }
}

MILLRACE_VECTORIZE void pack3(const uint8_t* first, const uint8_t* second, const uint8_t* third, uint32_t count,
                              uint8_t* out) {
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const Bytes16 x = load16(first + i), y = load16(second + i), z = load16(third + i);
    // clang-format off
    const Bytes16 a = __builtin_shufflevector(x, y, 0, 16, 0, 1, 17, 0, 2, 18, 0, 3, 19, 0, 4, 20, 0, 5);
    store16(out + 3 * i, __builtin_shufflevector(a, z, 0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15));
    const Bytes16 b = __builtin_shufflevector(x, y, 21, 0, 6, 22, 0, 7, 23, 0, 8, 24, 0, 9, 25, 0, 10, 26);
    store16(out + 3 * i + 16, __builtin_shufflevector(b, z, 0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15));
    const Bytes16 c = __builtin_shufflevector(x, y, 0, 11, 27, 0, 12, 28, 0, 13, 29, 0, 14, 30, 0, 15, 31, 0);
    store16(out + 3 * i + 32, __builtin_shufflevector(c, z, 26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31));
    // clang-format on
  }
  for (; i < count; ++i) {
    out[3 * i] = first[i];
    out[3 * i + 1] = second[i];
    out[3 * i + 2] = third[i];
  }
}

MILLRACE_VECTORIZE void pack4(const uint8_t* first, const uint8_t* second, const uint8_t* third, const uint8_t* fourth,
                              uint32_t count, uint8_t* out) {
  uint32_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const Bytes16 x = load16(first + i), y = load16(second + i), z = load16(third + i), w = load16(fourth + i);
    // clang-format off
    const Bytes16 low = __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const Bytes16 high = __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    const Bytes16 low2 = __builtin_shufflevector(z, w, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const Bytes16 high2 = __builtin_shufflevector(z, w, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    uint8_t* to = out + size_t{i} * 4;
    store16(to, __builtin_shufflevector(low, low2, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23));
    store16(to + 16, __builtin_shufflevector(low, low2, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31));
    store16(to + 32, __builtin_shufflevector(high, high2, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23));
    store16(to + 48,
            __builtin_shufflevector(high, high2, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31));
    // clang-format on
  }
  for (; i < count; ++i) {
    out[size_t{i} * 4] = first[i];
    out[size_t{i} * 4 + 1] = second[i];
    out[size_t{i} * 4 + 2] = third[i];
    out[size_t{i} * 4 + 3] = fourth[i];
  }
}

namespace {

// One vector holds at least four pixels of three or four bytes. If pixels of three bytes are written, the four surplus
// bytes are overwritten by the next vector. For this reason, and because sixteen bytes are read, the last pixels are
// done one by one.
constexpr uint32_t kAtOnce = 4, kSpare = 6;

template <uint32_t kFrom, uint32_t kTo, bool kTurns>
inline __attribute__((always_inline)) Bytes16 reordered(const Bytes16& in) {
  constexpr int kRed = kTurns ? 2 : 0, kBlue = kTurns ? 0 : 2, kOpaque = 16;
  const Bytes16 opaque = Bytes16{} + 255;
  constexpr int kStep = kFrom, kAlpha = kFrom == 4 ? 3 : kOpaque, kNext = kFrom == 4 ? kStep : 0;
  if constexpr (kTo == 4)
    return __builtin_shufflevector(in, opaque, kRed, 1, kBlue, kAlpha, kStep + kRed, kStep + 1, kStep + kBlue,
                                   kAlpha + kNext, 2 * kStep + kRed, 2 * kStep + 1, 2 * kStep + kBlue,
                                   kAlpha + 2 * kNext, 3 * kStep + kRed, 3 * kStep + 1, 3 * kStep + kBlue,
                                   kAlpha + 3 * kNext);
  else
    return __builtin_shufflevector(in, opaque, kRed, 1, kBlue, kStep + kRed, kStep + 1, kStep + kBlue, 2 * kStep + kRed,
                                   2 * kStep + 1, 2 * kStep + kBlue, 3 * kStep + kRed, 3 * kStep + 1, 3 * kStep + kBlue,
                                   16, 16, 16, 16);
}

template <uint32_t kFrom, uint32_t kTo, bool kTurns>
inline __attribute__((always_inline)) void reorder_row(const uint8_t* in, uint32_t count, uint8_t* out) {
  uint32_t i = 0;
  for (; i + kSpare <= count; i += kAtOnce)
    store16(out + kTo * i, reordered<kFrom, kTo, kTurns>(load16(in + kFrom * i)));
  for (; i < count; ++i) {
    const uint8_t* from = in + kFrom * i;
    uint8_t* to = out + kTo * i;
    to[0] = from[kTurns ? 2 : 0];
    to[1] = from[1];
    to[2] = from[kTurns ? 0 : 2];
    if constexpr (kTo == 4) to[3] = kFrom == 4 ? from[3] : uint8_t{255};
  }
}

MILLRACE_VECTORIZE void reorder33(const uint8_t* in, uint32_t count, uint8_t* out) {
  reorder_row<3, 3, true>(in, count, out);
}
MILLRACE_VECTORIZE void reorder44(const uint8_t* in, uint32_t count, uint8_t* out) {
  reorder_row<4, 4, true>(in, count, out);
}
MILLRACE_VECTORIZE void reorder34(const uint8_t* in, uint32_t count, bool turns, uint8_t* out) {
  if (turns)
    reorder_row<3, 4, true>(in, count, out);
  else
    reorder_row<3, 4, false>(in, count, out);
}
MILLRACE_VECTORIZE void reorder43(const uint8_t* in, uint32_t count, bool turns, uint8_t* out) {
  if (turns)
    reorder_row<4, 3, true>(in, count, out);
  else
    reorder_row<4, 3, false>(in, count, out);
}

} // namespace

void reorder(const uint8_t* in, uint32_t in_channels, uint32_t count, bool turns, uint8_t* out, uint32_t out_channels) {
  if (in_channels == out_channels && !turns)
    std::memcpy(out, in, size_t{count} * in_channels);
  else if (in_channels == 3 && out_channels == 3)
    reorder33(in, count, out);
  else if (in_channels == 4 && out_channels == 4)
    reorder44(in, count, out);
  else if (in_channels == 3)
    reorder34(in, count, turns, out);
  else
    reorder43(in, count, turns, out);
}

} // namespace millrace::handlers
