// Drives any handler through odd orders of its life and odd inputs, and compares what it declared with what it did.
//
//   for (const mr::testing::HandlerCheck& check : mr::testing::kHandlerChecks)
//     assert(check.run(mr::testing::subject_of<Invert>()).verdict != mr::testing::Verdict::fail);
//
// `millrace check-handler TYPE` runs the same checks, each in a process of its own, so that a crash or a call that
// never returns is a finding too. Nothing here knows a handler: values are made from the declaration of the ports.
// A handler may refuse a size or a value, in words; it may not fail after it has accepted, nor behave otherwise than it
// declared. One thread calls; where a check needs a second one it makes it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "millrace/testing.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

// ---- what is checked, and what came of it --------------------------------------------------------------------

enum class Verdict { pass, fail, skipped };

struct Finding {
  Verdict verdict = Verdict::pass;
  std::string reason; // why it fails or was left out; of a pass: what was tried, where that is worth a word
};

// Counts heap allocations of this thread where a program has replaced operator new for it; null where it has not.
struct AllocationCounter {
  void (*count)(bool on) = nullptr;
  uint64_t (*counted)() = nullptr; // since the program began
};

// A handler and the parameters that it needs to start at all.
struct Subject {
  mr_handler_type type;
  std::vector<Setting> settings;
  AllocationCounter allocations;
};

template <class H>
Subject subject_of(std::vector<Setting> settings = {}) {
  return {v1::detail::Type<H>::table("test.handler", "A handler under test", ""), std::move(settings), {}};
}

struct HandlerCheck {
  const char* name;
  const char* sentence; // what is true of a handler that passes
  Finding (*run)(const Subject& subject);
};

namespace check {

// Ticks that a check runs: enough for every third and fifth to differ, few enough for a slow handler.
inline constexpr uint64_t kTicks = 12;
// Blocks larger than this are planned and not filled: 4K pictures are below it, a slip of a size far above.
inline constexpr uint64_t kBytesMax = uint64_t{96} << 20;
// A source that says it has more ticks than this is not run to its end.
inline constexpr int64_t kEndTicksMax = 200;

// ---- values from a declaration -------------------------------------------------------------------------------

// How the inputs of a run are made.
struct Feed {
  uint32_t width = 64, height = 48;  // of pictures; tensors and packets scale with them
  uint32_t pixel = 0;                // MR_PIXEL_*; 0: the first that the port takes
  DType dtype = dtype_of<int64_t>(); // of tensors, where the port takes it or leaves it open
  uint32_t rank = 1;                 // the same of their dimensions
  uint64_t records = 5;
  uint32_t edges = 1;          // of an input that takes a list
  bool optional_inputs = true; // connected
  bool optional_values = true; // with a value
};

// What the port takes: that of the feed where it does, else the first.
inline DType dtype_for(const mr_format& accepts, const Feed& feed) {
  if (accepts.dtype_bits) return {accepts.dtype_code, accepts.dtype_bits, accepts.dtype_lanes};
  if (!accepts.dtypes || (accepts.dtypes & bit_of(feed.dtype))) return feed.dtype;
  return kDTypes[static_cast<size_t>(std::countr_zero(accepts.dtypes))];
}
inline uint32_t rank_for(const mr_format& accepts, const Feed& feed) {
  if (accepts.rank) return accepts.rank;
  if (!accepts.ranks || (accepts.ranks >> feed.rank & 1)) return feed.rank;
  return static_cast<uint32_t>(std::countr_zero(accepts.ranks));
}

inline uint32_t pixel_for(const mr_format& accepts, const Feed& feed) {
  const uint64_t taken = accepts.kind == MR_KIND_IMAGE ? accepts.pixel_formats : 0;
  if (feed.pixel && (!taken || (taken >> feed.pixel & 1))) return feed.pixel;
  return taken ? static_cast<uint32_t>(std::countr_zero(taken)) : uint32_t{MR_PIXEL_RGB8};
}

// Bytes without a pattern that a handler could mistake for order, the same for the same seed.
inline void scramble(uint8_t* bytes, uint64_t count, uint64_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  for (uint64_t i = 0; i < count; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    bytes[i] = static_cast<uint8_t>(state >> 32);
  }
}

// Small numbers, which every element type can hold.
template <class T>
void write_numbers(uint8_t* bytes, uint64_t count, uint64_t seed) {
  for (uint64_t i = 0; i < count; ++i) {
    const T number = static_cast<T>((i * 7 + seed * 3) % 101);
    std::memcpy(bytes + i * sizeof(T), &number, sizeof(T));
  }
}

inline void fill_elements(DType dtype, uint8_t* bytes, uint64_t count, uint64_t seed) {
  const bool real = dtype.code == MR_DTYPE_FLOAT;
  if (real && dtype.bits == 64) return write_numbers<double>(bytes, count, seed);
  if (real && dtype.bits == 32) return write_numbers<float>(bytes, count, seed);
  if (dtype.bits == 64) return write_numbers<int64_t>(bytes, count, seed);
  if (dtype.bits == 32) return write_numbers<int32_t>(bytes, count, seed);
  if (dtype.bits == 16 && dtype.code <= MR_DTYPE_UINT) return write_numbers<int16_t>(bytes, count, seed);
  if (dtype.bits == 8) return write_numbers<uint8_t>(bytes, count, seed);
  std::memset(bytes, 0, count * dtype.bits * dtype.lanes / 8);
}

inline Value image_for(const mr_format& accepts, const Feed& feed, uint64_t seed) {
  const Value value = image(static_cast<Pixel>(pixel_for(accepts, feed)), feed.width, feed.height);
  scramble(value.block()->data(), value.block()->capacity(), seed);
  return value;
}

inline Value tensor_for(const mr_format& accepts, const Feed& feed, uint64_t seed) {
  mr_tensor layout{};
  const DType dtype = dtype_for(accepts, feed);
  layout.dtype_code = dtype.code;
  layout.dtype_bits = dtype.bits;
  layout.dtype_lanes = dtype.lanes;
  layout.rank = rank_for(accepts, feed);
  int64_t count = 1;
  for (uint32_t d = layout.rank; d-- > 0; count *= layout.shape[d]) {
    const bool fixed = accepts.rank && accepts.shape[d] > 0 && accepts.shape_kind[d] == MR_DIM_FIXED;
    layout.shape[d] = fixed ? accepts.shape[d] : d + 1 == layout.rank ? int64_t{feed.width} : 2;
    layout.strides[d] = count;
  }
  const uint64_t bytes = (static_cast<uint64_t>(count) * dtype.bits * dtype.lanes + 7) / 8;
  Value value = testing::detail::fresh_value<Tensor>(bytes);
  value.raw().as.tensor = layout;
  fill_elements(dtype, value.block()->data(), static_cast<uint64_t>(count), seed);
  return value;
}

inline Value records_for(const mr_format& accepts, const Feed& feed, uint64_t seed) {
  const uint64_t count = accepts.record_count_max ? std::min(feed.records, accepts.record_count_max) : feed.records;
  if (!accepts.schema || accepts.schema == schema_of(Box::kSchema)) {
    std::vector<Box> boxes;
    for (uint64_t i = 0; i < count; ++i) {
      const auto at = static_cast<float>((seed * 5 + i * 9) % 40); // some lie beyond a small picture
      boxes.push_back({at, at / 2, 12, 9, 0.5f, static_cast<int32_t>(i % 3), static_cast<int64_t>(i)});
    }
    return records<Box>(boxes);
  }
  Value value(std::make_shared<Block>(count * accepts.record_size));
  value.header() = {accepts.schema, accepts.layout, MR_KIND_RECORDS, 0, 0, 0, 0, 1, count * accepts.record_size};
  value.raw().as.records = {count, accepts.record_size};
  std::memset(value.block()->data(), 0, value.block()->capacity());
  return value;
}

// Something that the input takes; nothing where only the plugin itself can make it.
inline std::optional<Value> value_for(const mr_port& port, const Feed& feed, uint64_t seed) {
  const mr_format& accepts = port.accepts;
  switch (accepts.kind) {
    case MR_KIND_ANY:
    case MR_KIND_IMAGE: return image_for(accepts, feed, seed);
    case MR_KIND_TENSOR: return tensor_for(accepts, feed, seed);
    case MR_KIND_RECORDS: return records_for(accepts, feed, seed);
    case MR_KIND_PACKET: {
      std::vector<uint8_t> bytes(size_t{feed.width} + 1);
      scramble(bytes.data(), bytes.size(), seed);
      return packet(bytes, static_cast<int64_t>(seed), true);
    }
    default: return {};
  }
}

// ---- a handler with its inputs -------------------------------------------------------------------------------

// Thrown where a check cannot be made; not a fault of the handler.
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A fault of the handler.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, const std::string& sentence) {
  if (!holds) throw Fault(sentence);
}

