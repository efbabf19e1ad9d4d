// Declares the kernel of acme.invert for its body and its test.
#pragma once

#include <cstddef>
#include <cstdint>

// Rows of bytes on the device, `stride` bytes apart.
template <class Byte>
struct DeviceRows {
  Byte* data;
  size_t stride;
};

// Enqueues the work of process() for `rows` rows of `row_bytes` bytes on `stream`, a cudaStream_t. Throws
// std::runtime_error with CUDA's words if that fails.
void enqueue_invert(void* stream, DeviceRows<uint8_t> to, DeviceRows<const uint8_t> from, uint32_t row_bytes,
                    uint32_t rows, float strength);
