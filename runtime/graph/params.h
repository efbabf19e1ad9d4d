// The parameters that a handler of a pipeline is given: finds one by its name, sets one.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace millrace::graph {

// Null: it is not given.
inline const Param* find_param(const std::vector<Param>& params, const std::string& name) {
  const auto found = std::find_if(params.begin(), params.end(), [&](const Param& param) { return param.name == name; });
  return found == params.end() ? nullptr : &*found;
}

// Replaces the one of this name, or adds it.
inline void set_param(std::vector<Param>& params, Param param) {
  const auto found =
      std::find_if(params.begin(), params.end(), [&](const Param& own) { return own.name == param.name; });
  if (found == params.end())
    params.push_back(std::move(param));
  else
    *found = std::move(param);
}

} // namespace millrace::graph