class Rig {
 public:
  explicit Rig(const Subject& subject, const Feed& feed = {}) : type_(subject.type), feed_(feed), test(subject.type) {
    if (!type_.process) throw Skip("it has no CPU body, and there is no device here");
    for (const Setting& setting : subject.settings) test.set(setting.name, setting.text);
    connect();
  }

  const mr_declaration& declared() const { return test.declaration(); }
  bool is_source() const {
    for (uint32_t p = 0; p < declared().port_count; ++p)
      if (declared().ports[p].direction == MR_INPUT) return false;
    return true;
  }

  // Gives every connected input its value of this seed, or none.
  std::vector<Value> give(uint64_t seed, bool empty = false) {
    std::vector<Value> given;
    for (uint32_t p = 0; p < declared().port_count; ++p) {
      mr_port port = declared().ports[p];
      if (port.direction == MR_INPUT) port.accepts = test.accepts(p);
      const bool optional = port.flags & MR_PORT_OPTIONAL;
      if (port.direction == MR_OUTPUT || (optional && !feed_.optional_inputs)) continue;
      for (uint32_t edge = 0; edge < edges_of(port); ++edge) {
        std::optional<Value> value = value_for(port, feed_, seed * 16 + p * 4 + edge);
        if (!value) throw Skip("input '" + std::string(port.name) + "' takes objects that only its own plugin makes");
        const bool none = empty || (optional && !feed_.optional_values);
        if (!none) given.push_back(value->at(static_cast<int64_t>(seed) * 40'000'000, 40'000'000));
        test.input(port.name, none ? Value{} : *value, edge);
      }
    }
    return given;
  }
  Result tick(uint64_t seed, bool empty = false) {
    give(seed, empty);
    return test.tick();
  }

