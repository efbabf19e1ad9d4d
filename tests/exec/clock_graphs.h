// Random graphs of several clocks, and the handlers that tests of clocks are made of.
#pragma once

#include <cstdint>
#include <string>

#include "harness.h"

namespace millrace::test {

// c.timed: a source whose media times are what its parameters say; its values count.
const mr_plugin& clocks_plugin();

// The media time of its n-th value.
int64_t timed_at(int64_t n, int64_t rate, int64_t start_ms, int64_t jitter_us);

Setup clocks_setup(uint32_t workers, bool virtual_time);

// Calls take what the plan does not know: it is cut once more while it runs, wherever ticks stand then.
Setup measured_setup();

// Two or three clocks, one perhaps without a source, whose handlers read each other in all directions. Each handler
// writes down what it saw, under its name.
Pipeline draw_clocks(uint64_t seed);

// The graph in words, with all that matters between clocks.
std::string text_of(const Pipeline& pipeline);

// A reader with the clock of the source `of`, which reads `from` by this policy and writes down what it saw.
graph::Edge& read_across(Pipeline& pipeline, const std::string& name, const std::string& of, const std::string& from,
                         graph::Policy policy);

} // namespace millrace::test
