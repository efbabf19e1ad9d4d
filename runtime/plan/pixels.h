// Calculates the pixel format of each picture of a graph (semantics.md 5.1). Private to runtime/plan, and pure: sets of
// formats in, formats out; negotiate.cpp makes the sets from a graph.
//
// Problem. An output may leave the choice of its format open, and a reader may take several. A handler whose output is
// like its input hands the format on, so the choice for one output binds readers far downstream. If nothing fits, a
// picture has to be converted, and the place decides how often: once before a fan-out, or once for each reader after
// it.
//
// Why this way. An output is like one input at most, and an input has one edge, so outputs and readers that are joined
// by `like` form a tree. The best of a tree is made of the best of its branches: exact, in one pass from the leaves to
// the root. Only the readers of one output depend on each other, because they share conversions. One output is
// converted to each format once at most, so all sets of formats are tried. Each place has a price, because pictures
// change their size on the way: a conversion is cheap after a resize that makes them smaller.
//
// Limits. It does not know what a handler does with its formats beyond the declarations of its ports. If a
// handler makes another format of its input, negotiation begins again after it. Prices are those of the host.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "millrace/abi.h"

namespace millrace::plan {

inline constexpr uint32_t kNoOutput = UINT32_MAX;
// Formats that have one colour for 2 × 2 pixels.
inline constexpr uint64_t kYcbcr = 1ull << MR_PIXEL_NV12 | 1ull << MR_PIXEL_I420 | 1ull << MR_PIXEL_P010;

// A set of formats has a bit for each MR_PIXEL_*; a format is one of these numbers.
using ByPixel = std::array<uint64_t, MR_PIXEL_COUNT>;
struct PixelTree {
  struct Reader {
    uint64_t takes = 0;
    bool may_convert = true;
    std::vector<uint32_t> passes_to; // outputs that are like what it gets
    ByPixel own_ns{};                // time of its call, by the format that it gets; 0: not measured
  };
  // The readers of each output. The first output is the root; each other one comes later than the output whose reader
  // passes its format on to it.
  std::vector<std::vector<uint32_t>> outputs;
  std::vector<Reader> readers;
  uint64_t choices = 0;          // formats of the root
  uint32_t colours = 0;          // readers at the ends that would take colours and lose them if the root is gray
  uint64_t reads = 0, makes = 0; // formats that a conversion can read, and make
  std::vector<ByPixel> bytes;    // by output: size of one picture, by format
  std::vector<std::array<ByPixel, MR_PIXEL_COUNT>> conversion_ns; // by output: [from][to]
};

struct PixelChoice {
  uint32_t format = 0;             // the root's
  std::vector<uint32_t> gets;      // by reader: its format; the picture is converted if the output's differs
  std::vector<uint32_t> converted; // outputs with conversions after them
  uint32_t impossible = 0;         // readers that cannot be served; they get what the output has
  uint32_t lost = 0;               // readers that would take colours and get gray, or one colour for 2 × 2 pixels
  uint64_t ns = 0;                 // time of all conversions, and of the readers as far as they are measured
};

// Chooses the fewest readers that cannot be served, then the fewest that would take colours and lose them to gray, then
// the fewest conversions, then the fewest that make colours from halved chroma where the root has them whole, then the
// least time. Conversions from one output to one format count as one. Ties: the root gets the format of fewest bytes,
// then the lowest; then conversions come as late as possible, to the format that comes first among those that the
// readers take. `spared`: an output that is not converted, to see what another place costs.
PixelChoice choose_pixels(const PixelTree& tree, uint32_t spared = kNoOutput);

} // namespace millrace::plan
