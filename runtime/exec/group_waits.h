// Descriptions of what a group waits for, for the monitor's lines about a run that stands still (monitor.cpp).
#pragma once

#include <cstdint>
#include <string>

#include "exec/state.h"

namespace millrace::exec {

// " (tick 7)"; in a group's pace " (firing 2)"
std::string words_of_ordinal(const PaceRun& pace, uint64_t ordinal);
// The step's name, with its stream if it gives items to a group: "give blur of gate7".
std::string name_with_stream(const StepRun& step);
// For the head of a group's pace that fires nothing: "more items of cameras, since 2 wait".
std::string missing_items(GroupRun& group);

} // namespace millrace::exec
