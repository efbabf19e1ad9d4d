// What is in the records that handlers exchange, field by field: the table that text is written and read by.
//
// A record is a trivially copyable struct and does not describe itself. Each type that is to be written as text has a
// row here; a new one is a list of fields in layout.cpp and a line in the table.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace::handlers {

enum class FieldType : uint8_t { f32, f64, i32, i64 };
constexpr uint32_t bytes_of(FieldType type) { return type == FieldType::f32 || type == FieldType::i32 ? 4 : 8; }

struct Field {
  std::string_view name;
  FieldType type;
  uint32_t offset; // bytes from the record's first
  bool required;   // text without it is damaged; else the default stands
};

struct RecordLayout {
  std::string_view schema; // "millrace.Box"
  uint32_t record_size;    // bytes
  uint64_t layout;         // as a value's header has it
  std::span<const Field> fields;
  const void* defaults; // a record of the type
};

std::span<const RecordLayout> known_layouts();

// The row of this name, or of the hash that headers and formats carry; null where there is none.
const RecordLayout* find_layout(std::span<const RecordLayout> layouts, std::string_view schema);
const RecordLayout* find_layout(std::span<const RecordLayout> layouts, uint64_t schema);
// "millrace.Box, …", for sentences.
std::string list_layouts(std::span<const RecordLayout> layouts);

} // namespace millrace::handlers
