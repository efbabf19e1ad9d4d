// Runs one handler alone, without a runtime: give it inputs, let it tick, look at what it published.
//
//   mr::testing::HandlerTest<Invert> test({{"strength", "1"}});
//   test.input("video", mr::testing::image(mr::Pixel::rgb8, 4, 2, 0));
//   const mr::testing::Result result = test.tick();
//   assert(result.ok() && result.image("video").row(0)[0] == 255);
//
// The handler is driven through the same C table as in a pipeline: create, set_param, bind, probe, configure, start,
// then process and finish per tick, drain and stop. Formats of inputs are those of the first values given. Beyond
// what the handler says itself, a firing fails where it wrote past the end or the beginning of a block, wrote over an
// input that it was not allowed to, or published more than it had announced. Time is virtual and stands still between
// ticks.
//
// One thread drives a test; publish() and fail() of the handler may come from any thread. Mistakes in the test
// itself (a port that does not exist, a required input that was not given) throw std::logic_error.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/handler.h"
#include "millrace/nearest.h"
#include "millrace/param_text.h"
#include "millrace/sound_value.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

// ---- values ------------------------------------------------------------------------------------------------

// One block as a pipeline has it: an mr_value and the bytes after it, here with guard bytes on both sides, so that a
// handler that writes past them is told so and does not spoil the heap. Fresh bytes are filled with kUnwritten, so that
// what a handler forgot to write is seen.
class Block {
 public:
  static constexpr uint8_t kUnwritten = 0xA5;
  static constexpr uint8_t kGuard = 0x5C;
  static constexpr size_t kGuardBytes = 65536;      // after the bytes: four rows of a 4K picture
  static constexpr size_t kGuardBytesBefore = 4096; // a row of a small one, above its first
  static constexpr size_t kAlignment = 64;          // what the runtime promises for the first byte

  explicit Block(uint64_t capacity) : capacity_(capacity) {
    const size_t total = kGuardBytesBefore + sizeof(mr_value) + static_cast<size_t>(capacity) + kGuardBytes;
    base_ = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, (total + kAlignment - 1) / kAlignment * kAlignment));
    if (!base_) throw std::bad_alloc();
    std::memset(base_, kGuard, kGuardBytesBefore);
    memory_ = base_ + kGuardBytesBefore;
    new (memory_) mr_value{};
    std::memset(memory_ + sizeof(mr_value), kUnwritten, static_cast<size_t>(capacity));
    std::memset(memory_ + sizeof(mr_value) + capacity, kGuard, kGuardBytes);
    data_ = memory_ + sizeof(mr_value);
  }
  // Foreign bytes behind a record of our own; `release` is called when the last reader lets go.
  Block(const void* data, uint64_t bytes, void (*release)(void*), void* context) : Block(0) {
    data_ = static_cast<uint8_t*>(const_cast<void*>(data));
    capacity_ = bytes;
    release_ = release;
    release_context_ = context;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    const mr_value& last = value();
    if (last.header.kind == MR_KIND_OBJECT && last.as.object.release) last.as.object.release(last.as.object.pointer);
    if (release_) release_(release_context_);
    std::free(base_);
  }

  mr_value& value() { return *reinterpret_cast<mr_value*>(memory_); }
  uint8_t* data() { return data_; }
  uint64_t capacity() const { return capacity_; }
  bool foreign() const { return release_; }
  bool intact() const { return is_guard(memory_ + sizeof(mr_value) + (foreign() ? 0 : capacity_), kGuardBytes); }
  const mr_record_type* record_type = nullptr; // of records: what their type says of itself
  bool intact_before() const { return is_guard(base_, kGuardBytesBefore); }
  uint64_t hash() {
    const auto bytes = reinterpret_cast<const char*>(data_);
    return schema_of({reinterpret_cast<const char*>(memory_), sizeof(mr_value)}) ^
           schema_of({bytes, static_cast<size_t>(value().header.extent_bytes)});
  }

 private:
  // All equal where each equals the one before it.
  static bool is_guard(const uint8_t* bytes, size_t count) {
    return bytes[0] == kGuard && std::memcmp(bytes, bytes + 1, count - 1) == 0;
  }

  uint8_t* base_ = nullptr;
  uint8_t* memory_ = nullptr;
  uint8_t* data_ = nullptr;
  uint64_t capacity_ = 0;
  void (*release_)(void*) = nullptr;
  void* release_context_ = nullptr;
};

// A value for an input, or of an output; copies share the bytes. Default: empty.
class Value {
 public:
  Value() = default;
  explicit Value(std::shared_ptr<Block> block) : block_(std::move(block)) {}

  explicit operator bool() const { return block_ != nullptr; }
  const std::shared_ptr<Block>& block() const { return block_; }
  mr_value& raw() const { return block_->value(); }
  mr_header& header() const { return raw().header; }
  const uint8_t* data() const { return block_->data(); }

