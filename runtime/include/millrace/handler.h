// Everything that a handler author needs: derive from Handler, declare ports and parameters as members, write one
// `process` per device, and register the class.
//
//   struct Invert final : mr::Handler {
//     mr::Input<mr::Image>  video{*this, "video"};
//     mr::Output<mr::Image> out{*this, "video", mr::like(video)};
//     void process(mr::Tick& tick, mr::Cpu&) { … }
//   };
//   MILLRACE_HANDLER(Invert, "acme.invert", "Inverts every pixel")
//   MILLRACE_PLUGIN("acme", "1.0")
//
// The class is header-only over the C tables of abi.h, in an inline namespace with hidden visibility: a plugin
// exports one symbol and shares no C++ with the runtime. Exceptions end at this boundary and become the sentence
// of the failure. Life: construct → probe → configure → start → process per tick → drain → stop; reset on a seek;
// interrupt from any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <exception>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/abi.h"
#include "millrace/payload.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

class Handler;

// ---- what a body is given ----------------------------------------------------------------------------------

// One firing of a handler. Valid until `process` returns, or, where defer() was called, until publish().
class Tick {
 public:
  explicit Tick(mr_tick& raw) : raw_(&raw) {}

  uint64_t index() const { return raw_->info->index; }
  int64_t media_time_ns() const { return raw_->info->media_time_ns; }
  int64_t deadline_ns() const { return raw_->info->deadline_ns; }
  uint32_t clock() const { return raw_->info->clock; }
  uint32_t epoch() const { return raw_->info->epoch; }
  uint64_t trace_id() const { return raw_->info->trace_id; }
  // Whether this CPU body runs on a simulated device, in a GPU body's place.
  bool stands_in_for_gpu() const { return raw_->stands_in != 0; }

  // A source has nothing for now, and is asked again.
  void not_yet() { status_ = MR_NOT_YET; }
  // A source has nothing any more; a value that it gives in the same call is its last. From another handler: enough was
  // seen, and the run ends as at a signal; no more ticks are admitted, those in flight finish, and everything drains.
  void end() { status_ = MR_END; }

  // The firing is published later; throws where more than max_pending are owed. Move the result away and keep it.
  Tick defer() {
    mr_tick* deferred = raw_->host->defer(raw_);
    if (!deferred) throw std::logic_error("more firings are pending than max_pending declares");
    status_ = MR_PENDING;
    return Tick(*deferred);
  }
  // Settles a deferred firing; in the order of the ticks.
  void publish() {
    if (raw_->host->publish(raw_) != MR_OK) throw std::logic_error("this firing is not pending, or an earlier one is");
  }

  mr_tick& raw() { return *raw_; }
  const mr_tick& raw() const { return *raw_; }
  mr_status status() const { return status_; }

 private:
  mr_tick* raw_;
  mr_status status_ = MR_OK;
};

// The CPU body's argument.
struct Cpu {};

// The GPU body's argument. The body enqueues on stream() and returns; it never synchronises. What a view says of a
// payload (sizes, strides, times) is in host memory, its bytes are in device memory.
//
// A `capturable` body is called when the plan is made, once for each slot, and its kernels are launched again on every
// tick: it must enqueue the same work whatever the tick is. What changes it leaves to its kernels: index and media time
// are at tick(), the count of records at value_of(). Where a live parameter changes, the body is called again.
struct Cuda {
  const mr_tick* raw = nullptr;
  void* stream() const { return raw->native_stream; }             // a cudaStream_t
  const mr_device_tick* tick() const { return raw->device_tick; } // in device memory
  void* scratch() const { return raw->scratch; }                  // in device memory: what needs_scratch() asked for
  // In device memory: the payload's record with the fields that only the device knows, such as the count of records.
  static const mr_value* value_of(const mr_input& input) {
    return reinterpret_cast<const mr_value*>(input.data - sizeof(mr_value));
  }
  // In device memory, where kernels write how many records they made, at most as many as were allocated: on a device
  // the body has to have it written, and nobody else does.
  static uint64_t* count_of(const mr_output& output) {
    return &reinterpret_cast<mr_value*>(output.data - sizeof(mr_value))->as.records.count;
  }
};

// ---- declarations ------------------------------------------------------------------------------------------