  // Whether the blocks of this setting can be made at all without taking the machine.
  bool small_enough() const {
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < declared().port_count; ++p)
      if (declared().ports[p].direction == MR_OUTPUT) bytes += bytes_of(test.format(declared().ports[p].name));
    return bytes <= kBytesMax;
  }

 private:
  uint32_t edges_of(const mr_port& port) const {
    return port.flags & MR_PORT_MANY ? std::min(feed_.edges, port.many_max) : 1;
  }
  // The first values also say which edges there are; a format needs one even where the port is empty later.
  void connect() {
    const bool values = std::exchange(feed_.optional_values, true);
    give(0);
    feed_.optional_values = values;
  }
  static uint64_t bytes_of(const mr_format& format) {
    if (format.kind == MR_KIND_IMAGE) return uint64_t{format.width} * format.height * 4;
    if (format.kind == MR_KIND_RECORDS) return format.record_count_max * format.record_size;
    if (format.kind != MR_KIND_TENSOR) return format.bytes_max;
    uint64_t bytes = format.dtype_bits / 8;
    for (uint32_t d = 0; d < format.rank; ++d) bytes *= static_cast<uint64_t>(std::max<int64_t>(format.shape[d], 0));
    return bytes;
  }

  mr_handler_type type_;
  Feed feed_;

 public:
  TableTest test;
};

inline std::string words_of(const std::string& sentence) { return sentence.empty() ? "nothing" : sentence; }

// The handler's words are read here, after the call: arguments may be evaluated in any order.
inline void require_ok(const Rig& rig, mr_status status, const char* what) {
  if (status != MR_OK) throw Fault(std::string(what) + ": it said: " + words_of(rig.test.error()));
}

// Whether it starts; a refusal has to be in words.
inline bool starts(Rig& rig, std::string* refusal = nullptr) {
  const mr_status status = rig.test.start();
  if (status == MR_OK) return true;
  require(status == MR_ERROR, "its start returned status " + std::to_string(status));
  require(!rig.test.error().empty(), "it refuses to start without a word");
  if (refusal) *refusal = rig.test.error();
  return false;
}

inline void require_start(Rig& rig, const std::string& when) {
  std::string refusal;
  const bool started = starts(rig, &refusal);
  require(started, "it does not start" + (when.empty() ? "" : " " + when) + ": it said: " + refusal);
}

// Values have to be what the port says, wherever in the stream.
inline void require_sound_values(Rig& rig, const Result& result) {
  for (const Result::Output& output : result.outputs) {
    if (!output.value) continue;
    const mr_format& format = rig.test.format(output.port);
    const uint64_t capacity = output.value.block()->capacity();
    const ValueFault fault = find_fault(format, output.value.raw(), capacity);
    if (fault != ValueFault::none)
      throw Fault("its output '" + output.port + "' " + words_of(fault, format, output.value.raw(), capacity));
  }
}

inline void require_fine(Rig& rig, const Result& result, const std::string& when) {
  if (result.status == MR_ERROR) throw Fault("it fails " + when + ": " + words_of(result.error));
  const bool known = result.status >= MR_OK && result.status <= MR_END;
  require(known, "process returned status " + std::to_string(result.status) + " " + when);
  require(rig.is_source() || !(result.not_yet() || result.end()), "it has inputs and says that it has nothing " + when);
  require_sound_values(rig, result);
}

// What can be seen of a value: a block's padding is nobody's business.
inline uint64_t seen_of(const Value& value) {
  if (!value) return 0;
  const mr_header& header = value.header();
  const auto mix = [](uint64_t hash, const void* bytes, size_t count) {
    return (hash ^ schema_of({static_cast<const char*>(bytes), count})) * 0x100000001B3ull;
  };
  uint64_t hash = mix(header.kind * 31ull + header.flags, &header.pts_ns, sizeof header.pts_ns);
  if (header.kind == MR_KIND_OBJECT) return hash;
  if (header.kind != MR_KIND_IMAGE) return mix(hash, value.data(), static_cast<size_t>(header.extent_bytes));
  const mr_image& image = value.raw().as.image;
  const uint32_t pixel = image.format;
  hash = mix(hash, &image, offsetof(mr_image, planes));
  for (uint32_t i = 0; i < std::min(image.plane_count, MR_PLANES_MAX); ++i) {
    const uint64_t half = (uint64_t{image.width} + 1) / 2;
    uint64_t row = uint64_t{image.width} * bytes_per_pixel(static_cast<Pixel>(pixel));
    if (i > 0) row = pixel == MR_PIXEL_NV12 ? half * 2 : pixel == MR_PIXEL_P010 ? half * 4 : half;
    for (uint32_t y = 0; y < image.planes[i].rows; ++y)
      hash = mix(hash, value.data() + image.planes[i].offset + uint64_t{y} * image.planes[i].stride,
                 static_cast<size_t>(row));
  }
  return hash;
}
inline uint64_t seen_of(const Result& result) {
  uint64_t hash = static_cast<uint64_t>(result.status == MR_END);
  for (const Result::Output& output : result.outputs) hash = hash * 1099511628211ull + seen_of(output.value);
  return hash;
}

// A feed with which the handler starts; what it said where there is none.
inline std::optional<Feed> find_feed(const Subject& subject, std::string& refusal) {
  for (const DType dtype : {dtype_of<int64_t>(), dtype_of<float>(), dtype_of<uint8_t>(), dtype_of<double>()})
    for (const uint32_t edges : {1u, 2u}) {
      Feed feed;
      feed.dtype = dtype;
      feed.edges = edges;
      Rig rig(subject, feed);
      if (starts(rig, &refusal)) return feed;
    }
  return {};
}

// Who does not start at all fails one check, which says so, and not each.
inline Feed working_feed(const Subject& subject) {
  std::string refusal;
  if (const std::optional<Feed> feed = find_feed(subject, refusal)) return *feed;
  throw Skip("it does not start, as the check `works` tells");
}

