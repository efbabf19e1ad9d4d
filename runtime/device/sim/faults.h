// The faults of a simulated device (sim.h).
#pragma once

#include <cstdint>

namespace millrace::device {

// Faults that strike at a place counted in the order of submission, so that they strike there on every run and in every
// mode. Counts begin at 1; 0: never. A replay counts all bodies and copies in it; it fails as a whole, before the
// first.
struct SimFaults {
  uint64_t out_of_memory = 0; // the n-th allocate() finds no memory
  uint64_t fail_run = 0;      // the n-th body faults instead of running
  uint64_t fail_copy = 0;     // the n-th copy faults
  uint64_t lose_device = 0;   // the device is lost when the n-th body or copy would begin
  uint64_t hang_command = 0;  // the n-th body or copy does not begin before the device is poisoned
  // Only if bodies enqueue:
  uint64_t fail_record = 0; // the n-th recording fails
  uint64_t fail_replay = 0; // the device is lost when the n-th replay is submitted
};

} // namespace millrace::device
