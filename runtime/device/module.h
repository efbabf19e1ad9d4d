// A module with devices: a shared library that is loaded if it is present and has a driver. Both sides of this boundary
// are built together; `build` is compared before anything else is called.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/pinned_ranges.h"

namespace millrace::device {

struct ModuleOptions {
  std::vector<uint32_t> devices; // indices in the driver's order
  std::shared_ptr<PinnedRanges> pinned;
  std::string faults; // for tests: calls that fail, see cuda/api.h
};

// A run takes this much of a device in addition to what its plan lays out: the ticks' numbers, recordings, code of
// kernels that is loaded when it is first launched, and the driver's rounding of each request, at most 32 MiB in a
// pool.
inline constexpr uint64_t kTakenBeside = 128ull << 20;

struct DeviceModule {
  const char* build;
  // How many devices there are; 0 with the reason in `why`. Makes no context.
  uint32_t (*count)(std::string& why);
  // How many bytes a run may ask a device for now: its free memory less kTakenBeside, and 0 if the driver cannot tell.
  // Makes the device's context, which a run needs anyway. The context takes some hundred MiB, which then no longer
  // count as free.
  uint64_t (*bytes_free)(uint32_t device);
  // Describes a device in words: "NVIDIA H200, 139 GiB, compute capability 9.0".
  std::string (*describe)(uint32_t device);
  // Makes devices in the order of `devices`; they know each other as peers. Empty with the reason in `why`.
  std::vector<std::unique_ptr<Device>> (*make)(const ModuleOptions& options, std::string& why);
};

inline constexpr const char* kModuleSymbol = "millrace_device_module";
// Changes with everything that must be the same on both sides.
inline constexpr const char* kModuleBuild = "3 " __VERSION__;

using DeviceModuleEntry = const DeviceModule* (*)();

} // namespace millrace::device