inline Finding guarded(const Subject& subject, std::string (*body)(const Subject& subject)) {
  try {
    return {Verdict::pass, body(subject)};
  } catch (const Skip& skip) {
    return {Verdict::skipped, skip.what()};
  } catch (const std::exception& fault) {
    return {Verdict::fail, fault.what()};
  }
}

// ---- the checks: each returns what it tried, and throws Skip or Fault ----------------------------------------------

inline std::string described(const Subject& subject) {
  Rig rig(subject);
  require(subject.type.summary && *subject.type.summary, "it has no summary");
  for (uint32_t i = 0; i < rig.declared().param_count; ++i) {
    const mr_param& param = rig.declared().params[i];
    require(param.help && *param.help, "its parameter '" + std::string(param.name) + "' has no help");
  }
  return "";
}

inline std::string works(const Subject& subject) {
  std::string refusal;
  const std::optional<Feed> feed = find_feed(subject, refusal);
  require(feed.has_value(),
          "it does not start with these parameters and any input that its ports take: it said: " + refusal);
  Rig rig(subject, *feed);
  require_start(rig, "");
  uint64_t fired = 0;
  for (uint64_t k = 0; k < kTicks; ++k) {
    const Result result = rig.tick(k);
    require_fine(rig, result, "at tick " + std::to_string(k));
    fired += result.fired;
    if (result.end()) break;
  }
  require(fired > 0, "it never fired");
  require_ok(rig, rig.test.drain(), "drain fails");
  require_ok(rig, rig.test.stop(), "stop fails");
  return "";
}

inline std::string lives_twice(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  for (const char* life : {"the first time", "a second time", "a third time"}) {
    require_start(rig, life);
    for (uint64_t k = 0; k < 3; ++k) require_fine(rig, rig.tick(k), std::string("when it was started ") + life);
    require_ok(rig, rig.test.stop(), "stop fails");
  }
  return "";
}

inline std::string restarts(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  require_start(rig, "");
  for (uint64_t k = 0; k < 3; ++k) {
    require_fine(rig, rig.tick(k), "at tick " + std::to_string(k));
    require_ok(rig, rig.test.restart(), "stop, reset, start fails");
    require_fine(rig, rig.tick(k + 10), "after stop, reset, start");
  }
  return "";
}

inline std::string stops_without_start(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig rig(subject, feed);
  require_ok(rig, subject.type.stop(rig.test.self()), "stop without start fails");
  require_start(rig, "after a stop without a start");
  require_fine(rig, rig.tick(0), "after a stop without a start");
  require_ok(rig, rig.test.stop(), "stop fails");
  require_ok(rig, subject.type.stop(rig.test.self()), "a second stop fails");
  { const Rig never_started(subject, feed); }
  Rig probed(subject, feed);
  mr_facts facts = no_facts();
  require_ok(probed, subject.type.probe(probed.test.self(), &facts), "probe fails");
  return ""; // and is destroyed with what the probe has opened
}

inline std::string drains_twice(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig idle(subject, feed);
  require_start(idle, "");
  require_ok(idle, idle.test.drain(), "drain before the first tick fails");
  require_ok(idle, idle.test.stop(), "stop fails");

  Rig rig(subject, feed);
  require_start(rig, "");
  for (uint64_t k = 0; k < 3; ++k) require_fine(rig, rig.tick(k), "at tick " + std::to_string(k));
  require_ok(rig, rig.test.drain(), "drain fails");
  rig.test.published();
  require_ok(rig, rig.test.drain(), "a second drain fails");
  require(rig.test.published().empty(), "a second drain publishes again");
  require_ok(rig, rig.test.stop(), "stop after drain fails");
  return "";
}

inline std::string resets(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig rig(subject, feed);
  require_ok(rig, rig.test.reset(), "reset before start fails");
  require_start(rig, "after a reset");
  for (uint64_t k = 0; k < 3; ++k) {
    require_ok(rig, rig.test.reset(), "reset fails");
    require_fine(rig, rig.tick(k), "after a reset");
  }
  require_ok(rig, rig.test.drain(), "drain fails");
  require_ok(rig, rig.test.reset(), "reset after drain fails");
  require_ok(rig, rig.test.restart(), "it does not start after drain");
  require_fine(rig, rig.tick(9), "when it was started again after drain and reset");
  return "";
}

inline std::string interrupted_in_every_state(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig rig(subject, feed);
  rig.test.interrupt(); // constructed
  mr_facts facts = no_facts();
  subject.type.probe(rig.test.self(), &facts);
  rig.test.interrupt(); // probed
  require_start(rig, "after an interrupt");
  rig.test.interrupt(); // started
  rig.tick(0);          // may end early, with any status
  rig.test.interrupt();
  rig.test.drain();
  rig.test.interrupt(); // drained
  rig.test.stop();
  rig.test.interrupt(); // stopped
  require_ok(rig, rig.test.restart(), "it does not start after an interrupt");
  require_fine(rig, rig.tick(1), "when it was started anew after an interrupt");
  return "";
}

// The second thread interrupts for as long as the first works: calls may end early, but they end.
inline std::string interrupted_while_it_works(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  require_start(rig, "");
  std::atomic<bool> done = false;
  std::thread interrupter([&] {
    while (!done.load()) {
      rig.test.interrupt();
      std::this_thread::yield();
    }
  });
  std::string thrown;
  try {
    for (uint64_t k = 0; k < kTicks; ++k) rig.tick(k);
    rig.test.drain();
  } catch (const std::exception& error) {
    thrown = error.what();
  }
  done = true;
  interrupter.join();
  require(thrown.empty(), thrown);
  require_ok(rig, rig.test.restart(), "it does not start after an interrupt");
  require_fine(rig, rig.tick(1), "when it was started anew after an interrupt");
  return "";
}