// Options of ports and parameters, given behind the name in any order.
struct MayRepeat {}; // an output of a handler with one input: forwarded where both formats are equal
inline constexpr MayRepeat may_repeat{};
struct Optional {};
inline constexpr Optional optional{};
struct Live {};
inline constexpr Live live{};
struct Required {};
inline constexpr Required required{};
struct OnCpu {};
inline constexpr OnCpu on_cpu{};
struct OnGpu {};
inline constexpr OnGpu on_gpu{};
struct Keeps {
  uint32_t count;
};
inline Keeps keeps(uint32_t count) { return {count}; }
struct Range {
  double min, max;
};
inline Range range(double min, double max) { return {min, max}; }
inline Range at_least(double min) { return {min, std::numeric_limits<double>::infinity()}; }
struct Unit {
  const char* text;
};
inline Unit unit(const char* text) { return {text}; }
struct Choices {
  std::vector<const char*> names;
};
inline Choices choices(std::initializer_list<const char*> names) { return {names}; }
struct Pixels {
  uint64_t bits;
};
// Which pixel formats a port takes or makes; the first that both sides know is chosen in Pixel's order.
inline Pixels pixels(std::initializer_list<Pixel> formats) {
  uint64_t bits = 0;
  for (Pixel pixel : formats) bits |= bit_of(pixel);
  return {bits};
}
struct DTypes {
  uint32_t bits;
};
// Which element types a tensor port takes or makes: dtypes<float, uint8_t>(); also Float16 and BFloat16.
template <class... T>
DTypes dtypes() {
  return {(bit_of(dtype_of<T>()) | ...)};
}
// The same by a set of MR_DTYPES_*.
inline DTypes dtypes(uint32_t set) { return {set}; }
struct Ranks {
  uint32_t bits;
};
// How many dimensions a tensor port takes or makes: rank(3), or ranks(2, 4) for two to four.
inline Ranks rank(uint32_t count) { return {1u << count}; }
inline Ranks ranks(uint32_t min, uint32_t max) { return {(2u << max) - (1u << min)}; }
struct CountMax {
  uint64_t count;
};
// Records: how many one value holds at most.
inline CountMax count_max(uint64_t count) { return {count}; }
// An input that takes square pixels only: a step of the plan scales others.
struct SquarePixels {};
inline constexpr SquarePixels square_pixels{};
// A parameter that names a file, or files by a pattern. A relative one is completed by the folder of the pipeline file;
// what the handlers of a pipeline read and write is compared before it runs.
struct ReadsPath {};
inline constexpr ReadsPath reads_path{};
struct WritesPath {};
inline constexpr WritesPath writes_path{};
// Beside writes_path: where the parameter with cuts_paths is not empty, the handler writes numbered pieces in place of
// one file: by the pattern, or "take-000.mp4" and so on for "take.mp4".
struct InPieces {};
inline constexpr InPieces in_pieces{};
struct CutsPaths {};
inline constexpr CutsPaths cuts_paths{};
// A parameter of seconds (a double) whose text may say its unit: 500ms, 5s, 10min, 2h.
struct Seconds {};
inline constexpr Seconds seconds{};
// What of the output of a handler that converts() a parameter says; MR_ROLE_*.
struct Role {
  uint32_t role;
};
inline constexpr Role says_pixels{MR_ROLE_PIXELS}, says_matrix{MR_ROLE_MATRIX}, says_range{MR_ROLE_RANGE},
    says_turn{MR_ROLE_TURN}, says_width{MR_ROLE_WIDTH}, says_height{MR_ROLE_HEIGHT};
struct Help {
  const char* text;
};
inline Help help(const char* text) { return {text}; }
struct Relation {
  uint32_t input;
  uint32_t flags;
};

// What the facts and formats of the plan look like to a handler.
using Format = mr_format;

// What is known of a handler that has said nothing yet.
inline mr_facts no_facts() {
  mr_facts facts{};
  facts.size = sizeof facts;
  facts.rate_den = 1;
  facts.tick_count = -1;
  return facts;
}

struct Facts {
  mr_facts* raw;
  void rate(int64_t numerator, int64_t denominator = 1) {
    raw->rate_num = numerator;
    raw->rate_den = denominator;
  }
  void live() { raw->live = 1; }
  // The calls of this source wait for others, such as a pipe's writer: a thread of its own makes them.
  void waits() { raw->waits = 1; }
  void tick_count(int64_t count) { raw->tick_count = count; }
  // What a call takes with these parameters: on the host, and on a device. 0: not said; negative: it does not run
  // there. Goes before cost_hint_us(), which is one number for the type.
  void cost_us(double cpu, double gpu = 0) {
    raw->cost_cpu_ns = static_cast<int64_t>(cpu * 1000);
    raw->cost_gpu_ns = static_cast<int64_t>(gpu * 1000);
  }
};

namespace detail {
// A port as it was declared, and where the port object keeps its place in the flat arrays.
struct PortData {
  mr_port port{};
  std::string type_name;
  uint32_t* first = nullptr;
  uint32_t* count = nullptr;
};
struct ParamData {
  mr_param param{};
  std::vector<const char*> choices;
  void* target = nullptr;
  void (*assign)(void* target, const mr_param_value& value) = nullptr;
  std::string default_text;
};
template <class H>
concept HasCpuBody = requires(H& h, Tick& tick, Cpu& cpu) {
  h.process(tick, cpu);
};
template <class H>
concept HasCudaBody = requires(H& h, Tick& tick, Cuda& cuda) {
  h.process(tick, cuda);
};
template <class H>
concept HasFinish = requires(H& h, Tick& tick, Cpu& cpu) {
  h.finish(tick, cpu);
};
template <class H>
struct Type;
} // namespace detail