  ImageSpan image() const { return {&kind(MR_KIND_IMAGE, "an image"), block_->data()}; }
  TensorSpan tensor() const { return {&kind(MR_KIND_TENSOR, "a tensor"), block_->data()}; }
  PacketSpan packet() const {
    mr_value& value = kind(MR_KIND_PACKET, "a packet");
    return {&value, {block_->data(), static_cast<size_t>(value.header.extent_bytes)}};
  }
  template <Record T>
  std::span<T> records() const {
    mr_value& value = kind(MR_KIND_RECORDS, "records");
    if (value.header.schema != schema_of(T::kSchema)) throw std::logic_error("the value holds other records");
    return {reinterpret_cast<T*>(block_->data()), static_cast<size_t>(value.as.records.count)};
  }

  // Sets the presentation time; for use where the value is made.
  Value at(int64_t pts_ns, int64_t duration_ns = 0) const {
    header().pts_ns = pts_ns;
    header().duration_ns = duration_ns;
    return *this;
  }
  Value from_stream(uint32_t stream) const {
    header().stream = stream;
    return *this;
  }

 private:
  mr_value& kind(uint32_t expected, const char* name) const {
    if (!block_) throw std::logic_error("the value is empty");
    if (raw().header.kind != expected) throw std::logic_error(std::string("the value is not ") + name);
    return raw();
  }
  std::shared_ptr<Block> block_;
};

namespace detail {
template <class Tag>
Value fresh_value(uint64_t bytes) {
  Value value(std::make_shared<Block>(bytes));
  const mr_format accepts = v1::detail::make_port<Tag>(MR_INPUT, "").port.accepts;
  value.header().schema = accepts.schema;
  value.header().layout = accepts.layout;
  value.header().kind = accepts.kind;
  value.header().present = 1;
  value.header().extent_bytes = bytes;
  return value;
}
} // namespace detail

// A picture, every byte `fill`.
inline Value image(Pixel pixel, uint32_t width, uint32_t height, uint8_t fill = 0) {
  mr_image layout{};
  Value value = detail::fresh_value<Image>(lay_out_image(pixel, width, height, layout));
  value.raw().as.image = layout;
  std::memset(value.block()->data(), fill, static_cast<size_t>(value.block()->capacity()));
  return value;
}
// A picture whose first plane is fill(x, y, channel).
template <std::invocable<uint32_t, uint32_t, uint32_t> Fill>
Value image(Pixel pixel, uint32_t width, uint32_t height, Fill&& fill) {
  Value value = image(pixel, width, height);
  const ImageSpan picture = value.image();
  const uint32_t channels = pixel == Pixel::p010 ? 1 : bytes_per_pixel(pixel);
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      for (uint32_t c = 0; c < channels; ++c) picture.row(y)[x * channels + c] = static_cast<uint8_t>(fill(x, y, c));
  return value;
}

// A dense row-major tensor with these elements, or all zero where none are given.
template <class T>
Value tensor(std::initializer_list<int64_t> shape, const std::vector<T>& elements = {}) {
  mr_tensor layout{};
  const DType dtype = dtype_of<T>();
  layout.dtype_code = dtype.code;
  layout.dtype_bits = dtype.bits;
  layout.dtype_lanes = dtype.lanes;
  layout.rank = static_cast<uint32_t>(shape.size());
  if (layout.rank > MR_RANK_MAX) throw std::logic_error("a tensor has at most 8 dimensions");
  std::copy(shape.begin(), shape.end(), layout.shape);
  int64_t count = 1;
  for (uint32_t d = layout.rank; d-- > 0; count *= layout.shape[d]) layout.strides[d] = count;
  if (!elements.empty() && elements.size() != static_cast<size_t>(count))
    throw std::logic_error("the tensor's shape and its elements differ in number");
  Value value = detail::fresh_value<Tensor>(static_cast<uint64_t>(count) * sizeof(T));
  value.raw().as.tensor = layout;
  if (elements.empty())
    std::memset(value.block()->data(), 0, static_cast<size_t>(count) * sizeof(T));
  else
    std::memcpy(value.block()->data(), elements.data(), elements.size() * sizeof(T));
  return value;
}

template <Record T>
Value records(const std::vector<T>& elements) {
  Value value = detail::fresh_value<Records<T>>(elements.size() * sizeof(T));
  value.block()->record_type = record_type_of<T>();
  value.raw().as.records = {elements.size(), sizeof(T)};
  std::copy(elements.begin(), elements.end(), value.records<T>().begin());
  return value;
}

inline Value packet(std::span<const uint8_t> bytes, int64_t dts_ns = 0, bool keyframe = false) {
  Value value = detail::fresh_value<Packet>(bytes.size());
  value.raw().as.packet.dts_ns = dts_ns;
  value.header().flags = keyframe ? uint32_t{MR_FLAG_KEYFRAME} : 0u;
  std::copy(bytes.begin(), bytes.end(), value.block()->data());
  return value;
}

// A host object, deleted with its last reader.
template <class T>
Value object(std::unique_ptr<T> pointer) {
  Value value = detail::fresh_value<Object<T>>(0);
  value.raw().as.object = {pointer.release(), [](void* raw) { delete static_cast<T*>(raw); }};
  return value;
}

