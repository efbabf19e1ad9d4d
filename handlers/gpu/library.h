// The interface of the CUDA module for the built-in handlers: tables of functions that launch its kernels.
//
// The handlers are in every binary, the kernels only in the module, which is loaded if there is a driver. So a GPU body
// finds them through its tick, and nothing here needs CUDA to compile. Each function enqueues on the stream and returns
// null or an error message. None synchronises, allocates or keeps state, so all of them may be captured.
#pragma once

#include <millrace/handler.h>

#include <stdexcept>

namespace millrace::handlers::gpu {

struct ImageKernels;  // image_kernels.h
struct TensorKernels; // tensor_kernels.h
struct LayerKernels;  // layer_kernels.h
struct DrawKernels;   // draw_kernels.h
struct MarkKernels;   // mark_kernels.h
struct LinkKernels;   // link_kernels.h

struct Library {
  const ImageKernels* image;
  const TensorKernels* tensor;
  const LayerKernels* layers;
  const DrawKernels* draw;
  const MarkKernels* marks;
  const LinkKernels* links;
};

inline const Library& library_of(const Cuda& cuda) { return *static_cast<const Library*>(cuda.raw->library); }
inline const Library& library_of(const GpuPlace& place) { return *static_cast<const Library*>(place.library); }

// Throws the error message of a launch, if there is one.
inline void check(const char* sentence) {
  if (sentence) throw std::runtime_error(sentence);
}

// A picture in device memory, as kernels take it by value.
struct DevicePicture {
  mr_image image;
  uint8_t* data; // plane p begins at data + image.planes[p].offset
};

inline DevicePicture on_device(const ImageView& view) {
  return {view.value().as.image, const_cast<uint8_t*>(view.data())};
}
inline DevicePicture on_device(const ImageSpan& span) { return {span.value().as.image, span.data()}; }

} // namespace millrace::handlers::gpu
