// Graphs cut over nodes at random.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spread.h"

namespace millrace::test {

// Puts the handlers on one to four nodes with random links, of which some are cut for a while. The sources of a clock
// are on one node. Most handlers stay beside what they read.
Nodes cut_at_random(Pipeline& pipeline, uint64_t seed);

// Nodes of these names with such links.
Nodes linked_at_random(const std::vector<std::string>& names, uint64_t seed);

// "detect on gpu", a line each.
std::string places_of(const Pipeline& pipeline);

} // namespace millrace::test