struct Size {
  uint32_t width, height;
  const char* name;
};

inline bool takes(const Rig& rig, uint32_t kind) {
  for (uint32_t p = 0; p < rig.declared().port_count; ++p) {
    const mr_port& port = rig.declared().ports[p];
    const bool any = port.accepts.kind == MR_KIND_ANY;
    if (port.direction == MR_INPUT && (port.accepts.kind == kind || (any && kind == MR_KIND_IMAGE))) return true;
  }
  return false;
}

inline std::string takes_odd_sizes(const Subject& subject) {
  Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); rig.is_source()) throw Skip("it has no inputs");
  std::string refused;
  for (const Size& size : {Size{1, 1, "1x1"}, Size{1, 7, "1x7"}, Size{7, 1, "7x1"}, Size{2, 3, "2x3"},
                           Size{33, 17, "33x17"}, Size{65, 64, "65x64"}, Size{2051, 1537, "2051x1537"}}) {
    feed.width = size.width;
    feed.height = size.height;
    Rig rig(subject, feed);
    std::string refusal;
    if (!starts(rig, &refusal)) {
      refused += (refused.empty() ? "refuses " : "; ") + std::string(size.name) + ": " + refusal;
      continue;
    }
    if (!rig.small_enough()) continue;
    for (uint64_t k = 0; k < 2; ++k) require_fine(rig, rig.tick(k), std::string("with inputs of ") + size.name);
  }
  return refused;
}

inline std::string takes_every_pixel_format(const Subject& subject) {
  Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); !takes(rig, MR_KIND_IMAGE)) throw Skip("it takes no pictures");
  std::string refused;
  for (uint32_t pixel = 1; pixel < MR_PIXEL_COUNT; ++pixel) {
    feed.pixel = pixel;
    for (const Size& size : {Size{64, 48, "64x48"}, Size{33, 17, "33x17"}}) {
      feed.width = size.width;
      feed.height = size.height;
      Rig rig(subject, feed);
      std::string refusal;
      const std::string name(kPixelNames[pixel]);
      if (!starts(rig, &refusal)) {
        refused += (refused.empty() ? "refuses " : "; ") + name + " " + size.name + ": " + refusal;
        continue;
      }
      require_fine(rig, rig.tick(pixel), "with " + name + " pictures of " + size.name);
    }
  }
  return refused;
}

// Tensors of each declared element type and number of dimensions; an input that declares neither is not asked.
inline std::string takes_every_tensor_it_declares(const Subject& subject) {
  Feed feed = working_feed(subject);
  uint32_t dtypes = 0, ranks = 0;
  {
    Rig rig(subject, feed);
    for (uint32_t p = 0; p < rig.declared().port_count; ++p) {
      if (rig.declared().ports[p].direction == MR_OUTPUT) continue;
      dtypes |= rig.test.accepts(p).dtypes;
      ranks |= rig.test.accepts(p).ranks;
    }
  }
  if (!dtypes && !ranks) throw Skip("no input declares element types or dimensions of tensors");
  std::string refused;
  for (size_t i = 0; i < kDTypes.size(); ++i)
    for (uint32_t rank = 0; rank <= MR_RANK_MAX; ++rank) {
      if (dtypes ? !(dtypes >> i & 1) : kDTypes[i] != feed.dtype) continue;
      if (ranks ? !(ranks >> rank & 1) : rank != feed.rank) continue;
      Feed declared = feed;
      declared.dtype = kDTypes[i];
      declared.rank = rank;
      Rig rig(subject, declared);
      std::string refusal;
      const std::string name = name_of(kDTypes[i]) + " of " + std::to_string(rank) + " dimensions";
      if (!starts(rig, &refusal)) {
        refused += (refused.empty() ? "refuses " : "; ") + name + ": " + refusal;
        continue;
      }
      require_fine(rig, rig.tick(i), "with " + name);
    }
  return refused;
}

inline std::string takes_any_number_of_records(const Subject& subject) {
  Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); !takes(rig, MR_KIND_RECORDS)) throw Skip("it takes no records");
  Rig rig(subject, feed);
  require_start(rig, "");
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{300}, uint64_t{0}}) {
    feed.records = count;
    for (uint32_t p = 0; p < rig.declared().port_count; ++p) {
      const mr_port& port = rig.declared().ports[p];
      if (port.direction == MR_INPUT) rig.test.input(port.name, *value_for(port, feed, count));
    }
    require_fine(rig, rig.test.tick(), "with " + std::to_string(count) + " records");
  }
  return "";
}

inline std::string takes_lists(const Subject& subject) {
  Feed feed = working_feed(subject);
  uint32_t most = 0;
  {
    const Rig rig(subject, feed);
    for (uint32_t p = 0; p < rig.declared().port_count; ++p)
      if (rig.declared().ports[p].flags & MR_PORT_MANY) most = std::max(most, rig.declared().ports[p].many_max);
  }
  if (most == 0) throw Skip("no input takes a list");
  std::string refused;
  for (const uint32_t edges : {1u, 2u, 3u, most}) {
    feed.edges = edges;
    Rig rig(subject, feed);
    std::string refusal;
    if (!starts(rig, &refusal)) {
      refused += (refused.empty() ? "refuses " : "; ") + std::to_string(edges) + " edges: " + refusal;
      continue;
    }
    require_fine(rig, rig.tick(edges), "with " + std::to_string(edges) + " edges");
  }
  return refused;
}

