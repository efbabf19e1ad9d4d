// Lists of records in device memory, as kernels take them by value.
#pragma once

#include <millrace/handler.h>

#include <cstdint>

#include "handlers/gpu/both.h"

namespace millrace::handlers::gpu {

// A list whose length only the device knows.
template <class T>
struct DeviceList {
  const T* records = nullptr;
  const uint64_t* count = nullptr;
  uint32_t most = 0; // records; 0: there is no list

  MR_BOTH uint32_t size() const {
    if (most == 0) return 0;
    return *count < most ? static_cast<uint32_t>(*count) : most;
  }
};

template <class T>
DeviceList<T> on_device(const mr_input& list, uint64_t most) {
  if (!list.value) return {};
  return {reinterpret_cast<const T*>(list.data), &Cuda::value_of(list)->as.records.count, static_cast<uint32_t>(most)};
}

// A list that a kernel makes; both places are in device memory.
template <class T>
struct MadeList {
  T* records;
  uint64_t* count;
};

} // namespace millrace::handlers::gpu
