// Anchors to begin with.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/codebook/lanes.h"
#include "plugins/crew/crew.h"

namespace millrace::codebook {

enum class Start { farthest, kmeans_plus_plus, random, given };

// The vectors that are the first anchors, in their order; `count` is at most the number of rows, and above 0.
//
// farthest: vector 0, then again and again the vector whose distance to the nearest anchor is greatest, of several the
// last one (Gonzalez, "Clustering to minimize the maximum intercluster distance", 1985).
std::vector<uint32_t> farthest(const Rows& rows, uint32_t count, Crew& crew);
// k-means++: the first drawn evenly, then each with a probability that is proportional to its squared distance to the
// nearest anchor (Arthur and Vassilvitskii, 2007). Weights are whole numbers, 2^-40 of the largest.
std::vector<uint32_t> kmeans_plus_plus(const Rows& rows, uint32_t count, uint64_t seed, Crew& crew);
// Different vectors, drawn evenly.
std::vector<uint32_t> random_rows(const Rows& rows, uint32_t count, uint64_t seed);

} // namespace millrace::codebook
