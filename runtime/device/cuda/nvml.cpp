// Reads gauges from the driver's management library, which is loaded at the first call; see nvml.h.
#include "device/cuda/nvml.h"

#include <dlfcn.h>

namespace millrace::device::cuda {
namespace {

// The part of nvml.h that is used here, as its ABI has it (stable since NVML 4).
using Handle = struct nvmlDevice_st*;
struct Utilization {
  unsigned gpu, memory; // percent
};
struct Memory {
  unsigned long long total, free, used;
};
constexpr unsigned kTemperatureGpu = 0, kPcieSent = 0, kPcieReceived = 1;

struct Library {
  int (*init)() = nullptr;
  int (*by_bus)(const char*, Handle*) = nullptr;
  int (*utilization)(Handle, Utilization*) = nullptr;
  int (*memory)(Handle, Memory*) = nullptr;
  int (*temperature)(Handle, unsigned, unsigned*) = nullptr;
  int (*power)(Handle, unsigned*) = nullptr;
  int (*pcie)(Handle, unsigned, unsigned*) = nullptr;

  Library() {
    void* const file = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!file) return;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(file, name));
    };
    find(init, "nvmlInit_v2");
    find(by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
    find(utilization, "nvmlDeviceGetUtilizationRates");
    find(memory, "nvmlDeviceGetMemoryInfo");
    find(temperature, "nvmlDeviceGetTemperature");
    find(power, "nvmlDeviceGetPowerUsage");
    find(pcie, "nvmlDeviceGetPcieThroughput");
    if (!init || !by_bus || init() != 0) by_bus = nullptr;
  }
};

} // namespace

std::map<std::string, double> read_gauges(const std::string& bus_id) {
  static const Library library;
  std::map<std::string, double> gauges;
  Handle device = nullptr;
  if (!library.by_bus || library.by_bus(bus_id.c_str(), &device) != 0) return gauges;
  Utilization utilization{};
  Memory memory{};
  unsigned number = 0;
  if (library.utilization && library.utilization(device, &utilization) == 0) {
    gauges["utilization_percent"] = utilization.gpu;
    gauges["memory_utilization_percent"] = utilization.memory;
  }
  if (library.memory && library.memory(device, &memory) == 0) {
    gauges["memory_used_bytes"] = static_cast<double>(memory.used);
    gauges["memory_total_bytes"] = static_cast<double>(memory.total);
  }
  if (library.temperature && library.temperature(device, kTemperatureGpu, &number) == 0)
    gauges["temperature_c"] = number;
  if (library.power && library.power(device, &number) == 0) gauges["power_w"] = number / 1000.0;
  if (library.pcie && library.pcie(device, kPcieSent, &number) == 0) gauges["pcie_sent_kb_per_s"] = number;
  if (library.pcie && library.pcie(device, kPcieReceived, &number) == 0) gauges["pcie_received_kb_per_s"] = number;
  return gauges;
}

} // namespace millrace::device::cuda
