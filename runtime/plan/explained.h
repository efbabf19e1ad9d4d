// Copies, reads in place and inserted conversions, as a plan tells a person of them. Steps do them, and whatever runs a
// plan reads the steps. See plan.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "plan/step.h"

namespace millrace::plan {

// A copy across a boundary, as `plan` prints it.
struct TransferPlan {
  uint32_t step = 0;
  std::vector<uint32_t> edges;
  std::vector<std::string> route; // domains
  uint64_t bytes = 0;
  double predicted_us = 0;
  double one_by_one_us = 0; // for several outputs in one copy: the time of their copies one by one
  bool guessed = false;     // the hop was not measured
  std::string reason;
};

// An input that a device reads in place instead of copying it (semantics.md 3.6).
struct AccessPlan {
  uint32_t step = 0, input = 0; // the reader
  uint32_t edge = kNone;
  uint32_t domain = 0; // the domain of the bytes
  uint64_t bytes = 0;
  double predicted_us = 0;
  double copy_us = 0; // time of one copy for all readers in the reader's domain
};

// A conversion that negotiation added to the graph.
struct InsertedPlan {
  uint32_t handler = 0;             // index into Plan::handlers
  graph::Handler declared;          // as a person would have written it
  std::string from, to;             // pixel formats: "bgr8", "rgb8"; sizes if it turns or scales: "64×48"
  std::string source;               // "video.video"
  std::vector<std::string> readers; // "boxes.video", …
  std::string reason;               // "boxes takes rgb8"
  std::string elsewhere;            // "2.33 ms after video.video instead of 1.04"; empty: there is no other place
  double predicted_us = 0;          // a call; 0: not known
  uint32_t width = 0, height = 0;
  uint64_t bytes = 0; // size of the picture that it makes
};

} // namespace millrace::plan
