// Which pixel format each picture of a graph gets, as a calculation (semantics.md 5.1). Private to runtime/plan, and
// pure: sets of formats in, formats out; negotiate.cpp makes the sets from a graph.
//
// Problem. An output may leave the choice of its format, and a reader may take several. A handler whose output is like
// its input hands the format on, so that what is chosen for one output binds readers far downstream. Where nothing
// fits, a picture has to be converted, and the place decides how often: once before a fan-out, after it once for each
// reader.
//
// Why this way. An output is like one input at most, and an input has one edge, so all that hangs together by `like`
// is a tree, and the best of a tree is the best of its branches: exact, in one pass from the leaves to the root. Only
// the readers of one output depend on each other, since they share conversions; of those there are at most as many as
// there are formats, so all sets of them are tried.
//
// What it is not. It does not know what a handler does with its formats beyond what its ports declare; where a handler
// makes something else of its input, negotiation begins again after it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "millrace/abi.h"

namespace millrace::plan {

// Sets of formats have a bit for each MR_PIXEL_*, formats are those numbers.
struct PixelTree {
  struct Reader {
    uint64_t takes = 0;
    bool may_convert = true;
    std::vector<uint32_t> passes_to; // outputs that are like what it gets
  };
  // The readers of each output. The first output is the root; each other one comes later than the output whose reader
  // passes its format on to it.
  std::vector<std::vector<uint32_t>> outputs;
  std::vector<Reader> readers;
  uint64_t choices = 0;                         // of the root
  uint32_t colours = 0;                         // readers at its ends that would take them: what a gray root costs
  uint64_t reads = 0, makes = 0;                // what a conversion can read and make
  std::array<uint64_t, MR_PIXEL_COUNT> bytes{}; // of one picture, by format
};

struct PixelChoice {
  uint32_t format = 0;        // of the root
  std::vector<uint32_t> gets; // by reader: what it gets, converted where that differs from the output's own
  uint32_t conversions = 0;   // those of one output to one format are one
  uint32_t impossible = 0;    // readers that cannot be served; they get what the output has
};

// The fewest readers that cannot be served, then the fewest that would take colours and lose them to gray, then the
// fewest conversions. Of equals: for the root's format the fewest
// bytes, then the lowest; with that format, conversions as late as may be, to what comes first among what is taken.
PixelChoice choose_pixels(const PixelTree& tree);

} // namespace millrace::plan
