// Makes values from the planned format of an output; see planned_value.h.
#include "plan/planned_value.h"

#include <bit>

#include "millrace/payload.h"
#include "plan/memory.h"

namespace millrace::plan {

namespace {

mr_value header_of(const Output& output) {
  mr_value value{};
  value.header.schema = output.format.schema;
  value.header.layout = output.format.layout;
  value.header.kind = output.format.kind;
  value.header.present = 1;
  return value;
}

// Sets the planned shape, row after row. Returns the number of elements.
int64_t lay_out_tensor(const mr_format& format, mr_tensor& tensor) {
  tensor.dtype_code = format.dtype_code;
  tensor.dtype_bits = format.dtype_bits;
  tensor.dtype_lanes = format.dtype_lanes;
  tensor.rank = format.rank;
  int64_t count = 1;
  for (uint32_t d = format.rank; d-- > 0;) {
    tensor.shape[d] = format.shape[d];
    tensor.strides[d] = count;
    count *= format.shape[d];
  }
  return count;
}

} // namespace

mr_value empty_value(const Output& output) {
  const mr_format& format = output.format;
  mr_value value = header_of(output);
  if (format.kind == MR_KIND_RECORDS) value.as.records.record_size = format.record_size;
  if (format.kind == MR_KIND_IMAGE && format.pixel_formats) {
    lay_out_image(static_cast<Pixel>(std::countr_zero(format.pixel_formats)), 0, 0, value.as.image);
    take_over_meaning(format, value.as.image);
  }
  if (format.kind == MR_KIND_TENSOR) {
    lay_out_tensor(format, value.as.tensor);
    if (format.rank > 0) value.as.tensor.shape[0] = 0;
  }
  return value;
}

mr_value planned_value(const Output& output) {
  const mr_format& format = output.format;
  mr_value value = header_of(output);
  if (format.kind == MR_KIND_IMAGE && format.pixel_formats) {
    const auto pixel = static_cast<Pixel>(std::countr_zero(format.pixel_formats));
    value.header.extent_bytes = lay_out_image(pixel, format.width, format.height, value.as.image);
    take_over_meaning(format, value.as.image);
  } else if (format.kind == MR_KIND_TENSOR) {
    const int64_t count = lay_out_tensor(format, value.as.tensor);
    value.header.extent_bytes = static_cast<uint64_t>(count) * format.dtype_bits * format.dtype_lanes / 8;
  } else if (format.kind == MR_KIND_RECORDS) {
    value.as.records = {format.record_count_max, format.record_size};
    value.header.extent_bytes = format.record_count_max * format.record_size;
  }
  return value;
}

} // namespace millrace::plan