// What a type has to choose from on this machine, such as codecs: `static void offers(Offers&)` of a handler's class
// says it, and `inspect` and `doctor` show it.
class Offers {
 public:
  using Say = void (*)(void* context, const char* part, const char* name, const char* words);
  Offers(void* context, Say say) : context_(context), say_(say) {}
  // `part`: "encoders"; `name`: "h264"; `words`: what chooses it and what it is good for.
  void add(const std::string& part, const std::string& name, const std::string& words) {
    say_(context_, part.c_str(), name.c_str(), words.c_str());
  }

 private:
  void* context_;
  Say say_;
};

namespace detail {
template <class H>
concept HasOffers = requires(Offers& offers) {
  H::offers(offers);
};
} // namespace detail

// The formats of a handler's ports while the plan is made. Throw std::invalid_argument to refuse a combination.
class Formats {
 public:
  Formats(const mr_format* inputs, mr_format* outputs) : inputs_(inputs), outputs_(outputs) {}
  template <class Port>
  const Format& in(const Port& port, uint32_t index = 0) const {
    return inputs_[port.first() + index];
  }
  template <class Port>
  Format& out(const Port& port) const {
    return outputs_[port.first()];
  }
  // An image output of this format and size.
  template <class Port>
  Format& image(const Port& port, Pixel pixel, uint32_t width, uint32_t height) const {
    Format& format = out(port);
    format.pixel_formats = bit_of(pixel);
    format.width = width;
    format.height = height;
    format.size_kind = MR_DIM_FIXED;
    return format;
  }
  template <class Port>
  Format& tensor(const Port& port, DType dtype, std::initializer_list<int64_t> shape) const {
    if (shape.size() > MR_RANK_MAX) throw std::invalid_argument("a tensor has at most 8 dimensions");
    Format& format = out(port);
    format.dtype_code = dtype.code;
    format.dtype_bits = dtype.bits;
    format.dtype_lanes = dtype.lanes;
    format.rank = 0;
    for (int64_t extent : shape) {
      format.shape_kind[format.rank] = MR_DIM_FIXED;
      format.shape[format.rank++] = extent;
    }
    return format;
  }

 private:
  const mr_format* inputs_;
  mr_format* outputs_;
};

// The base of all handlers. Members of a derived class are constructed in order and declare themselves here.
class Handler {
 public:
  Handler() = default;
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  virtual ~Handler() = default;

  // Opens what must be opened to know rates and sizes. Not on the hot path; may block, may throw.
  virtual void probe(Facts&) {}
  // Narrows what a port (Port::port()) takes or makes by the parameters that were set, before formats are settled; the
  // pixel formats of an encoder, for one. Throw std::invalid_argument to refuse the parameters.
  virtual void narrow(uint32_t /*port*/, Format& /*accepts*/) {}
  // Sets the formats of outputs that are not `like` an input. Pure: no state of the run changes.
  virtual void configure(const Formats&) {}
  virtual void start() {}
  // The stream has ended, or pauses for so long that the window would fill with what is owed: publish it. After such a
  // pause comes reset(), then process() again; what is open is closed in stop().
  virtual void drain() {}
  virtual void stop() {}
  // The stream jumps, or goes on after it was drained: forget what belongs to the past.
  virtual void reset() {}
  // Ends a blocked call of any other function; from any thread.
  virtual void interrupt() {}

 protected:
  // Traits, set in the constructor.
  void stateless() { traits_ |= MR_TRAIT_STATELESS; }
  void blocking() { traits_ |= MR_TRAIT_BLOCKING; }
  void capturable() { traits_ |= MR_TRAIT_CAPTURABLE; }
  void host_heavy() { traits_ |= MR_TRAIT_HOST_HEAVY; }
  void no_allocation() { traits_ |= MR_TRAIT_NO_ALLOCATION; }
  void thread(const char* name) { thread_ = name; }
  void max_pending(uint32_t count) { max_pending_ = count; }
  // While a firing is owed, so many ticks may come on which the handler does not fire. Each costs memory for a tick of
  // whatever waits for its results; a longer gap ends the run, but for a handler that drains_freely(). Where all that
  // depends on the handler comes from it alone, gaps have no limit and this is not needed.
  void gap(uint32_t ticks) { gap_ = ticks; }
  // drain() and then reset() cost nothing but time: no key frame, no lost reference, no forgotten track. So the runtime
  // may drain the handler in a gap of any length.
  void drains_freely() { traits_ |= MR_TRAIT_DRAINS_FREELY; }
  // Publishes deferred firings from threads of its own, also while it is in no call.
  void asynchronous() { traits_ |= MR_TRAIT_ASYNCHRONOUS; }
  // Its parameters with a role (says_pixels, says_turn, …) say in what its picture differs from the one it gets. The
  // plan puts it where two ends of an edge do not meet; of several such handlers the first by name, built-in ones
  // first.
  void converts() { traits_ |= MR_TRAIT_CONVERTS; }
  void cost_hint_us(double us) { cost_hint_ns_ = static_cast<int64_t>(us * 1000); }
  // In the constructor or configure(): bytes of device memory for the GPU body alone, at Cuda::scratch(). Not
  // initialised; kept from tick to tick.
  void needs_scratch(uint64_t bytes) { declaration_.scratch_bytes = bytes; }

