// Marks functions that kernels and host code share, so that what a pixel becomes is written once and tested on the
// host.
#pragma once

#ifdef __CUDACC__
#define MR_BOTH __host__ __device__
#else
#define MR_BOTH
#endif
