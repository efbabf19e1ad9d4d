// Tensors to and from other libraries without a copy, by the DLPack convention (DLManagedTensor, version 0.8 and 1.x's
// unversioned form).
//
// The structs below have the layout and the field names of the specification, under names of our own, so that this
// header and a library's own dlpack.h can be included together. Name the library's type to get it:
//
//   at::Tensor input = at::fromDLPack(mr::to_dlpack<DLManagedTensor>(frame(tick)));      // reads our bytes
//   mr::adopt_dlpack(scores, tick, at::toDLPack(model(input)));                          // publishes its bytes
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "millrace/handler.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

namespace dlpack {
enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3 };
struct Device {
  DeviceType device_type;
  int32_t device_id;
};
struct DataType {
  uint8_t code; // MR_DTYPE_*: the ABI uses DLPack's codes
  uint8_t bits;
  uint16_t lanes;
};
struct TensorInfo {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides; // in elements; null: dense and row-major
  uint64_t byte_offset;
};
struct ManagedTensor {
  TensorInfo dl_tensor;
  void* manager_ctx;
  void (*deleter)(ManagedTensor* self);
};
static_assert(sizeof(ManagedTensor) == 64, "DLManagedTensor's layout on a 64-bit machine");
} // namespace dlpack

// Describes the view's own bytes. Like the view, the description must be used and deleted before `process` returns; the
// deleter frees the description alone. DLPack cannot say "read only": code that receives an input must not write to it.
template <class Managed = dlpack::ManagedTensor, class Byte>
Managed* to_dlpack(const BasicTensor<Byte>& view, dlpack::DeviceType device = dlpack::kCpu, int32_t device_id = 0) {
  struct Description {
    Managed managed{};
    int64_t shape[MR_RANK_MAX];
    int64_t strides[MR_RANK_MAX];
  };
  auto description = std::make_unique<Description>();
  auto& tensor = description->managed.dl_tensor;
  const mr_tensor& layout = view.value().as.tensor;
  for (uint32_t d = 0; d < layout.rank; ++d) {
    description->shape[d] = layout.shape[d];
    description->strides[d] = layout.strides[d];
  }
  tensor.data = const_cast<uint8_t*>(view.data());
  tensor.device.device_type = static_cast<decltype(tensor.device.device_type)>(device);
  tensor.device.device_id = device_id;
  tensor.ndim = static_cast<int32_t>(layout.rank);
  tensor.dtype.code = layout.dtype_code;
  tensor.dtype.bits = layout.dtype_bits;
  tensor.dtype.lanes = layout.dtype_lanes;
  tensor.shape = description->shape;
  tensor.strides = description->strides;
  description->managed.manager_ctx = description.get();
  description->managed.deleter = [](Managed* self) { delete static_cast<Description*>(self->manager_ctx); };
  return &description.release()->managed;
}

namespace detail {
// The number of bytes from the first element to the end of the last one. Throws std::invalid_argument if the tensor is
// on another device or has a form that millrace does not.
template <class Dl>
uint64_t dlpack_extent(const Dl& tensor, uint32_t device, mr_tensor& layout) {
  const auto where = static_cast<int32_t>(tensor.device.device_type);
  const bool on_host = where == dlpack::kCpu || where == dlpack::kCudaHost;
  if (on_host != (device == MR_DEVICE_CPU)) throw std::invalid_argument("the tensor is on another device");
  if (tensor.ndim < 0 || tensor.ndim > static_cast<int32_t>(MR_RANK_MAX))
    throw std::invalid_argument("a tensor has at most 8 dimensions");
  const uint64_t bits = uint64_t{tensor.dtype.bits} * tensor.dtype.lanes;
  if (bits == 0 || bits % 8 != 0) throw std::invalid_argument("the tensor's elements are no whole bytes");
  layout.dtype_code = tensor.dtype.code;
  layout.dtype_bits = tensor.dtype.bits;
  layout.dtype_lanes = tensor.dtype.lanes;
  layout.rank = static_cast<uint32_t>(tensor.ndim);
  int64_t dense = 1, last = 0;
  bool empty = false;
  for (uint32_t d = layout.rank; d-- > 0;) {
    layout.shape[d] = tensor.shape[d];
    layout.strides[d] = tensor.strides ? tensor.strides[d] : dense;
    if (layout.shape[d] < 0 || layout.strides[d] < 0)
      throw std::invalid_argument("a tensor's shape and strides are not negative");
    dense *= layout.shape[d];
    last += (layout.shape[d] - 1) * layout.strides[d];
    empty = empty || layout.shape[d] == 0;
  }
  return empty ? 0 : static_cast<uint64_t>(last + 1) * (bits / 8);
}
} // namespace detail

// Publishes a library's tensor as the output's value and takes ownership: its deleter is called once, when the last
// reader is done or before this function throws. Throws std::invalid_argument for another device or a form that
// millrace does not have.
template <class Managed>
void adopt_dlpack(const Output<Tensor>& output, Tick& tick, Managed* managed) {
  const auto release = [](void* context) {
    auto* owned = static_cast<Managed*>(context);
    if (owned->deleter) owned->deleter(owned);
  };
  std::unique_ptr<Managed, void (*)(void*)> owned(managed, release);
  const auto& tensor = managed->dl_tensor;
  mr_tensor layout{};
  const uint64_t bytes = detail::dlpack_extent(tensor, tick.raw().device, layout);
  const auto* data = static_cast<const uint8_t*>(tensor.data) + tensor.byte_offset;
  mr_value& value = output.adopt(tick, data, bytes, release, managed);
  static_cast<void>(owned.release());
  value.as.tensor = layout;
}

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