inline std::string works_without_optional_inputs(const Subject& subject) {
  Feed feed = working_feed(subject);
  bool optional = false;
  {
    const Rig rig(subject, feed);
    for (uint32_t p = 0; p < rig.declared().port_count; ++p)
      optional = optional || (rig.declared().ports[p].flags & MR_PORT_OPTIONAL);
  }
  if (!optional) throw Skip("no input is optional");
  feed.optional_values = false;
  Rig empty(subject, feed);
  require_start(empty, "with its optional inputs connected");
  for (uint64_t k = 0; k < 3; ++k) require_fine(empty, empty.tick(k), "when its optional inputs are empty");
  feed.optional_inputs = false;
  Rig unconnected(subject, feed);
  std::string refusal;
  if (!starts(unconnected, &refusal)) return "refuses no optional input at all: " + refusal;
  for (uint64_t k = 0; k < 3; ++k)
    require_fine(unconnected, unconnected.tick(k), "when its optional inputs are not connected");
  return "";
}

inline std::string takes_gaps(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig rig(subject, feed);
  if (rig.is_source()) throw Skip("it has no inputs");
  require_start(rig, "");
  for (uint64_t k = 0; k < kTicks; ++k)
    require_fine(rig, rig.tick(k, k % 3 != 1), "when values come at every third tick only");
  return "";
}

inline std::string works_unread(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig rig(subject, feed);
  bool outputs = false;
  for (uint32_t p = 0; p < rig.declared().port_count; ++p) {
    if (rig.declared().ports[p].direction == MR_INPUT) continue;
    rig.test.unconnected(rig.declared().ports[p].name);
    outputs = true;
  }
  if (!outputs) throw Skip("it has no outputs");
  require_start(rig, "with nobody to read it");
  for (uint64_t k = 0; k < 3; ++k) require_fine(rig, rig.tick(k), "when nobody reads its outputs");
  return "";
}

// ---- parameters

inline std::string number_in_words(const mr_param& param, double number) {
  return param.type == MR_PARAM_INT ? std::to_string(static_cast<int64_t>(number)) : v1::detail::number_text(number);
}

// The ends of the range, or all choices, or both truths.
inline std::vector<std::string> edge_values(const mr_param& param) {
  if (param.type == MR_PARAM_BOOL) return {"true", "false"};
  std::vector<std::string> texts;
  if (param.choices) {
    for (const char* const* choice = param.choices; *choice; ++choice) texts.emplace_back(*choice);
    return texts;
  }
  if (!(param.flags & MR_PARAM_HAS_RANGE)) return {};
  for (const double end : {param.min, param.max})
    if (std::isfinite(end)) texts.push_back(number_in_words(param, end));
  return texts;
}

inline std::string takes_its_parameters(const Subject& subject) {
  const Feed feed = working_feed(subject);
  const Rig declared(subject, feed);
  uint32_t tried = 0;
  std::string refused;
  for (uint32_t i = 0; i < declared.declared().param_count; ++i) {
    const mr_param& param = declared.declared().params[i];
    for (const std::string& text : edge_values(param)) {
      const std::string given = std::string(param.name) + "=" + text;
      Rig rig(subject, feed);
      rig.test.set(param.name, text);
      ++tried;
      std::string refusal;
      if (!starts(rig, &refusal)) {
        refused += (refused.empty() ? "refuses " : "; ") + given + ": " + refusal;
        continue;
      }
      if (!rig.small_enough()) continue;
      for (uint64_t k = 0; k < 2; ++k) {
        const Result result = rig.tick(k);
        // A handler may be told to fail; then it does so in words.
        if (result.status == MR_ERROR && !result.error.empty() && k == 0) break;
        require_fine(rig, result, "with " + given);
      }
    }
  }
  if (tried == 0) throw Skip("no parameter has a range or choices");
  return refused;
}

inline std::string changes_live(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  require_start(rig, "");
  uint32_t changed = 0;
  for (uint32_t i = 0; i < rig.declared().param_count; ++i) {
    const mr_param& param = rig.declared().params[i];
    if (!(param.flags & MR_PARAM_LIVE)) continue;
    for (const std::string& text : edge_values(param)) {
      rig.test.set(param.name, text);
      ++changed;
      require_fine(rig, rig.tick(changed), "after " + std::string(param.name) + "=" + text + " while it runs");
    }
  }
  if (changed == 0) throw Skip("no parameter is live");
  return "";
}

// ---- what was declared

inline std::string probes_alike(const Subject& subject) {
  const Feed feed = working_feed(subject);
  mr_facts facts[2];
  for (mr_facts& told : facts) {
    told = no_facts();
    Rig rig(subject, feed);
    require_start(rig, "");
    told = rig.test.facts();
  }
  require(facts[0].rate_num == facts[1].rate_num && facts[0].rate_den == facts[1].rate_den &&
              facts[0].tick_count == facts[1].tick_count && facts[0].live == facts[1].live,
          "two instances with the same parameters tell different facts");
  require(facts[0].rate_num >= 0 && facts[0].rate_den >= 0, "it tells a negative rate");
  require(facts[0].rate_num == 0 || facts[0].rate_den > 0, "it tells a rate with denominator 0");
  require(facts[0].tick_count >= -1, "it tells a negative number of ticks");
  return "";
}