  int64_t now_ns() const { return host_->now_ns(context_); }
  void log(uint32_t level, const std::string& sentence) const { host_->log(context_, level, sentence.c_str()); }
  // Adds to a number of the report. From any thread; not for every tick of a steady run.
  void count(const char* name, int64_t add = 1) const { host_->count(context_, name, add); }
  // A failure outside any call, in a thread of the handler's own: it ends the run, or is told and counted, as on_error
  // says. In a call: throw.
  void fail(const std::string& sentence) const { host_->fail(context_, sentence.c_str()); }

 private:
  template <class>
  friend class Input;
  template <class>
  friend class Inputs;
  template <class>
  friend class Output;
  template <class>
  friend class Param;
  template <class>
  friend struct detail::Type;

  uint32_t add_port(detail::PortData port, uint32_t& first, uint32_t& count) {
    port.first = &first;
    port.count = &count;
    ports_.push_back(std::move(port));
    return static_cast<uint32_t>(ports_.size() - 1);
  }
  const mr_declaration* declare(uint32_t bodies);
  void bind(const uint32_t* edge_counts);

  std::deque<detail::PortData> ports_;
  std::deque<detail::ParamData> params_;
  std::vector<mr_port> raw_ports_;
  std::vector<mr_param> raw_params_;
  mr_declaration declaration_{};
  uint32_t traits_ = 0;
  uint32_t max_pending_ = 0, gap_ = 0;
  int64_t cost_hint_ns_ = 0;
  const char* thread_ = nullptr;
  const mr_host* host_ = nullptr;
  void* context_ = nullptr;
};

namespace detail {
inline void apply(PortData& p, MayRepeat) { p.port.flags |= MR_PORT_REPEATS; }
inline void apply(PortData& p, Optional) { p.port.flags |= MR_PORT_OPTIONAL; }
inline void apply(PortData& p, OnCpu) { p.port.memory = MR_MEMORY_CPU; }
inline void apply(PortData& p, OnGpu) { p.port.memory = MR_MEMORY_GPU; }
inline void apply(PortData& p, Keeps k) { p.port.keeps = k.count; }
inline void apply(PortData& p, Pixels x) { p.port.accepts.pixel_formats = x.bits; }
inline void apply(PortData& p, DTypes d) { p.port.accepts.dtypes = d.bits; }
inline void apply(PortData& p, Ranks r) { p.port.accepts.ranks = r.bits; }
inline void apply(PortData& p, CountMax c) { p.port.accepts.record_count_max = c.count; }
inline void apply(PortData& p, Help h) { p.port.help = h.text; }
inline void apply(PortData& p, SquarePixels) { p.port.flags |= MR_PORT_SQUARE; }
inline void apply(PortData& p, Relation r) {
  p.port.like = static_cast<int32_t>(r.input);
  p.port.flags |= r.flags;
}

template <class T, class... Options>
PortData make_port(uint32_t direction, const char* name, const Options&... options) {
  PortData data;
  data.type_name = T::type_name();
  data.port.size = sizeof(mr_port);
  data.port.direction = direction;
  data.port.name = name;
  data.port.help = "";
  data.port.like = -1;
  data.port.many_max = 1;
  data.port.accepts.size = sizeof(mr_format);
  data.port.accepts.kind = T::kKind;
  data.port.accepts.schema = T::kSchema.empty() ? 0 : schema_of(T::kSchema);
  if constexpr (T::kKind == MR_KIND_RECORDS) {
    data.port.accepts.record_size = sizeof(typename T::Element);
    data.port.accepts.layout = layout_of<typename T::Element>();
    data.port.accepts.records = record_type_of<typename T::Element>();
  }
  (apply(data, options), ...);
  return data;
}

template <class V>
void assign_param(void* target, const mr_param_value& value) {
  V& v = *static_cast<V*>(target);
  if constexpr (std::same_as<V, bool>) {
    v = value.as.boolean != 0;
  } else if constexpr (std::integral<V>) {
    const auto narrowed = static_cast<V>(value.as.integer);
    const bool same = static_cast<int64_t>(narrowed) == value.as.integer && (narrowed < 0) == (value.as.integer < 0);
    if (!same) throw std::invalid_argument("the number does not fit the parameter's type");
    v = narrowed;
  } else if constexpr (std::floating_point<V>) {
    if (value.as.real > std::numeric_limits<V>::max() || value.as.real < std::numeric_limits<V>::lowest())
      throw std::invalid_argument("the number does not fit the parameter's type");
    v = static_cast<V>(value.as.real);
  } else {
    v = value.as.text;
  }
}
} // namespace detail

