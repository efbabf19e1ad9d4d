// Asks handlers for their facts: sources side by side, each with a time limit (semantics.md 8.7).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "millrace/abi.h"

namespace millrace::plugin {
class Instance;
}

namespace millrace::plan {

// At most this many sources are probed at a time: beyond that a network or a disk answers none of them sooner.
inline constexpr size_t kProbesMax = 16;

// A source waits for something outside, which may never answer. It is named after its patience (`budget:`, else 10 s),
// as every call is. After `grace_ns` more it is interrupted, and after as much again it is given up. Other handlers may
// load for minutes and have no limit.
struct ProbeLimits {
  int64_t patience_ns = 10'000'000'000;    // if the handler has none of its own
  int64_t grace_ns = 5'000'000'000;        // as RunOptions::grace_ns
  bool of_one = false;                     // a source that is the only one has a limit too
  const std::atomic<bool>* over = nullptr; // any thread sets it: no answer is waited for any more
};

// The facts of a handler, or why it cannot be opened.
struct ProbeAnswer {
  mr_facts facts{};
  std::string error; // "": it was opened, and the facts are valid
  int fault = 0;     // the code that the handler gave to its error; 0: none
};

// Probes these instances, beginning with these facts; the answers are in their order. The caller's thread probes all
// that are no sources. It also probes a source that is the only one, without a limit, unless `of_one` says otherwise.
// Returns once each has answered or was given up. An instance that was given up is taken from its owner and never
// destroyed, because its call may go on. Plugins promise that their instances do not disturb each other.
std::vector<ProbeAnswer> probe_all(const std::vector<std::unique_ptr<plugin::Instance>*>& instances,
                                   const mr_facts& first, const ProbeLimits& limits = {});

// True if a call was given up that may still go on. A program then ends without running destructors, because the call
// may need what they destroy.
bool any_probe_goes_on();

} // namespace millrace::plan
