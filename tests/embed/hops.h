// Hops by their ends.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "plan/hops.h"

namespace millrace::embed {

// Throws std::invalid_argument where there is none.
inline const plan::Hop& hop_of(const std::vector<plan::Hop>& hops, const std::string& from, const std::string& to) {
  for (const plan::Hop& hop : hops)
    if (hop.from == from && hop.to == to) return hop;
  throw std::invalid_argument("no hop from " + from + " to " + to);
}

} // namespace millrace::embed
