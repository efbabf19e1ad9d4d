// Output ports: how a body allocates, forwards, adopts and publishes a value.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "millrace/handler/inputs.h"
#include "millrace/payload.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// An output. It is empty after a firing that publishes nothing on it.
template <class T>
class Output {
  static_assert(Payload<T>, "a port carries Image, Tensor, Packet, Records<T>, Object<T> or Any");

 public:
  template <class... Options>
  Output(Handler& owner, const char* name, const Options&... options) : owner_(&owner) {
    detail::PortData data = detail::make_port<T>(MR_OUTPUT, name, options...);
    schema_ = data.port.accepts.schema;
    layout_ = data.port.accepts.layout;
    port_ = owner.add_port(std::move(data), first_, count_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  uint32_t port() const { return port_; }
  uint32_t first() const { return first_; }
  bool connected() const { return count_ > 0; }
  mr_output& raw(Tick& tick) const { return tick.raw().outputs[first()]; }
  // For finish(): true if the body published a value.
  bool made(Tick& tick) const { return raw(tick).state != MR_OUTPUT_SILENT; }
  // For finish(): the value that the body published. After a GPU body the host may read its bytes only if the output is
  // declared on_cpu.
  typename T::View view(Tick& tick) const { return T::view({raw(tick).value, raw(tick).data}); }

  // A picture in planned memory. Its pixels are not initialised. Throws std::bad_alloc if it is larger than planned.
  ImageSpan allocate(Tick& tick, Pixel pixel, uint32_t width, uint32_t height) const requires std::same_as<T, Image> {
    mr_image image{};
    const uint64_t bytes = lay_out_image(pixel, width, height, image);
    mr_output& output = fresh(tick, bytes);
    output.value->as.image = image;
    return {output.value, output.data};
  }
  // A picture of the same format and size as another.
  ImageSpan allocate_like(Tick& tick, const ImageView& other) const requires std::same_as<T, Image> {
    ImageSpan span = allocate(tick, other.pixel(), other.width(), other.height());
    mr_value& value = *raw(tick).value;
    take_over_meaning(other.value().as.image, value.as.image);
    copy_times(value, other.header());
    return span;
  }
  // A dense row-major tensor. Throws std::invalid_argument for more than 8 dimensions and for a negative one.
  TensorSpan allocate(Tick& tick, DType dtype, std::span<const int64_t> shape) const requires std::same_as<T, Tensor> {
    detail::check_shape(shape);
    mr_output& output = fresh(tick, bytes_of(elements_of(shape), uint64_t{dtype.bits} * dtype.lanes));
    detail::lay_out_tensor(dtype, shape, output.value->as.tensor);
    return {output.value, output.data};
  }
  // Dense row-major tensors of this shape, one for each item, in one piece: [items × shape[0], shape[1], …]. The output
  // must be declared mr::dense.
  DenseSpan allocate_all(Items& items, DType dtype,
                         std::span<const int64_t> shape) const requires std::same_as<T, Tensor> {
    if (shape.empty()) throw std::invalid_argument("the tensors of items need a first dimension, which counts rows");
    detail::check_shape(shape);
    const uint64_t bytes = bytes_of(elements_of(shape), uint64_t{dtype.bits} * dtype.lanes);
    uint64_t all_bytes[MR_ITEMS_MAX];
    for (uint32_t i = 0; i < items.size(); ++i) all_bytes[i] = bytes;
    check(items.host().allocate_items(items.raw(), items.size(), first(), all_bytes));
    for (Tick& item : items) {
      set_header(item, raw(item), bytes);
      detail::lay_out_tensor(dtype, shape, raw(item).value->as.tensor);
    }
    DenseSpan all(*raw(items[0]).value, raw(items[0]).data);
    for (uint32_t i = 1; i < items.size(); ++i) all.add_rows(shape[0]);
    return all;
  }
  // `count` records. Afterwards shrink() keeps fewer of them; a GPU body writes the number to Cuda::count_of().
  typename T::Span allocate(Tick& tick, size_t count) const requires(T::kKind == MR_KIND_RECORDS) {
    using Element = typename T::Element;
    mr_output& output = fresh(tick, bytes_of(count, 8 * sizeof(Element)));
    output.value->as.records = {count, sizeof(Element)};
    return {reinterpret_cast<Element*>(output.data), count};
  }
  void shrink(Tick& tick, size_t count) const requires(T::kKind == MR_KIND_RECORDS) {
    mr_value& value = *raw(tick).value;
    if (tick.raw().device_tick)
      throw std::logic_error("on a device a kernel says how many records there are, at Cuda::count_of()");
    if (count > value.as.records.count) throw std::invalid_argument("shrink() keeps at most what was allocated");
    value.as.records.count = count;
    value.header.extent_bytes = count * value.as.records.record_size;
  }
  // A packet of at most `bytes`. Set its real size in header().extent_bytes.
  PacketSpan allocate(Tick& tick, size_t bytes) const requires std::same_as<T, Packet> {
    mr_output& output = fresh(tick, bytes);
    output.value->as.packet = {};
    return {output.value, {output.data, bytes}};
  }
  // A host object. It is deleted when its block is reused.
  template <class U>
  void publish(Tick& tick, std::unique_ptr<U> object) const requires(T::kKind == MR_KIND_OBJECT) {
    if (raw(tick).state != MR_OUTPUT_SILENT)
      throw std::logic_error("the output " + std::string(owner_->ports_[port_].port.name) +
                             " holds something already on this tick");
    mr_output& output = fresh(tick, 0);
    output.value->as.object = {object.release(), [](void* pointer) { delete static_cast<U*>(pointer); }};
  }
  // Publishes the input's own buffer. The output must be declared with mr::forward or mr::may_repeat.
  template <class Port>
  void forward(Tick& tick, const Port& input, uint32_t index = 0) const {
    const uint32_t flat = input.first() + index;
    if (flat >= tick.raw().input_count) throw std::logic_error("a deferred firing has no inputs to forward any more");
    mr_output& output = raw(tick);
    output.value = const_cast<mr_value*>(tick.raw().inputs[flat].value);
    output.data = const_cast<uint8_t*>(tick.raw().inputs[flat].data);
    output.source = flat;
    output.state = output.value ? MR_OUTPUT_FORWARDED : MR_OUTPUT_SILENT;
  }
  // The input's bytes, writable: the input itself if the plan allows it, else a copy. The output must be declared with
  // mr::in_place.
  template <class Port>
  ImageSpan modify(Tick& tick, const Port& input) const requires std::same_as<T, Image> {
    check(tick.raw().host->modify(&tick.raw(), first(), input.first()));
    return {raw(tick).value, raw(tick).data};
  }
  template <class Port>
  TensorSpan modify(Tick& tick, const Port& input) const requires std::same_as<T, Tensor> {
    check(tick.raw().host->modify(&tick.raw(), first(), input.first()));
    return {raw(tick).value, raw(tick).data};
  }
  // Publishes foreign memory and returns the value, whose payload fields the caller fills. `release(context)` is called
  // once, from any thread, after the last reader. This throws, after calling `release`, if the output has a value
  // already or if `bytes` is more than planned. An output whose format says `adopted` gives no other values, and its
  // blocks take no memory.
  mr_value& adopt(Tick& tick, const void* data, uint64_t bytes, void (*release)(void*), void* context) const {
    check(tick.raw().host->adopt(&tick.raw(), first(), data, bytes, release, context));
    mr_output& output = raw(tick);
    set_header(tick, output, bytes);
    return *output.value;
  }
  mr_header& header(Tick& tick) const { return raw(tick).value->header; }
  // Takes back the value that was allocated for this tick: the output stays empty.
  void withdraw(Tick& tick) const { header(tick).present = 0; }

  // Borrows a block of planned memory that belongs to no tick yet: a decoder works in such blocks. The output's format
  // sets `held`, the number of blocks that may be borrowed at a time; false if all are. Any thread may call it between
  // start() and stop(); the same holds for give_back().
  bool borrow(mr_block& block) const { return owner_->host_->borrow(owner_->context_, first(), &block) == MR_OK; }
  void give_back(const mr_block& block) const { owner_->host_->give_back(owner_->context_, first(), block.token); }
  // Publishes a borrowed block, of which the first `bytes` are in use, and returns the value, whose payload fields the
  // caller fills. The handler still holds the block and may read it until give_back().
  mr_value& give(Tick& tick, const mr_block& block, uint64_t bytes) const {
    check(tick.raw().host->give(&tick.raw(), first(), block.token));
    mr_output& output = raw(tick);
    set_header(tick, output, bytes);
    return *output.value;
  }

 private:
  static void check(mr_status status) {
    if (status != MR_OK) throw std::bad_alloc(); // the runtime keeps the sentence
  }
  static void copy_times(mr_value& value, const mr_header& from) {
    value.header.stream = from.stream;
    value.header.pts_ns = from.pts_ns;
    value.header.duration_ns = from.duration_ns;
  }
  mr_output& fresh(Tick& tick, uint64_t bytes) const {
    check(tick.raw().host->allocate(&tick.raw(), first(), bytes));
    mr_output& output = raw(tick);
    set_header(tick, output, bytes);
    return output;
  }
  void set_header(Tick& tick, mr_output& output, uint64_t bytes) const {
    mr_header& header = output.value->header;
    header = {};
    header.schema = schema_;
    header.layout = layout_;
    header.kind = T::kKind;
    header.pts_ns = tick.media_time_ns();
    header.present = 1;
    header.extent_bytes = bytes;
  }

  Handler* owner_;
  uint32_t port_ = 0;
  uint32_t first_ = 0;
  uint32_t count_ = 1;
  uint64_t schema_ = 0, layout_ = 0;
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