// ---- what a tick made --------------------------------------------------------------------------------------

// One settled firing. Values stay alive as long as the result or a copy of them.
class Result {
 public:
  mr_status status = MR_OK;
  std::string error; // the sentence, where status is MR_ERROR
  bool fired = true; // false: a required input was empty, so the handler was not called
  mr_tick_info tick{};

  bool ok() const { return status == MR_OK; }
  bool pending() const { return status == MR_PENDING; }
  bool not_yet() const { return status == MR_NOT_YET; }
  bool end() const { return status == MR_END; }

  // Whether the output carries a value.
  bool has(std::string_view port) const { return bool(find(port).value); }
  // How it came: MR_OUTPUT_SILENT, _OWN, _FORWARDED, _ADOPTED.
  uint32_t state(std::string_view port) const { return find(port).state; }
  const Value& value(std::string_view port) const {
    const Output& output = find(port);
    if (!output.value)
      throw std::logic_error("output '" + output.port + "' is empty" + (error.empty() ? "" : ": " + error));
    return output.value;
  }
  ImageView image(std::string_view port) const { return value(port).image(); }
  TensorView tensor(std::string_view port) const { return {&value(port).tensor().value(), value(port).data()}; }
  template <Record T>
  std::span<const T> records(std::string_view port) const {
    return value(port).records<T>();
  }
  PacketView packet(std::string_view port) const {
    const PacketSpan span = value(port).packet();
    return {span.value, span.bytes};
  }

  struct Output {
    std::string port;
    Value value;
    uint32_t state = MR_OUTPUT_SILENT;
  };
  std::vector<Output> outputs;

 private:
  const Output& find(std::string_view port) const {
    for (const Output& output : outputs)
      if (output.port == port) return output;
    throw std::logic_error("there is no output '" + std::string(port) + "'");
  }
};

// ---- driving a handler -------------------------------------------------------------------------------------

// A parameter as the pipeline file would give it.
struct Setting {
  std::string name, text;
};

// What a handler said with log().
struct LogLine {
  uint32_t level;
  std::string sentence;
};

// Drives the handler behind a table; HandlerTest<H> below does so for a class.
class TableTest {
 public:
  // Constructs the handler and sets its parameters; throws std::runtime_error with the sentence where it refuses.
  explicit TableTest(const mr_handler_type& type, std::initializer_list<Setting> settings = {}) : type_(type) {
    host_ = {sizeof(mr_host), MR_ABI_VERSION, &allocate, &modify, &adopt,         &defer,     &publish,
             &fail,           &log,           &now,      &borrow, &give_borrowed, &give_back, &count};
    const bool created = type_.create(&host_, this, &self_, &declaration_) == MR_OK;
    if (!created) throw std::runtime_error(error().empty() ? "the constructor failed" : error());
    entries_.resize(declaration_->port_count);
    for (const Setting& setting : settings) {
      try {
        set(setting.name, setting.text);
      } catch (...) {
        type_.destroy(self_);
        throw;
      }
    }
  }
  TableTest(const TableTest&) = delete;
  TableTest& operator=(const TableTest&) = delete;
  ~TableTest() {
    if (started_) type_.stop(self_);
    type_.destroy(self_);
  }

  // Sets a parameter from text; between ticks only where it is declared live.
  void set(const std::string& name, const std::string& text) {
    for (uint32_t i = 0; i < declaration_->param_count; ++i) {
      const mr_param& param = declaration_->params[i];
      if (name != param.name) continue;
      if (started_ && !(param.flags & MR_PARAM_LIVE)) throw std::runtime_error("parameter '" + name + "' is not live");
      const ParamReading reading = read_param(param, text);
      if (reading.problem != ParamProblem::none)
        throw std::runtime_error("parameter '" + name + "': '" + text + "' is not " + reading.expected);
      if (type_.set_param(self_, i, &reading.value) != MR_OK) throw std::runtime_error(error());
      return;
    }
    std::vector<std::string> names;
    for (uint32_t i = 0; i < declaration_->param_count; ++i) names.emplace_back(declaration_->params[i].name);
    throw std::runtime_error("there is no parameter '" + name + "'; there are: " + listed_from(name, std::move(names)));
  }

  // Pictures and tensors may be smaller than those of the first tick: their sizes are planned as bounds. Before the
  // first tick.
  void bounded() { dims_ = MR_DIM_BOUNDED; }