// ---- ports -------------------------------------------------------------------------------------------------

// An input that carries at most one value a tick. Options: optional, keeps(k), pixels({…}), dtypes<…>(), rank(n),
// on_cpu, on_gpu, help("…").
template <class T>
class Input {
  static_assert(Payload<T>, "a port carries Image, Tensor, Packet, Records<T>, Object<T> or Any");

 public:
  template <class... Options>
  Input(Handler& owner, const char* name, const Options&... options)
      : port_(owner.add_port(detail::make_port<T>(MR_INPUT, name, options...), first_, count_)) {}
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  uint32_t port() const { return port_; }
  uint32_t first() const { return first_; }
  bool connected() const { return count_ > 0; }
  bool present(const Tick& tick) const { return connected() && raw(tick).value; }
  // True if no value comes any more: what it is made of has ended. Values of `latest` and of queues never end so.
  bool ended(const Tick& tick) const { return first_ < 64 && (tick.raw().ended >> first_ & 1); }
  // The value of this tick; of an optional input, ask present() first.
  typename T::View operator()(const Tick& tick) const { return T::view(raw(tick)); }
  const mr_input& raw(const Tick& tick) const { return tick.raw().inputs[first_]; }

 private:
  uint32_t port_;
  uint32_t first_ = 0; // its entry in the flat arrays
  uint32_t count_ = 1; // its edges
};

// An input that takes a list of edges; `(tick, i)` is the value of the i-th.
template <class T>
class Inputs {
  static_assert(Payload<T>, "a port carries Image, Tensor, Packet, Records<T>, Object<T> or Any");

 public:
  template <class... Options>
  Inputs(Handler& owner, const char* name, uint32_t count_max, const Options&... options) {
    detail::PortData data = detail::make_port<T>(MR_INPUT, name, options...);
    data.port.flags |= MR_PORT_MANY;
    data.port.many_max = count_max;
    port_ = owner.add_port(std::move(data), first_, count_);
  }
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;
  uint32_t port() const { return port_; }
  uint32_t first() const { return first_; }
  uint32_t count() const { return count_; }
  bool present(const Tick& tick, uint32_t index) const { return raw(tick, index).value; }
  bool ended(const Tick& tick, uint32_t index) const { // as of an Input; of the first 64 of a handler
    return first() + index < 64 && (tick.raw().ended >> (first() + index) & 1);
  }
  typename T::View operator()(const Tick& tick, uint32_t index) const { return T::view(raw(tick, index)); }
  const mr_input& raw(const Tick& tick, uint32_t index) const { return tick.raw().inputs[first() + index]; }

 private:
  uint32_t port_ = 0;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

// like(input): the output has the input's format. forward(input): it may also publish the input's own buffer.
// in_place(input): it may be written over the input's buffer, which the plan decides.
template <class Port>
Relation like(const Port& input) {
  return {input.port(), 0};
}
template <class Port>
Relation forward(const Port& input) {
  return {input.port(), MR_PORT_FORWARDS};
}
template <class Port>
Relation in_place(const Port& input) {
  return {input.port(), MR_PORT_IN_PLACE};
}

// An output. A firing that publishes nothing on it leaves it empty.
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
  // In finish(): what the body published, if it did. Its bytes are where they are: the host's to read behind a GPU body
  // where the output is on_cpu.
  bool made(Tick& tick) const { return raw(tick).state != MR_OUTPUT_SILENT; }
  typename T::View view(Tick& tick) const { return T::view({raw(tick).value, raw(tick).data}); }

