// How far the members of each cell lie from their anchor, dimension by dimension.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/payload/half_floats.h"

namespace millrace::codebook {

// The root of the mean of (x − a)² over a cell's members, in double precision and rounded to half: [m, d], as
// `anchors`. Cells without members have zeros, and so have dimensions in which all members lie on the anchor. Vectors
// with a label that no anchor has are left out. `vectors`: [n, d], n as many as labels.
template <class Element>
std::vector<Float16> deviations(std::span<const Element> vectors, std::span<const Float16> anchors,
                                std::span<const uint32_t> labels, uint32_t dimensions);

} // namespace millrace::codebook
