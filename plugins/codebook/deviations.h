// How far the members of each cell lie from their anchor, dimension by dimension.
#pragma once

#include <cstdint>
#include <span>

#include "millrace/payload/half_floats.h"
#include "plugins/codebook/lanes.h"

namespace millrace::codebook {

// The root of the mean of (x − a)² over a cell's members, in double precision and rounded to half: `made` is [m, d],
// row by row. A cell without members has zeros. `labels`: one for each row.
void find_deviations(const Rows& rows, const Rows& anchors, std::span<const uint32_t> labels, std::span<Float16> made);

} // namespace millrace::codebook
