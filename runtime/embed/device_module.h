// The CUDA module: found beside the program, loaded once a process, and asked what devices there are.
#pragma once

#include <cstdint>
#include <string>

#include "device/module.h"

namespace millrace::embed {

// What is known of the module. Loaded by the first call, any thread; where it is not there, or of another build, or has
// no driver or device, `module` is null and `why` says so in words that follow "cuda:0 is not available: ".
struct LoadedModule {
  const device::DeviceModule* module = nullptr;
  std::string path, why;
  uint32_t count = 0; // devices
};
const LoadedModule& cuda_module();

} // namespace millrace::embed
