// Defines the one table that the CUDA module gives to handlers.
#include "handlers/gpu/draw_kernels.h"
#include "handlers/gpu/image_kernels.h"
#include "handlers/gpu/layer_kernels.h"
#include "handlers/gpu/link_kernels.h"
#include "handlers/gpu/mark_kernels.h"
#include "handlers/gpu/tables.h"
#include "handlers/gpu/tensor_kernels.h"

namespace millrace::handlers::gpu {

const Library& library() {
  static const Library tables{&image_kernels(), &tensor_kernels(), &layer_kernels(),
                              &draw_kernels(),  &mark_kernels(),   &link_kernels()};
  return tables;
}

} // namespace millrace::handlers::gpu
