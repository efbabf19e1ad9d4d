// Descriptions of crossings: their values, their readers, and the names of values that come from other nodes. For the
// printed forms of a plan. Private to runtime/plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/abi.h"

namespace millrace::plan {

struct Channel;
struct CrossingPlan;
struct Plan;

struct CrossingValue {
  std::string name; // "camera.out"
  mr_format format{};
  uint32_t delay = 0; // the tick has the value of so many ticks before
  uint64_t bytes = 0; // the most that it has; UINT64_MAX: not known
};

// The values of a tick of the crossing, in their order.
std::vector<CrossingValue> values_of(const Plan& plan, const CrossingPlan& crossing);
// The same in words, with the bytes of a tick: "camera.out rgb8 640×480, at most 900.0 KiB a tick".
std::string parcel_words(const Plan& plan, const CrossingPlan& crossing);
const char* delivery_word(const CrossingPlan& crossing); // "live" or "reliable"
// The use of its ticks: "joined by stage 2", "posted for overlay.boxes (latest)", "tells slow how far main is".
std::string use_words(const Plan& plan, const CrossingPlan& crossing);

// The output whose value a channel's tick has at this place: "camera.out".
std::string value_name(const Plan& plan, const Channel& channel, uint32_t value);
// The output whose value comes from another node as this one, an entry's: "camera.out". Else the output's own name:
// "blur.video".
std::string output_name(const Plan& plan, uint32_t output);

} // namespace millrace::plan