  // The value that an input has from now on; an empty Value makes it empty. Before the first tick this also connects
  // the port and tells its format. `index`: which edge of an input that takes a list.
  void input(std::string_view port, const Value& value, uint32_t index = 0) {
    const uint32_t p = find_port(port, MR_INPUT);
    std::vector<Value>& values = entries_[p].values;
    if (index >= values.size()) {
      if (bound_) throw std::logic_error("edges are made before the first tick");
      if (index > 0 && !(declaration_->ports[p].flags & MR_PORT_MANY))
        throw std::logic_error("input '" + std::string(port) + "' takes one edge");
      values.resize(index + 1);
    }
    values[index] = value;
  }
  // The edge is empty from now on, and the handler is told that nothing comes any more; of the first 64 inputs.
  void end_input(std::string_view port, uint32_t index = 0) {
    input(port, Value{}, index);
    entries_[find_port(port, MR_INPUT)].ended |= uint64_t{1} << index;
  }
  // Leaves an output without readers; before the first tick.
  void unconnected(std::string_view output) { entries_[find_port(output, MR_OUTPUT)].reader = false; }
  // Lets modify() write over the input's own block, as a plan may; default: it gets a copy.
  void allow_in_place(bool allow = true) { in_place_ = allow; }
  // Media time from one tick to the next; default 40 ms, 25 beats a second.
  void period_ns(int64_t period) { period_ns_ = period; }
  // What the handler's clock says; it stands still otherwise.
  void set_now_ns(int64_t now) { now_ns_ = now; }
  // The deadline of the following ticks.
  void set_deadline_ns(int64_t deadline) { deadline_ns_ = deadline; }

  // What an input takes with the parameters as they are; as it is declared where the handler refuses them, which
  // start() tells.
  mr_format accepts(uint32_t port) {
    mr_format format = declaration_->ports[port].accepts;
    if (type_.narrow && type_.narrow(self_, port, &format) != MR_OK) return declaration_->ports[port].accepts;
    return format;
  }

  // bind, probe, narrow, configure, start. The first tick() does it by itself; call it to look at facts and formats.
  mr_status start() {
    if (started_) return MR_OK;
    mr_status status = bind();
    if (status == MR_OK) status = type_.probe(self_, &facts_);
    if (status == MR_OK) status = configure();
    if (status == MR_OK) status = type_.start(self_);
    started_ = status == MR_OK;
    return status;
  }

  // One firing with the inputs as they are now.
  Result tick() {
    if (const mr_status status = start(); status != MR_OK) return refused(status);
    auto firing = std::make_shared<Firing>();
    prepare(*firing);
    const bool fires = required_inputs_present();
    ++index_;
    if (!fires) {
      Result silent = settle(*firing, MR_OK);
      silent.fired = false;
      return silent;
    }
    return fire(firing);
  }

  // The stream ends: what the handler owed is in published() afterwards.
  mr_status drain() { return call(type_.drain); }
  mr_status reset() { return call(type_.reset); }
  mr_status stop() {
    if (!started_) return MR_OK;
    started_ = false;
    return call(type_.stop);
  }
  // What the runtime does to a handler that failed under `on_error: restart`; it is neither probed nor configured
  // again.
  mr_status restart() {
    if (const mr_status stopped = stop(); stopped != MR_OK) return stopped;
    if (const mr_status cleared = reset(); cleared != MR_OK) return cleared;
    const mr_status status = call(type_.start);
    started_ = status == MR_OK;
    return status;
  }
  void interrupt() { type_.interrupt(self_); }

  // Deferred firings that were settled since the last call, in order.
  std::vector<Result> published() {
    const std::lock_guard lock(mutex_);
    return std::exchange(published_, {});
  }
  size_t pending() const {
    const std::lock_guard lock(mutex_);
    return pending_.size();
  }
  // The last sentence of a failure.
  std::string error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  std::vector<LogLine> logs() const {
    const std::lock_guard lock(mutex_);
    return logs_;
  }
  // What the handler counted for the report, by name.
  std::map<std::string, int64_t> counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  const mr_facts& facts() const { return facts_; }
  // An output's format as configure left it; after start().
  const mr_format& format(std::string_view output) const {
    return output_formats_.at(entries_[find_port(output, MR_OUTPUT)].first);
  }
  const mr_declaration& declaration() const { return *declaration_; }
  void* self() const { return self_; }

 private:
  // What the test knows of one port.
  struct Entry {
    std::vector<Value> values; // input: one an edge
    bool reader = true;        // output: somebody reads it
    uint32_t first = 0;        // in the flat arrays
    uint64_t ended = 0;        // input: a bit for each edge that has no value any more
  };
  // One tick as the handler sees it; a deferred one lives until it is published.
  struct Firing {
    mr_tick tick{};
    mr_tick_info info{};
    std::vector<mr_input> inputs;
    std::vector<Value> input_values;
    std::vector<uint64_t> input_hashes;
    std::vector<mr_output> outputs;
    std::vector<std::shared_ptr<Block>> blocks; // of outputs
    bool deferred = false, published = false;
  };

  uint32_t find_port(std::string_view name, uint32_t direction) const {
    for (uint32_t p = 0; p < declaration_->port_count; ++p)
      if (declaration_->ports[p].direction == direction && name == declaration_->ports[p].name) return p;
    const char* kind = direction == MR_INPUT ? "input" : "output";
    throw std::logic_error(std::string("there is no ") + kind + " '" + std::string(name) + "'");
  }
  const mr_port& port_of_output(uint32_t flat) const {
    for (uint32_t p = 0; p < declaration_->port_count; ++p)
      if (declaration_->ports[p].direction == MR_OUTPUT && entries_[p].first == flat) return declaration_->ports[p];
    throw std::logic_error("the handler named an output that it has not");
  }
  std::string output_name(uint32_t flat) const { return "output '" + std::string(port_of_output(flat).name) + "'"; }

