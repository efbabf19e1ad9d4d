// Holds the table of record types that can be text; see layout.h.
#include "handlers/record/layout.h"

#include <millrace/handler.h>
#include <millrace/payload/marks.h>
#include <millrace/payload/patch_transform.h>
#include <millrace/payload/view.h>

#include <array>

#include "handlers/stats/latency_window.h"
#include "handlers/stats/rate_meter.h"
#include "handlers/tensor/class_score.h"

namespace millrace::handlers {

namespace {

template <Record T>
RecordLayout known_layout(uint32_t required_count) {
  static const T defaults{};
  const mr_record_type& type = *record_type_of<T>();
  return {T::kSchema, sizeof(T), layout_of<T>(), {type.fields, type.field_count}, &defaults, required_count};
}

} // namespace

std::span<const RecordLayout> known_layouts() {
  static const std::array table = {
      known_layout<Box>(4),        known_layout<Rate>(1),           known_layout<Latency>(3),
      known_layout<Class>(2),      known_layout<PatchTransform>(6), known_layout<Point>(2),
      known_layout<Link>(2),       known_layout<Mark>(2),           known_layout<ViewEvent>(1),
      known_layout<ViewCamera>(0), known_layout<ViewLook>(0),       known_layout<ViewDims>(0)};
  return table;
}

std::optional<RecordLayout> layout_of_format(const mr_format& format) {
  if (const RecordLayout* known = find_layout(known_layouts(), format.schema)) return *known;
  const mr_record_type* type = format.records;
  if (!type || type->field_count == 0 || schema_of(type->name) != format.schema) return std::nullopt;
  return RecordLayout{type->name,    static_cast<uint32_t>(format.record_size),
                      format.layout, {type->fields, type->field_count},
                      nullptr,       0};
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
