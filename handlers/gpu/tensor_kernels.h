// Kernels of image.normalize, image.patches and image.letterbox; see library.h.
#pragma once

#include "handlers/gpu/letterbox.h"
#include "handlers/gpu/library.h"
#include "handlers/gpu/patch.h"

namespace millrace::handlers::gpu {

// The parts of a picture that become patches. The table of boxes and their count are in device memory, because only the
// device knows them when a captured body is replayed.
struct __attribute__((visibility("hidden"))) Regions {
  bool whole;            // the picture itself is the one region, and there is no table
  const Box* boxes;      // null: no boxes, all patches are zero
  const uint64_t* count; // number of boxes
};

// A transform that a kernel says: the value, and the places in device memory for it and for the count of one.
struct __attribute__((visibility("hidden"))) SaidTransform {
  PatchTransform value;
  PatchTransform* record;
  uint64_t* count;
};

struct TensorKernels {
  // Normalises the whole picture, which has the form's size. `target` has form.channels numbers a pixel.
  const char* (*normalize)(void* stream, const DevicePicture& picture, const TensorForm& form, void* target);
  // Makes form.count patches of three channels; writes each of their numbers.
  const char* (*patches)(void* stream, const DevicePicture& picture, const Regions& regions, const TensorForm& form,
                         void* target);
  // Resizes the whole picture to the box, fills the rest of the one patch of three channels, and says the transform.
  const char* (*letterbox)(void* stream, const DevicePicture& picture, const Letterbox& box, float fill,
                           const TensorForm& form, void* target, const SaidTransform& said);
};

// The table of the CUDA module, defined in tensor_kernels.cu.
const TensorKernels& tensor_kernels();

} // namespace millrace::handlers::gpu
