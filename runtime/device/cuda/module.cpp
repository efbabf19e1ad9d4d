// The entry points of the CUDA module; see module.h.
#include "device/module.h"

#include <algorithm>
#include <cstdio>

#include "device/cuda/api.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nvml.h"
#include "handlers/gpu/tables.h"

namespace millrace::device::cuda {

std::map<std::string, double> CudaDevice::gauges() const { return read_gauges(bus_id_); }

namespace {

uint32_t count_devices(std::string& why) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return static_cast<uint32_t>(count);
  int driver = 0;
  if (error == cudaSuccess || error == cudaErrorNoDevice)
    why = "the driver has no CUDA device";
  else if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    why = "there is no CUDA driver";
  else
    why = std::string("the driver says: ") + cudaGetErrorString(error);
  return 0;
}

uint64_t bytes_free(uint32_t device) {
  std::string wrong;
  Api api("", wrong);
  size_t free = 0, total = 0;
  const bool known = api.call<Call::SetDevice>(static_cast<int>(device)) == cudaSuccess &&
                     api.call<Call::MemGetInfo>(&free, &total) == cudaSuccess;
  if (!known) (void)cudaGetLastError(); // the run says what is wrong, when it opens the device
  return known ? std::max<uint64_t>(1, free - std::min<uint64_t>(free, kTakenBeside)) : 0;
}

std::string describe(uint32_t device) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, static_cast<int>(device)) != cudaSuccess) return "no CUDA device";
  char text[512];
  std::snprintf(text, sizeof text, "%s, %.0f GiB, compute capability %d.%d", properties.name,
                static_cast<double>(properties.totalGlobalMem) / (1u << 30), properties.major, properties.minor);
  return text;
}

std::vector<std::unique_ptr<Device>> make(const ModuleOptions& options, std::string& why) {
  std::vector<std::unique_ptr<Device>> devices;
  const auto group = std::make_shared<Group>();
  for (const uint32_t ordinal : options.devices) {
    auto device = std::make_unique<CudaDevice>(ordinal, options, group, &handlers::gpu::library());
    group->devices.push_back(device.get());
    devices.push_back(std::move(device));
  }
  for (CudaDevice* device : group->devices) device->enable_peers();
  for (const auto& device : devices) {
    if (why.empty()) why = device->status().sentence;
  }
  if (!why.empty()) devices.clear();
  return devices;
}

} // namespace
} // namespace millrace::device::cuda

extern "C" MR_EXPORT const millrace::device::DeviceModule* millrace_device_module() {
  using namespace millrace::device;
  static const DeviceModule module = {kModuleBuild, &cuda::count_devices, &cuda::bytes_free, &cuda::describe,
                                      &cuda::make};
  return &module;
}
