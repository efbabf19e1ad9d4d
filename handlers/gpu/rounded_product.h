// Keeps kernels from fusing a multiplication with the addition that follows, because the CPU code does not fuse them
// either.
#pragma once

#include "handlers/gpu/both.h"

namespace millrace::handlers::gpu {

// A product that is rounded before anything is added to it, as on the CPU.
MR_BOTH inline float rounded_product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
MR_BOTH inline double rounded_product(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

} // namespace millrace::handlers::gpu