  // A picture in the plan's memory. Pixels are not initialised. Throws where it is larger than planned.
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
  // A dense row-major tensor.
  TensorSpan allocate(Tick& tick, DType dtype, std::span<const int64_t> shape) const requires std::same_as<T, Tensor> {
    if (shape.size() > MR_RANK_MAX) throw std::invalid_argument("a tensor has at most 8 dimensions");
    mr_tensor tensor{};
    tensor.dtype_code = dtype.code;
    tensor.dtype_bits = dtype.bits;
    tensor.dtype_lanes = dtype.lanes;
    tensor.rank = static_cast<uint32_t>(shape.size());
    mr_output& output = fresh(tick, bytes_of(elements_of(shape), uint64_t{dtype.bits} * dtype.lanes));
    int64_t count = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      tensor.shape[d] = shape[d];
      tensor.strides[d] = count;
      count *= shape[d];
    }
    output.value->as.tensor = tensor;
    return {output.value, output.data};
  }
  // `count` records; fewer may be kept afterwards with shrink(), on a device by what is written to Cuda::count_of().
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
  // A packet of at most `bytes`; its real size is set with header().extent_bytes.
  PacketSpan allocate(Tick& tick, size_t bytes) const requires std::same_as<T, Packet> {
    mr_output& output = fresh(tick, bytes);
    output.value->as.packet = {};
    return {output.value, {output.data, bytes}};
  }
  // A host object; deleted when its block is reused.
  template <class U>
  void publish(Tick& tick, std::unique_ptr<U> object) const requires(T::kKind == MR_KIND_OBJECT) {
    if (raw(tick).state != MR_OUTPUT_SILENT)
      throw std::logic_error("the output " + std::string(owner_->ports_[port_].port.name) +
                             " holds something already on this tick");
    mr_output& output = fresh(tick, 0);
    output.value->as.object = {object.release(), [](void* pointer) { delete static_cast<U*>(pointer); }};
  }
  // The input's own buffer becomes this output's value (declared with mr::forward or mr::may_repeat).
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
  // The input's bytes, writable: in place where the plan allows, else a copy (declared with mr::in_place).
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
  // Publishes foreign memory; `release(context)` is called once, from any thread, when no reader is left, or at once
  // where this throws: the output holds something already, or more bytes are given than were planned. Returns the
  // value, whose payload fields the caller fills.
  mr_value& adopt(Tick& tick, const void* data, uint64_t bytes, void (*release)(void*), void* context) const {
    check(tick.raw().host->adopt(&tick.raw(), first(), data, bytes, release, context));
    mr_output& output = raw(tick);
    set_header(tick, output, bytes);
    return *output.value;
  }
  mr_header& header(Tick& tick) const { return raw(tick).value->header; }
  // What was allocated for this tick is not given after all: the output stays empty.
  void withdraw(Tick& tick) const { header(tick).present = 0; }

  // A block of the plan that is not of a tick yet, of an output whose format says how many are `held`: what a decoder
  // works in. False where so many are held. From any thread between start() and stop(), as give_back().
  bool borrow(mr_block& block) const { return owner_->host_->borrow(owner_->context_, first(), &block) == MR_OK; }
  void give_back(const mr_block& block) const { owner_->host_->give_back(owner_->context_, first(), block.token); }
  // A borrowed block becomes this tick's value, of which the first `bytes` are in use; the handler holds it all the
  // same, and may read it until it gives it back. Returns the value, whose payload fields the caller fills.
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

// ---- parameters --------------------------------------------------------------------------------------------

// A parameter: type, default, help, then range(), at_least(), choices(), unit(), live, required in any order. Reads
// like its value.
template <class V>
class Param {
 public:
  static_assert(std::is_arithmetic_v<V> || std::same_as<V, std::string>, "a parameter is a bool, a number or a string");

  template <class... Options>
  Param(Handler& owner, const char* name, V default_value, const char* help, const Options&... options)
      : value_(std::move(default_value)) {
    owner.params_.emplace_back();
    detail::ParamData& data = owner.params_.back();
    data.target = &value_;
    data.assign = &detail::assign_param<V>;
    mr_param& param = data.param;
    param.size = sizeof(mr_param);
    param.name = name;
    param.help = help;
    param.unit = "";
    if constexpr (std::same_as<V, bool>) {
      param.type = MR_PARAM_BOOL;
      param.default_value.as.boolean = value_;
    } else if constexpr (std::integral<V>) {
      param.type = MR_PARAM_INT;
      param.default_value.as.integer = static_cast<int64_t>(value_);
    } else if constexpr (std::floating_point<V>) {
      param.type = MR_PARAM_FLOAT;
      param.default_value.as.real = value_;
    } else {
      param.type = MR_PARAM_STRING;
      data.default_text = value_;
      param.default_value.as.text = data.default_text.c_str();
    }
    param.default_value.type = param.type;
    (apply(data, options), ...);
  }
  Param(const Param&) = delete;
  Param& operator=(const Param&) = delete;

  operator const V&() const { return value_; }
  const V& operator*() const { return value_; }
  const V* operator->() const { return &value_; }

