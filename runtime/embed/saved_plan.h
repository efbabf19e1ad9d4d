// A plan that `plan --json` printed and that a run is to follow. It says where handlers run and what they cost, and the
// plan that is compiled from that must be the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace millrace::plan {
struct Plan;
}

namespace millrace::embed {

struct SavedPlan {
  std::string text; // "": none was given
  uint32_t workers = 1, library_threads = 0;
  std::vector<std::string> domains;
  std::map<std::string, std::string> places; // by handler
  std::map<std::string, int64_t> costs_ns;   // by handler, for those on the host
};

// Throws Failure (MR0115).
SavedPlan parse_plan(const std::string& text);
// Throws Failure (MR0412), which names the first difference, unless the compiled plan is the same.
void require_same(const SavedPlan& saved, const plan::Plan& compiled);

} // namespace millrace::embed
