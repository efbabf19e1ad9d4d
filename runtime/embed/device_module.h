// The CUDA module: found beside the program, loaded once in a process, and asked for its devices.
#pragma once

#include <cstdint>
#include <string>

#include "device/module.h"

namespace millrace::embed {

// The module, which the first call of cuda_module() loads. Any thread. If the module is missing or of another build, or
// if there is no driver or device, `module` is null and `why` gives the reason in words that follow "cuda:0 is not
// available: ".
struct LoadedModule {
  const device::DeviceModule* module = nullptr;
  std::string path, why;
  uint32_t count = 0; // devices
};
const LoadedModule& cuda_module();

} // namespace millrace::embed
