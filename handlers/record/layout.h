// Record types that can be text: what is in their records, field by field, as the types themselves say it.
//
// Built-in types are in a table, with what reading needs beside their fields. A type of a plugin that has `fields()` is
// described by the format of the port that it comes from, and can be written.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace::handlers {

struct RecordLayout {
  std::string_view schema; // "millrace.Box"
  uint32_t record_size;    // bytes
  uint64_t layout;         // as a value's header has it
  std::span<const mr_field> fields;
  const void* defaults;    // a record of the type; null: it is not read
  uint32_t required_count; // fields, from the first on, without which text is damaged; for others the default stands
};

// Of a port's records: from the table, else by what the type says; none where it says nothing.
std::optional<RecordLayout> layout_of_format(const mr_format& format);

std::span<const RecordLayout> known_layouts();

// The row of this name, or of the hash that headers and formats carry; null where there is none.
const RecordLayout* find_layout(std::span<const RecordLayout> layouts, std::string_view schema);
const RecordLayout* find_layout(std::span<const RecordLayout> layouts, uint64_t schema);
// "millrace.Box, …", for sentences.
std::string list_layouts(std::span<const RecordLayout> layouts);

} // namespace millrace::handlers