  mr_status bind() {
    if (bound_) return MR_OK;
    std::vector<uint32_t> edge_counts;
    for (uint32_t p = 0; p < declaration_->port_count; ++p) {
      const mr_port& port = declaration_->ports[p];
      Entry& entry = entries_[p];
      const bool input = port.direction == MR_INPUT;
      entry.first = input ? input_count_ : output_count_;
      const auto edges = static_cast<uint32_t>(entry.values.size());
      if (input && edges == 0 && !(port.flags & MR_PORT_OPTIONAL))
        throw std::logic_error("input '" + std::string(port.name) + "' is required: give it with input()");
      if (input && edges > port.many_max)
        throw std::logic_error("input '" + std::string(port.name) + "' takes fewer edges");
      edge_counts.push_back(input ? edges : uint32_t{entry.reader});
      (input ? input_count_ : output_count_) += (port.flags & MR_PORT_MANY) ? edges : 1;
    }
    bound_ = true;
    return type_.bind(self_, edge_counts.data());
  }

  mr_status configure() {
    std::vector<mr_format> inputs(input_count_);
    output_formats_.assign(output_count_, mr_format{});
    for (uint32_t p = 0; p < declaration_->port_count; ++p) {
      const mr_port& port = declaration_->ports[p];
      const Entry& entry = entries_[p];
      if (port.direction == MR_OUTPUT) continue;
      mr_format takes = port.accepts;
      if (type_.narrow && type_.narrow(self_, p, &takes) != MR_OK) return MR_ERROR;
      if (entry.values.empty() && !(port.flags & MR_PORT_MANY)) inputs[entry.first] = takes;
      for (size_t i = 0; i < entry.values.size(); ++i) {
        inputs[entry.first + i] = format_of(entry.values[i], takes, dims_);
        if (!accepted(takes, inputs[entry.first + i]))
          return refuse("input '" + std::string(port.name) + "' does not take this format");
      }
    }
    for (uint32_t p = 0; p < declaration_->port_count; ++p) {
      const mr_port& port = declaration_->ports[p];
      if (port.direction == MR_INPUT) continue;
      mr_format& format = output_formats_[entries_[p].first];
      format = port.accepts;
      if (port.like >= 0 && !entries_[static_cast<uint32_t>(port.like)].values.empty())
        format = inputs[entries_[static_cast<uint32_t>(port.like)].first];
    }
    const mr_status status = type_.configure(self_, inputs.data(), input_count_, output_formats_.data(), output_count_);
    for (uint32_t i = 0; status == MR_OK && i < output_count_; ++i)
      if (output_formats_[i].kind == MR_KIND_IMAGE && output_formats_[i].width == 0)
        return refuse(output_name(i) + " has no size: set it in configure(), or declare it like an input");
    return status;
  }
  mr_status refuse(const std::string& sentence) {
    fail(this, sentence.c_str());
    return MR_ERROR;
  }

  // What a plan would know of an edge that carries this value.
  static mr_format format_of(const Value& value, const mr_format& accepts, uint32_t dims) {
    mr_format format = accepts;
    if (!value) return format;
    const mr_value& raw = value.raw();
    format.kind = raw.header.kind;
    format.schema = raw.header.schema;
    format.layout = raw.header.layout;
    if (format.kind == MR_KIND_IMAGE) {
      format.pixel_formats = 1ull << raw.as.image.format;
      format.width = raw.as.image.width;
      format.height = raw.as.image.height;
      format.size_kind = dims;
      format.color = raw.as.image.color;
      format.range = raw.as.image.range;
    } else if (format.kind == MR_KIND_TENSOR) {
      format.dtype_code = raw.as.tensor.dtype_code;
      format.dtype_bits = raw.as.tensor.dtype_bits;
      format.dtype_lanes = raw.as.tensor.dtype_lanes;
      format.rank = raw.as.tensor.rank;
      std::copy_n(raw.as.tensor.shape, MR_RANK_MAX, format.shape);
      std::fill_n(format.shape_kind, MR_RANK_MAX, dims);
    } else if (format.kind == MR_KIND_RECORDS) {
      format.record_size = raw.as.records.record_size;
      format.records = value.block()->record_type;
      // Counts vary from tick to tick: a plan has a bound, of which the first value says nothing.
      format.record_count_max = std::max<uint64_t>({accepts.record_count_max, raw.as.records.count, 1024});
    }
    return format;
  }
  static bool accepted(const mr_format& accepts, const mr_format& given) {
    if (accepts.kind == MR_KIND_ANY) return true;
    if (accepts.kind != given.kind || (accepts.schema && accepts.schema != given.schema)) return false;
    const DType dtype{given.dtype_code, given.dtype_bits, given.dtype_lanes};
    const bool known = dtype.bits > 0; // not where the first value is empty
    if (known && accepts.dtypes && !(accepts.dtypes & bit_of(dtype))) return false;
    if (known && accepts.ranks && (given.rank > MR_RANK_MAX || !(accepts.ranks >> given.rank & 1))) return false;
    return accepts.pixel_formats == 0 || (accepts.pixel_formats & given.pixel_formats) == given.pixel_formats;
  }