 private:
  static void apply(detail::ParamData& data, Range r) {
    data.param.flags |= MR_PARAM_HAS_RANGE;
    data.param.min = r.min;
    data.param.max = r.max;
  }
  static void apply(detail::ParamData& data, const Choices& c) { data.choices = c.names; }
  static void apply(detail::ParamData& data, Unit u) { data.param.unit = u.text; }
  static void apply(detail::ParamData& data, Live) { data.param.flags |= MR_PARAM_LIVE; }
  static void apply(detail::ParamData& data, Required) { data.param.flags |= MR_PARAM_REQUIRED; }
  static void apply(detail::ParamData& data, Role r) requires std::same_as<V, std::string> || std::same_as<V, int64_t> {
    data.param.role = r.role;
  }
  static void apply(detail::ParamData& data, ReadsPath) requires std::same_as<V, std::string> {
    data.param.flags |= MR_PARAM_READS_PATH;
  }
  static void apply(detail::ParamData& data, WritesPath) requires std::same_as<V, std::string> {
    data.param.flags |= MR_PARAM_WRITES_PATH;
  }
  static void apply(detail::ParamData& data, InPieces) requires std::same_as<V, std::string> {
    data.param.flags |= MR_PARAM_IN_PIECES;
  }
  static void apply(detail::ParamData& data, CutsPaths) requires std::same_as<V, std::string> {
    data.param.flags |= MR_PARAM_CUTS_PATHS;
  }
  static void apply(detail::ParamData& data, Seconds) requires std::same_as<V, double> {
    data.param.flags |= MR_PARAM_DURATION;
    data.param.unit = "s";
  }

  V value_;
};

// ---- the way from the class to the C tables ----------------------------------------------------------------

inline const mr_declaration* Handler::declare(uint32_t bodies) {
  for (detail::PortData& data : ports_) {
    data.port.type_name = data.type_name.c_str();
    raw_ports_.push_back(data.port);
  }
  for (detail::ParamData& data : params_) {
    if (!data.choices.empty()) {
      data.choices.push_back(nullptr);
      data.param.choices = data.choices.data();
    }
    raw_params_.push_back(data.param);
  }
  declaration_ = {sizeof(mr_declaration),
                  traits_ | bodies,
                  raw_ports_.data(),
                  static_cast<uint32_t>(raw_ports_.size()),
                  static_cast<uint32_t>(raw_params_.size()),
                  raw_params_.data(),
                  max_pending_,
                  gap_,
                  thread_,
                  cost_hint_ns_,
                  declaration_.scratch_bytes};
  return &declaration_;
}

inline void Handler::bind(const uint32_t* edge_counts) {
  uint32_t next[2] = {0, 0}; // inputs, outputs
  for (size_t i = 0; i < ports_.size(); ++i) {
    detail::PortData& data = ports_[i];
    *data.first = next[data.port.direction];
    *data.count = edge_counts[i];
    // Every port but an empty list has an entry in the flat arrays, connected or not.
    next[data.port.direction] += (data.port.flags & MR_PORT_MANY) ? edge_counts[i] : 1;
  }
}

namespace detail {

// The table of one handler class: thunks that stop exceptions at the boundary.
template <class H>
struct Type {
  static constexpr uint32_t kBodies = (HasCpuBody<H> ? uint32_t{MR_TRAIT_CPU_BODY} : 0u) |
                                      (HasCudaBody<H> ? uint32_t{MR_TRAIT_CUDA_BODY} : 0u) |
                                      (HasFinish<H> ? uint32_t{MR_TRAIT_FINISH} : 0u);
  static_assert(HasCpuBody<H> || HasCudaBody<H>, "a handler needs process(Tick&, Cpu&) or process(Tick&, Cuda&)");

  static H& of(void* self) { return *static_cast<H*>(self); }

  template <class F>
  static mr_status guarded(const mr_host* host, void* context, F&& function) noexcept {
    try {
      return function();
    } catch (const std::bad_alloc&) {
      return MR_ERROR; // the runtime said why where it refused memory; else it reports the bare fact
    } catch (const std::exception& error) {
      host->fail(context, error.what());
    } catch (...) {
      host->fail(context, "an exception that is no std::exception was thrown");
    }
    return MR_ERROR;
  }
  template <class F>
  static mr_status guarded(void* self, F&& function) noexcept {
    H& handler = of(self);
    return guarded(handler.host_, handler.context_, [&] { return function(handler); });
  }

