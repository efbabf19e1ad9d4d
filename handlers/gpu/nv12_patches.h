// Patches of NV12 pictures, which is what decoders give: the way of image.patches that has to be fast.
#pragma once

#include "handlers/gpu/tensor_kernels.h"
#include "handlers/gpu/window_mix.h"

namespace millrace::handlers::gpu {

// As TensorKernels::patches, of a picture whose rows have windows. Null, or what was wrong with the launch.
const char* launch_nv12_patches(void* stream, const SampleSource& source, const Regions& regions,
                                const TensorForm& form, const ChannelForm& channels, void* target);

} // namespace millrace::handlers::gpu