inline std::string ends_as_it_said(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  if (!rig.is_source()) throw Skip("it is no source");
  require_start(rig, "");
  const int64_t count = rig.test.facts().tick_count;
  if (count < 0 || count > kEndTicksMax)
    throw Skip("it tells no end within " + std::to_string(kEndTicksMax) + " ticks");
  int64_t given = 0;
  Result result = rig.tick(0);
  for (; !result.end() && given <= count; result = rig.tick(static_cast<uint64_t>(given))) {
    require_fine(rig, result, "at tick " + std::to_string(given));
    given += !result.not_yet();
  }
  require(given == count, "it told " + std::to_string(count) + " ticks and " +
                              (given > count ? "goes on behind them" : "ends after " + std::to_string(given)));
  require(rig.tick(0).end(), "asked again after its end, it begins anew");
  return "";
}

inline std::string keeps_to_max_pending(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  const uint32_t most = rig.declared().max_pending;
  require_start(rig, "");
  uint64_t owed = 0, settled = 0, next = 0;
  const auto take = [&] {
    for (const Result& result : rig.test.published()) {
      require(result.status != MR_ERROR, "a late result fails: " + words_of(result.error));
      require(result.tick.index >= next, "late results come out of the order of their ticks");
      next = result.tick.index + 1;
      require_sound_values(rig, result);
      ++settled;
    }
  };
  for (uint64_t k = 0; k < kTicks + 2ull * most; ++k) {
    const Result result = rig.tick(k);
    require_fine(rig, result, "at tick " + std::to_string(k));
    owed += result.pending();
    require(rig.test.pending() <= most, "more results are pending than it declares");
    take();
  }
  require_ok(rig, rig.test.drain(), "drain fails");
  take();
  require(settled == owed, "after drain it still owes " + std::to_string(owed - settled) + " results");
  if (most == 0) throw Skip("its results are never late");
  return "";
}

// The runtime writes new values over old ones as soon as `keeps` allows it; here they are scribbled over at once.
inline std::vector<uint64_t> seen_with_old_values(const Subject& subject, const Feed& feed, bool scribble) {
  Rig rig(subject, feed);
  require_start(rig, "");
  uint32_t keeps = 0;
  for (uint32_t p = 0; p < rig.declared().port_count; ++p) keeps = std::max(keeps, rig.declared().ports[p].keeps);
  std::deque<std::vector<Value>> past;
  std::vector<uint64_t> seen;
  for (uint64_t k = 0; k < kTicks; ++k) {
    past.push_back(rig.give(k));
    const Result result = rig.test.tick();
    require_fine(rig, result, "at tick " + std::to_string(k));
    seen.push_back(seen_of(result));
    for (const Result& late : rig.test.published()) seen.push_back(seen_of(late));
    if (past.size() <= size_t{keeps} + rig.declared().max_pending) continue;
    for (const Value& value : past.front())
      if (scribble) scramble(value.block()->data(), value.block()->capacity(), 0xDEAD + k);
    past.pop_front();
  }
  return seen;
}

inline std::string keeps_what_it_declares(const Subject& subject) {
  const Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); rig.is_source()) throw Skip("it has no inputs");
  const std::vector<uint64_t> whole = seen_with_old_values(subject, feed, false);
  if (whole != seen_with_old_values(subject, feed, false))
    throw Skip("its results differ from run to run by themselves");
  require(whole == seen_with_old_values(subject, feed, true),
          "its results depend on inputs of earlier ticks, which it has not declared with keeps()");
  return "";
}

// Each of two instances gets every other value; a third gets all. A handler without state cannot tell.
inline std::string has_no_state(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig whole(subject, feed);
  if (!(whole.declared().traits & MR_TRAIT_STATELESS)) throw Skip("it is not declared stateless");
  if (whole.is_source()) throw Skip("a source is asked for every tick");
  Rig even(subject, feed), odd(subject, feed);
  for (Rig* rig : {&whole, &even, &odd}) require_start(*rig, "");
  for (uint64_t k = 0; k < kTicks; ++k) {
    const Result all = whole.tick(k);
    require_fine(whole, all, "at tick " + std::to_string(k));
    const Result first = even.tick(k, k % 2 == 1), second = odd.tick(k, k % 2 == 0);
    require(seen_of(k % 2 == 0 ? first : second) == seen_of(all),
            "an instance that has seen other ticks before gives another result at tick " + std::to_string(k));
  }
  return "";
}

inline std::string writes_in_place_alike(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig copied(subject, feed), over(subject, feed);
  bool in_place = false;
  for (uint32_t p = 0; p < copied.declared().port_count; ++p)
    in_place = in_place || (copied.declared().ports[p].flags & MR_PORT_IN_PLACE);
  if (!in_place) throw Skip("no output is declared in place");
  over.test.allow_in_place();
  require_start(copied, "");
  require_start(over, "");
  for (uint64_t k = 0; k < kTicks; ++k) {
    const Result apart = copied.tick(k), within = over.tick(k);
    require_fine(copied, apart, "at tick " + std::to_string(k));
    require_fine(over, within, "at tick " + std::to_string(k) + ", in place");
    require(seen_of(apart) == seen_of(within), "written over its input, the result is another one");
  }
  return "";
}

// Stands between the handler and the rig, since both allocate and only one is counted. A thread checks one handler.
struct CountedCall {
  mr_status (*process)(void*, mr_tick*) = nullptr;
  const mr_host* host = nullptr;
  AllocationCounter counter;
};
inline thread_local CountedCall counted_call;

