// Marks functions that kernels and host code share, so that the arithmetic of a pixel is written once and tested on the
// host.
#pragma once

// MR_INTO_LOOPS marks small functions that compilers lay into the loop that calls them, also if that loop is compiled
// with options of its own.
#ifdef __CUDACC__
#define MR_INTO_LOOPS __host__ __device__ __forceinline__
#else
#define MR_INTO_LOOPS [[gnu::always_inline]] inline
#endif

// MR_UNROLL stands before a loop over an array that is to stay in registers, which cannot be indexed.
#ifdef __CUDACC__
#define MR_BOTH __host__ __device__
#else
#define MR_BOTH
#endif

#ifdef __CUDA_ARCH__
#define MR_UNROLL _Pragma("unroll")
#else
#define MR_UNROLL
#endif
