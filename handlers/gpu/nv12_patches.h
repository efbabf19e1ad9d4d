// Makes patches of NV12 pictures, the format that decoders give, so this path of image.patches has to be fast.
#pragma once

#include "handlers/gpu/tensor_kernels.h"
#include "handlers/gpu/window_mix.h"

namespace millrace::handlers::gpu {

// Like TensorKernels::patches, for a picture for which has_windows() is true. Null, or the error message of the launch.
const char* launch_nv12_patches(void* stream, const SampleSource& source, const Regions& regions,
                                const TensorForm& form, const ChannelForm& channels, void* target);

} // namespace millrace::handlers::gpu
