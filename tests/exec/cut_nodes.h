// Puts the handlers of a random graph on nodes.
#pragma once

#include <cstdint>
#include <string>

#include "sample.h"

namespace millrace::test {

// Puts the sample's handlers on one to four nodes, and draws the links between them. Most handlers stay beside what
// they read.
Nodes cut_over_nodes(Sample& sample, uint64_t seed);
// The node of each handler, a line each.
std::string places(const Sample& sample);

} // namespace millrace::test
