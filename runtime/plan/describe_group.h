// Descriptions of groups, for the printed forms of a plan. Private to runtime/plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/group_plan.h"

namespace millrace::plan {

struct Plan;
struct Step;

std::string rule_word(BatchRule rule); // "free", "fixed", "learnt"
// The numbers of items that firings are made for: 1, 2, 4, …
std::vector<uint32_t> buckets_of(const GroupPlan& group);
// The steps by which the streams give it items.
std::vector<uint32_t> givers_of(const GroupPlan& group);

// How a group that learns is expected to work: by the costs of its handlers and the rates of its streams.
struct OperatingPoint {
  uint32_t items = 1; // a firing
  bool set_by_budget = false;
  double rate = 0;     // items per second
  int64_t item_ns = 0; // the time of one
  double load = 0;     // the part of the time that it works
};
// None if the group does not learn, or a cost or a rate is not known.
std::optional<OperatingPoint> expected_point(const Plan& plan, const GroupPlan& group);

struct BytesOf {
  std::string name; // "detect.input", "model.output"
  uint64_t bytes = 0;
  // The expected time of the copy on the host: 10 to 15 GB/s were measured on an EPYC, beside other work.
  double us() const { return static_cast<double>(bytes) / 10'000; }
};
// The bytes into which the rows of each dense input of a handler are gathered, if they do not lie side by side.
std::vector<BytesOf> gathered_by(const Plan& plan, const Step& step);
// The results that are copied out of their firing, and the bytes of an item.
std::vector<BytesOf> copied_out_of(const Plan& plan, const GroupPlan& group);

// A line or two, without the group's name.
std::vector<std::string> group_lines(const Plan& plan, const GroupPlan& group);

} // namespace millrace::plan