  // Bytes of the largest value of a format; the greatest number where nothing is known.
  static uint64_t bytes_max(const mr_format& format) {
    if (format.kind == MR_KIND_IMAGE) {
      uint64_t largest = 0;
      for (uint32_t pixel = 1; pixel < MR_PIXEL_COUNT; ++pixel) {
        mr_image layout{};
        if (format.pixel_formats == 0 || (format.pixel_formats >> pixel & 1))
          largest = std::max(largest, lay_out_image(static_cast<Pixel>(pixel), format.width, format.height, layout));
      }
      return std::max(largest, format.bytes_max);
    }
    if (format.kind == MR_KIND_TENSOR && format.dtype_bits) {
      uint64_t bits = uint64_t{format.dtype_bits} * format.dtype_lanes;
      for (uint32_t d = 0; d < format.rank; ++d) bits *= static_cast<uint64_t>(format.shape[d]);
      return bits / 8;
    }
    if (format.kind == MR_KIND_RECORDS && format.record_count_max) return format.record_count_max * format.record_size;
    return format.bytes_max ? format.bytes_max : UINT64_MAX;
  }

  bool required_inputs_present() const {
    for (uint32_t p = 0; p < declaration_->port_count; ++p) {
      const mr_port& port = declaration_->ports[p];
      if (port.direction == MR_OUTPUT || (port.flags & MR_PORT_OPTIONAL)) continue;
      for (const Value& value : entries_[p].values)
        if (!value) return false;
    }
    return true;
  }

  void prepare(Firing& firing) {
    firing.info = {0, 0, index_, static_cast<int64_t>(index_) * period_ns_, deadline_ns_, index_ + 1};
    for (uint32_t p = 0; p < declaration_->port_count; ++p) {
      const mr_port& port = declaration_->ports[p];
      if (port.direction == MR_OUTPUT) continue;
      firing.input_values.insert(firing.input_values.end(), entries_[p].values.begin(), entries_[p].values.end());
      if (entries_[p].values.empty() && !(port.flags & MR_PORT_MANY)) firing.input_values.emplace_back();
      keep_past(entries_[p], port.keeps);
    }
    for (const Value& value : firing.input_values) {
      firing.inputs.push_back(value ? mr_input{&value.raw(), value.data()} : mr_input{});
      firing.input_hashes.push_back(value ? value.block()->hash() : 0);
    }
    firing.outputs.resize(output_count_);
    firing.blocks.resize(output_count_);
    firing.tick = {sizeof(mr_tick),
                   MR_DEVICE_CPU,
                   &firing.info,
                   firing.inputs.data(),
                   firing.outputs.data(),
                   input_count_,
                   output_count_,
                   &host_,
                   this,
                   nullptr,
                   0,
                   nullptr,
                   nullptr,
                   nullptr,
                   ended_inputs()};
  }
  uint64_t ended_inputs() const {
    uint64_t bits = 0;
    for (uint32_t p = 0; p < declaration_->port_count; ++p)
      if (declaration_->ports[p].direction == MR_INPUT && entries_[p].first < 64)
        bits |= entries_[p].ended << entries_[p].first;
    return bits;
  }
  // Values that the handler declared to keep stay readable; the bound is its own.
  void keep_past(const Entry& entry, uint32_t keeps) {
    for (const Value& value : entry.values) kept_.push_back(value);
    kept_bound_ = std::max<size_t>(kept_bound_, (keeps + 1) * input_count_);
    while (kept_.size() > kept_bound_) kept_.pop_front();
  }

  Result fire(const std::shared_ptr<Firing>& firing) {
    if (!type_.process) return refused(refuse("the handler has no CPU body"));
    set_error("");
    current_ = firing;
    mr_status status = type_.process(self_, &firing->tick);
    if (status == MR_OK && type_.finish) status = type_.finish(self_, &firing->tick);
    const std::lock_guard lock(mutex_);
    current_ = nullptr;
    if ((status == MR_PENDING) != firing->deferred && status != MR_ERROR) {
      error_ = firing->deferred ? "the firing was deferred, but process did not return pending"
                                : "process returned pending without defer()";
      status = MR_ERROR;
    }
    if (status != MR_PENDING) {
      std::erase(pending_, firing);
      return settle(*firing, status);
    }
    Result owed = empty_result(*firing);
    owed.status = MR_PENDING;
    return owed;
  }

