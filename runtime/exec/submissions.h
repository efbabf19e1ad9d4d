// The latest work that was submitted to a device, so that it can be named if the device fails (semantics.md 4.9).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/fence.h"

namespace millrace::exec {

class RunState;
struct StepRun;

// "blur (image.blur)", "the region of blur and edges", "copy video → cuda:0".
std::string words_of_work(const RunState& run, const StepRun& step);

// One a device, for all its streams together.
class Submissions {
 public:
  // Called by the thread that submits: the claimer of a segment of the device, under RunState::submitting if there are
  // several.
  void record(const StepRun& step, uint64_t ordinal, const device::Fence& fence);
  // "; under way was blur (image.blur) (tick 7)"; "" if the device has finished everything. Any thread.
  std::string under_way(const RunState& run, const device::Device& device) const;

 private:
  static constexpr size_t kKept = 512; // more than are ever under way
  struct Submission {
    std::atomic<const StepRun*> step{nullptr};
    std::atomic<uint64_t> tick{0}, sequence{0};
  };
  std::array<Submission, kKept> latest_;
  size_t count_ = 0; // the submitting thread's
};

} // namespace millrace::exec
