// Upkeep of a codebook between iterations: anchors that lie close together are merged, cells that are large are split.
#pragma once

#include <cstdint>

#include "plugins/codebook/cells.h"
#include "plugins/codebook/labels.h"
#include "plugins/codebook/lanes.h"
#include "plugins/codebook/points.h"
#include "plugins/crew/crew.h"

namespace millrace::codebook {

struct Upkeep {
  uint32_t merged = 0, split = 0;
};

// Both take `cells` sorted by `labels`, and leave them sorted. Distances are those of lanes.h. Comparisons are in
// double precision.

// The published rule. Anchors that are nearer to one another than a tenth of the mean distance between anchors are
// merged into the first of them, which moves to their mean, weighed by members. Then cells are split in two that have
// more than twice their share of the vectors, or a mean squared distance above 2 T. The second half is a new anchor, of
// which there are at most `anchors_max`. A merged anchor stays where it is and gets members again on the next
// iteration, so this rule can raise the energy; `corrected` does not.
Upkeep keep_as_published(const Points& points, float temperature, uint32_t anchors_max, Rows& anchors, Labels& labels,
                         Cells& cells, Crew& crew);

// Up to m/16 times: the two anchors whose union costs least, n₁n₂ / (n₁ + n₂) · |a₁ − a₂|², become one, and the freed
// anchor splits the cell of the greatest energy, if the energy falls by that. The number of anchors stays.
Upkeep keep_corrected(const Points& points, Rows& anchors, Labels& labels, Cells& cells, Crew& crew);

} // namespace millrace::codebook
