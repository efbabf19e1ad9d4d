// The result of one firing of a handler under test, its settings and what it logs.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/testing/value.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

// A parameter as the pipeline file would give it.
struct Setting {
  std::string name, text;
};

// A line that the handler logged.
struct LogLine {
  uint32_t level;
  std::string sentence;
};

// One settled firing. Values stay alive as long as the result or a copy of them.
class Result {
 public:
  mr_status status = MR_OK;
  std::string error; // the sentence, if status is MR_ERROR
  bool fired = true; // false: a required input was empty, so the handler was not called
  mr_tick_info tick{};

  bool ok() const { return status == MR_OK; }
  bool pending() const { return status == MR_PENDING; }
  bool not_yet() const { return status == MR_NOT_YET; }
  bool end() const { return status == MR_END; }

  // True if the output carries a value.
  bool has(std::string_view port) const { return bool(find(port).value); }
  // The way the output got its value: MR_OUTPUT_SILENT, _OWN, _FORWARDED, _ADOPTED.
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

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
