// The table of record types that can be text; see layout.h.
#include "handlers/record/layout.h"

#include <millrace/handler.h>

#include <array>
#include <cstddef>

#include "handlers/stats/latency_window.h"
#include "handlers/stats/rate_meter.h"

namespace millrace::handlers {

namespace {

template <Record T>
RecordLayout layout_of(std::span<const Field> fields) {
  static const T defaults{};
  const mr_format format = detail::make_port<Records<T>>(MR_INPUT, "").port.accepts;
  return {T::kSchema, sizeof(T), format.layout, fields, &defaults};
}

constexpr std::array kBoxFields = {
    Field{"x", FieldType::f32, offsetof(Box, x), true},
    Field{"y", FieldType::f32, offsetof(Box, y), true},
    Field{"width", FieldType::f32, offsetof(Box, width), true},
    Field{"height", FieldType::f32, offsetof(Box, height), true},
    Field{"score", FieldType::f32, offsetof(Box, score), false},
    Field{"label", FieldType::i32, offsetof(Box, label), false},
    Field{"id", FieldType::i64, offsetof(Box, id), false},
};
constexpr std::array kRateFields = {
    Field{"per_second", FieldType::f64, offsetof(Rate, per_second), true},
    Field{"span_ns", FieldType::i64, offsetof(Rate, span_ns), false},
    Field{"interval_count", FieldType::i64, offsetof(Rate, interval_count), false},
};
constexpr std::array kLatencyFields = {
    Field{"p50_us", FieldType::f64, offsetof(Latency, p50_us), true},
    Field{"p99_us", FieldType::f64, offsetof(Latency, p99_us), true},
    Field{"max_us", FieldType::f64, offsetof(Latency, max_us), true},
    Field{"count", FieldType::i64, offsetof(Latency, count), false},
};

} // namespace

std::span<const RecordLayout> known_layouts() {
  static const std::array table = {layout_of<Box>(kBoxFields), layout_of<Rate>(kRateFields),
                                   layout_of<Latency>(kLatencyFields)};
  return table;
}

const RecordLayout* find_layout(std::span<const RecordLayout> layouts, std::string_view schema) {
  for (const RecordLayout& layout : layouts)
    if (layout.schema == schema) return &layout;
  return nullptr;
}

const RecordLayout* find_layout(std::span<const RecordLayout> layouts, uint64_t schema) {
  for (const RecordLayout& layout : layouts)
    if (schema_of(layout.schema) == schema) return &layout;
  return nullptr;
}

std::string list_layouts(std::span<const RecordLayout> layouts) {
  std::string text;
  for (const RecordLayout& layout : layouts) text += (text.empty() ? "" : ", ") + std::string(layout.schema);
  return text;
}

} // namespace millrace::handlers
