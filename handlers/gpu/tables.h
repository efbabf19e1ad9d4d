// Declares the tables of the CUDA module's kernels, for the module itself.
#pragma once

#include "handlers/gpu/library.h"

namespace millrace::handlers::gpu {

const Library& library();

} // namespace millrace::handlers::gpu
