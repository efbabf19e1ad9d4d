// Where the CUDA module finds the tables of its kernels.
#pragma once

#include "handlers/gpu/library.h"

namespace millrace::handlers::gpu {

const Library& library();

} // namespace millrace::handlers::gpu
