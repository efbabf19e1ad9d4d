// Describes the difference between two pipelines, for an error that a person reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::fleet {

inline constexpr size_t kShownValueBytesMax = 60;
inline constexpr size_t kDifferencesMax = 3; // keys that are shown; one that differs says enough

// The first keys that differ in two pipelines in canonical form (graph/to_yaml.cpp), one a line:
//
//   camera.count: 200 on edge, 7 on gpu
//   blur.radius: 3 on edge, not given on gpu
//
// Empty if none is found: the order differs.
struct PipelineOfNode {
  std::string node;
  std::string_view text;
};
std::vector<std::string> pipeline_difference(const PipelineOfNode& left, const PipelineOfNode& right);

} // namespace millrace::fleet