  static mr_status create(const mr_host* host, void* context, void** self, const mr_declaration** declaration) {
    return guarded(host, context, [&] {
      auto handler = std::make_unique<H>();
      handler->host_ = host;
      handler->context_ = context;
      *declaration = handler->declare(kBodies);
      *self = static_cast<void*>(handler.release());
      return mr_status{MR_OK};
    });
  }
  static void destroy(void* self) { delete &of(self); }
  static mr_status set_param(void* self, uint32_t index, const mr_param_value* value) {
    return guarded(self, [&](H& handler) {
      ParamData& data = handler.params_.at(index);
      data.assign(data.target, *value);
      return MR_OK;
    });
  }
  static mr_status bind(void* self, const uint32_t* edge_counts) {
    return guarded(self, [&](H& handler) {
      handler.bind(edge_counts);
      return MR_OK;
    });
  }
  static mr_status probe(void* self, mr_facts* facts) {
    return guarded(self, [&](H& handler) {
      Facts view{facts};
      handler.probe(view);
      return MR_OK;
    });
  }
  static mr_status configure(void* self, const mr_format* inputs, uint32_t, mr_format* outputs, uint32_t) {
    return guarded(self, [&](H& handler) {
      handler.configure(Formats(inputs, outputs));
      return MR_OK;
    });
  }
  static mr_status narrow(void* self, uint32_t port, mr_format* accepts) {
    return guarded(self, [&](H& handler) {
      handler.narrow(port, *accepts);
      return MR_OK;
    });
  }
  static void offers(void* context, Offers::Say say) {
    if constexpr (HasOffers<H>) {
      Offers offers(context, say);
      H::offers(offers);
    }
  }
  template <void (Handler::*Member)()>
  static mr_status call(void* self) {
    return guarded(self, [](H& handler) {
      (static_cast<Handler&>(handler).*Member)();
      return MR_OK;
    });
  }
  static mr_status process(void* self, mr_tick* raw) {
    return guarded(self, [raw](H& handler) {
      Tick tick(*raw);
      Cpu cpu;
      handler.process(tick, cpu);
      return tick.status();
    });
  }
  static mr_status process_cuda(void* self, mr_tick* raw) {
    return guarded(self, [raw](H& handler) {
      Tick tick(*raw);
      Cuda cuda{raw};
      handler.process(tick, cuda);
      return tick.status();
    });
  }
  static mr_status finish(void* self, mr_tick* raw) {
    return guarded(self, [raw](H& handler) {
      Tick tick(*raw);
      Cpu cpu;
      handler.finish(tick, cpu);
      return tick.status();
    });
  }
  static void interrupt(void* self) {
    guarded(self, [](H& handler) {
      handler.interrupt();
      return MR_OK;
    });
  }

  static mr_handler_type table(const char* type, const char* summary, const char* manual) {
    mr_handler_type t{};
    t.size = sizeof t;
    t.type = type;
    t.summary = summary;
    t.manual = manual;
    t.create = &create;
    t.destroy = &destroy;
    t.set_param = &set_param;
    t.bind = &bind;
    t.probe = &probe;
    t.configure = &configure;
    t.start = &call<&Handler::start>;
    if constexpr (HasCpuBody<H>) t.process = &process;
    if constexpr (HasCudaBody<H>) t.process_cuda = &process_cuda;
    if constexpr (HasFinish<H>) t.finish = &finish;
    t.drain = &call<&Handler::drain>;
    t.stop = &call<&Handler::stop>;
    t.reset = &call<&Handler::reset>;
    t.interrupt = &interrupt;
    t.narrow = &narrow;
    if constexpr (HasOffers<H>) t.offers = &offers;
    return t;
  }
};

// The handlers that this plugin (or the built-in set) registers; one list per shared library.
inline std::vector<const mr_handler_type*>& registered_types() {
  static std::vector<const mr_handler_type*> types;
  return types;
}
struct Registration {
  mr_handler_type type;
  explicit Registration(const mr_handler_type& table) : type(table) { registered_types().push_back(&type); }
  Registration(const Registration&) = delete;
};

} // namespace detail

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop

#define MILLRACE_JOIN_(a, b) a##b
#define MILLRACE_JOIN(a, b) MILLRACE_JOIN_(a, b)

// Registers a handler class under "family.name" with a one-sentence summary and, optionally, its manual.
#define MILLRACE_HANDLER(Class, type, ...) MILLRACE_HANDLER_(Class, type, __VA_ARGS__, "", "")
#define MILLRACE_HANDLER_(Class, type, summary, manual, ...)   \
  static const ::millrace::detail::Registration MILLRACE_JOIN( \
      millrace_registration_, __COUNTER__)(::millrace::detail::Type<Class>::table(type, summary, manual));

// The one symbol of a plugin; once per shared library.
#define MILLRACE_PLUGIN(plugin_name, plugin_version)                                                       \
  extern "C" MR_EXPORT const mr_plugin* millrace_plugin() {                                                \
    static const mr_plugin plugin = {sizeof(mr_plugin),                                                    \
                                     MR_ABI_VERSION,                                                       \
                                     plugin_name,                                                          \
                                     plugin_version,                                                       \
                                     ::millrace::detail::registered_types().data(),                        \
                                     static_cast<uint32_t>(::millrace::detail::registered_types().size()), \
                                     0};                                                                   \
    return &plugin;                                                                                        \
  }
