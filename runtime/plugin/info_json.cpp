// See info_json.h. A struct of the C boundary is listed field by field, once for both directions.
#include "plugin/info_json.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "observe/error.h"
#include "plugin/field_count.h"
#include "plugin/whole.h"

namespace millrace::plugin {

namespace {

using nlohmann::json;

// Calls `each(name, field)` for every field of a format except its record type. The compiler does not notice a field
// that is missing here, but a test does (tests/plugin/info_json.cpp).
template <class Format, class Each>
void each_field(Format& f, const Each& each) {
  each("kind", f.kind);
  each("schema", f.schema);
  each("layout", f.layout);
  each("pixel_formats", f.pixel_formats);
  each("width", f.width);
  each("height", f.height);
  each("size_kind", f.size_kind);
  each("color", f.color);
  each("range", f.range);
  each("dtype_code", f.dtype_code);
  each("dtype_bits", f.dtype_bits);
  each("dtype_lanes", f.dtype_lanes);
  each("rank", f.rank);
  each("shape", f.shape);
  each("shape_kind", f.shape_kind);
  each("record_size", f.record_size);
  each("record_count_max", f.record_count_max);
  each("bytes_max", f.bytes_max);
  each("primaries", f.primaries);
  each("transfer", f.transfer);
  each("aspect_num", f.aspect_num);
  each("aspect_den", f.aspect_den);
  each("turn", f.turn);
  each("held", f.held);
  each("adopted", f.adopted);
  each("dtypes", f.dtypes);
  each("ranks", f.ranks);
}

template <class T>
bool is_nothing(const T& value) {
  return value == 0;
}
template <class T, size_t N>
bool is_nothing(const T (&values)[N]) {
  for (const T& value : values)
    if (value != 0) return false;
  return true;
}

json range_end(double end) { return std::isfinite(end) ? json(end) : json(); }
double read_range_end(const json& end, double otherwise) { return end.is_null() ? otherwise : end.get<double>(); }

json port_json(const HandlerInfo::Port& port) {
  json out = {{"name", port.name},
              {"help", port.help},
              {"type_name", port.type_name},
              {"direction", port.raw.direction},
              {"accepts", to_json(port.raw.accepts)},
              {"flags", port.raw.flags},
              {"memory", port.raw.memory},
              {"many_max", port.raw.many_max},
              {"keeps", port.raw.keeps},
              {"like", port.raw.like}};
  if (port.records) out["records"] = to_json(port.records->raw);
  return out;
}

HandlerInfo::Port port_from(const json& in) {
  HandlerInfo::Port port{in.at("name"), in.at("help"), in.at("type_name")};
  port.raw.size = sizeof(mr_port);
  port.raw.direction = Whole{in.at("direction")};
  port.raw.accepts = read_format(in.at("accepts"));
  port.raw.flags = Whole{in.at("flags")};
  port.raw.memory = Whole{in.at("memory")};
  port.raw.many_max = Whole{in.at("many_max")};
  port.raw.keeps = Whole{in.at("keeps")};
  port.raw.like = Whole{in.at("like")};
  if (in.contains("records")) {
    port.records = read_record_type(in["records"]);
    port.raw.accepts.records = &port.records->raw;
  }
  return port;
}

json param_json(const HandlerInfo::Param& param) {
  return {{"name", param.name},
          {"help", param.help},
          {"unit", param.unit},
          {"default", param.default_text},
          {"choices", param.choices},
          {"type", param.raw.type},
          {"value", param.raw.type == MR_PARAM_FLOAT ? json(param.raw.default_value.as.real)
                                                     : json(param.raw.default_value.as.integer)},
          {"min", range_end(param.raw.min)},
          {"max", range_end(param.raw.max)},
          {"flags", param.raw.flags},
          {"role", param.raw.role},
          {"object", param.object}};
}

HandlerInfo::Param param_from(const json& in) {
  HandlerInfo::Param param{in.at("name"), in.at("help"), in.at("unit"), in.at("default"), in.at("choices")};
  param.raw.size = sizeof(mr_param);
  param.raw.type = param.raw.default_value.type = Whole{in.at("type")};
  if (param.raw.type == MR_PARAM_FLOAT)
    param.raw.default_value.as.real = in.at("value");
  else if (param.raw.type == MR_PARAM_BOOL || param.raw.type == MR_PARAM_INT)
    param.raw.default_value.as.integer = Whole{in.at("value")};
  param.raw.min = read_range_end(in.at("min"), -std::numeric_limits<double>::infinity());
  param.raw.max = read_range_end(in.at("max"), std::numeric_limits<double>::infinity());
  param.raw.flags = Whole{in.at("flags")};
  param.raw.role = Whole{in.at("role")};
  param.object = in.at("object");
  return param;
}

} // namespace

json to_json(const HandlerInfo::Param& param, const mr_param_value& value, const std::string& text) {
  switch (param.raw.type) {
    case MR_PARAM_BOOL: return value.as.boolean != 0;
    case MR_PARAM_INT: return value.as.integer;
    case MR_PARAM_FLOAT: return value.as.real;
    default: return text;
  }
}

namespace {

template <class Field>
void read_field(const json& in, Field& field) {
  if constexpr (std::is_array_v<Field>)
    for (size_t i = 0; i < std::size(field); ++i) read_field(in.at(i), field[i]);
  else if constexpr (std::is_integral_v<Field>)
    field = Whole{in};
  else
    in.get_to(field);
}

} // namespace

json to_json(const mr_format& format) {
  json out = json::object();
  each_field(format, [&](const char* name, const auto& field) {
    if (!is_nothing(field)) out[name] = field;
  });
  return out;
}

mr_format read_format(const json& in) {
  mr_format format{};
  format.size = sizeof(mr_format);
  each_field(format, [&](const char* name, auto& field) {
    if (const auto at = in.find(name); at != in.end()) read_field(*at, field);
  });
  if (format.rank > MR_RANK_MAX)
    throw Failure(code::bad_saved_plan, "a format has " + std::to_string(format.rank) + " dimensions, at most " +
                                            std::to_string(MR_RANK_MAX) + " are possible");
  return format;
}

json to_json(const mr_record_type& type) {
  json fields = json::array();
  for (uint32_t f = 0; f < type.field_count; ++f) {
    const mr_field& field = type.fields[f];
    fields.push_back({field.name, field.offset, field.count, field.dtype_code, field.dtype_bits});
  }
  return {{"name", type.name}, {"fields", std::move(fields)}};
}

std::shared_ptr<const RecordType> read_record_type(const json& in) {
  const std::string name = in.at("name");
  const json& listed = in.at("fields");
  std::vector<std::string> names;
  std::vector<mr_field> fields;
  for (const json& field : listed) {
    names.push_back(field.at(0));
    fields.push_back({nullptr, Whole{field.at(1)}, Whole{field.at(2)}, Whole{field.at(3)}, Whole{field.at(4)}, 0, 0});
  }
  for (size_t f = 0; f < fields.size(); ++f) fields[f].name = names[f].c_str();
  return std::make_shared<RecordType>(mr_record_type{sizeof(mr_record_type), static_cast<uint32_t>(fields.size()),
                                                     name.c_str(), fields.data()}); // copies all of it
}

json to_json(const mr_facts& facts) {
  static_assert(field_count<mr_facts>() == 12, "each field of mr_facts is written and read, but its size");
  return {facts.live,  facts.rate_num, facts.rate_den, facts.tick_count,  facts.cost_cpu_ns, facts.cost_gpu_ns,
          facts.waits, facts.time_num, facts.time_den, facts.no_gpu_body, facts.follows};
}

mr_facts read_facts(const json& in) {
  return {sizeof(mr_facts), Whole{in.at(0)}, Whole{in.at(1)}, Whole{in.at(2)}, Whole{in.at(3)}, Whole{in.at(4)},
          Whole{in.at(5)},  Whole{in.at(6)}, Whole{in.at(9)}, Whole{in.at(7)}, Whole{in.at(8)}, Whole{in.at(10)}};
}

json to_json(const HandlerInfo& info) {
  json out = {{"type", info.type},
              {"summary", info.summary},
              {"manual", info.manual},
              {"plugin", info.plugin},
              {"path", info.path},
              {"traits", info.traits},
              {"max_pending", info.max_pending},
              {"gap", info.gap},
              {"items_max", info.items_max},
              {"has_state", info.has_state},
              {"thread", info.thread},
              {"cost_hint_ns", info.cost_hint_ns}};
  out["ports"] = out["params"] = json::array();
  for (const HandlerInfo::Port& port : info.ports) out["ports"].push_back(port_json(port));
  for (const HandlerInfo::Param& param : info.params) out["params"].push_back(param_json(param));
  return out;
}

HandlerInfo read_handler_info(const json& in) {
  static_assert(field_count<HandlerInfo>() == 14, "each field of HandlerInfo is written and read");
  HandlerInfo info{in.at("type"),
                   in.at("summary"),
                   in.at("manual"),
                   in.at("plugin"),
                   in.at("path"),
                   Whole{in.at("traits")},
                   Whole{in.at("max_pending")},
                   Whole{in.at("gap")},
                   Whole{in.at("items_max")},
                   in.at("has_state").get<bool>(),
                   in.at("thread"),
                   Whole{in.at("cost_hint_ns")},
                   {},
                   {}};
  for (const json& port : in.at("ports")) info.ports.push_back(port_from(port));
  for (const json& param : in.at("params")) info.params.push_back(param_from(param));
  return info;
}

} // namespace millrace::plugin
