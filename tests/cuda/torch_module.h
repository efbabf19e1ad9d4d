// The functions of torch_replay.h, from the module beside this program, if it is there.
#pragma once

#include <string>

#include "torch_replay.h"

namespace millrace::test {

struct Torch {
  std::string why_not; // empty: it is there
  decltype(&torch_replay_stream) stream = nullptr;
  decltype(&torch_replay_capture) capture = nullptr;
  decltype(&torch_replay_launch) launch = nullptr;
  decltype(&torch_replay_nearest) nearest = nullptr;
};
const Torch& torch();

} // namespace millrace::test