struct Uncounted {
  Uncounted() { counted_call.counter.count(false); }
  ~Uncounted() { counted_call.counter.count(true); }
};
inline mr_status allocate_uncounted(mr_tick* tick, uint32_t output, uint64_t bytes) {
  const Uncounted here;
  return counted_call.host->allocate(tick, output, bytes);
}
inline mr_status modify_uncounted(mr_tick* tick, uint32_t output, uint32_t input) {
  const Uncounted here;
  return counted_call.host->modify(tick, output, input);
}
inline mr_status adopt_uncounted(mr_tick* tick, uint32_t output, const void* data, uint64_t bytes,
                                 void (*release)(void*), void* context) {
  const Uncounted here;
  return counted_call.host->adopt(tick, output, data, bytes, release, context);
}
inline mr_status process_counted(void* self, mr_tick* tick) {
  counted_call.host = tick->host;
  mr_host host = *tick->host;
  host.allocate = &allocate_uncounted;
  host.modify = &modify_uncounted;
  host.adopt = &adopt_uncounted;
  tick->host = &host;
  counted_call.counter.count(true);
  const mr_status status = counted_call.process(self, tick);
  counted_call.counter.count(false);
  tick->host = counted_call.host;
  return status;
}

inline std::string allocates_nothing(const Subject& subject) {
  Subject counted = subject;
  const Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); !(rig.declared().traits & MR_TRAIT_NO_ALLOCATION))
    throw Skip("it is not declared to allocate nothing");
  if (!subject.allocations.count) throw Skip("this program does not count allocations");
  if (Rig rig(subject, feed); rig.declared().max_pending > 0) throw Skip("its ticks outlive the call that is counted");
  counted_call = {subject.type.process, nullptr, subject.allocations};
  counted.type.process = &process_counted;
  Rig rig(counted, feed);
  require_start(rig, "");
  // The first ticks may still fill buffers that were sized in start().
  for (uint64_t k = 0; k < 3; ++k) require_fine(rig, rig.tick(k), "at tick " + std::to_string(k));
  const uint64_t before = subject.allocations.counted();
  for (uint64_t k = 3; k < kTicks; ++k) require_fine(rig, rig.tick(k), "at tick " + std::to_string(k));
  const uint64_t allocated = subject.allocations.counted() - before;
  require(allocated == 0, "it is declared to allocate nothing and allocates " + std::to_string(allocated) +
                              " times in " + std::to_string(kTicks - 3) + " ticks");
  return "";
}

template <std::string (*Body)(const Subject&)>
Finding run(const Subject& subject) {
  return guarded(subject, Body);
}

} // namespace check

// In the order in which they help: who does not start fails the first ones.
inline constexpr std::array kHandlerChecks = {
    HandlerCheck{"described", "it has a summary, and every parameter a help", &check::run<check::described>},
    HandlerCheck{"works", "it starts, ticks, drains and stops", &check::run<check::works>},
    HandlerCheck{"facts", "two probes tell the same, and what can be", &check::run<check::probes_alike>},
    HandlerCheck{"lives-twice", "it can be started again after a stop", &check::run<check::lives_twice>},
    HandlerCheck{"restart", "stop, reset, start brings it back (on_error: restart)", &check::run<check::restarts>},
    HandlerCheck{"stop", "stop is legal without a start, and twice", &check::run<check::stops_without_start>},
    HandlerCheck{"drain", "drain is legal before the first tick, and twice", &check::run<check::drains_twice>},
    HandlerCheck{"reset", "reset is legal at any time", &check::run<check::resets>},
    HandlerCheck{"interrupt", "an interrupt in any state does no lasting harm",
                 &check::run<check::interrupted_in_every_state>},
    HandlerCheck{"interrupt-thread", "interrupts from another thread end calls and nothing else",
                 &check::run<check::interrupted_while_it_works>},
    HandlerCheck{"sizes", "inputs of odd sizes, from 1x1 to large, are taken or refused in words",
                 &check::run<check::takes_odd_sizes>},
    HandlerCheck{"pixels", "every pixel format that it declares is taken",
                 &check::run<check::takes_every_pixel_format>},
    HandlerCheck{"tensors", "every element type and number of dimensions that it declares is taken",
                 &check::run<check::takes_every_tensor_it_declares>},
    HandlerCheck{"records", "no record, one and many are taken", &check::run<check::takes_any_number_of_records>},
    HandlerCheck{"lists", "lists of edges are taken up to the declared length", &check::run<check::takes_lists>},
    HandlerCheck{"optional", "it works when optional inputs are empty or not connected",
                 &check::run<check::works_without_optional_inputs>},
    HandlerCheck{"gaps", "it works when values come now and then", &check::run<check::takes_gaps>},
    HandlerCheck{"unread", "it works when nobody reads its outputs", &check::run<check::works_unread>},
    HandlerCheck{"parameters", "the ends of ranges and all choices are taken or refused in words",
                 &check::run<check::takes_its_parameters>},
    HandlerCheck{"live", "live parameters may change between ticks", &check::run<check::changes_live>},
    HandlerCheck{"end", "a source ends where it said, and stays at its end", &check::run<check::ends_as_it_said>},
    HandlerCheck{"max_pending", "late results are at most as many as declared, in order, and settled by drain",
                 &check::run<check::keeps_to_max_pending>},
    HandlerCheck{"keeps", "no earlier input is read that was not declared", &check::run<check::keeps_what_it_declares>},
    HandlerCheck{"stateless", "two instances give what one gives", &check::run<check::has_no_state>},
    HandlerCheck{"in_place", "in place and apart give the same", &check::run<check::writes_in_place_alike>},
    HandlerCheck{"no_allocation", "process allocates nothing from the heap", &check::run<check::allocates_nothing>},
};

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
