// A handler under check with its inputs, and the conditions that every check has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "millrace/check_handler/feed.h"
#include "millrace/check_handler/subject.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {
namespace check {

// Ticks that a check runs: enough for every third and fifth to differ, few enough for a slow handler.
inline constexpr uint64_t kTicks = 12;
// Blocks larger than this are planned and not filled: 4K pictures are below it, a slip of a size far above.
inline constexpr uint64_t kBytesMax = uint64_t{96} << 20;
// A source that says it has more ticks than this is not run to its end.
inline constexpr int64_t kEndTicksMax = 200;

// Thrown if a check cannot be made. It is no fault of the handler.
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

  // True if the blocks of this setting fit into kBytesMax.
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
  // The first values also make the edges. A port needs a value for its format, even if it is empty later.
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

// Reads the handler's sentence after the call, because arguments may be evaluated in any order.
inline void require_ok(const Rig& rig, mr_status status, const char* what) {
  if (status != MR_OK) throw Fault(std::string(what) + ": it said: " + words_of(rig.test.error()));
}

// True if it starts. A refusal must have a sentence.
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

// Every value must fit its port's format.
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

// A hash of the visible part of a value: padding of a block does not count.
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

// A feed with which the handler starts. If there is none, `refusal` is the handler's sentence.
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

// A handler that does not start fails the check `works`; the other checks are skipped.
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

} // namespace check
} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
