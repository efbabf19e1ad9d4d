// A module with devices: a shared library that is loaded where it is there and has a driver. Both sides of this
// boundary are built together; `build` is compared before anything else is called.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/pinned_ranges.h"

namespace millrace::device {

struct ModuleOptions {
  std::vector<uint32_t> devices; // by the driver's order
  std::shared_ptr<PinnedRanges> pinned;
  std::string faults; // for tests: calls that fail, see cuda/api.h
};

// A run takes this much of a device beside what its plan lays out: the ticks' numbers, recordings, code of kernels that
// is loaded when it is first launched, and what the driver rounds each request up to, at most 32 MiB in a pool.
inline constexpr uint64_t kTakenBeside = 128ull << 20;

struct DeviceModule {
  const char* build;
  // How many devices there are; 0 with the reason in `why`. Makes no context.
  uint32_t (*count)(std::string& why);
  // How many bytes a run may ask a device for now: what is free there, less kTakenBeside. 0 where nobody can tell.
  // Makes the device's context, which a run needs anyway and which takes some hundred MiB of it: that is not free any
  // more.
  uint64_t (*bytes_free)(uint32_t device);
  // What a device is, in words: "NVIDIA H200, 139 GiB, compute capability 9.0".
  std::string (*describe)(uint32_t device);
  // In the order of `devices`; they know each other as peers. Empty with the reason in `why`.
  std::vector<std::unique_ptr<Device>> (*make)(const ModuleOptions& options, std::string& why);
};

inline constexpr const char* kModuleSymbol = "millrace_device_module";
// Changes with everything that both sides must have alike.
inline constexpr const char* kModuleBuild = "3 " __VERSION__;

using DeviceModuleEntry = const DeviceModule* (*)();

} // namespace millrace::device
