// Describes record types that can be text: the fields of their records, as the types themselves declare them.
//
// Built-in types are in a table, which also has the facts that reading needs. A type of a plugin that has `fields()` is
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
  uint64_t layout;         // the layout hash in a value's header
  std::span<const mr_field> fields;
  const void* defaults;    // a record with default values; null: the type cannot be read
  uint32_t required_count; // the first so many fields must be in the text; the others may have their defaults
};

// The layout of a port's records: from the table, else from the fields that the type declares; none if it declares
// none.
std::optional<RecordLayout> layout_of_format(const mr_format& format);

std::span<const RecordLayout> known_layouts();

// The row of this name, or of the hash that headers and formats carry; null if there is none.
const RecordLayout* find_layout(std::span<const RecordLayout> layouts, std::string_view schema);
const RecordLayout* find_layout(std::span<const RecordLayout> layouts, uint64_t schema);
// "millrace.Box, …", for error messages.
std::string list_layouts(std::span<const RecordLayout> layouts);

} // namespace millrace::handlers
