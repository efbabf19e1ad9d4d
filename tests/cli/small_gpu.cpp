// A module with one device of few bytes, for gpu_memory.py: plans are made for it, and it is never opened.
#include "device/module.h"

#include <cstdlib>

namespace {

using millrace::device::Device;
using millrace::device::DeviceModule;
using millrace::device::ModuleOptions;

uint32_t count(std::string&) { return 1; }

uint64_t bytes_free(uint32_t) { return std::strtoull(std::getenv("SMALL_GPU_BYTES"), nullptr, 10); }

std::string describe(uint32_t) { return "a GPU of few bytes"; }

std::vector<std::unique_ptr<Device>> make(const ModuleOptions&, std::string& why) {
  why = "it stands in for one";
  return {};
}

} // namespace

extern "C" __attribute__((visibility("default"))) const DeviceModule* millrace_device_module() {
  static const DeviceModule module = {millrace::device::kModuleBuild, &count, &bytes_free, &describe, &make};
  return &module;
}
