// Writes one tick's records as one line of JSON, and reads it back.
//
//   {"tick":7,"time_ns":280000000,"schema":"millrace.Box","records":[{"x":1.5,"y":2,"width":30,"height":40,…}]}
//
// Numbers are written so that they read back as the same bits; NaN is null, and infinity is ±1e999. Reading takes any
// JSON with these keys, in any order, and skips others. "tick" and "time_ns" may be missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handlers/record/layout.h"

namespace millrace::handlers {

struct RecordLine {
  std::optional<uint64_t> tick;
  std::optional<int64_t> time_ns;
  const RecordLayout* layout = nullptr;
  uint64_t count = 0;
  std::vector<uint8_t> bytes; // count · layout->record_size
};

// Appends the line and its line break. `records` holds `count` records of this layout.
void append_record_line(std::string& text, uint64_t tick, int64_t time_ns, const RecordLayout& layout,
                        const uint8_t* records, uint64_t count);

// Reads one line into `line`, whose memory is reused. Throws JsonError; the content of `line` is useless then.
void read_record_line(std::string_view text, std::span<const RecordLayout> layouts, RecordLine& line);

} // namespace millrace::handlers