  Result empty_result(const Firing& firing) const {
    Result result;
    result.tick = firing.info;
    for (uint32_t p = 0; p < declaration_->port_count; ++p)
      if (declaration_->ports[p].direction == MR_OUTPUT)
        result.outputs.push_back({declaration_->ports[p].name, {}, MR_OUTPUT_SILENT});
    return result;
  }
  Result refused(mr_status status) const {
    Result result = empty_result({});
    result.status = status;
    result.error = error();
    result.fired = false;
    return result;
  }

  // Collects what a firing published and checks it. mutex_ is held where other threads may publish.
  Result settle(Firing& firing, mr_status status) {
    Result result = empty_result(firing);
    result.status = status;
    for (uint32_t i = 0; i < output_count_; ++i) {
      const mr_output& output = firing.outputs[i];
      std::string wrong = broken_contract(firing, i);
      if (!wrong.empty()) {
        error_ = std::move(wrong);
        result.status = MR_ERROR;
      }
      result.outputs[i].state = output.state;
      if (output.state == MR_OUTPUT_SILENT || !output.value || !output.value->header.present) continue;
      const bool forwarded = output.state == MR_OUTPUT_FORWARDED;
      result.outputs[i].value = forwarded ? firing.input_values[output.source] : Value(firing.blocks[i]);
    }
    for (size_t i = 0; i < firing.input_values.size(); ++i) {
      const Value& value = firing.input_values[i];
      const bool written_over = std::count(firing.blocks.begin(), firing.blocks.end(), value.block()) > 0;
      if (!value || written_over || value.block()->hash() == firing.input_hashes[i]) continue;
      error_ = "the handler wrote into input " + std::to_string(i) + ", which others may read";
      result.status = MR_ERROR;
    }
    if (result.status == MR_ERROR) result.error = error_.empty() ? "process failed without a sentence" : error_;
    if (result.status == MR_ERROR)
      for (Result::Output& output : result.outputs) output = {output.port, {}, MR_OUTPUT_SILENT};
    return result;
  }

  // What the handler did wrong on this output; "" where nothing.
  std::string broken_contract(const Firing& firing, uint32_t i) const {
    const mr_output& output = firing.outputs[i];
    if (output.state == MR_OUTPUT_FORWARDED) {
      if (!(port_of_output(i).flags & (MR_PORT_FORWARDS | MR_PORT_REPEATS)))
        return output_name(i) + " is not declared with mr::forward or mr::may_repeat";
      return output.source < input_count_ ? "" : output_name(i) + " forwards an input that is not there";
    }
    if (!firing.blocks[i]) return "";
    if (!firing.blocks[i]->intact()) return "the handler wrote past the end of " + output_name(i);
    if (!firing.blocks[i]->intact_before()) return "the handler wrote before the beginning of " + output_name(i);
    const mr_value& value = firing.blocks[i]->value();
    const mr_format& format = output_formats_[i];
    const uint64_t capacity = firing.blocks[i]->capacity();
    const ValueFault fault = value.header.present ? find_fault(format, value, capacity) : ValueFault::none;
    return fault == ValueFault::none ? "" : output_name(i) + " " + words_of(fault, format, value, capacity);
  }

  mr_status call(mr_status (*function)(void*)) {
    set_error("");
    return function ? function(self_) : MR_OK;
  }
  void set_error(const char* sentence) {
    const std::lock_guard lock(mutex_);
    error_ = sentence;
  }

  // ---- mr_host

