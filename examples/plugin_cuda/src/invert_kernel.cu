// The kernel of acme.invert: one thread per byte.
#include <cuda_runtime.h>

#include <stdexcept>

#include "invert_kernel.h"

namespace {

__global__ void invert_bytes(DeviceRows<uint8_t> to, DeviceRows<const uint8_t> from, uint32_t row_bytes, uint32_t rows,
                             float strength) {
  const uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= row_bytes || y >= rows) return;
  const int value = from.data[y * from.stride + x];
  to.data[y * to.stride + x] = static_cast<uint8_t>(value + strength * (255 - 2 * value));
}

} // namespace

void enqueue_invert(void* stream, DeviceRows<uint8_t> to, DeviceRows<const uint8_t> from, uint32_t row_bytes,
                    uint32_t rows, float strength) {
  const dim3 threads(64, 4), blocks((row_bytes + 63) / 64, (rows + 3) / 4);
  invert_bytes<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(to, from, row_bytes, rows, strength);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    throw std::runtime_error(cudaGetErrorString(error));
}
