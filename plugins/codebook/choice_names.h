// The names by which pipelines choose, in the order of the enumerations that they stand for.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "plugins/codebook/fit.h"

namespace millrace::codebook {

using Names = std::initializer_list<const char*>;
inline constexpr Names kStartNames = {"farthest", "kmeans++", "random", "given"};
inline constexpr Names kCoolingNames = {"linear", "exponential", "harmonic"};
inline constexpr Names kMeanNames = {"plain", "trimmed", "huber"};
inline constexpr Names kMaintenanceNames = {"none", "as_published", "corrected"};
inline constexpr Names kMetricNames = {"l2", "cosine"};
inline constexpr Names kBadNames = {"refuse", "skip"};

// `name` is one of the names.
template <class Choice>
Choice chosen(std::string_view name, Names names) {
  return static_cast<Choice>(std::find(names.begin(), names.end(), name) - names.begin());
}
template <class Choice>
const char* name_of(Choice choice, Names names) {
  return names.begin()[static_cast<size_t>(choice)];
}

} // namespace millrace::codebook
