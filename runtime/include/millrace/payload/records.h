// Records: a vector of trivially copyable structs, with its count inside the buffer; and Box, the record of detectors.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "millrace/abi.h"
#include "millrace/payload/tensor.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// FNV-1a, 64 bit: names payload schemas across plugins and machines.
constexpr uint64_t schema_of(std::string_view name) {
  uint64_t hash = 14695981039346656037ull;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// A record type names its schema once: `static constexpr std::string_view kSchema = "millrace.Box";`
template <class T>
concept Record = std::is_trivially_copyable_v<T> && requires {
  { T::kSchema } -> std::convertible_to<std::string_view>;
};

// Differs for two types of one name that have different memory layouts.
template <Record T>
constexpr uint64_t layout_of() {
  return schema_of(T::kSchema) ^ (sizeof(T) * 31 + alignof(T));
}

// A field of a record type, for its `fields()`: field("x", &Spot::x). A number, or an array of numbers.
template <class T, class M>
mr_field field(const char* name, M T::*member) {
  using Number = std::remove_extent_t<M>;
  static_assert(std::is_arithmetic_v<Number> && std::rank_v<M> <= 1, "a field is a number or an array of numbers");
  const T record = std::bit_cast<T>(std::array<unsigned char, sizeof(T)>{});
  const auto* const first = reinterpret_cast<const unsigned char*>(&record);
  const auto* const at = reinterpret_cast<const unsigned char*>(&(record.*member));
  constexpr DType dtype = dtype_of<Number>();
  return {name,
          static_cast<uint32_t>(at - first),
          std::is_array_v<M> ? uint32_t{std::extent_v<M>} : 1u,
          dtype.code,
          dtype.bits,
          0,
          0};
}

// The description of a record type that has `static std::vector<mr_field> fields()`; null for any other type. Handlers
// that show records use it to show fields.
template <Record T>
const mr_record_type* record_type_of() {
  if constexpr (requires { std::vector<mr_field>(T::fields()); }) {
    static const std::vector<mr_field> fields = T::fields();
    static const std::string name(T::kSchema);
    static const mr_record_type type = {sizeof(mr_record_type), static_cast<uint32_t>(fields.size()), name.c_str(),
                                        fields.data()};
    return &type;
  } else {
    return nullptr;
  }
}

// A rectangle in pixels of the picture it belongs to, with what a detector or tracker knows about it.
struct Box {
  static constexpr std::string_view kSchema = "millrace.Box";
  float x = 0, y = 0, width = 0, height = 0; // left, top, extent; pixels
  float score = 0;                           // 0…1
  int32_t label = -1;                        // class; -1: none
  int64_t id = -1;                           // track; -1: none
  static std::vector<mr_field> fields() {
    return {field("x", &Box::x),           field("y", &Box::y),         field("width", &Box::width),
            field("height", &Box::height), field("score", &Box::score), field("label", &Box::label),
            field("id", &Box::id)};
  }
};

// The type of a port that carries records: Input<Records<Box>>.
template <Record T>
struct Records {
  using View = std::span<const T>;
  using Span = std::span<T>;
  using Element = T;
  static constexpr uint32_t kKind = MR_KIND_RECORDS;
  static constexpr std::string_view kSchema = T::kSchema;
  static std::string type_name() {
    const std::string_view full = T::kSchema;
    return "Records<" + std::string(full.substr(full.rfind('.') + 1)) + ">";
  }
  static View view(const mr_input& input) {
    return {reinterpret_cast<const T*>(input.data), static_cast<size_t>(input.value->as.records.count)};
  }
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