  static TableTest& of(mr_tick* tick) { return *static_cast<TableTest*>(tick->context); }
  static Firing& firing_of(mr_tick* tick) {
    static_assert(offsetof(Firing, tick) == 0, "a tick's address is its firing's");
    return *reinterpret_cast<Firing*>(tick);
  }
  static mr_status give(mr_tick* tick, uint32_t output, std::shared_ptr<Block> block, uint32_t state) {
    Firing& firing = firing_of(tick);
    firing.outputs[output] = {&block->value(), block->data(), block->capacity(), state, 0, 0};
    firing.blocks[output] = std::move(block);
    return MR_OK;
  }
  static mr_status allocate(mr_tick* tick, uint32_t output, uint64_t bytes) {
    TableTest& test = of(tick);
    const uint64_t limit = bytes_max(test.output_formats_[output]);
    if (bytes > limit)
      return test.refuse(test.output_name(output) + " asks for " + std::to_string(bytes) +
                         " bytes, more than the configured " + std::to_string(limit));
    return give(tick, output, std::make_shared<Block>(bytes), MR_OUTPUT_OWN);
  }
  static mr_status modify(mr_tick* tick, uint32_t output, uint32_t input) {
    TableTest& test = of(tick);
    if (!(test.port_of_output(output).flags & MR_PORT_IN_PLACE))
      return test.refuse(test.output_name(output) + " is not declared with mr::in_place");
    const Value& source = firing_of(tick).input_values[input];
    if (!source) return test.refuse(test.output_name(output) + " modifies an input that is empty");
    if (test.in_place_) return give(tick, output, source.block(), MR_OUTPUT_OWN);
    const uint64_t bytes = source.header().extent_bytes;
    auto copy = std::make_shared<Block>(bytes);
    copy->value() = source.raw();
    std::memcpy(copy->data(), source.data(), static_cast<size_t>(bytes));
    return give(tick, output, std::move(copy), MR_OUTPUT_OWN);
  }
  static mr_status adopt(mr_tick* tick, uint32_t output, const void* data, uint64_t bytes, void (*release)(void*),
                         void* context) {
    if (firing_of(tick).outputs[output].state != MR_OUTPUT_SILENT) {
      if (release) release(context);
      return of(tick).refuse(of(tick).output_name(output) + " holds something already on this tick");
    }
    return give(tick, output, std::make_shared<Block>(data, bytes, release, context), MR_OUTPUT_ADOPTED);
  }
  static mr_tick* defer(mr_tick* tick) {
    TableTest& test = of(tick);
    const std::lock_guard lock(test.mutex_);
    if (!test.current_ || &test.current_->tick != tick || test.current_->deferred) return nullptr;
    if (test.pending_.size() >= test.declaration_->max_pending) return nullptr;
    test.current_->deferred = true;
    test.pending_.push_back(test.current_);
    return tick;
  }
  static mr_status publish(mr_tick* tick) {
    TableTest& test = of(tick);
    const std::lock_guard lock(test.mutex_);
    if (test.pending_.empty() || &test.pending_.front()->tick != tick) return MR_ERROR;
    test.published_.push_back(test.settle(*test.pending_.front(), MR_OK));
    test.pending_.pop_front();
    return MR_OK;
  }
  static void fail(void* instance, const char* sentence) { static_cast<TableTest*>(instance)->set_error(sentence); }
  static void log(void* instance, uint32_t level, const char* sentence) {
    TableTest& test = *static_cast<TableTest*>(instance);
    const std::lock_guard lock(test.mutex_);
    test.logs_.push_back({level, sentence});
  }
  static int64_t now(void* instance) { return static_cast<TableTest*>(instance)->now_ns_; }
  static mr_status borrow(void* instance, uint32_t output, mr_block* block) {
    TableTest& test = *static_cast<TableTest*>(instance);
    const std::lock_guard lock(test.mutex_);
    const mr_format& format = test.output_formats_[output];
    if (test.borrowed_.size() >= format.held) return MR_ERROR;
    auto lent = std::make_shared<Block>(bytes_max(format));
    *block = {lent->data(), lent->capacity(), reinterpret_cast<uint64_t>(lent.get())};
    test.borrowed_.push_back(std::move(lent));
    return MR_OK;
  }
  static mr_status give_borrowed(mr_tick* tick, uint32_t output, uint64_t token) {
    TableTest& test = of(tick);
    std::shared_ptr<Block> given;
    {
      const std::lock_guard lock(test.mutex_);
      for (const std::shared_ptr<Block>& block : test.borrowed_)
        if (reinterpret_cast<uint64_t>(block.get()) == token) given = block;
    }
    if (given) return give(tick, output, std::move(given), MR_OUTPUT_OWN);
    return test.refuse(test.output_name(output) + " gives a block that is not borrowed");
  }
  static void give_back(void* instance, uint32_t, uint64_t token) {
    TableTest& test = *static_cast<TableTest*>(instance);
    const std::lock_guard lock(test.mutex_);
    std::erase_if(test.borrowed_, [&](const std::shared_ptr<Block>& block) {
      return reinterpret_cast<uint64_t>(block.get()) == token;
    });
  }
  static void count(void* instance, const char* name, int64_t add) {
    TableTest& test = *static_cast<TableTest*>(instance);
    const std::lock_guard lock(test.mutex_);
    test.counts_[name] += add;
  }

  mr_handler_type type_;
  mr_host host_{};
  void* self_ = nullptr;
  const mr_declaration* declaration_ = nullptr;
  std::vector<Entry> entries_; // by port
  uint32_t input_count_ = 0, output_count_ = 0;
  uint32_t dims_ = MR_DIM_FIXED;
  std::vector<mr_format> output_formats_;
  mr_facts facts_ = no_facts();
  bool bound_ = false, started_ = false, in_place_ = false;
  uint64_t index_ = 0;
  int64_t period_ns_ = 40'000'000, now_ns_ = 0, deadline_ns_ = 0;
  std::deque<Value> kept_;
  size_t kept_bound_ = 0;

  mutable std::mutex mutex_; // guards what publish(), fail() and log() touch from other threads
  std::string error_;
  std::vector<LogLine> logs_;
  std::map<std::string, int64_t> counts_;
  std::vector<std::shared_ptr<Block>> borrowed_;
  std::shared_ptr<Firing> current_;
  std::deque<std::shared_ptr<Firing>> pending_;
  std::vector<Result> published_;
};

// Drives a handler class.
template <class H>
class HandlerTest : public TableTest {
 public:
  explicit HandlerTest(std::initializer_list<Setting> settings = {})
      : TableTest(v1::detail::Type<H>::table("test.handler", "", ""), settings) {}
  H& handler() const { return *static_cast<H*>(self()); }
};

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
